"""A small shop: what the chunker makes of an ordinary Python module."""

from __future__ import annotations

import json
from dataclasses import dataclass

CURRENCY = "EUR"
RATES = {
    "EUR": 1.0,
    "USD": 1.08,
}


def cents(amount):
    return round(amount * 100)


def euros(amount):
    return amount / 100


# Prices are kept in cents, because a float loses some of them on the way.
@dataclass
class Item:
    """One thing for sale."""

    name: str
    price: int


class Basket:
    """What a customer wants to buy.

    A basket belongs to one customer and lives as long as the session. It never talks to the
    database: the checkout does, when the customer has decided.
    """

    limit = 50

    def __init__(self, customer):
        self.customer = customer
        self.items = []

    def add(self, item, count=1):
        """Put an item in, several times if need be.

        A basket that is full refuses: nobody carries more than the limit home, and those who try are testing the
        shop.
        """
        if len(self.items) + count > self.limit:
            raise ValueError(f"no more than {self.limit} items, {self.customer}")
        for _ in range(count):
            self.items.append(item)
        return self

    def total(self, currency=CURRENCY):
        """The sum in a currency, after the discount for those who buy much."""
        rate = RATES[currency]
        amount = sum(item.price for item in self.items)
        if len(self.items) > 10:
            amount *= 0.9
        return euros(amount) * rate

    def __len__(self):
        return len(self.items)


def receipt(basket, currency=CURRENCY):
    """Print what was bought."""

    def line(item):
        return f"{item.name:30} {euros(item.price):8.2f}"

    lines = [line(item) for item in basket.items]
    lines.append("-" * 39)
    lines.append(f"{'total':30} {basket.total(currency):8.2f} {currency}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(receipt(Basket("me").add(Item("tea", 350))))

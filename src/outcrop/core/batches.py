"""Work through many items a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def in_batches(sized: Iterable[tuple[Item, int]], most_bytes: int, most_items: int = 500) -> Iterator[list[Item]]:
    """Lists of at most ``most_items`` items and ``most_bytes`` bytes; a larger item is alone in its list.

    Args:
        sized: Each item with its bytes.
    """
    batch: list[Item] = []
    total = 0
    for item, size in sized:
        if batch and (total + size > most_bytes or len(batch) == most_items):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch

"""Work through many items a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

# Passages that are written at a time, roughly.
WRITE_CHUNKS = 10_000


def slices(items: Sequence[Item], length: int) -> Iterator[Sequence[Item]]:
    """Parts of a sequence, each of this length but the last."""
    return (items[start : start + length] for start in range(0, len(items), length))


def in_batches(sized: Iterable[tuple[Item, int]], most: int, most_items: int = 500) -> Iterator[list[Item]]:
    """Lists of items (each given with its size), each closed by the item with which it reaches a limit."""
    batch: list[Item] = []
    total = 0
    for item, size in sized:
        batch.append(item)
        total += size
        if total >= most or len(batch) >= most_items:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch

"""A stretch of an artifact: the lines that were asked for, and some around them. For the viewer and the API."""

from __future__ import annotations

import re
from collections.abc import Sequence

from outcrop.app.documents import Block, Document, Excerpt
from outcrop.errors import UsageError

_RANGE = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")


def parse_lines(text: str) -> tuple[int, int] | None:
    """``12`` or ``12-40``; None for nothing."""
    if not text:
        return None
    match = _RANGE.fullmatch(text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise UsageError(f"lines cannot be {text[:40]!r}", "Write them as 12 or 12-40")
    return int(match[1]), int(match[2] or match[1])


def excerpt_of(document: Document, lines: tuple[int, int] | None, cell: int | None, around: int = 0) -> Excerpt:
    """Cut an excerpt out of a document.

    Args:
        document: What to cut.
        lines: First and last line, or None for a whole block.
        cell: 0-based number of the cell that they count in; None where there are no cells.
        around: Lines more, above and below.
    """
    block = _block(document.blocks, lines, cell)
    first, last = lines or (block.first_line, block.last_line)
    if first > block.last_line:
        raise UsageError(f"there is no line {first:,}: the last one is {block.last_line:,}", "Ask for fewer")
    return block.excerpt(first, last, around)


def _block(blocks: Sequence[Block], lines: tuple[int, int] | None, cell: int | None) -> Block:
    found = [block for block in blocks if block.cell == cell or cell is None]
    if not found:
        raise UsageError(f"there is no cell {(cell or 0) + 1}", "Leave it out to see everything")
    if lines is None:
        return found[0]
    reached = [block for block in found if block.first_line <= lines[0]]
    return reached[-1] if reached and found[0].cell is None else found[0]

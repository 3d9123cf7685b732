"""Line ranges of an artifact, for the viewer and the API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from outcrop.app.documents import Block, Document
from outcrop.errors import UsageError

_RANGE = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Whole lines of one block. Lines are 1-based and inclusive, inside the cell for a notebook.

    Attributes:
        lowest: First line of the block.
        highest: Last line of the block.
        cell: 0-based cell number in a notebook, else None.
    """

    text: str
    first_line: int
    last_line: int
    lowest: int
    highest: int
    cell: int | None


def parse_lines(text: str) -> tuple[int, int] | None:
    """``12`` or ``12-40``; None for an empty text."""
    if not text:
        return None
    match = _RANGE.fullmatch(text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise UsageError(f"lines cannot be {text[:40]!r}", "Write them as 12 or 12-40")
    return int(match[1]), int(match[2] or match[1])


def excerpt_of(document: Document, lines: tuple[int, int] | None, cell: int | None, around: int = 0) -> Excerpt:
    """Lines of a document (None: of a whole block), in a 0-based cell, and ``around`` more above and below."""
    block = _block(document.blocks, lines, cell)
    every = split_lines(block.text)
    lowest, highest = block.first_line, block.first_line + len(every) - 1
    first, last = lines or (lowest, highest)
    if first > highest:
        raise UsageError(f"there is no line {first:,}: the last one is {highest:,}", "Ask for fewer")
    first, last = max(lowest, first - around), min(highest, last + around)
    return Excerpt("\n".join(every[first - lowest : last - lowest + 1]), first, last, lowest, highest, block.cell)


def split_lines(text: str) -> list[str]:
    """Lines as chunking counts them: a newline at the end starts no line."""
    return text.removesuffix("\n").split("\n")


def _block(blocks: Sequence[Block], lines: tuple[int, int] | None, cell: int | None) -> Block:
    found = [block for block in blocks if block.cell == cell or cell is None]
    if not found:
        raise UsageError(f"there is no cell {(cell or 0) + 1}", "Leave it out to see everything")
    if lines is None:
        return found[0]
    started = [block for block in found if block.first_line <= lines[0]]
    return started[-1] if started and found[0].cell is None else found[0]

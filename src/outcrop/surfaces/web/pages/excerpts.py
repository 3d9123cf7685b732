"""Line ranges of an artifact, for the viewer and the API."""

from __future__ import annotations

import re

from outcrop.app.documents import Document, Excerpt
from outcrop.errors import UsageError

_RANGE = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")


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
    found = [block for block in document.blocks if block.cell == cell or cell is None]
    if not found:
        raise UsageError(f"there is no cell {(cell or 0) + 1}", "Leave it out to see everything")
    block = found[0]
    if lines is not None and block.cell is None:
        block = next((each for each in reversed(found) if each.first_line <= lines[0]), block)
    first, last = lines or (block.first_line, block.last_line)
    if first > block.last_line:
        raise UsageError(f"there is no line {first:,}: the last one is {block.last_line:,}", "Ask for fewer")
    return block.excerpt(first, last, around)

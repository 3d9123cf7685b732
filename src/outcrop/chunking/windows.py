"""Text without a structure: windows that overlap, so that a passage that one cut divides is whole in another window."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from outcrop.chunking.rows import CEILING, Slice, TextRows
from outcrop.text.tokenizer import count

# Tokens that a window shares with the one before it.
OVERLAP = CEILING // 4


def cut_windows(text: str) -> list[Slice]:
    """Windows of as many rows as fit; each begins about a quarter before the end of the last one."""
    whole = TextRows(text)
    cuts: list[int] = []
    for row in range(len(whole)):
        if whole.weight(row, row + 1) > OVERLAP:
            cuts += whole.cuts_in_row(row, OVERLAP)
    rows = TextRows(text, cuts) if cuts else whole
    slices: list[Slice] = []
    first = 0
    while first < len(rows):
        if rows.blank(first):
            first += 1
            continue
        stop = max(bisect_right(rows.sums, rows.sums[first] + CEILING) - 1, first + 1)
        start = rows.starts[first]
        # A word that is cut in two weighs more in one piece than the sum says.
        while cuts and stop > first + 1 and count(text[start : rows.starts[stop]]) > CEILING:
            stop -= 1
        slices.append((start, start + len(text[start : rows.starts[stop]].rstrip()), None))
        if rows.blank_between(stop, len(rows)):
            break
        # At least one row forward, and never past the end of this window.
        back = bisect_left(rows.sums, rows.sums[stop] - OVERLAP)
        first = min(max(back, first + 1), stop)
    return slices

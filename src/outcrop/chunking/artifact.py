"""The text of an artifact to chunks, in this process."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from outcrop.chunking import cut_commit, format_of, headings
from outcrop.chunking.code import cut_code
from outcrop.chunking.markup import cut_markup, cut_posts
from outcrop.chunking.notebook import NotebookCell, cut_notebook, cut_percent_script, is_percent_script, read_cells
from outcrop.chunking.rows import CEILING, Slice, TextRows
from outcrop.chunking.transcripts import cut_transcript
from outcrop.core.model import Chunk, Kind, Part
from outcrop.text import filetypes
from outcrop.text.tokenizer import count
from outcrop.text.transcripts import is_silent

# Tokens that a window shares with the one before it.
OVERLAP = CEILING // 4

# Characters of a first line that names a program: Linux reads as many.
_LONGEST_SHEBANG = 256
_SHEBANG = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(?:\S*/)?([a-zA-Z]+)")


def chunk(text: str, path: str | None, kind: Kind) -> list[Chunk]:
    """Chunks of at most :data:`CEILING` tokens, in order; none for a blank text.

    Outside of ``windows`` the chunks do not overlap, and every character that is not blank is in exactly one. Lines end
    at ``\\n`` only.
    """
    form = format_of(path, kind)
    if form == "transcript":
        if (timed := cut_transcript(text)) or is_silent(text):
            return timed
        form = "text"
    return _chunks(_cells(text, form))


def chunk_by_lines(text: str, path: str | None, kind: Kind) -> list[Chunk]:
    """The same in windows, whatever the format, in time and memory that are proportional to the text.

    A commit stays whole.
    """
    if kind is Kind.COMMIT:
        return cut_commit(text)
    cells: Iterable[NotebookCell] = [NotebookCell(None, Part.WHOLE, text, [])]
    if format_of(path, kind) == "notebook":
        cells = read_cells(text)
    return _chunks(replace(cell, slices=_cut_windows(cell.source)) for cell in cells)


def _chunks(cells: Iterable[NotebookCell]) -> list[Chunk]:
    chunks: list[Chunk] = []
    source, newlines = None, list[int]()
    for cell in cells:
        # All cells of a percent script have the whole file as their source.
        if cell.source is not source:
            source = cell.source
            newlines = [found.start() for found in re.finditer("\n", source)]
        for start, end, name in cell.slices:
            first = bisect_left(newlines, start) + 1
            last = bisect_right(newlines, end - 1, lo=first - 1) + 1
            body = cell.source[start:end]
            chunks.append(Chunk(len(chunks), body, start, end, first, last, name, cell.part, cell.number, cell.cell_id))
    return chunks


def _cells(text: str, form: str) -> Iterator[NotebookCell]:
    if form == "notebook":
        yield from cut_notebook(text)
    elif form == "python" and is_percent_script(text):
        yield from cut_percent_script(text)
    elif text.strip():
        yield NotebookCell(None, Part.WHOLE, text, _cut(text, form))


def _cut(text: str, form: str) -> list[Slice]:
    if form == "windows":
        interpreter = _SHEBANG.match(text, 0, _LONGEST_SHEBANG)
        language = filetypes.INTERPRETERS.get(interpreter[1].lower()) if interpreter else None
        return cut_code(text, language) if language else _cut_windows(text)
    if form == "posts":
        return cut_posts(text)
    if form in headings.FORMATS:
        return cut_markup(text, form)
    return cut_code(text, form)


def _cut_windows(text: str) -> list[Slice]:
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

"""Artifacts to chunks. Boundaries depend on the text, its format and :data:`VERSION`, and on nothing else.

``rows.py`` weighs rows and finds the best cut; ``pack.py`` turns nested definitions into slices; ``code.py`` and
``outline.py`` find the definitions, ``markup.py`` the sections, ``notebook.py`` the cells, ``timed.py`` what is said
when; ``windows.py`` has the rest.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from outcrop.chunking import headings
from outcrop.chunking.code import cut_code
from outcrop.chunking.markup import cut_markup, cut_posts
from outcrop.chunking.notebook import Cell, cut_notebook, cut_percent_script, is_percent_script
from outcrop.chunking.rows import CEILING, Slice
from outcrop.chunking.transcripts import cut_transcript
from outcrop.chunking.windows import cut_windows
from outcrop.core.model import Chunk, Kind, Part
from outcrop.text import filetypes
from outcrop.text.transcripts import is_silent

__all__ = ["CEILING", "VERSION", "chunk", "format_of", "passage"]

# Raised with every change of boundaries or names: an index made by another version is made anew.
VERSION = 2

_BY_KIND = {
    Kind.WIKI: "wiki",
    Kind.TECHNOTE: "wiki",
    Kind.TICKET: "posts",
    Kind.FORUM: "posts",
    Kind.MEDIA: "transcript",
}
_SHEBANG = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(?:\S*/)?([a-zA-Z]+)")


def format_of(path: str | None, kind: Kind) -> str:
    """The format that decides how a text is cut. One text in one format always gives the same chunks.

    Args:
        path: Where the artifact is, or None.
        kind: What it is. Wiki pages, technotes, tickets, posts and transcripts are cut by their kind alone.

    Returns:
        The name of a language or prose format; ``notebook``; ``posts``; ``transcript``; ``windows`` for anything else.
    """
    by_kind = _BY_KIND.get(kind)
    if by_kind:
        return by_kind
    found = filetypes.by_path(path) if path else None
    if found:
        return found
    return "windows" if kind in {Kind.CODE, Kind.API} else "markdown" if kind is Kind.INSTRUCTION else "text"


def chunk(text: str, path: str | None, kind: Kind) -> list[Chunk]:
    """Cut an artifact into slices small enough to embed and to cite whole.

    Outside of ``windows`` the chunks do not overlap and every character that is not blank lies in exactly one.

    Args:
        text: The artifact, newlines as ``\\n``; other line ends are ordinary characters.
        path: Where it is; only :func:`format_of` looks at it.
        kind: What it is.

    Returns:
        Chunks in order, ``seq`` from 0, each at most :data:`CEILING` tokens; none for a blank text.
    """
    form = format_of(path, kind)
    if form == "transcript":
        if (timed := cut_transcript(text)) or is_silent(text):
            return timed
        form = "text"
    chunks: list[Chunk] = []
    for cell in _cells(text, form):
        newlines = [found.start() for found in re.finditer("\n", cell.source)]
        for start, end, name in cell.slices:
            first = bisect_left(newlines, start) + 1
            last = bisect_right(newlines, end - 1, lo=first - 1) + 1
            body = cell.source[start:end]
            chunks.append(Chunk(len(chunks), body, start, end, first, last, name, cell.part, cell.number, cell.id))
    return chunks


def passage(chunk: Chunk) -> str:
    """The exact string that is embedded for a chunk: its text, after what it stands in where the text is silent.

    A method is called by its class and a later part of a section by its headings. The path is never part of it, so that
    a renamed file keeps its vectors.
    """
    if not chunk.name or all(_word(part, chunk.text) for part in re.split(r"[.,\s>]+", chunk.name) if part.strip("…")):
        return chunk.text
    return f"{chunk.name}\n{chunk.text}"


def _word(part: str, text: str) -> bool:
    at = text.find(part)
    return at >= 0 and not text[at - 1 : at].isalnum() and not text[at + len(part) : at + len(part) + 1].isalnum()


def _cells(text: str, form: str) -> Iterator[Cell]:
    """A notebook's cells; anything else is one cell."""
    if form == "notebook":
        yield from cut_notebook(text)
    elif form == "python" and is_percent_script(text):
        yield from cut_percent_script(text)
    elif text.strip():
        yield Cell(None, Part.WHOLE, text, _cut(text, form))


def _cut(text: str, form: str) -> list[Slice]:
    if form == "windows":
        interpreter = _SHEBANG.match(text)
        language = filetypes.INTERPRETERS.get(interpreter[1].lower()) if interpreter else None
        return cut_code(text, language) if language else cut_windows(text)
    if form == "posts":
        return cut_posts(text)
    if form in headings.FORMATS:
        return cut_markup(text, form)
    return cut_code(text, form)

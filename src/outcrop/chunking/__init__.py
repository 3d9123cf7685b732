"""Artifacts to chunks. Boundaries depend on the text, its format, :data:`VERSION` and the installed grammars."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from outcrop.chunking import headings
from outcrop.chunking.code import cut_code
from outcrop.chunking.markup import cut_markup, cut_posts
from outcrop.chunking.notebook import NotebookCell, cut_notebook, cut_percent_script, is_percent_script
from outcrop.chunking.rows import CEILING, Slice
from outcrop.chunking.transcripts import cut_transcript
from outcrop.chunking.windows import cut_windows
from outcrop.core.model import Chunk, Kind, Part
from outcrop.text import filetypes
from outcrop.text.transcripts import is_silent

__all__ = ["CEILING", "VERSION", "chunk", "digest", "format_of", "passage"]

# Raised with every change of boundaries or names: an index made by another version is made anew.
VERSION = 2

_BY_KIND = {
    Kind.WIKI: "wiki",
    Kind.TECHNOTE: "wiki",
    Kind.TICKET: "posts",
    Kind.FORUM: "posts",
    Kind.MEDIA: "transcript",
}
# Characters of a first line that names a program: Linux reads as many.
_LONGEST_SHEBANG = 256
_SHEBANG = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(?:\S*/)?([a-zA-Z]+)")


def format_of(path: str | None, kind: Kind) -> str:
    """The name of a language or a prose format; ``notebook``, ``posts``, ``transcript``; else ``windows``."""
    by_kind = _BY_KIND.get(kind)
    if by_kind:
        return by_kind
    found = filetypes.by_path(path) if path else None
    if found:
        return found
    return "windows" if kind in {Kind.CODE, Kind.API} else "markdown" if kind is Kind.INSTRUCTION else "text"


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
    chunks: list[Chunk] = []
    source, newlines = None, list[int]()
    for cell in _cells(text, form):
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


def passage(chunk: Chunk) -> str:
    """The exact string that is embedded for a chunk: its text, below its name where the text does not say the name.

    The path is never part of it, so that a renamed file keeps its vectors.
    """
    if not chunk.name or all(
        _has_word(chunk.text, part) for part in re.split(r"[.,\s>]+", chunk.name) if part.strip("…")
    ):
        return chunk.text
    return f"{chunk.name}\n{chunk.text}"


def digest(chunk: Chunk) -> bytes:
    """SHA-256 of the exact string that is embedded for a chunk."""
    return hashlib.sha256(passage(chunk).encode("utf-8", "surrogatepass")).digest()


def _has_word(text: str, word: str) -> bool:
    at = text.find(word)
    return at >= 0 and not text[at - 1 : at].isalnum() and not text[at + len(word) : at + len(word) + 1].isalnum()


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
        return cut_code(text, language) if language else cut_windows(text)
    if form == "posts":
        return cut_posts(text)
    if form in headings.FORMATS:
        return cut_markup(text, form)
    return cut_code(text, form)

"""Artifacts to chunks. Boundaries depend on the text, its format, :data:`VERSION` and the installed grammars.

Who needs chunks asks ``workers.pool``: what a grammar does with a text may end or stop its process.
"""

from __future__ import annotations

import hashlib
import re

from outcrop.core.model import Chunk, Kind
from outcrop.text import commits, filetypes

# Raised with every change of boundaries or names: an index made by another version is made anew.
VERSION = 2

_BY_KIND = {
    Kind.WIKI: "wiki",
    Kind.TECHNOTE: "wiki",
    Kind.TICKET: "posts",
    Kind.FORUM: "posts",
    Kind.MEDIA: "transcript",
    Kind.COMMIT: "commit",
}


def format_of(path: str | None, kind: Kind) -> str:
    """A language or a prose format by name; ``notebook``, ``posts``, ``transcript``, ``commit``; else ``windows``."""
    by_kind = _BY_KIND.get(kind)
    if by_kind:
        return by_kind
    found = filetypes.by_path(path) if path else None
    if found:
        return found
    return "windows" if kind in {Kind.CODE, Kind.API} else "markdown" if kind is Kind.INSTRUCTION else "text"


def cut_commit(text: str) -> list[Chunk]:
    """One chunk, however long; none for a blank text."""
    return [Chunk(0, text, 0, len(text), 1, text.count("\n") + 1, commits.subject(text))] if text.strip() else []


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
    return text_digest(passage(chunk))


def text_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _has_word(text: str, word: str) -> bool:
    at = text.find(word)
    return at >= 0 and not text[at - 1 : at].isalnum() and not text[at + len(word) : at + len(word) + 1].isalnum()

"""Which lines of an artifact a definition or a section takes, found as a build finds them.

A passage is named after what it begins with: a small class and its methods are one passage with the class's name.
Whoever names a method of it means that passage, and this is how it is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from outcrop.chunking import code, headings
from outcrop.chunking.pack import Block, nest
from outcrop.chunking.rows import TextRows

_PARTS = re.compile(r"\s>\s|::|[.#]")
_UNNAMED = frozenset({"windows", "notebook", "posts", "transcript"})


def lines_of(text: str, form: str, name: str) -> tuple[int, int] | None:
    """First and last line (1-based, inclusive) of the first definition or section of this name, or None.

    Args:
        text: The whole artifact.
        form: Its format, as ``chunking.format_of`` says.
        name: Its name; it may leave out the beginning (``run`` or ``Flask.run``, ``Retries`` or ``Guide > Retries``).
    """
    for own, first, last in _named(text, form):
        if ends_with(own, name):
            return first, last
    return None


def ends_with(own: str, wanted: str) -> bool:
    """Whether a name is the one that is wanted, but for a beginning that was left out."""
    own, wanted = " ".join(own.split()), " ".join(wanted.split())
    if own == wanted or own.endswith(f" > {wanted}"):
        return True
    parts, whole = parts_of(wanted), parts_of(own)
    return bool(parts) and whole[-len(parts) :] == parts


def parts_of(name: str) -> Sequence[str]:
    """What a qualified name or a heading trail is made of."""
    return [part for part in _PARTS.split(name.strip()) if part]


def _named(text: str, form: str) -> Iterator[tuple[str, int, int]]:
    """Every definition or section with its qualified name or trail, in order."""
    if form in headings.FORMATS:
        yield from _sections(text, form)
    elif form not in _UNNAMED:
        rows = TextRows(text)
        yield from _definitions(nest(rows, *code.find(rows, form)))


def _sections(text: str, form: str) -> Iterator[tuple[str, int, int]]:
    found = headings.read(text, form).headings
    trail: list[tuple[int, str]] = []
    for at, heading in enumerate(found):
        while trail and trail[-1][0] >= heading.level:
            trail.pop()
        trail.append((heading.level, heading.title))
        stop = next((other.line for other in found[at + 1 :] if other.level <= heading.level), text.count("\n") + 1)
        yield " > ".join(title for _, title in trail if title), heading.line + 1, max(heading.line + 1, stop)


def _definitions(blocks: Sequence[Block]) -> Iterator[tuple[str, int, int]]:
    for block in blocks:
        if block.name:
            yield block.name, block.first + 1, block.stop
        yield from _definitions(block.children)

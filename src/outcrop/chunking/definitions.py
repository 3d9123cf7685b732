"""The lines of a definition or a section, found by its name with the parser that cuts chunks.

A small class and its methods are one passage with the class's name: a method of it has no passage of its own name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from outcrop.chunking import code, headings
from outcrop.chunking.pack import DefinitionNode, nest
from outcrop.chunking.rows import TextRows

_PARTS = re.compile(r"\s>\s|::|[.#]")
_UNNAMED = frozenset({"windows", "notebook", "posts", "transcript"})


def lines_of(text: str, form: str, name: str) -> tuple[int, int] | None:
    """First and last line (1-based, inclusive) of the first definition or section of this name, or None.

    A name may leave out its beginning: ``run`` for ``Flask.run``, ``Retries`` for ``Guide > Retries``.
    """
    for own, first, last in _named(text, form):
        if ends_with(own, name):
            return first, last
    return None


def ends_with(own: str, wanted: str) -> bool:
    own, wanted = " ".join(own.split()), " ".join(wanted.split())
    if own == wanted or own.endswith(f" > {wanted}"):
        return True
    parts, whole = parts_of(wanted), parts_of(own)
    return bool(parts) and whole[-len(parts) :] == parts


def parts_of(name: str) -> Sequence[str]:
    return [part for part in _PARTS.split(name.strip()) if part]


def _named(text: str, form: str) -> Iterator[tuple[str, int, int]]:
    if form in headings.FORMATS:
        yield from _sections(text, form)
    elif form not in _UNNAMED:
        rows = TextRows(text)
        yield from _definitions(nest(rows, *code.find_definitions(rows, form)))


def _sections(text: str, form: str) -> Iterator[tuple[str, int, int]]:
    found = headings.read_headings(text, form).headings
    stops = _stops(found, text.count("\n") + 1)
    trail: list[tuple[int, str]] = []
    for heading, stop in zip(found, stops, strict=True):
        while trail and trail[-1][0] >= heading.level:
            trail.pop()
        trail.append((heading.level, heading.title))
        yield " > ".join(title for _, title in trail if title), heading.line + 1, max(heading.line + 1, stop)


def _stops(found: Sequence[headings.Heading], end: int) -> list[int]:
    """For each heading, the line of the next one that is not below it."""
    stops = [end] * len(found)
    opened: list[int] = []
    for at, heading in enumerate(found):
        while opened and found[opened[-1]].level >= heading.level:
            stops[opened.pop()] = heading.line
        opened.append(at)
    return stops


def _definitions(nodes: Sequence[DefinitionNode]) -> Iterator[tuple[str, int, int]]:
    for node in nodes:
        if node.name:
            yield node.name, node.first + 1, node.stop
        yield from _definitions(node.children)

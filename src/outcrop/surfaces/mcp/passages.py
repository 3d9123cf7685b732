"""From what an agent names (a path, perhaps with lines, or a hash) to the lines of one indexed artifact."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from outcrop.app import documents
from outcrop.app.documents import Block, Document
from outcrop.app.index import Index
from outcrop.errors import UnknownArtifact, UsageError
from outcrop.surfaces.mcp.results import ReadPassage

# Lines of one reading, about five screens; whoever needs more goes on from there.
MOST_LINES = 400

# Of one reading, for files with long lines.
MOST_CHARACTERS = 40_000

MOST_GUESSES = 3

# Characters of a path that is repeated in a refusal.
LONGEST_NAME = 200

_WITH_LINES = re.compile(
    r"(?P<path>.+?)(?: cell (?P<cell>\d{1,9}))?:(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Place:
    """What was named.

    Attributes:
        path: Where it stands.
        hash: Its content address.
        project: Slug of its repository; empty for this one.
        cell: Cell of a notebook, from 0.
        first: First line, from 1.
        last: Last line.
        around: Lines to add on both sides of those that are named.
    """

    path: str | None
    hash: str | None
    project: str
    cell: int | None
    first: int | None
    last: int | None
    around: int


def read(index: Index, place: Place) -> ReadPassage:
    """Read the lines that were named, or the beginning of the whole."""
    if not place.path and not place.hash:
        raise UsageError("read_passage needs a path or a hash", "Take either from a hit of semantic_search")
    document, place = _find(index, place)
    block = _block(document, place)
    return _cut(document, block, place)


def _find(index: Index, place: Place) -> tuple[Document, Place]:
    for meant in _readings(index, place):
        try:
            found = documents.read(index, path=meant.path, hash=meant.hash, project=meant.project)
        except UnknownArtifact:
            continue
        if place.hash and found.hash != place.hash:
            found = replace(found, state="changed")
        return found, meant
    named = (place.path or place.hash or "")[:LONGEST_NAME]
    raise UnknownArtifact(f"nothing at {named!r} is indexed", _advice(index, place))


def _readings(index: Index, place: Place) -> Iterator[Place]:
    """What may be meant, the likeliest first. Nothing here touches the disk: it is looked up in the index."""
    if place.path is None:
        yield place
        return
    found = _WITH_LINES.fullmatch(place.path)
    ways = [place]
    if found is not None:
        first, last = int(found["first"]), int(found["last"] or found["first"])
        cell = place.cell if found["cell"] is None else int(found["cell"])
        ways = [
            replace(place, path=found["path"], cell=cell, first=place.first or first, last=place.last or last),
            place,
        ]
    for way in ways:
        path = way.path or ""
        relative = posixpath.normpath(path.removeprefix(f"{index.source.root}/"))
        for each in dict.fromkeys((path, relative)):
            yield replace(way, path=each)
            if way.hash:
                # It changed since that hit; better its present text, which says so, than nothing.
                yield replace(way, path=each, hash=None)


def _advice(index: Index, place: Place) -> str:
    if not index.store.exists:
        return "Only what Outcrop would index can be read"
    if place.path:
        named = posixpath.normpath(place.path)
        for left_out in index.store.skipped():
            if left_out.path == named:
                return f"It is left out of the index: {left_out.reason}"
        last = posixpath.basename(named)
        paths = {each.path for name in index.store.revisions() for each in index.store.members(name) if each.path}
        alike = sorted(path for path in paths if posixpath.basename(path) == last)[:MOST_GUESSES]
        if alike:
            return f"There is: {', '.join(alike)}"
    return "Only what is indexed can be read; index_status says what that is"


def _block(document: Document, place: Place) -> Block:
    """The part of a document that holds the lines: its only one, a cell, or one of several stored stretches."""
    blocks = document.blocks
    cells = [block.cell for block in blocks if block.cell is not None]
    if cells and place.cell is None and place.first is None:
        return Block("\n\n".join(f"# cell {block.cell}\n{block.text}" for block in blocks))
    if cells and place.cell is None:
        raise UsageError(
            "lines of a notebook count inside a cell", "Name the cell, as hits show it: a.ipynb cell 3:1-9"
        )
    if place.cell is not None:
        wanted = [block for block in blocks if block.cell == place.cell]
        if not wanted:
            there = f"Its cells go from {min(cells)} to {max(cells)}" if cells else "It is no notebook; leave cell out"
            raise UsageError(f"{document.path or document.hash} has no cell {place.cell}", there)
        blocks = tuple(wanted)
    if place.first is None:
        return blocks[0] if len(blocks) == 1 else Block("\n\n…\n\n".join(block.text for block in blocks))
    holding = [block for block in blocks if block.first_line <= place.first < block.first_line + _length(block)]
    if holding:
        return holding[0]
    ends = ", ".join(f"{block.first_line}-{block.first_line + _length(block) - 1}" for block in blocks)
    raise UsageError(f"{document.path or document.hash} has no line {place.first}", f"Its lines are {ends}")


def _rows(block: Block) -> list[str]:
    return block.text.removesuffix("\n").split("\n")


def _length(block: Block) -> int:
    return len(_rows(block))


def _cut(document: Document, block: Block, place: Place) -> ReadPassage:
    rows = _rows(block)
    first, last = 0, len(rows)
    if place.first is not None or place.last is not None:
        named = place.first or block.first_line
        end = block.first_line + len(rows) - 1 if place.last is None else place.last
        if end < named:
            raise UsageError(f"line {end} stands before line {named}", "Name the first line first")
        first = max(0, named - block.first_line - place.around)
        last = min(len(rows), end - block.first_line + 1 + place.around)
    kept = rows[first:last][:MOST_LINES]
    while len(kept) > 1 and sum(map(len, kept)) > MOST_CHARACTERS:
        kept = kept[: len(kept) // 2]
    start = block.first_line + first
    return ReadPassage(
        path=document.path,
        hash=document.hash,
        kind=document.kind,
        project=document.project,
        cell=block.cell,
        lines=(start, start + len(kept) - 1),
        whole=block.first_line + len(rows) - 1,
        text="\n".join(kept)[:MOST_CHARACTERS],
        state=document.state,
    )

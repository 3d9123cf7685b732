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

# Of one call: about five screens.
MOST_LINES = 400

# Of one call, for files with long lines.
MOST_CHARACTERS = 40_000

MOST_GUESSES = 3

# Characters of a path that an error message repeats.
LONGEST_NAME = 200

_WITH_LINES = re.compile(
    r"(?P<path>.+?)(?: cell (?P<cell>\d{1,9}))?:(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class PassageRequest:
    """What the agent names: cells count from 0, lines from 1; ``around`` is added on both sides of named lines."""

    path: str | None
    content_hash: str | None
    project: str
    cell: int | None
    first: int | None
    last: int | None
    around: int


def read(index: Index, request: PassageRequest) -> ReadPassage:
    if not request.path and not request.content_hash:
        raise UsageError("read_passage needs a path or a hash", "Take either from a hit of semantic_search")
    document, request = _find(index, request)
    return _cut(document, _block(document, request), request)


def _find(index: Index, request: PassageRequest) -> tuple[Document, PassageRequest]:
    for meant in _interpretations(index, request):
        try:
            found = documents.read(index, path=meant.path, content_hash=meant.content_hash, project=meant.project)
        except UnknownArtifact:
            continue
        if request.content_hash and found.hash != request.content_hash:
            found = replace(found, state="changed")
        return found, meant
    named = (request.path or request.content_hash or "")[:LONGEST_NAME]
    raise UnknownArtifact(f"nothing at {named!r} is indexed", _advice(index, request))


def _interpretations(index: Index, request: PassageRequest) -> Iterator[PassageRequest]:
    """What may be meant, the likeliest first. Nothing here touches the disk: it is looked up in the index."""
    if request.path is None:
        yield request
        return
    ways = [request]
    if (found := _WITH_LINES.fullmatch(request.path)) is not None:
        with_lines = replace(
            request,
            path=found["path"],
            cell=request.cell if found["cell"] is None else int(found["cell"]),
            first=request.first or int(found["first"]),
            last=request.last or int(found["last"] or found["first"]),
        )
        ways = [with_lines, request]
    for way in ways:
        path = way.path or ""
        relative = posixpath.normpath(path.removeprefix(f"{index.source.root}/"))
        for each in dict.fromkeys((path, relative)):
            yield replace(way, path=each)
            if way.content_hash:
                # It changed since that hit: its present text, which says so, is better than nothing.
                yield replace(way, path=each, content_hash=None)


def _advice(index: Index, request: PassageRequest) -> str:
    if not index.store.exists:
        return "Only what Outcrop would index can be read"
    if request.path:
        named = posixpath.normpath(request.path)
        for left_out in index.store.skipped():
            if left_out.path == named:
                return f"It is left out of the index: {left_out.reason}"
        last = posixpath.basename(named)
        paths = {each.path for name in index.store.revisions() for each in index.store.members(name) if each.path}
        alike = sorted(path for path in paths if posixpath.basename(path) == last)[:MOST_GUESSES]
        if alike:
            return f"There is: {', '.join(alike)}"
    return "Only what is indexed can be read; index_status says what that is"


def _block(document: Document, request: PassageRequest) -> Block:
    blocks = document.blocks
    cells = [block.cell for block in blocks if block.cell is not None]
    if cells and request.cell is None and request.first is None:
        return Block("\n\n".join(f"# cell {block.cell}\n{block.text}" for block in blocks))
    if cells and request.cell is None:
        raise UsageError(
            "lines of a notebook count inside a cell", "Name the cell, as hits show it: a.ipynb cell 3:1-9"
        )
    if request.cell is not None:
        blocks = tuple(block for block in blocks if block.cell == request.cell)
        if not blocks:
            fix = f"Its cells go from {min(cells)} to {max(cells)}" if cells else "It is no notebook; leave cell out"
            raise UsageError(f"{document.path or document.hash} has no cell {request.cell}", fix)
    if request.first is None:
        return blocks[0] if len(blocks) == 1 else Block("\n\n…\n\n".join(block.text for block in blocks))
    for block in blocks:
        if block.first_line <= request.first <= block.last_line:
            return block
    ranges = ", ".join(f"{block.first_line}-{block.last_line}" for block in blocks)
    raise UsageError(f"{document.path or document.hash} has no line {request.first}", f"Its lines are {ranges}")


def _cut(document: Document, block: Block, request: PassageRequest) -> ReadPassage:
    first, last, around = block.first_line, block.last_line, 0
    if request.first is not None or request.last is not None:
        first, around = request.first or first, request.around
        last = last if request.last is None else request.last
        if last < first:
            raise UsageError(f"line {last} is before line {first}", "Name the first line first")
    excerpt = block.excerpt(first, last, around)
    kept = excerpt.text.split("\n")[:MOST_LINES]
    while len(kept) > 1 and sum(map(len, kept)) > MOST_CHARACTERS:
        kept = kept[: len(kept) // 2]
    return ReadPassage(
        path=document.path,
        hash=document.hash,
        kind=document.kind,
        project=document.project,
        cell=block.cell,
        lines=(excerpt.first_line, excerpt.first_line + len(kept) - 1),
        whole=block.last_line,
        text="\n".join(kept)[:MOST_CHARACTERS],
        state=document.state,
    )

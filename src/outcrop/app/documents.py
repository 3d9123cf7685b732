"""The text of one artifact, and excerpts of it. Only what is indexed is ever read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from outcrop.app.index import Index
from outcrop.core.model import Artifact, Kind, Ref
from outcrop.errors import FormatError, UnknownArtifact
from outcrop.indexing.ingest import list_all
from outcrop.search.staleness import visible
from outcrop.stores.sqlite import inventory
from outcrop.stores.sqlite.inventory import IndexedArtifact

State = Literal["indexed", "changed", "stored"]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Whole lines of one block, which goes from ``lowest`` to ``highest``; 1-based, in a notebook inside the cell."""

    text: str
    first_line: int
    last_line: int
    lowest: int
    highest: int
    cell: int | None


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of an artifact: all of it, one cell (from 0) of a notebook, or one passage of what cannot be read."""

    text: str
    first_line: int = 1  # 1-based number of the first of them (inside the cell for a notebook)
    cell: int | None = None

    @property
    def lines(self) -> list[str]:
        return self.text.removesuffix("\n").split("\n")

    @property
    def last_line(self) -> int:
        return self.first_line + len(self.lines) - 1

    def excerpt(self, first: int, last: int, around: int = 0) -> Excerpt:
        lines, lowest, highest = self.lines, self.first_line, self.last_line
        first, last = max(lowest, first - around), min(highest, last + around)
        return Excerpt("\n".join(lines[first - lowest : last - lowest + 1]), first, last, lowest, highest, self.cell)


@dataclass(frozen=True, slots=True)
class Document:
    """An artifact to be shown."""

    hash: str
    kind: Kind
    path: str | None
    paths: tuple[str, ...]  # Every path that it has, ``path`` first
    project: str  # Slug of its repository; empty for this one
    blocks: tuple[Block, ...]
    # ``indexed``: word for word what was indexed. ``changed``: it changed since, and this is how it is now. ``stored``:
    # the source cannot give it (a record, another project, a deleted file), so these are the passages that the index
    # holds, without what is between them.
    state: State


def read(
    index: Index,
    *,
    path: str | None = None,
    content_hash: str | None = None,
    project: str = "",
    kinds: Collection[Kind] | None = None,
) -> Document:
    """Read one artifact, through its source, of the kinds that the reader may see (None: all).

    A hash is enough alone, and decides between several artifacts at one path. An empty ``project`` is this one.
    """
    project = "" if project == index.source.project else project
    row = _find(index, path, content_hash, project, kinds)
    if row is None:
        named = path if path is not None else content_hash
        raise UnknownArtifact(f"nothing at {named!r} is indexed", "outcrop status shows what is")
    if not row.project and row.readable:
        outcome = next(iter(index.source.read([_ref(index, row)])))
        if isinstance(outcome, Artifact):
            same = outcome.ref.hash == row.hash and outcome.ref.version == (row.version or outcome.ref.version)
            return _document(row, outcome.ref.hash, tuple(_blocks(outcome)), "indexed" if same else "changed")
    blocks = tuple(_stored(index, row))
    if not blocks:
        raise UnknownArtifact(f"{row.path or row.hash} cannot be read any more", "Run: outcrop index")
    return _document(row, row.hash, blocks, "stored")


def _ref(index: Index, row: IndexedArtifact) -> Ref:
    if row.kind is Kind.MEDIA:
        # Only a listing knows which file holds the transcript.
        seen = index.store.seen() if index.store.exists else {}
        for ref in index.source.artifacts(seen).refs:
            if ref.path == row.path and ref.kind is Kind.MEDIA:
                return ref
    return Ref(row.hash, row.kind, row.path, row.version or row.hash, row.size)


def _document(row: IndexedArtifact, content_hash: str, blocks: tuple[Block, ...], state: State) -> Document:
    paths = tuple(dict.fromkeys(each for each in (row.path, *row.paths) if each))
    return Document(content_hash, row.kind, row.path, paths, row.project, blocks, state)


def _find(
    index: Index, path: str | None, content_hash: str | None, project: str, kinds: Collection[Kind] | None
) -> IndexedArtifact | None:
    if path is None and content_hash is None:
        return None
    if index.store.exists:
        with index.store.file.snapshot() as database:
            row = inventory.find(
                database, index.store.worktree, path=path, artifact=content_hash, project=project, kinds=kinds
            )
        return next(iter(visible(index.source, [row])), None) if row is not None else None
    for ref in list_all(index.source, {}).refs if not project else ():
        fits = (path is None or ref.path == path) and (content_hash is None or ref.hash == content_hash)
        if fits and (kinds is None or ref.kind in kinds):
            return IndexedArtifact(ref.hash, ref.kind, ref.path, (), "", ref.version, ref.size)
    return None


def _blocks(artifact: Artifact) -> Iterator[Block]:
    path = artifact.ref.path or ""
    if not path.endswith(".ipynb"):
        yield Block(artifact.text)
        return
    # Imported here: only a notebook is shown by cell.
    from outcrop.chunking.notebook import read_cells

    try:
        for cell in read_cells(artifact.text):
            yield Block(cell.source, 1, cell.number)
    except FormatError:
        yield Block(artifact.text)


def _stored(index: Index, row: IndexedArtifact) -> Iterator[Block]:
    if not index.store.exists:
        return
    with index.store.file.snapshot() as database:
        chunks = inventory.chunks(database, (row.project, row.hash))
    for cell, group in groupby(chunks, key=lambda chunk: chunk.cell):
        yield from _joined(list(group), cell)


def _joined(chunks: Sequence[inventory.StoredText], cell: int | None) -> Iterator[Block]:
    """Passages without a gap between them as one; windows overlap, and their shared lines are shown once."""
    lines: list[str] = []
    first = 0
    for chunk in chunks:
        new = chunk.text.strip("\n").split("\n")
        begin = chunk.first_line + (len(chunk.text) - len(chunk.text.lstrip("\n")))
        end = first + len(lines)
        if lines and first <= begin <= end:
            lines += new[end - begin :]
            continue
        if lines:
            yield Block("\n".join(lines), first, cell)
        lines, first = new, begin
    if lines:
        yield Block("\n".join(lines), first, cell)

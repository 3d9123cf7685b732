"""The text of one artifact, for whoever wants to see more than a passage: only what is indexed is ever read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from outcrop.app.index import Index
from outcrop.core.model import Artifact, Kind, Ref
from outcrop.core.protocols import Withholding
from outcrop.errors import FormatError, UnknownArtifact
from outcrop.stores.sqlite import inventory
from outcrop.stores.sqlite.inventory import IndexedArtifact


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of an artifact: all of it, one cell of a notebook, or one passage where the rest is not at hand.

    Attributes:
        text: Whole lines.
        first_line: 1-based number of the first of them (inside the cell for a notebook).
        cell: 0-based cell number in a notebook, else None.
    """

    text: str
    first_line: int = 1
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """An artifact to be shown.

    Attributes:
        hash: Content address of what is shown.
        kind: The artifact's kind.
        path: Where it stands; None for what has no path.
        paths: Every path at which it stands, ``path`` first.
        project: Slug of its repository; empty for this one.
        blocks: Its text.
        state: ``indexed``: word for word what was indexed. ``changed``: it moved on since, and this is how it is now.
            ``stored``: the source cannot give it (a record, another project, a file that is gone), so these are the
            passages that the index holds, with what lies between them left out.
    """

    hash: str
    kind: Kind
    path: str | None
    paths: tuple[str, ...]
    project: str
    blocks: tuple[Block, ...]
    state: Literal["indexed", "changed", "stored"]


def read(
    index: Index,
    *,
    path: str | None = None,
    hash: str | None = None,
    project: str = "",
    kinds: Collection[Kind] | None = None,
) -> Document:
    """Read one artifact through its source.

    Args:
        index: Whose artifacts may be read. Without anything indexed, those that its source lists.
        path: Where it stands, as hits say it.
        hash: Its content address; enough alone, and decides between several at one path.
        project: Slug of its repository; empty, or this repository's own, for this one.
        kinds: Kinds that the reader may see; None for all.
    """
    project = "" if project == index.source.project else project
    row = _find(index, path, hash, project, kinds)
    if row is None:
        named = path if path is not None else hash
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


def _document(
    row: IndexedArtifact, hash: str, blocks: tuple[Block, ...], state: Literal["indexed", "changed", "stored"]
) -> Document:
    paths = tuple(dict.fromkeys(each for each in (row.path, *row.paths) if each))
    return Document(hash, row.kind, row.path, paths, row.project, blocks, state)


def _find(
    index: Index, path: str | None, hash: str | None, project: str, kinds: Collection[Kind] | None
) -> IndexedArtifact | None:
    if path is None and hash is None:
        return None
    if not index.store.exists:
        return _listed(index, path, hash, project, kinds)
    with index.store.file.snapshot() as database:
        row = inventory.find(database, index.store.worktree, path=path, artifact=hash, project=project, kinds=kinds)
    guard = index.source
    if row is not None and not row.project and row.version and isinstance(guard, Withholding):
        return None if guard.withheld({row.hash: row.version}) else row
    return row


def _listed(
    index: Index, path: str | None, hash: str | None, project: str, kinds: Collection[Kind] | None
) -> IndexedArtifact | None:
    for ref in index.source.artifacts({}).refs if not project else ():
        fits = (path is None or ref.path == path) and (hash is None or ref.hash == hash)
        if fits and (kinds is None or ref.kind in kinds):
            return IndexedArtifact(ref.hash, ref.kind, ref.path, (), "", ref.version, ref.size)
    return None


def _blocks(artifact: Artifact) -> Iterator[Block]:
    path = artifact.ref.path or ""
    if not path.endswith(".ipynb"):
        yield Block(artifact.text)
        return
    # Imported here: only a notebook is shown by cell.
    from outcrop.chunking.notebook import cut_notebook

    try:
        for cell in cut_notebook(artifact.text):
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
    """Passages that follow each other without a gap as one; windows overlap, and their shared lines are shown once."""
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

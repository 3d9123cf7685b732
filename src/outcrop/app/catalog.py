"""What an index holds: by corpus, kind, project and folder, how current it is, and what was left out and why.

A reader of some kinds gets numbers, names and folders of these alone. No path of this machine is in it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from outcrop.core.model import WITHOUT_FILES, Filter, Kind, Skipped, SkipReason, Space
from outcrop.core.protocols import Embedder, Source, VectorStore
from outcrop.core.reports import SpaceStatus
from outcrop.core.rows import InventoryRow
from outcrop.search.staleness import compare, expected_revisions, missing, visible

# Levels of folders that the map shows; what is deeper counts for the folder above it.
DEPTH = 3

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NUMBER_BYTES = 4

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Tally:
    """How much there is of something. An artifact with several paths counts once."""

    name: str  # Empty for this repository's own project and for the whole
    artifacts: int
    chunks: int
    embedded: int
    characters: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CatalogCell:
    """What one corpus holds of one kind of one project."""

    corpus: str
    project: str
    kind: Kind
    tally: Tally


@dataclass(frozen=True, slots=True)
class Corpus:
    """One corpus, and how current it is."""

    tally: Tally
    # That of its last complete build, the oldest where several builds put something in; None where one was never
    # complete, and for records, which have no source.
    revision: str | None
    stale: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with everything below it, the largest child first. A file with two paths counts at both."""

    name: str  # Of the root of a tree the project's; empty for this repository
    path: str  # Empty for the root
    artifacts: int
    chunks: int
    characters: int
    bytes: int
    children: tuple[Folder, ...]


@dataclass(frozen=True, slots=True)
class Omission:
    """What was left out for one reason."""

    reason: SkipReason
    count: int
    files: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """What is indexed, in all."""

    source: str
    project: str
    exists: bool
    space: str | None
    embedder: str
    current: str  # What the source is at now; empty for a reader who may not see its files
    stale: bool  # Whether a corpus is behind it, or none was ever complete
    complete: float  # Share of the passages that the space that is searched is done with, 0 to 1
    bytes: int | None  # Size on disk; None for a reader who may not see everything
    total: Tally
    corpora: tuple[Corpus, ...]
    kinds: tuple[Tally, ...]
    projects: tuple[Tally, ...]
    spaces: tuple[SpaceStatus, ...]
    cells: tuple[CatalogCell, ...]
    folders: tuple[Folder, ...]
    omissions: tuple[Omission, ...]  # What the last build left out, most frequent reason first
    omissions_hidden: bool  # Whether some of that may be withheld from this reader
    missing: tuple[str, ...] = ()  # Corpora that are expected here and have no complete build


def catalog(
    store: VectorStore,
    source: Source,
    embedder: Embedder,
    *,
    kinds: Collection[Kind] | None = None,
    depth: int = DEPTH,
) -> Catalog:
    """Count what an index holds, of these kinds (None: all). Sends nothing, loads no model."""
    exists = store.exists
    current = source.revision(store.seen() if exists else {})
    state = store.state() if exists else None
    holdings: Sequence[InventoryRow] = ()
    skipped: Sequence[Skipped] = ()
    revisions: Mapping[str, str | None] = {}
    spaces: Sequence[SpaceStatus] = ()
    refused = 0
    if state is not None:
        with store.snapshot():
            holdings, skipped = store.holdings(), store.skipped()
            revisions, spaces = expected_revisions(store, source), store.spaces()
            refused = len(store.refused(state.space, Filter(kinds=tuple(kinds or ()))))
    shown = [each for each in visible(source, holdings) if kinds is None or each.kind in kinds]
    space = None if state is None else state.space
    total = _tally("", shown, space)
    if kinds is not None and space is not None:
        spaces = [SpaceStatus(space.id, total.embedded, total.embedded * space.dim * _NUMBER_BYTES)]
    corpora = [
        _corpus(_tally(name, some, space), some, revisions, current) for name, some in _by(shown, lambda it: it.corpus)
    ]
    corpora = [replace(each, revision=shown_revision(each.revision, kinds)) for each in corpora]
    filed = [each for each in shown if each.path is not None and each.kind not in WITHOUT_FILES]
    return Catalog(
        source=source.type,
        project=source.project,
        exists=exists,
        space=None if space is None else space.id,
        embedder=embedder.space.id,
        current=shown_revision(current, kinds) or "",
        stale=any(each.stale for each in corpora) or compare(revisions, current) is not None,
        complete=(
            min(1.0, (total.embedded + refused) / total.chunks)
            if total.chunks
            else float(exists and not missing(revisions))
        ),
        bytes=store.size() if kinds is None and exists else None,
        total=total,
        corpora=tuple(corpora),
        kinds=tuple(_tally(name, some, space) for name, some in _by(shown, lambda it: it.kind)),
        projects=tuple(_tally(name, some, space) for name, some in _by(shown, lambda it: it.project)),
        spaces=tuple(spaces),
        cells=tuple(
            CatalogCell(*name, _tally("", some, space))
            for name, some in _by(shown, lambda it: (it.corpus, it.project, it.kind))
        ),
        folders=tuple(_tree(name, some, space, depth) for name, some in _by(filed, lambda it: it.project)),
        omissions=_omissions(skipped, kinds),
        omissions_hidden=kinds is not None and not frozenset(Kind) <= frozenset(kinds),
        missing=missing(revisions),
    )


def shown_revision(revision: str | None, kinds: Collection[Kind] | None) -> str | None:
    """What a reader of these kinds (None: of everything) may know of a revision: its check-in, if of files.

    A Fossil revision goes on with a digest of wiki, technotes, tickets and forum, which moves with each of them.
    """
    if kinds is None or revision is None:
        return revision
    return revision.partition("+")[0] if Kind.CODE in kinds else None


def _by(holdings: Iterable[InventoryRow], key: Callable[[InventoryRow], Key]) -> list[tuple[Key, list[InventoryRow]]]:
    groups: dict[Key, list[InventoryRow]] = defaultdict(list)
    for each in holdings:
        groups[key(each)].append(each)
    return sorted(groups.items())


def _tally(name: str, holdings: Sequence[InventoryRow], space: Space | None) -> Tally:
    distinct = {(it.project, it.hash, it.part): it for it in holdings}.values()
    embedded = sum(it.embedded for it in distinct)
    return Tally(
        name=name,
        artifacts=len({(it.project, it.hash) for it in distinct}),
        chunks=sum(it.chunks for it in distinct),
        embedded=embedded,
        characters=sum(it.characters for it in distinct),
        bytes=sum(it.bytes for it in distinct) + _vector_bytes(embedded, space),
    )


def _vector_bytes(vectors: int, space: Space | None) -> int:
    return 0 if space is None else vectors * space.dim * _NUMBER_BYTES


def _corpus(
    tally: Tally, holdings: Sequence[InventoryRow], revisions: Mapping[str, str | None], current: str
) -> Corpus:
    # Records and imported projects come from no listing of this source, so they are never behind it.
    built = {
        builder: revisions.get(builder) for builder in sorted({it.builder for it in holdings if it.version is not None})
    }
    stale = compare(built, current)
    return Corpus(tally, stale.indexed if stale else current if built else None, stale is not None)


def _tree(project: str, holdings: Sequence[InventoryRow], space: Space | None, depth: int) -> Folder:
    distinct = {(it.path, it.hash, it.part): it for it in holdings}.values()
    artifacts: dict[str, set[tuple[str | None, str]]] = defaultdict(set)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for it in distinct:
        size = it.bytes + _vector_bytes(it.embedded, space)
        above = (it.path or "").split("/")[:-1][:depth]
        for level in range(len(above) + 1):
            path = "/".join(above[:level])
            artifacts[path].add((it.path, it.hash))
            total = sums[path]
            total[0] += it.chunks
            total[1] += it.characters
            total[2] += size
    below: dict[str, list[str]] = defaultdict(list)
    for path in sums:
        if path:
            below[path.rpartition("/")[0]].append(path)

    def folder(path: str) -> Folder:
        children = sorted((folder(child) for child in below[path]), key=lambda it: (-it.bytes, it.name))
        name = path.rpartition("/")[2] if path else project
        chunks, characters, size = sums[path]
        return Folder(name, path, len(artifacts[path]), chunks, characters, size, tuple(children))

    return folder("")


def _omissions(skipped: Sequence[Skipped], kinds: Collection[Kind] | None) -> tuple[Omission, ...]:
    groups: dict[SkipReason, list[Skipped]] = defaultdict(list)
    for item in skipped:
        if kinds is None or _may_know(item, kinds):
            groups[item.reason].append(item)
    found = [Omission(reason, len(items), tuple(items)) for reason, items in groups.items()]
    return tuple(sorted(found, key=lambda it: (-it.count, it.reason)))


def _may_know(item: Skipped, kinds: Collection[Kind]) -> bool:
    """Whether a reader of these kinds may know of something that was left out. Its kind was never determined."""
    named = frozenset({Kind.CODE, Kind.WIKI, Kind.TECHNOTE})
    # Tickets and posts have no name but their hash.
    needed = named | {Kind.TICKET, Kind.FORUM} if _HASH.fullmatch(item.path) else named
    return needed <= frozenset(kinds)

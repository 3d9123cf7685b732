"""Bringing every corpus of an index up to date, and only if it is stale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from outcrop.app.index import Index
from outcrop.core.model import Filter
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.core.reports import BuildReport, Progress, WordsOnly
from outcrop.errors import StoreError
from outcrop.search.staleness import compare, expected_builders


@dataclass(frozen=True, slots=True)
class Update:
    """What an update did, all corpora together; ``chunks`` are those of the two corpora that every index has."""

    revision: str
    added: int
    removed: int
    chunks: int
    embedded: int
    reused: int
    seconds: float
    words_only: tuple[WordsOnly, ...]


def is_stale(index: Index) -> bool:
    """Whether a build would find something to do, by the source's revision, the embedder and the vectors."""
    store = index.store
    if not store.exists:
        return True
    with store.snapshot():
        state, revisions, seen = store.state(), store.revisions(), store.seen()
        embedded, chunks = store.progress(index.embedder.space, Filter(imported=False))
    # A rebuild that was stopped, and records that came while the embedder failed, leave passages without a vector at
    # the same revision.
    if state is None or state.space != index.embedder.space or embedded < chunks:
        return True
    # Asked outside of the snapshot: while it is open, nothing can be committed to a Fossil repository.
    current = index.source.revision(seen)
    built = {builder: revisions.get(builder) for builder in (*expected_builders(index.source), *custom_corpora(index))}
    return compare(built, current) is not None


def custom_corpora(index: Index) -> list[str]:
    """Custom corpora that are in the index, even of a build that was stopped, and whose paths the settings name."""
    try:
        there = index.store.revisions().keys() | index.store.names().corpora
    except StoreError:
        return []
    return [name for name, _ in index.settings.corpora if name in there]


def unmanaged_corpora(index: Index) -> list[str]:
    """Custom corpora whose paths came from a command line, so that no update can build them again."""
    try:
        built = index.store.revisions()
    except StoreError:
        return []
    return sorted(set(built) - set(DEFAULT_BUILDERS) - {name for name, _ in index.settings.corpora})


def build_all(
    index: Index, progress: Callable[[Progress], None] | None = None, *, rebuild: bool = False
) -> tuple[BuildReport, dict[str, BuildReport]]:
    """Build ``code`` and ``docs``, then the custom corpora whose paths are known."""
    names = custom_corpora(index)
    first = index.build(progress=progress, rebuild=rebuild)
    return first, {name: index.build(corpus=name, progress=progress) for name in names}


def update(index: Index, progress: Callable[[Progress], None] | None = None) -> Update:
    first, others = build_all(index, progress)
    reports = [first, *others.values()]
    return Update(
        revision=first.revision,
        added=sum(report.added for report in reports),
        removed=sum(report.removed for report in reports),
        chunks=first.chunks,
        embedded=sum(report.embedded for report in reports),
        reused=sum(report.reused for report in reports),
        seconds=sum(report.seconds for report in reports),
        words_only=tuple(dict.fromkeys(each for report in reports for each in report.words_only)),
    )

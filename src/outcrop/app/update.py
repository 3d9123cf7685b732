"""Bringing everything that an index holds up to date, and only if it is behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from outcrop.app.index import Index
from outcrop.core.model import Filter
from outcrop.core.reports import BuildReport, Progress
from outcrop.core.rows import DEFAULT_BUILDERS


@dataclass(frozen=True, slots=True)
class Update:
    """What bringing an index up to date did, all of its corpora together.

    Attributes:
        revision: What it is now current to.
        added: Artifacts that were new or changed.
        removed: Artifacts that are gone.
        chunks: Chunks of the two corpora that every index has.
        embedded: Chunks that went through the model.
        reused: New chunks whose vector was already there.
        seconds: Wall time.
    """

    revision: str
    added: int
    removed: int
    chunks: int
    embedded: int
    reused: int
    seconds: float


def is_behind(index: Index) -> bool:
    """Whether a build would find something to do, as far as the source's revision, the embedder and the vectors
    tell.
    """
    store = index.store
    if not store.exists:
        return True
    with store.snapshot():
        state, done, seen = store.state(), store.revisions(), store.seen()
        embedded, chunks = store.progress(index.embedder.space, Filter(imported=False))
    # A build that was stopped while it cut everything anew, and records that came while the embedder failed, leave
    # passages without a vector at the same revision.
    if state is None or state.space != index.embedder.space or embedded < chunks:
        return True
    # Asked outside of the snapshot: nobody can commit to a Fossil repository while somebody reads.
    now = index.source.revision(seen)
    return any(done.get(builder) != now for builder in (*DEFAULT_BUILDERS, *own_corpora(index)))


def own_corpora(index: Index) -> list[str]:
    """Corpora of one's own that were built here once and whose paths the settings name."""
    done = index.store.revisions() if index.store.exists else {}
    return [name for name, _ in index.settings.corpora if name in done]


def forgotten(index: Index) -> list[str]:
    """Corpora of one's own whose paths were given on a command line, so that only their user can build them again."""
    done = index.store.revisions() if index.store.exists else {}
    return sorted(set(done) - set(DEFAULT_BUILDERS) - {name for name, _ in index.settings.corpora})


def update(index: Index, progress: Callable[[Progress], None] | None = None) -> Update:
    """Build every corpus that the index holds."""
    names = own_corpora(index)
    reports: list[BuildReport] = [index.build(progress=progress)]
    reports += [index.build(corpus=name, progress=progress) for name in names]
    return Update(
        revision=reports[0].revision,
        added=sum(report.added for report in reports),
        removed=sum(report.removed for report in reports),
        chunks=reports[0].chunks,
        embedded=sum(report.embedded for report in reports),
        reused=sum(report.reused for report in reports),
        seconds=sum(report.seconds for report in reports),
    )

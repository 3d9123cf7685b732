"""What an index holds, and dropping it in part or whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from outcrop.core.model import Filter, Skipped, Space, Stale
from outcrop.core.protocols import Embedder, Publisher, Source, TransferStore
from outcrop.core.reports import BuildReport, Damage, DamageSort, Progress, Status
from outcrop.embedders.salvaged import SalvagedVectors
from outcrop.errors import (
    IndexMissing,
    SchemaTooNew,
    StoreDamaged,
    StoreError,
    UnknownCorpus,
    UsageError,
)
from outcrop.search.staleness import compare, corpora_of, expected_revisions, missing, update_commands
from outcrop.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from outcrop.indexing.scope import Scope
    from outcrop.stores.sqlite.integrity.check import Findings


def status(source: Source, store: SqliteStore, embedder: Embedder, listed: Collection[str] = ()) -> Status:
    """Sends nothing, loads no model. ``listed`` are the custom corpora whose paths the settings name."""
    # Imported here: a search asks none of this.
    from outcrop.app import watch_lock
    from outcrop.indexing.build import words_only

    exists = store.exists
    current = source.revision(store.seen() if exists else {})
    state = store.state() if exists else None
    revisions = expected_revisions(store, source) if exists else {}
    stale = compare(revisions, current) if exists else Stale(None, current)
    # Imported projects have a share of their own.
    embedded, chunks = store.progress(state.space, Filter(imported=False)) if state else (0, 0)
    behind = stale.corpora if stale is not None else ()
    if embedded < chunks:
        behind = corpora_of([*behind, *sorted({item.builder for item in store.members()} - set(revisions))])
    return Status(
        source=source.type,
        root=str(source.root),
        project=source.project,
        store=str(store.path),
        exists=exists,
        bytes=store.size(),
        revision=current if stale is None else stale.indexed,
        current=current,
        stale=stale is not None,
        complete=embedded / chunks if chunks else float(exists and not missing(revisions)),
        writer=store.file.is_being_written(),
        space=state.space.id if state else None,
        embedder=embedder.space.id,
        address=embedder.address,
        collections=tuple(store.collections()) if exists else (),
        spaces=tuple(store.spaces()) if exists else (),
        skipped=tuple(store.skipped()) if exists else (),
        watcher=watch_lock.read(store),
        projects=tuple(store.project_statuses()),
        cut_by_lines=tuple(store.cut_by_lines()) if exists else (),
        words_only=words_only(store, state.space) if state else (),
        behind=behind,
        update=update_commands(behind, listed),
        missing=missing(revisions),
    )


def clear(store: SqliteStore, corpus: str | None, space: str | None, *, named: bool) -> int:
    """As :meth:`Index.clear`; where the user gave the path of the index (``named``), it may be a file of anything."""
    before = store.size()
    if corpus is None and space is None:
        _drop(store, named)
        return before - store.size()
    if not store.exists:
        raise IndexMissing("there is no index to clear", "Nothing needs to be done")
    with store.writing():
        if corpus is not None:
            known = store.names().corpora
            if corpus not in known:
                raise UnknownCorpus(f"no corpus {corpus!r} in this index", f"There is: {', '.join(sorted(known))}")
            store.clear(corpus=corpus)
        if space is not None:
            store.clear(space=_stored_space(store, space))
    return max(0, before - store.size())


def _stored_space(store: SqliteStore, name: str) -> Space:
    there = {entry.space: entry for entry in store.spaces()}
    if name not in there:
        raise UsageError(f"no vectors of {name!r} in this index", f"There is: {', '.join(there) or 'none'}")
    model, _, dim = name.rpartition("-")
    return Space(model, int(dim))


def rebuild(
    source: Source,
    store: SqliteStore,
    embedder: Embedder,
    progress: Callable[[Progress], None] | None,
    publisher: Publisher | None,
    scope: Scope,
    *,
    named: bool,
) -> BuildReport:
    """Build a new index, which takes the old one's place when it is complete; until then the old one answers.

    Records of callers and imported projects stay where they can be read. ``named`` is as for :func:`clear`.
    """
    # Imported here: a search never chunks.
    from outcrop.indexing.build import build

    if not store.path.exists():
        return build(source, store, embedder, progress, publisher, scope)
    _refuse_others(store, named)
    with store.file.locked():
        if publisher is not None:
            with suppress(StoreDamaged, SchemaTooNew, IndexMissing):
                publisher.withdraw_hidden()
        with store.replacement() as new:
            first = build(source, new, embedder, progress, scope=scope, keeps=False)
        # Nothing is left to embed, but what changed meanwhile; and the new vectors are shared.
        second = build(source, store, embedder, progress, publisher, scope)
    return replace(
        second,
        added=first.added + second.added,
        unchanged=max(0, second.unchanged - first.added),
        embedded=first.embedded + second.embedded,
        reused=first.reused + second.reused,
        characters=first.characters + second.characters,
        cut=first.cut + second.cut,
        seconds=first.seconds + second.seconds,
    )


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of an index and of its blobs found."""

    tables: Findings
    blobs: int
    damaged_blobs: Sequence[Skipped]

    @property
    def damage(self) -> tuple[Damage, ...]:
        of_blobs = (Damage(DamageSort.BLOB, item.path, item.detail) for item in self.damaged_blobs)
        return (*self.tables.damage, *of_blobs)


def find_damage(store: SqliteStore, transfer: TransferStore | None) -> Checked:
    """Reads every text and every vector; writes nothing."""
    # Imported here: no other command needs it.
    from outcrop.stores.sqlite.integrity.check import Findings
    from outcrop.transfer.sync import find_damaged

    try:
        tables = store.check()
    except StoreDamaged as error:
        tables = Findings(damage=[Damage(DamageSort.DATABASE, "", error.what)], is_broken=True)
    if transfer is None or tables.is_broken:
        return Checked(tables, 0, ())
    return Checked(tables, *find_damaged(store, transfer, compare=not tables.damage))


def salvage(store: SqliteStore, embedder: Embedder) -> SalvagedVectors:
    vectors: Mapping[bytes, bytes] = {}
    with suppress(StoreError):
        vectors = store.intact_vectors(embedder.space)
    return SalvagedVectors(embedder, vectors)


def _drop(store: SqliteStore, named: bool) -> None:
    """Remove the index: our own file whole, in whatever state; of a shared database our tables alone."""
    if not store.path.exists():
        return
    if store.is_shared:
        try:
            if store.exists:
                with store.writing():
                    store.clear()
        except (SchemaTooNew, StoreDamaged):
            store.file.remove()
        return
    _refuse_others(store, named)
    store.file.remove()


def _refuse_others(store: SqliteStore, named: bool) -> None:
    """A path that the user gave may be any file; only an index is ours to delete."""
    if named and not store.is_shared and not _is_ours(store):
        raise StoreDamaged(
            f"{store.path} is not an index that can be read, and was left alone",
            "Delete it yourself, or name another file with --store",
        )


def _is_ours(store: SqliteStore) -> bool:
    try:
        return store.exists
    except SchemaTooNew:
        return True
    except StoreDamaged:
        return False

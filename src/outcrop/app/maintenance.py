"""What an index holds, and dropping it in part or whole."""

from __future__ import annotations

from collections.abc import Collection

from outcrop.core.model import Filter, Space
from outcrop.core.protocols import Embedder, Source
from outcrop.core.reports import Status
from outcrop.errors import (
    IndexMissing,
    SchemaTooNew,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    UnknownCorpus,
    UsageError,
)
from outcrop.search.staleness import compare, update_commands
from outcrop.stores.sqlite.store import SqliteStore


def status(source: Source, store: SqliteStore, embedder: Embedder, listed: Collection[str] = ()) -> Status:
    """Sends nothing, loads no model. ``listed`` are the custom corpora whose paths the settings name."""
    # Imported here: a search asks none of this.
    from outcrop.app import watch_lock
    from outcrop.indexing.build import words_only

    exists = store.exists
    current = source.revision(store.seen() if exists else {})
    state = store.state() if exists else None
    revisions = store.revisions() if exists else {}
    has_only_records = state is not None and not revisions and not store.has_members()
    stale = compare(revisions, current, has_members=not has_only_records)
    # Imported projects have a share of their own.
    embedded, chunks = store.progress(state.space, Filter(imported=False)) if state else (0, 0)
    behind = stale.corpora if stale is not None else ()
    if embedded < chunks:
        behind = tuple(dict.fromkeys([*behind, *sorted({item.builder for item in store.members()} - set(revisions))]))
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
        complete=embedded / chunks if chunks else float(bool(revisions) or has_only_records),
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


def start_over(store: SqliteStore, *, named: bool) -> None:
    """Prepare a build from nothing: what sources gave is dropped, records of callers stay where they can be read."""
    if not store.path.exists():
        return
    try:
        if not store.is_shared and not store.holds_others():
            # Nothing in it is worth keeping, so even damaged tables are no obstacle.
            _drop(store, named)
        elif store.exists:
            with store.writing():
                store.forget_sources()
    except (StoreLocked, StoreFull):
        raise
    except StoreError:
        # Every message about another fault tells the user to start over.
        _drop(store, named)


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
    if named and not _is_ours(store):
        # A path that the user gave may be any file; only an index is ours to delete.
        raise StoreDamaged(
            f"{store.path} is not an index that can be read, and was left alone",
            "Delete it yourself, or name another file with --store",
        )
    store.file.remove()


def _is_ours(store: SqliteStore) -> bool:
    try:
        return store.exists
    except SchemaTooNew:
        return True
    except StoreDamaged:
        return False

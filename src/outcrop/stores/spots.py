"""Where every passage of a view stands, for whoever has to know what could have been found."""

from __future__ import annotations

from collections.abc import Sequence

from outcrop.model import Filter
from outcrop.stores import selection
from outcrop.stores.sqlite import SqliteStore
from outcrop.targets import Spot


def spots(store: SqliteStore, wanted: Filter) -> Sequence[Spot]:
    """Every passage of the store's view that a filter lets through, in index order.

    Args:
        store: The index.
        wanted: The filter, its names as the store has them (see ``request.resolve``).

    Raises:
        IndexMissing: There is none.
    """
    with store.file.snapshot() as database:
        visible = selection.allowed(database, store.worktree, wanted)
        chosen = None if visible is None else frozenset(visible.tolist())
        members = database.execute(
            "SELECT project, hash, part, path FROM fx_vec_member WHERE worktree IN (?, ?) AND path <> '' ORDER BY path",
            (store.worktree, selection.EVERYWHERE),
        )
        paths: dict[tuple[str, str, str], dict[str, None]] = {}
        for project, hash, part, path in members:
            paths.setdefault((project, hash, part), {})[path] = None
        rows = database.execute(
            "SELECT id, project, hash, part, first_line, last_line, name, cell FROM fx_vec_chunk ORDER BY id"
        )
        return [
            Spot(project, hash, tuple(paths.get((project, hash, part), ())), (first, last), name, cell)
            for id, project, hash, part, first, last, name, cell in rows
            if chosen is None or id in chosen
        ]

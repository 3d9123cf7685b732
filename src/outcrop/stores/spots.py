"""Where every passage of a view stands, for whoever has to know what could have been found."""

from __future__ import annotations

from collections.abc import Sequence

from outcrop import chunking
from outcrop.model import Filter, Kind
from outcrop.stores import selection
from outcrop.stores.sqlite import SqliteStore
from outcrop.targets import Artifact, Spot


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


def text_of(store: SqliteStore, artifact: Artifact) -> tuple[str, str]:
    """The text of an artifact as far as its passages hold it, every line in its place, and its format.

    Args:
        store: The index.
        artifact: Its project and hash.
    """
    project, hash = artifact
    lines: list[str] = []
    form = "windows"
    with store.file.snapshot() as database:
        rows = database.execute(
            "SELECT text, first_line, path, kind FROM fx_vec_chunk WHERE project = ? AND hash = ? ORDER BY seq",
            (project, hash),
        )
        for text, first, path, kind in rows:
            form = chunking.format_of(path, Kind(kind))
            beginning, *rest = text.split("\n")
            lines += [""] * (first - len(lines))
            # A passage may begin where its predecessor's last line ends.
            lines[first - 1] += beginning
            lines[first:] = rest
    return "\n".join(lines), form

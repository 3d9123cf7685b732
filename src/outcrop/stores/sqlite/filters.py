"""Which chunks a filter selects, in one view of the store."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from outcrop.core.model import Filter, Kind
from outcrop.core.rows import IMPORTED
from outcrop.stores.sqlite.connection import meta, moment
from outcrop.text.globs import path_matcher

Ids = npt.NDArray[np.int64]

# Worktree of members that every view sees: records and imported projects.
EVERYWHERE = "*"

# Filters whose chunks are cached: a person's choices on a page; each costs 8 bytes a chunk.
MAX_CACHED = 16


def of_groups(wanted: Filter) -> dict[bool, Filter]:
    """What a filter selects of the passages (False) and of the commits (True), which are stored and scored apart."""
    found: dict[bool, Filter] = {}
    others = tuple(kind for kind in wanted.kinds if kind is not Kind.COMMIT)
    if others or not wanted.kinds:
        found[False] = replace(wanted, kinds=others, commits=False)
    if Kind.COMMIT in wanted.kinds or (wanted.commits and not wanted.kinds):
        found[True] = replace(wanted, kinds=(Kind.COMMIT,), commits=True)
    return found


class FilterCache:
    """The chunks that filters select in one view, cached while the database does not change.

    One question uses the same filter several times, and each may be a join over every chunk.
    """

    def __init__(self, worktree: str) -> None:
        self._worktree = worktree
        self._moment: str | None = None
        self._cached: dict[Filter, Ids | None] = {}

    def select(self, database: sqlite3.Connection, wanted: Filter) -> Ids | None:
        """Ids of the chunks that the view and the filter select, ascending.

        None when that is every chunk; of a filter of :func:`of_groups`, when it is every chunk of its group.
        """
        now = moment(database)
        if now != self._moment or (wanted not in self._cached and len(self._cached) == MAX_CACHED):
            self._moment, self._cached = now, {}
        if wanted not in self._cached:
            self._cached[wanted] = _select(database, self._worktree, wanted)
        return self._cached[wanted]


def _select(database: sqlite3.Connection, worktree: str, wanted: Filter) -> Ids | None:
    imported = wanted.imported or database.execute("SELECT 1 FROM fx_vec_project LIMIT 1").fetchone() is None
    of_commits = wanted.kinds == (Kind.COMMIT,)
    if of_commits:
        wanted = replace(wanted, kinds=())
    elif wanted.kinds:
        wanted = replace(wanted, commits=Kind.COMMIT in wanted.kinds)
        question = "SELECT DISTINCT kind FROM fx_vec_member WHERE worktree IN (?, ?)"
        if {row[0] for row in database.execute(question, (worktree, EVERYWHERE))} - {Kind.COMMIT} <= set(wanted.kinds):
            # The filter of a user who may see some kinds, in an index that holds no others.
            wanted = replace(wanted, kinds=())
    if imported and replace(wanted, imported=True, commits=True) == Filter() and _is_only_view(database, worktree):
        return None
    conditions, values = ["m.worktree IN (?, ?)"], [worktree, EVERYWHERE]
    if not imported:
        conditions.append("m.builder <> ?")
        values.append(IMPORTED)
    if of_commits or not wanted.commits:
        conditions.append(f"m.kind {'=' if of_commits else '<>'} ?")
        values.append(Kind.COMMIT)
    for column, names in (
        ("corpus", wanted.corpora),
        ("kind", wanted.kinds),
        ("project", wanted.projects),
        ("builder", wanted.builders),
    ):
        if names:
            conditions.append(f"m.{column} IN ({', '.join('?' * len(names))})")
            values += names
    where = " AND ".join(conditions)
    join = "fx_vec_member m JOIN fx_vec_chunk c ON c.project = m.project AND c.hash = m.hash AND c.part = m.part"
    if not wanted.paths:
        rows = database.execute(f"SELECT c.id FROM {join} WHERE {where}", values)
        ids = np.fromiter((row[0] for row in rows), np.int64)
    else:
        matches = path_matcher(wanted.paths)
        chosen: set[int] = set()
        verdicts: dict[str, bool] = {"": False}
        for chunk, path in database.execute(f"SELECT c.id, m.path FROM {join} WHERE {where}", values):
            if path not in verdicts:
                verdicts[path] = matches(path)
            if verdicts[path]:
                chosen.add(chunk)
        ids = np.fromiter(chosen, np.int64, len(chosen))
    ids.sort()
    # A chunk may be a member twice. (SQLite's DISTINCT takes longer than all the rest.)
    distinct: Ids = ids[np.diff(ids, prepend=-1) != 0]
    return distinct


def _is_only_view(database: sqlite3.Connection, worktree: str) -> bool:
    """Whether every stored chunk belongs to this view, so that no join is needed to know which do."""
    if meta(database, "unplaced") in ("new", "parts"):
        return False
    views = {row[0] for row in database.execute("SELECT DISTINCT worktree FROM fx_vec_member")}
    return views <= {worktree, EVERYWHERE}

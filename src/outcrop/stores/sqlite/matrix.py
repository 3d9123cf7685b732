"""The vectors of one space: read once by a process that asks once, kept as a matrix by one that asks again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from outcrop.core.model import Space
from outcrop.core.protocols import Matrix, Vector
from outcrop.core.vectors import stack
from outcrop.errors import FormatError, StoreDamaged
from outcrop.stores import scan
from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.connection import moment
from outcrop.stores.sqlite.filters import Ids

# Rows taken from SQLite at a time: under a megabyte, so that a block is still in the processor's cache when it is
# used, and memory stays at one matrix.
BATCH = 512


_REPAIR = "Run: outcrop check --repair"

# No number of a vector is as large; with it a product could overflow.
IMMENSE = 1e6


class _Group(NamedTuple):
    """Chunk ids, ascending, and a matrix with a row for each."""

    ids: Ids
    matrix: Matrix


class VectorCache:
    """A space's vectors, cached while the database does not change, those of commits apart from the others.

    A command asks one question and ends: every block is scored as it comes from SQLite and then dropped, which takes
    less time and a tenth of the memory; the scores are kept for the same question to the other group. From the second
    question on the matrices are kept.
    """

    def __init__(self) -> None:
        self._asked: Vector | None = None
        self._scored: tuple[Ids, Vector] | None = None
        self._answered: set[bool] = set()
        self._key: tuple[str, Space] | None = None
        self._ids: Ids | None = None
        self._groups: tuple[_Group, _Group] | None = None

    def nearest(
        self,
        database: sqlite3.Connection,
        space: Space,
        query: Vector,
        k: int,
        visible: Ids | None,
        of_commits: bool,
    ) -> tuple[Ids, Vector]:
        """The ``k`` chunks of a space nearest to a query, exactly, among the commits or among the others.

        Args:
            database: Inside a transaction, so that it does not change meanwhile.
            query: float32 ``[dim]``, L2-normalised.
            visible: Ascending ids of the chunks to choose from; None for the whole group.

        Returns:
            Chunk ids int64 ``[m]`` and dot products float32 ``[m]``, best first, ties by id. The same bits either way.
        """
        self._drop_if_changed(database, space)
        if self._asked is None:
            self._asked, self._scored = query, _score(database, space, query)
            self._ids = self._scored[0]
        if self._scored is not None and of_commits not in self._answered and np.array_equal(self._asked, query):
            self._answered.add(of_commits)
            ids, scores = self._scored
            rows = _rows_of(ids, visible) if visible is not None else _rows_of_group(database, ids, of_commits)
            best, top = scan.select(scores, k, rows)
            return ids[best], top
        self._scored = None
        if self._groups is None:
            self._ids, self._groups = _load(database, space)
        group = self._groups[of_commits]
        best, top = scan.top_k(group.matrix, query, k, None if visible is None else _rows_of(group.ids, visible))
        return group.ids[best], top

    def vectors(self, database: sqlite3.Connection, space: Space, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Vectors of single chunks, float32 ``[dim]`` each, where there are any."""
        self._drop_if_changed(database, space)
        wanted = np.array(sorted(set(ids)), np.int64)
        if self._groups is not None:
            found: dict[int, Vector] = {}
            for group in self._groups:
                rows = _rows_of(group.ids, wanted)
                found |= zip(group.ids[rows].tolist(), group.matrix[rows], strict=True)
            return found
        question = "SELECT chunk_id, v FROM fx_vec_embedding WHERE chunk_id = ? AND model = ? AND dim = ?"
        stored = [row for one in wanted.tolist() for row in database.execute(question, (one, space.model, space.dim))]
        return {row[0]: _block([row], space)[0] for row in stored}

    def count(self, database: sqlite3.Connection, space: Space, visible: Ids | None) -> int:
        self._drop_if_changed(database, space)
        if self._ids is None and visible is None:
            (count,) = database.execute(
                "SELECT count(*) FROM fx_vec_embedding WHERE model = ? AND dim = ?", (space.model, space.dim)
            ).fetchone()
            return int(count)
        if self._ids is None:
            self._ids = _ids(database, space)
        return len(self._ids if visible is None else _rows_of(self._ids, visible))

    def _drop_if_changed(self, database: sqlite3.Connection, space: Space) -> None:
        key = (moment(database), space)
        if key != self._key:
            self._key, self._ids, self._scored, self._groups = key, None, None, None


def _rows_of(ids: Ids, visible: Ids) -> Ids:
    """Positions in ``ids`` of the visible ones that are there; all ascending."""
    at = np.searchsorted(ids, visible)
    at = at[at < len(ids)]
    found: Ids = at[ids[at] == visible[: len(at)]]
    return found


def _ids(database: sqlite3.Connection, space: Space) -> Ids:
    """Chunks with a vector in a space, ascending; read from the key's index alone."""
    rows = database.execute(
        "SELECT chunk_id FROM fx_vec_embedding WHERE model = ? AND dim = ?", (space.model, space.dim)
    )
    ids = np.fromiter((row[0] for row in rows), np.int64)
    ids.sort()
    return ids


def _score(database: sqlite3.Connection, space: Space, query: Vector) -> tuple[Ids, Vector]:
    """Chunk ids, ascending, and the dot product of each."""
    ids: list[int] = []
    scores = [np.empty(0, np.float32)]
    for block_ids, block in _blocks(database, space):
        ids += block_ids
        scores.append(scan.dots(block, query))
    unordered = np.array(ids, np.int64)
    order = np.argsort(unordered, kind="stable")
    return unordered[order], np.concatenate(scores)[order]


def _rows_of_group(database: sqlite3.Connection, ids: Ids, of_commits: bool) -> Ids | None:
    """Positions in ``ids`` of the commits, or of the others; None for all."""
    commits = _rows_of(ids, keywords.ids(database, keywords.COMMIT_TABLE))
    if of_commits:
        return commits
    return np.delete(np.arange(len(ids), dtype=np.int64), commits) if len(commits) else None


def _load(database: sqlite3.Connection, space: Space) -> tuple[Ids, tuple[_Group, _Group]]:
    """Every chunk id, ascending, and the others and the commits, each with a matrix that has a row for each."""
    ids = _ids(database, space)
    commits = _rows_of(ids, keywords.ids(database, keywords.COMMIT_TABLE))
    is_commit = np.zeros(len(ids), bool)
    is_commit[commits] = True
    groups = tuple(
        _Group(some, np.empty((len(some), space.dim), np.float32)) for some in (ids[~is_commit], ids[is_commit])
    )
    for block_ids, block in _blocks(database, space):
        chosen = is_commit[np.searchsorted(ids, block_ids)]
        for group, rows in zip(groups, (~chosen, chosen), strict=True):
            group.matrix[np.searchsorted(group.ids, np.asarray(block_ids)[rows])] = block[rows]
    return ids, (groups[0], groups[1])


def _blocks(database: sqlite3.Connection, space: Space) -> Iterator[tuple[list[int], Matrix]]:
    """Every vector of a space, in the order in which they lie in the file."""
    # ORDER BY keeps SQLite from walking the key's index, which would jump about in the file.
    cursor = database.execute(
        "SELECT chunk_id, v FROM fx_vec_embedding WHERE model = ? AND dim = ? ORDER BY rowid", (space.model, space.dim)
    )
    while rows := cursor.fetchmany(BATCH):
        yield [row[0] for row in rows], _block(rows, space)


def _block(rows: Sequence[tuple[int, bytes]], space: Space) -> Matrix:
    with checked_lengths(space):
        block = stack([row[1] for row in rows], space.dim)
    # NaN is neither.
    if not (block.min(initial=0.0) > -IMMENSE and block.max(initial=0.0) < IMMENSE):
        raise StoreDamaged(f"a stored vector of {space.id} holds NaN, infinity or immense numbers", _REPAIR)
    return block


@contextmanager
def checked_lengths(space: Space) -> Iterator[None]:
    """Vectors of a space are read inside; one of another length is damage."""
    try:
        yield
    except FormatError as error:
        raise StoreDamaged(f"a stored vector of {space.id} has the wrong length", _REPAIR) from error

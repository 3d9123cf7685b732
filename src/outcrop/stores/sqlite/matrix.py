"""The vectors of one space: read once by a process that asks once, kept as a matrix by one that asks again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from outcrop.core.model import Space
from outcrop.core.protocols import Matrix, Vector
from outcrop.core.vectors import stack
from outcrop.errors import FormatError, StoreDamaged
from outcrop.stores import scan
from outcrop.stores.sqlite.connection import moment
from outcrop.stores.sqlite.filters import Ids

# Rows taken from SQLite at a time: under a megabyte, so that a block is still in the processor's cache when it is
# used, and memory stays at one matrix.
BATCH = 512


_REPAIR = "Run: outcrop check --repair"

Numbers = TypeVar("Numbers", bound=Matrix)


class VectorCache:
    """A space's vectors, cached while the database does not change.

    A command asks one question and ends: every block is scored as it comes from SQLite and then dropped, which takes
    less time and a tenth of the memory. From the second question on the matrix is kept.
    """

    def __init__(self) -> None:
        self._asked_before = False
        self._key: tuple[str, Space] | None = None
        self._ids: Ids | None = None
        self._matrix: Matrix | None = None

    def nearest(
        self, database: sqlite3.Connection, space: Space, query: Vector, k: int, visible: Ids | None
    ) -> tuple[Ids, Vector]:
        """The ``k`` chunks of a space nearest to a query, exactly.

        Args:
            database: Inside a transaction, so that it does not change meanwhile.
            query: float32 ``[dim]``, L2-normalised.
            visible: Ascending ids of the chunks to choose from; None for all.

        Returns:
            Chunk ids int64 ``[m]`` and dot products float32 ``[m]``, best first, ties by id. The same bits either way.
        """
        self._drop_if_changed(database, space)
        if self._matrix is None and not self._asked_before:
            self._asked_before = True
            self._ids, scores = _score(database, space, query)
            best, top = scan.select(scores, k, None if visible is None else _rows_of(self._ids, visible))
            return self._ids[best], top
        if self._ids is None or self._matrix is None:
            self._ids, self._matrix = _load(database, space)
        rows = None if visible is None else _rows_of(self._ids, visible)
        best, top = scan.top_k(self._matrix, query, k, rows)
        return self._ids[best], top

    def vectors(self, database: sqlite3.Connection, space: Space, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Vectors of single chunks, float32 ``[dim]`` each, where there are any; a damaged one is none."""
        self._drop_if_changed(database, space)
        wanted = np.array(sorted(set(ids)), np.int64)
        if self._ids is not None and self._matrix is not None:
            rows = _rows_of(self._ids, wanted)
            return _undamaged(dict(zip(self._ids[rows].tolist(), self._matrix[rows], strict=True)))
        question = "SELECT chunk_id, v FROM fx_vec_embedding WHERE chunk_id = ? AND model = ? AND dim = ?"
        found = [row for one in wanted.tolist() for row in database.execute(question, (one, space.model, space.dim))]
        return _undamaged({row[0]: _block([row], space)[0] for row in found})

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
            self._key, self._ids, self._matrix = key, None, None


def _undamaged(vectors: Mapping[int, Vector]) -> Mapping[int, Vector]:
    return {key: vector for key, vector in vectors.items() if np.isfinite(vector).all()}


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
        scores.append(_finite(scan.dots(block, query), space))
    unordered = np.array(ids, np.int64)
    order = np.argsort(unordered, kind="stable")
    return unordered[order], np.concatenate(scores)[order]


def _load(database: sqlite3.Connection, space: Space) -> tuple[Ids, Matrix]:
    """Chunk ids, ascending, and the matrix with a row for each."""
    ids = _ids(database, space)
    matrix = np.empty((len(ids), space.dim), np.float32)
    for block_ids, block in _blocks(database, space):
        matrix[np.searchsorted(ids, block_ids)] = _finite(block, space)
    return ids, matrix


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
        return stack([row[1] for row in rows], space.dim)


def _finite(numbers: Numbers, space: Space) -> Numbers:
    if not np.isfinite(numbers).all():
        raise StoreDamaged(f"a stored vector of {space.id} holds NaN, infinity or immense numbers", _REPAIR)
    return numbers


@contextmanager
def checked_lengths(space: Space) -> Iterator[None]:
    """Vectors of a space are read inside; one of another length is damage."""
    try:
        yield
    except FormatError as error:
        raise StoreDamaged(f"a stored vector of {space.id} has the wrong length", _REPAIR) from error

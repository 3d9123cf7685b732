"""The vectors of one space as one contiguous matrix, kept while the database does not change."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outcrop.errors import StoreDamaged
from outcrop.model import Space
from outcrop.ports import Matrix

BATCH = 4096
"""Rows taken from SQLite at a time: enough that the loop costs nothing, few enough that memory stays at one matrix."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """All vectors of a space.

    Attributes:
        ids: Chunk ids, int64 ``[n]``, ascending.
        matrix: float32 ``[n, dim]``, row i belongs to ``ids[i]``.
    """

    ids: npt.NDArray[np.int64]
    matrix: Matrix

    def rows_of(self, wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Row numbers of those wanted chunks that have a vector, ascending; ``wanted`` must be ascending."""
        at = np.searchsorted(self.ids, wanted)
        at = at[at < len(self.ids)]
        found: npt.NDArray[np.int64] = at[self.ids[at] == wanted[: len(at)]]
        return found


def load(database: sqlite3.Connection, space: Space) -> Vectors:
    """Read every vector of a space.

    Raises:
        StoreDamaged: A stored vector has another length than the space says.
    """
    (count,) = database.execute("SELECT count(*) FROM fx_vec_embedding WHERE model = ?", (space.model,)).fetchone()
    ids = np.empty(count, np.int64)
    matrix = np.empty((count, space.dim), np.float32)
    # Table order reads the file front to back; sorting afterwards is cheaper than walking the index.
    cursor = database.execute("SELECT chunk_id, v FROM fx_vec_embedding WHERE model = ? ORDER BY rowid", (space.model,))
    at = 0
    while rows := cursor.fetchmany(BATCH):
        end = at + len(rows)
        ids[at:end] = [row[0] for row in rows]
        block = b"".join([row[1] for row in rows])
        if len(block) != (end - at) * space.dim * 4:
            raise StoreDamaged(
                f"a stored vector of {space.id} has the wrong length", "Make the index again: outcrop rebuild"
            )
        matrix[at:end] = np.frombuffer(block, "<f4").reshape(end - at, space.dim)
        at = end
    if at and not np.all(ids[:-1] < ids[1:]):
        order = np.argsort(ids, kind="stable")
        ids, matrix = ids[order], matrix[order]
    return Vectors(ids, matrix)

"""CRC-32 of a stored passage and of a stored vector: what a flipped bit on the disk changes without a trace."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence

from outcrop.core.model import Space

# The columns of ``fx_vec_chunk`` that its checksum covers, in order. Kind and path follow the membership.
CHUNK_COLUMNS = (
    "project, hash, seq, text, part, name, first_line, last_line, cell, cell_id, digest,"
    " start_s, end_s, uri, transcript"
)

_DIGEST = CHUNK_COLUMNS.split(", ").index("digest")


def of_chunk(*columns: object) -> int:
    """Of the values of ``CHUNK_COLUMNS``."""
    digest = columns[_DIGEST]
    values = [*columns[:_DIGEST], digest.hex() if isinstance(digest, bytes) else digest, *columns[_DIGEST + 1 :]]
    return zlib.crc32(json.dumps(values, default=repr).encode())


def of_vector(model: str, dim: int, digest: bytes | None, vector: bytes) -> int:
    """Of a vector of a space, and of the text (by its digest) that it belongs to."""
    return zlib.crc32(vector, zlib.crc32(digest or b"", zlib.crc32(f"{model}-{dim}".encode("utf-8", "surrogatepass"))))


def add_functions(database: sqlite3.Connection) -> None:
    """Let statements compute both: ``chunk_checksum`` and ``vector_checksum``."""
    database.create_function("chunk_checksum", -1, of_chunk, deterministic=True)
    database.create_function("vector_checksum", 4, of_vector, deterministic=True)


def damaged(database: sqlite3.Connection, ids: Sequence[int], space: Space | None) -> frozenset[int]:
    """Of these chunks, those whose checksum, or that of their vector in a space, is another."""
    found: set[int] = set()
    passage = f"SELECT checksum, {CHUNK_COLUMNS} FROM fx_vec_chunk WHERE id = ?"
    vector = "SELECT checksum, v FROM fx_vec_embedding WHERE chunk_id = ? AND model = ? AND dim = ?"
    for chunk_id in ids:
        row = database.execute(passage, (chunk_id,)).fetchone()
        if row is None:
            continue
        checksum, *columns = row
        if checksum != of_chunk(*columns):
            found.add(chunk_id)
        elif space is not None:
            row = database.execute(vector, (chunk_id, space.model, space.dim)).fetchone()
            if row is not None and row[0] != of_vector(space.model, space.dim, columns[_DIGEST], row[1]):
                found.add(chunk_id)
    return frozenset(found)

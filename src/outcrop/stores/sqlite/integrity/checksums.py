"""CRC-32 of a stored passage and of a stored vector: what a flipped bit on the disk changes without a trace."""

from __future__ import annotations

import json
import sqlite3
import zlib

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
    return zlib.crc32(json.dumps(values).encode())


def of_vector(model: str, dim: int, digest: bytes | None, vector: bytes) -> int:
    """Of a vector of a space, and of the text (by its digest) that it belongs to."""
    return zlib.crc32(vector, zlib.crc32(digest or b"", zlib.crc32(f"{model}-{dim}".encode("utf-8", "surrogatepass"))))


def add_functions(database: sqlite3.Connection) -> None:
    """Let statements compute both: ``chunk_checksum`` and ``vector_checksum``."""
    database.create_function("chunk_checksum", -1, of_chunk, deterministic=True)
    database.create_function("vector_checksum", 4, of_vector, deterministic=True)

"""Transfer blobs as a Fossil repository's unversioned content, written so that Fossil's own sync moves them.

The rows are those that ``fossil uv add`` makes; the program itself, one process a file, would take minutes. The file
is opened through SQLite only: closing a plain descriptor of it would drop this process's locks on it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outcrop.core.batches import in_batches
from outcrop.core.model import Skipped, SkipReason
from outcrop.core.protocols import TransferStore, override
from outcrop.core.rows import TransferCounts
from outcrop.core.sqlite_errors import translated
from outcrop.stores.sqlite.connection import ERRORS, open_file, transaction
from outcrop.transfer.blob import FOLDER, check_names, most_bytes, oversize
from outcrop.vcs.fossil import fetch_rows, has_table, read_setting, refuse_foreign

# Stored bytes of one transaction: some 10,000 chunks, which take well under 0.2 s to write.
BATCH_BYTES = 48 << 20

_READ_BYTES = 16 << 20
# Room for a whole batch: a cache that spills locks every reader out long before the transaction ends.
_CACHE_KIB = 256 << 10

_OURS = f"name GLOB '{FOLDER}*'"
# ``hash-policy`` from which on Fossil names new content by SHA3-256.
_POLICY_SHA3 = 2

# As Fossil itself makes it with the first unversioned file.
_TABLE = """
CREATE TABLE IF NOT EXISTS unversioned(
  uvid INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  rcvid INTEGER,
  mtime DATETIME,
  hash TEXT,
  sz INTEGER,
  encoding INT,
  content BLOB
)
"""


@dataclass(frozen=True, slots=True)
class _StoredFile:
    name: str
    hash: str
    size: int
    encoding: int
    content: bytes | None
    # Stored bytes, also of a content that was not read.
    length: int


class FossilTransfer(TransferStore):
    """Implements :class:`outcrop.core.protocols.TransferStore`."""

    def __init__(self, repository: Path) -> None:
        self._path = repository

    @override
    def names(self) -> frozenset[str]:
        with self._opened() as database:
            return frozenset(_hashes(database))

    @override
    def read(self, name: str) -> bytes | Skipped | None:
        with self._opened() as database:
            rows = _rows(database, [name])
        return next(map(_unpack, rows), None)

    @override
    def read_all(self) -> Iterator[tuple[str, bytes | Skipped]]:
        with self._opened() as database:
            # What is read, and not ``sz``, which says only what its writer says.
            listed: list[tuple[str, int]] = _select(
                database, "name, coalesce(length(content), 0)", f"{_OURS} ORDER BY name"
            )
        for names in in_batches(listed, _READ_BYTES):
            with self._opened() as database:
                rows = _rows(database, names)
            # One after the other: a few stored bytes may be many.
            yield from ((row.name, _unpack(row)) for row in rows)

    @override
    def replace(self, adds: Mapping[str, bytes], removes: Collection[str]) -> TransferCounts:
        check_names((*adds, *removes))
        with self._opened() as database:
            algorithm = _algorithm(database)
            stored = _hashes(database)
        gone = [name for name in removes if name in stored and name not in adds]
        fresh = [name for name, data in adds.items() if not _is_stored(data, stored.get(name))]
        # Hashed and compressed here, where nothing is locked.
        packed = (_pack(name, adds[name], algorithm) for name in fresh)
        batches = in_batches(((file, file.length) for file in packed), BATCH_BYTES, len(fresh))
        if fresh or gone:
            self._write(next(batches, []), gone)
        for batch in batches:
            self._write(batch, ())
        return TransferCounts(len(fresh), len(gone))

    def _write(self, batch: Sequence[_StoredFile], gone: Sequence[str]) -> None:
        with self._opened() as database:
            database.execute("PRAGMA cache_spill = OFF")
            database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            with transaction(database, True):
                database.execute(_TABLE)
                times = dict(fetch_rows(database, f"SELECT name, mtime FROM unversioned WHERE {_OURS}"))
                now = int(time.time())
                # Of two copies of a file, sync keeps the one with the later time.
                if batch:
                    received = _receive(database)
                    database.executemany(
                        "REPLACE INTO unversioned(name, rcvid, mtime, hash, sz, encoding, content)"
                        " VALUES (:name, :received, :time, :hash, :size, :encoding, :content)",
                        (
                            asdict(file) | {"received": received, "time": max(now, times.get(file.name, 0) + 1)}
                            for file in batch
                        ),
                    )
                database.executemany(
                    "UPDATE unversioned SET hash = NULL, content = NULL, sz = 0, mtime = ? WHERE name = ?",
                    ((max(now, times.get(name, 0) + 1), name) for name in gone),
                )
                # Fossil's cached digest of all unversioned files; with it, sync takes nothing to have changed.
                database.execute("DELETE FROM config WHERE name = 'uv-hash'")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A short connection; SQLite's errors come out in our words."""
        explained = translated(str(self._path), ERRORS, "Look at: fossil test-integrity")
        with explained, closing(open_file(self._path, "mode=rw")) as database:
            refuse_foreign(database, self._path)
            yield database


def _select(
    database: sqlite3.Connection, columns: str, condition: str, parameters: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    """Of the files that are there; Fossil makes the table with the first of all."""
    if not has_table(database, "unversioned"):
        return []
    return fetch_rows(database, f"SELECT {columns} FROM unversioned WHERE hash IS NOT NULL AND {condition}", parameters)


def _rows(database: sqlite3.Connection, names: Sequence[str]) -> list[_StoredFile]:
    """Stored files by name, with no content where it has more bytes than any file may have."""
    marks = ", ".join("?" * len(names))
    # Of the types that they should have, whatever another program put there; and a negative size is no size.
    content = f"CASE WHEN length(content) <= {max(map(most_bytes, names))} THEN CAST(content AS BLOB) END"
    columns = (
        f"name, CAST(hash AS TEXT), max(0, CAST(coalesce(sz, 0) AS INTEGER)), encoding, {content}, length(content)"
    )
    found = _select(database, columns, f"name IN ({marks}) ORDER BY name", names)
    return [
        # An empty file that came by sync has no content at all.
        _StoredFile(name, stored, size, encoding, content if size else b"", length or 0)
        for name, stored, size, encoding, content, length in found
    ]


def _hashes(database: sqlite3.Connection) -> Mapping[str, str]:
    return dict(_select(database, "name, hash", _OURS))


def _receive(database: sqlite3.Connection) -> int:
    """A row that says when and by whom content came in, as Fossil keeps for everything: the owner, by this program."""
    ((owner,),) = fetch_rows(database, "SELECT min(uid) FROM user WHERE cap GLOB '*s*'")
    row = database.execute(
        "INSERT INTO rcvfrom(uid, mtime, nonce, ipaddr) VALUES (?, julianday('now'), NULL, '#!outcrop')", (owner or 0,)
    )
    return row.lastrowid or 0


def _algorithm(database: sqlite3.Connection) -> str:
    policy = read_setting(database, "hash-policy")
    if policy is not None:
        return "sha3_256" if int(policy) >= _POLICY_SHA3 else "sha1"
    # Unset: a repository that holds nothing but SHA-1 names stays with them.
    ((old, new),) = fetch_rows(
        database,
        "SELECT EXISTS(SELECT 1 FROM blob WHERE length(uuid) = 40), EXISTS(SELECT 1 FROM blob WHERE length(uuid) > 40)",
    )
    return "sha1" if old and not new else "sha3_256"


def _is_stored(data: bytes, stored: str | None) -> bool:
    return stored is not None and _digest(data, "sha1" if len(stored) == 40 else "sha3_256") == stored


def _digest(data: bytes, algorithm: str) -> str:
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


def _pack(name: str, data: bytes, algorithm: str) -> _StoredFile:
    """The row that Fossil would make: compressed where that saves a fifth."""
    packed = len(data).to_bytes(4, "big") + zlib.compress(data)
    is_smaller = len(packed) <= 0.8 * len(data)
    stored = packed if is_smaller else data
    return _StoredFile(name, _digest(data, algorithm), len(data), int(is_smaller), stored, len(stored))


def _unpack(file: _StoredFile) -> bytes | Skipped:
    """The content of a stored file, of which nothing is unpacked beyond the most bytes that it may have."""
    name, most, content = file.name, most_bytes(file.name), file.content
    if max(file.size, file.length) > most:
        return oversize(name)
    if content is None:
        return Skipped(name, SkipReason.UNREADABLE, "its content never arrived in this copy of the repository")
    if file.encoding == 1:
        try:
            content = zlib.decompressobj().decompress(content[4:], file.size + 1)
        except zlib.error as error:
            return Skipped(name, SkipReason.BROKEN, f"it cannot be decompressed ({error})")
    if not _is_stored(content, file.hash):
        return Skipped(name, SkipReason.BROKEN, "its content does not match its hash")
    return content

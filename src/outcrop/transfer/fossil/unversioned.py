"""Transfer blobs as a Fossil repository's unversioned content, written so that Fossil's own sync moves them.

No ``fossil`` program is asked: one process a file would take minutes. The rows are those that ``fossil uv add`` makes.
The file is opened through SQLite only: closing a plain descriptor of it would drop this process's locks on it.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from outcrop.core.model import Skipped, SkipReason
from outcrop.core.protocols import TransferStore, override
from outcrop.core.rows import TransferCounts
from outcrop.core.sqlite_errors import ErrorClasses, translated
from outcrop.errors import BlobError, StoreDamaged, StoreError, StoreFull, StoreLocked
from outcrop.transfer.blob import FOLDER
from outcrop.vcs.fossil_lock import begin_when_idle

# How long a statement waits for another process; Fossil's own transactions end within 15 s.
BUSY_SECONDS = 20.0

# Stored bytes of one transaction: some 10,000 chunks, which take well under 0.2 s to write.
BATCH_BYTES = 48 << 20

_PAGE_BYTES = 16 << 20
_AT_ONCE = 500
# Room for a whole batch: a cache that spills locks every reader out long before the transaction ends.
_CACHE_KIB = 256 << 10

_ERRORS = ErrorClasses(locked=StoreLocked, denied=StoreFull, damaged=StoreDamaged, other=StoreError)

_NAME = re.compile(r"vec/[\w.-]+", re.ASCII)
_MINE = f"name GLOB '{FOLDER}*'"
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
class _Row:
    """A file as it will be stored."""

    name: str
    hash: str
    size: int
    encoding: int
    content: bytes


class FossilTransfer(TransferStore):
    """Implements :class:`outcrop.core.protocols.TransferStore`.

    Args:
        repository: The repository file.
    """

    def __init__(self, repository: Path) -> None:
        self._path = repository

    @override
    def names(self) -> frozenset[str]:
        with self._opened() as database:
            return frozenset(name for name, _ in _listed(database))

    @override
    def read(self, name: str) -> bytes | Skipped | None:
        with self._opened() as database:
            return next((content for _, content in _contents(database, [name])), None)

    @override
    def read_all(self) -> Iterator[tuple[str, bytes | Skipped]]:
        with self._opened() as database:
            listed = _listed(database)
        for names in _pages(listed):
            with self._opened() as database:
                found = _contents(database, names)
            yield from found

    @override
    def replace(self, adds: Mapping[str, bytes], removes: Collection[str]) -> TransferCounts:
        for name in (*adds, *removes):
            if not _NAME.fullmatch(name):
                raise BlobError(f"{name!r} is no name of the transfer store")
        with self._opened() as database:
            algorithm = _algorithm(database)
            stored = _hashes(database)
        gone = [name for name in removes if stored.get(name) and name not in adds]
        added = removed = 0
        batch: list[_Row] = []
        size = 0
        for name, data in adds.items():
            if _is_stored(data, stored.get(name)):
                continue
            # Hashed and compressed here, where nothing is locked.
            row = _pack(name, data, algorithm)
            batch.append(row)
            size += len(row.content)
            if size >= BATCH_BYTES:
                added, removed = added + len(batch), removed + len(gone)
                self._write(batch, gone)
                batch, gone, size = [], [], 0
        if batch or gone:
            added, removed = added + len(batch), removed + len(gone)
            self._write(batch, gone)
        return TransferCounts(added, removed)

    def _write(self, batch: Sequence[_Row], gone: Sequence[str]) -> None:
        with self._opened() as database:
            database.execute("PRAGMA cache_spill = OFF")
            database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            begin_when_idle(database)
            try:
                database.execute(_TABLE)
                times = _times(database)
                now = int(time.time())
                # Of two copies of a file, sync keeps the one with the later time.
                if batch:
                    received = _receive(database)
                    database.executemany(
                        "REPLACE INTO unversioned(name, rcvid, mtime, hash, sz, encoding, content)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?)",
                        (
                            (
                                *(row.name, received, max(now, times.get(row.name, 0) + 1)),
                                *(row.hash, row.size, row.encoding, row.content),
                            )
                            for row in batch
                        ),
                    )
                database.executemany(
                    "UPDATE unversioned SET hash = NULL, content = NULL, sz = 0, mtime = ? WHERE name = ?",
                    ((max(now, times.get(name, 0) + 1), name) for name in gone),
                )
                # Fossil's cached digest of all unversioned files; while it stands, sync takes nothing to have changed.
                database.execute("DELETE FROM config WHERE name = 'uv-hash'")
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A short connection; SQLite's errors come out in our words."""
        with translated(str(self._path), _ERRORS, "Look at: fossil test-integrity"):
            database = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                yield database
            finally:
                database.close()


def _exists(database: sqlite3.Connection) -> bool:
    """Whether the repository ever had unversioned content; Fossil makes the table with the first."""
    return bool(database.execute("SELECT 1 FROM sqlite_master WHERE name = 'unversioned'").fetchall())


def _listed(database: sqlite3.Connection) -> list[tuple[str, int]]:
    """Name and size of each file that is there, by name."""
    if not _exists(database):
        return []
    return database.execute(
        f"SELECT name, sz FROM unversioned WHERE hash IS NOT NULL AND {_MINE} ORDER BY name"
    ).fetchall()


def _contents(database: sqlite3.Connection, names: Sequence[str]) -> list[tuple[str, bytes | Skipped]]:
    """Some of the files by name, in name order."""
    if not _exists(database):
        return []
    found = database.execute(
        "SELECT name, hash, sz, encoding, content FROM unversioned"
        f" WHERE hash IS NOT NULL AND name IN ({', '.join('?' * len(names))}) ORDER BY name",
        names,
    ).fetchall()
    # An empty file that came by sync has no content at all.
    return [
        (name, _unpack(name, hash, encoding, content if size else b"")) for name, hash, size, encoding, content in found
    ]


def _hashes(database: sqlite3.Connection) -> Mapping[str, str | None]:
    if not _exists(database):
        return {}
    return dict(database.execute(f"SELECT name, hash FROM unversioned WHERE {_MINE}").fetchall())


def _times(database: sqlite3.Connection) -> Mapping[str, int]:
    return dict(database.execute(f"SELECT name, mtime FROM unversioned WHERE {_MINE}").fetchall())


def _pages(listed: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    names: list[str] = []
    size = 0
    for name, bytes_ in listed:
        if names and (size + bytes_ > _PAGE_BYTES or len(names) == _AT_ONCE):
            yield names
            names, size = [], 0
        names.append(name)
        size += bytes_
    if names:
        yield names


def _receive(database: sqlite3.Connection) -> int:
    """A row that says when and by whom content came in, as Fossil keeps for everything: the owner, by this program."""
    owner = database.execute("SELECT min(uid) FROM user WHERE cap GLOB '*s*'").fetchall()[0][0]
    row = database.execute(
        "INSERT INTO rcvfrom(uid, mtime, nonce, ipaddr) VALUES (?, julianday('now'), NULL, '#!outcrop')", (owner or 0,)
    )
    return row.lastrowid or 0


def _algorithm(database: sqlite3.Connection) -> str:
    """By which hash this repository names new content."""
    policy = database.execute("SELECT value FROM config WHERE name = 'hash-policy'").fetchall()
    if policy:
        return "sha3_256" if int(policy[0][0]) >= _POLICY_SHA3 else "sha1"
    # Unset: a repository that holds nothing but SHA-1 names stays with them.
    ((old, new),) = database.execute(
        "SELECT EXISTS(SELECT 1 FROM blob WHERE length(uuid) = 40), EXISTS(SELECT 1 FROM blob WHERE length(uuid) > 40)"
    ).fetchall()
    return "sha1" if old and not new else "sha3_256"


def _is_stored(data: bytes, hash: str | None) -> bool:
    return bool(hash) and _digest(data, "sha1" if len(hash or "") == 40 else "sha3_256") == hash


def _digest(data: bytes, algorithm: str) -> str:
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


def _pack(name: str, data: bytes, algorithm: str) -> _Row:
    """The row that Fossil would make: compressed where that saves a fifth."""
    hash = _digest(data, algorithm)
    packed = len(data).to_bytes(4, "big") + zlib.compress(data)
    if len(packed) <= 0.8 * len(data):
        return _Row(name, hash, len(data), 1, packed)
    return _Row(name, hash, len(data), 0, data)


def _unpack(name: str, hash: str, encoding: int, content: bytes | None) -> bytes | Skipped:
    if content is None:
        return Skipped(name, SkipReason.UNREADABLE, "its content never arrived in this copy of the repository")
    if encoding == 1:
        try:
            stream = zlib.decompressobj()
            content = stream.decompress(content[4:], int.from_bytes(content[:4], "big") + 1)
        except zlib.error as error:
            return Skipped(name, SkipReason.BROKEN, f"it cannot be decompressed ({error})")
    if not _is_stored(content, hash):
        return Skipped(name, SkipReason.BROKEN, "its content does not match its hash")
    return content

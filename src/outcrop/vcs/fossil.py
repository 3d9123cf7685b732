"""Fossil repositories on disk: finding one from a checkout, opening it for reading only, and contents by their hash.

Connections are short and no statement stays open: an unfinished read is enough to make ``fossil commit`` fail. Only
SQLite opens the file: when a process closes a database that it opened as a plain file, it loses every lock on it, those
of a transaction in another thread too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcrop.core.sqlite_errors import ErrorClasses, is_locked, translated
from outcrop.core.sqlite_tables import distrust_schema, find_foreign
from outcrop.errors import ArtifactUnreadable, NotARepository, SourceError, SourceLocked
from outcrop.vcs.fossil_artifacts import MAX_CONTENT_BYTES, apply_delta, inflate, is_authentic

# The database at the root of a checkout that names its repository; the second is Windows' name.
CHECKOUT_FILES = (".fslckout", "_FOSSIL_")

# Seconds that a read waits for a writer: as long as Fossil itself does.
BUSY_SECONDS = 15.0

_TABLES = frozenset({"blob", "delta", "rcvfrom", "config", "event", "tag", "tagxref", "private", "shun"})
# Parameters of one statement; SQLite may be built to take no more than 999.
_MAX_PARAMETERS = 500

# Bytes that all the deltas of one content may make together: a chain of 10,000 versions of 1 MB.
_MAX_CHAIN_BYTES = 10 << 30

# Every table of Fossil's that is read or written.
TABLES = _TABLES | {"filename", "forumpost", "mlink", "plink", "unversioned", "user", "vvar"}

_ERRORS = ErrorClasses(
    locked=SourceLocked, denied=SourceError, damaged=SourceError, no_locks=SourceError, other=SourceError
)


@dataclass(frozen=True, slots=True)
class FossilLocation:
    """A repository's database, and the root of the checkout that led to it; None when the file itself was named."""

    repository: Path
    checkout: Path | None


@dataclass(frozen=True, slots=True)
class FossilBlob:
    """A row of the table ``blob``.

    Attributes:
        rid: Its number in this copy of the repository; other copies have other numbers.
        size: In bytes; -1 where the content never arrived.
        private: Whether it is private or waits for a moderator.
        shunned: Whether it was shunned and stays only until the next rebuild.
    """

    rid: int
    size: int
    private: bool
    shunned: bool


def find_fossil(path: Path, top: Path | None = None) -> FossilLocation | None:
    """The repository that a path is, or whose checkout holds it; ``top`` is the highest folder that may be its root."""
    path = path.resolve()
    if path.is_file() and is_repository(path):
        return FossilLocation(path, None)
    for folder in (path, *path.parents):
        for name in CHECKOUT_FILES:
            if (folder / name).is_file():
                return FossilLocation(_repository_of(folder, name), folder)
        if folder == top:
            break
    return None


def is_repository(path: Path) -> bool:
    """Whether a file is a Fossil repository. Waits for a writer."""
    try:
        with open_fossil(path) as database:
            names = fetch_rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'")
            return {name for (name,) in names} >= _TABLES
    except NotARepository:
        return False


def _repository_of(folder: Path, name: str) -> Path:
    with open_fossil(folder / name) as database:
        has_variables = has_table(database, "vvar")
        found = fetch_rows(database, "SELECT value FROM vvar WHERE name = 'repository'") if has_variables else []
    if not found:
        raise SourceError(f"the checkout at {folder} names no repository", "Open it again: fossil open")
    # A relative path starts at the checkout's root.
    repository = (folder / str(found[0][0])).resolve()
    if not repository.is_file():
        raise SourceError(
            f"the repository of the checkout at {folder} is gone: {repository}",
            "If it was moved: fossil test-move-repository NEW_PATH",
        )
    return repository


@contextmanager
def open_fossil(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads; SQLite's errors become ours."""
    with translated(str(path), _ERRORS, "Run: fossil test-integrity"):
        try:
            database = _open(path)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise NotARepository(
                    f"{path} is not a Fossil repository", "Name a repository file or a folder of a checkout"
                ) from error
            raise
        try:
            refuse_foreign(database, path)
            yield database
        finally:
            database.close()


def refuse_foreign(database: sqlite3.Connection, path: Path) -> None:
    """A view in the place of one of Fossil's tables may compute without an end."""
    distrust_schema(database)
    foreign = find_foreign(database, TABLES)
    if foreign is not None:
        raise SourceError(
            f"{path} holds {foreign} where Fossil has a table of its own, and is not read",
            "Look at what made it: fossil sql .schema",
        )


def _open(path: Path) -> sqlite3.Connection:
    """Read-only, unless a killed writer left a journal, which only a connection that may write can roll back."""
    modes = ["mode=ro", "mode=rw"]
    if not any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal")):
        # A repository in WAL mode, in a folder that is not writable: no process can write to it either.
        modes.append("mode=ro&immutable=1")
    for mode in modes[:-1]:
        try:
            return _open_as(path, mode)
        except sqlite3.OperationalError as error:
            if is_locked(error):
                raise
    return _open_as(path, modes[-1])


def _open_as(path: Path, mode: str) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        database.execute("PRAGMA query_only = ON")
        fetch_rows(database, "SELECT 1 FROM sqlite_master LIMIT 1")
    except BaseException:
        database.close()
        raise
    # Names and comments of old repositories are not always UTF-8.
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


def fetch_rows(database: sqlite3.Connection, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Every row of a query at once, so that nothing stays open."""
    return database.execute(sql, parameters).fetchall()


def has_table(database: sqlite3.Connection, name: str) -> bool:
    """Whether the repository has a table that Fossil makes only when it needs it."""
    return bool(fetch_rows(database, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))


def read_setting(database: sqlite3.Connection, name: str) -> str | None:
    """A value of the repository's configuration."""
    found = fetch_rows(database, "SELECT value FROM config WHERE name = ?", (name,))
    return str(found[0][0]) if found else None


def find_blobs(database: sqlite3.Connection, uuids: Iterable[str]) -> Mapping[str, FossilBlob]:
    """The blobs of these contents; those that the repository does not know are missing."""
    wanted = list(dict.fromkeys(uuids))
    found: dict[str, FossilBlob] = {}
    for start in range(0, len(wanted), _MAX_PARAMETERS):
        part = wanted[start : start + _MAX_PARAMETERS]
        sql = (
            "SELECT uuid, rid, size, rid IN (SELECT rid FROM private), uuid IN (SELECT uuid FROM shun)"
            f" FROM blob WHERE uuid IN ({', '.join('?' * len(part))})"
        )
        for uuid, rid, size, private, shunned in fetch_rows(database, sql, part):
            found[uuid] = FossilBlob(rid, size, bool(private), bool(shunned))
    return found


def read_content(database: sqlite3.Connection, uuid: str, rid: int) -> bytes:
    """One content, rebuilt from its chain of deltas and checked against its hash."""
    sql = (
        f"SELECT CASE WHEN length(b.content) <= {MAX_CONTENT_BYTES} THEN b.content END, b.size, d.srcid"
        " FROM blob b LEFT JOIN delta d USING(rid) WHERE b.rid = ?"
    )
    deltas: list[bytes] = []
    visited: set[int] = set()
    while True:
        found = fetch_rows(database, sql, (rid,))
        if not found or found[0][0] is None or found[0][1] < 0:
            raise ArtifactUnreadable("its content never arrived in this copy of the repository")
        if rid in visited:
            raise ArtifactUnreadable("its deltas form a circle")
        visited.add(rid)
        stored, _, source = found[0]
        if source is None:
            break
        deltas.append(stored)
        rid = source
    data = inflate(stored)
    made = len(data)
    for delta in reversed(deltas):
        data = apply_delta(data, inflate(delta))
        made += len(data)
        if made > _MAX_CHAIN_BYTES:
            raise ArtifactUnreadable("its deltas make more than any content needs")
    if not is_authentic(data, uuid):
        raise ArtifactUnreadable("its content does not match its hash")
    return data

"""SQLite's errors as Outcrop's: for the index, a Fossil repository and its unversioned files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from outcrop.errors import OutcropError

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DENIED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
# Of network drives, and others that do not do all that a local disk does.
_NO_SHARED_MEMORY = (
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMLOCK,
)
_NO_LOCKS = (
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
)
_ON_A_LOCAL_DISK = "Keep it on a local disk (an index: --store FILE)"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


@dataclass(frozen=True, slots=True)
class ErrorClasses:
    """What an error of a database becomes, by what happened."""

    locked: type[OutcropError]
    denied: type[OutcropError]
    damaged: type[OutcropError]
    no_locks: type[OutcropError]
    other: type[OutcropError]


@contextmanager
def translated(what: str, classes: ErrorClasses, repair: str) -> Iterator[None]:
    """Turn SQLite's errors on ``what`` (a database, with its path) into ours; ``repair`` is for a damaged one."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _translate(error, what, classes, repair) from error


def is_locked(error: sqlite3.Error) -> bool:
    return _code(error) in _LOCKED


def lacks_shared_memory(error: sqlite3.Error) -> bool:
    """Whether the file system cannot map memory that processes share, which a write-ahead log needs."""
    return getattr(error, "sqlite_errorcode", 0) in _NO_SHARED_MEMORY


def is_damaged(error: sqlite3.DatabaseError) -> bool:
    return _code(error) in _DAMAGED or not isinstance(error, sqlite3.OperationalError)


def _translate(error: sqlite3.DatabaseError, what: str, classes: ErrorClasses, repair: str) -> OutcropError:
    code = _code(error)
    if code in _LOCKED:
        return classes.locked(f"{what} is in use by another process", "Try again in a moment")
    if code == sqlite3.SQLITE_FULL:
        return classes.denied(
            f"{what} could not be written ({error})", "Free some disk space and run the command again"
        )
    if lacks_shared_memory(error) or getattr(error, "sqlite_errorcode", 0) in _NO_LOCKS:
        return classes.no_locks(f"{what} is on a file system that cannot lock it ({error})", _ON_A_LOCAL_DISK)
    if code == sqlite3.SQLITE_IOERR:
        return classes.denied(f"{what} could not be read or written ({error})", "Check the disk and its free space")
    if code in _DENIED:
        return classes.denied(f"{what} cannot be opened ({error})", "Check the permissions of the file and its folder")
    if is_damaged(error):
        return classes.damaged(f"{what} is damaged ({error})", repair)
    return classes.other(f"{what} could not be used ({error})", repair)


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 for an error that the Python module itself raises."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF

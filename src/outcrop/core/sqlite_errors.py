"""SQLite's errors as Outcrop's: for the index, a Fossil repository and its unversioned files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from outcrop.errors import OutcropError

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DENIED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


@dataclass(frozen=True, slots=True)
class ErrorClasses:
    """What an error of a database becomes, by what happened."""

    locked: type[OutcropError]
    denied: type[OutcropError]
    damaged: type[OutcropError]
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

"""Which process keeps an index current, and how that goes: a note beside the index that ``status`` reads.

The note is written only when something changes, so that watching costs nothing. A lock, which ends with the process,
tells whether its writer is alive.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from outcrop.core.reports import Watcher
from outcrop.stores.sqlite.store import SqliteStore
from outcrop.text.files import read_regular, write_atomically

# Seconds that a new watch waits for the lock, which another process may be testing.
LOCK_TIMEOUT = 1.0

WATCHING = "watching"
UPDATING = "updating"
WAITING = "waiting"


class WatchNote:
    """The note of one watch, made by :func:`claim`."""

    def __init__(self, path: Path, how: str) -> None:
        self._path = path
        self._now = Watcher(process=os.getpid(), since=time.time(), how=how, state=UPDATING)

    def say(self, **changes: Any) -> None:
        """Change fields of the :class:`Watcher`. A full disk is no reason to stop watching."""
        now = replace(self._now, **changes)
        if now == self._now and self._path.exists():
            return
        self._now = now
        with suppress(OSError):
            write_atomically(self._path, json.dumps(asdict(now)).encode())

    def forget(self) -> None:
        with suppress(OSError):
            self._path.unlink()


@contextmanager
def claim(store: SqliteStore, how: str) -> Iterator[WatchNote | None]:
    """Become the watch of this view of the index; None when another process is it."""
    lock_file = _file(store, ".lock")
    make_folder(lock_file, store)
    if lock_file.parent.name == ".outcrop" and not (lock_file.parent / ".gitignore").exists():
        # As the store does: a folder that is later put under version control must not include this.
        (lock_file.parent / ".gitignore").write_text("*\n", "utf-8")
    lock = FileLock(lock_file, timeout=LOCK_TIMEOUT)
    try:
        lock.acquire()
    except Timeout:
        yield None
        return
    note = WatchNote(_file(store, ".json"), how)
    try:
        note.say(state=UPDATING)
        yield note
    finally:
        note.forget()
        with suppress(OSError):
            lock_file.unlink()
        lock.release()


def read(store: SqliteStore) -> Watcher | None:
    try:
        note = read_regular(_file(store, ".json"))
        lock = _file(store, ".lock")
        if not lock.exists():
            return None
        with FileLock(lock, timeout=0):
            return None
    except Timeout:
        pass
    except OSError:
        # No note; or a lock of another user, which cannot be tested.
        return None
    try:
        return Watcher(**json.loads(note))
    except (ValueError, TypeError):
        return None


def make_folder(file: Path, store: SqliteStore) -> None:
    """Make the folder of a state file; that of an index only if the indexed folder is there."""
    file.parent.mkdir(parents=not _has_own_folder(store), exist_ok=True)


def state_file(store: SqliteStore, suffix: str) -> Path:
    """A small file that belongs to an index: beside it where the folder is ours, else in the user's cache.

    A path that the user gave for the index may be among the indexed files, where a note would be taken for one of them.
    """
    if _has_own_folder(store) or store.is_shared:
        return store.file.beside(suffix)
    # Imported here: a path for the index is rarely given.
    from platformdirs import user_cache_path

    mark = hashlib.sha256(os.fsencode(store.path.absolute())).hexdigest()[:16]
    return user_cache_path("outcrop") / "locks" / f"{mark}{suffix}"


def _has_own_folder(store: SqliteStore) -> bool:
    return not store.is_shared and store.path.parent.name in (".outcrop", "outcrop")


def _file(store: SqliteStore, suffix: str) -> Path:
    """A note or lock: every view of a shared store has its own."""
    view = re.sub(r"[^\w.-]", "_", store.worktree)
    return state_file(store, f".watch{'-' + view if view else ''}{suffix}")

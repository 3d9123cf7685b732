"""Who keeps an index current, and how that goes: a note beside the index that ``status`` reads.

The note is written when something changes and not in between, so that watching costs nothing. Whether its writer still
lives is told by a lock, which goes with the process however that ends.
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
from outcrop.text.files import write_atomically

# Seconds that a new watch waits for the lock: somebody may just be looking whether it is held.
PATIENCE = 1.0

WATCHING = "watching"
UPDATING = "updating"
WAITING = "waiting"


class Heartbeat:
    """The note of one watch. Made by :func:`claim`."""

    def __init__(self, path: Path, how: str) -> None:
        self._path = path
        self._now = Watcher(process=os.getpid(), since=time.time(), how=how, state=UPDATING)

    def say(self, **changes: Any) -> None:
        """Change what the note says: fields of :class:`Watcher`. A disk that is full is no reason to stop watching."""
        now = replace(self._now, **changes)
        if now == self._now and self._path.exists():
            return
        self._now = now
        with suppress(OSError):
            write_atomically(self._path, json.dumps(asdict(now)).encode())

    def forget(self) -> None:
        """Take the note away."""
        with suppress(OSError):
            self._path.unlink()


@contextmanager
def claim(store: SqliteStore, how: str) -> Iterator[Heartbeat | None]:
    """Be the one that watches this view of the index; None when another process does.

    Args:
        store: The view. Its folder is made when it is not there, the folder above it is not.
        how: How changes are learnt of.
    """
    place = _place(store, ".lock")
    make_room(place, store)
    if place.parent.name == ".outcrop" and not (place.parent / ".gitignore").exists():
        # As the store does: a folder that is later put under version control must not carry this along.
        (place.parent / ".gitignore").write_text("*\n", "utf-8")
    lock = FileLock(place, timeout=PATIENCE)
    try:
        lock.acquire()
    except Timeout:
        yield None
        return
    heartbeat = Heartbeat(_place(store, ".json"), how)
    try:
        heartbeat.say(state=UPDATING)
        yield heartbeat
    finally:
        heartbeat.forget()
        with suppress(OSError):
            place.unlink()
        lock.release()


def read(store: SqliteStore) -> Watcher | None:
    """The living watch of this view, or None."""
    try:
        note = _place(store, ".json").read_text("utf-8")
        lock = _place(store, ".lock")
        if not lock.exists():
            return None
        with FileLock(lock, timeout=0):
            return None
    except Timeout:
        pass
    except OSError:
        # No note; or a lock of another user, of which nothing can be told.
        return None
    try:
        return Watcher(**json.loads(note))
    except (ValueError, TypeError):
        return None


def make_room(place: Path, store: SqliteStore) -> None:
    """Make the folder of a small file; that of an index only if what it is of is there."""
    place.parent.mkdir(parents=not _has_own_folder(store), exist_ok=True)


def small_file(store: SqliteStore, suffix: str) -> Path:
    """A small file that belongs to an index.

    Beside it where the folder is ours; else, as for a Fossil repository, in the user's cache. Somebody who names a file
    for the index may have put it among the very files that are indexed, where a note would be taken for one of them.
    """
    if _has_own_folder(store) or store.is_shared:
        return store.file.beside(suffix)
    # Imported here: hardly anybody names a file.
    from platformdirs import user_cache_path

    mark = hashlib.sha256(os.fsencode(store.path.absolute())).hexdigest()[:16]
    return user_cache_path("outcrop") / "locks" / f"{mark}{suffix}"


def _has_own_folder(store: SqliteStore) -> bool:
    return not store.is_shared and store.path.parent.name in (".outcrop", "outcrop")


def _place(store: SqliteStore, suffix: str) -> Path:
    """Where note and lock are: every view of a shared store has its own."""
    view = re.sub(r"[^\w.-]", "_", store.worktree)
    return small_file(store, f".watch{'-' + view if view else ''}{suffix}")

"""Signs that a source may have changed. Whether it did is decided by the source's revision."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Protocol, runtime_checkable

# The Rust backend that watchfiles documents for direct use. Its `watch()` starts to watch only with its first wait, so
# changes before that are lost, and it cannot vary the length of a wait.
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from outcrop.core.protocols import Source, override
from outcrop.sources.watch_paths import WatchPaths

# Seconds without a further change after which the source is asked: programs write in bursts.
SETTLE = 0.15

# After a minute without changes, events are collected twice a second only: each time wakes the processor.
REST = 0.5
REST_AFTER = 60.0

# Seconds of continuous changes after which the source is asked all the same.
LONGEST_BURST = 1.6

# Seconds between two checks of a file's state, and after a minute without changes.
POLL = 0.5
REST_POLL = 2.0

# Without events the source itself is asked: every two seconds at most, and for one part in 100 of the time.
MIN_PAUSE = 2.0
SHARE = 100

_ATTEMPTS = 5
_DELETED = 3


class Trigger(ABC):
    """Waits for a sign of change. ``how`` is for people; ``reason`` says why it is not the usual trigger."""

    how: str
    reason: str | None = None

    @abstractmethod
    def wait(self, seconds: float, cost: float) -> bool:
        """Sleep until a sign, or for ``seconds``; ``cost`` is the seconds that asking the source takes."""

    def close(self) -> None:  # noqa: B027, not every trigger holds something
        pass


class EventsFailed(Exception):
    """The system reports no changes here, and why."""


@runtime_checkable
class WatchableSource(Protocol):
    """A source that names the folders in which its changes show."""

    def watch_paths(self) -> WatchPaths: ...


def make_trigger(source: Source) -> Trigger:
    if source.type == "fossil":
        return FilePolling(source.store_path())
    if not isinstance(source, WatchableSource):
        return Polling("the source reports no changes")
    try:
        return FileEvents(source)
    except EventsFailed as error:
        return Polling(str(error))


class FileEvents(Trigger):
    """The system's file events, for the folders of a source."""

    how = "file events"

    def __init__(self, source: WatchableSource) -> None:
        self._source = source
        self._notify: RustNotify | None = None
        self._last = time.monotonic() - REST_AFTER
        self._start()

    @override
    def wait(self, seconds: float, cost: float) -> bool:
        assert self._notify is not None
        busy = time.monotonic() - self._last < REST_AFTER
        step = int((SETTLE if busy else REST) * 1000)
        try:
            found = self._notify.watch(int(LONGEST_BURST * 1000), step, max(step, int(seconds * 1000)), None)
        except WatchfilesRustInternalError as error:
            if "decode" not in str(error):
                raise EventsFailed(str(error)) from error
            # After a name that is not UTF-8 no more events arrive.
            self._start()
            return True
        if found == "signal":
            raise KeyboardInterrupt
        if isinstance(found, str):
            return False
        self._last = time.monotonic()
        moved = any((path in self._folders if kind == _DELETED else self._places.moves(path)) for kind, path in found)
        if moved:
            # Before the source is asked, so that no change in a new folder is missed.
            self._start()
        return moved or any(self._places.counts(path) for _, path in found)

    @override
    def close(self) -> None:
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _start(self) -> None:
        for _ in range(_ATTEMPTS):
            self._places = self._source.watch_paths()
            # RustNotify takes no name that is not UTF-8; the regular sweep finds what changes there.
            folders = [folder for folder in self._places.all() if folder.encode("utf-8", "ignore").decode() == folder]
            self._folders = frozenset(folders)
            try:
                # The last argument would ignore refused folders, and with them the system's limit.
                fresh = RustNotify(folders, False, False, 0, False, False)
            except FileNotFoundError:
                continue  # a folder was deleted meanwhile
            except (OSError, WatchfilesRustInternalError) as error:
                self.close()
                raise EventsFailed(_explain(error)) from error
            self.close()
            self._notify = fresh
            return
        self.close()
        raise EventsFailed("the folders change faster than they can be watched")


def _explain(error: Exception) -> str:
    text = str(error)
    if "limit" in text or "Too many open files" in text:
        return "the system's limit of watched folders is reached (raise fs.inotify.max_user_watches or _instances)"
    return f"the system cannot report changes here ({text})"


class FilePolling(Trigger):
    """Size and time of a database file and its log: every write changes them, and reading them opens nothing."""

    how = "the state of the repository's file"

    def __init__(self, path: Path) -> None:
        self._files = (str(path), f"{path}-wal")
        self._last = self._state()
        self._changed = time.monotonic() - REST_AFTER

    @override
    def wait(self, seconds: float, cost: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._state() == self._last:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            at_rest = time.monotonic() - self._changed > REST_AFTER
            time.sleep(min(REST_POLL if at_rest else POLL, left))
        self._changed = time.monotonic()
        while time.monotonic() < self._changed + LONGEST_BURST:
            now = self._state()
            if now == self._last:
                break
            self._last = now
            time.sleep(SETTLE)
        return True

    def _state(self) -> tuple[tuple[int, int, int, int], ...]:
        return tuple(map(file_identity, self._files))


def file_identity(path: str) -> tuple[int, int, int, int]:
    """Device, inode, time and size of a file; zeros without one."""
    try:
        status = os.stat(path)  # noqa: PTH116, a Path takes several times as long
    except OSError:
        return (0, 0, 0, 0)
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


class Polling(Trigger):
    """Without any sign: asks the source itself at intervals."""

    how = "polling"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self._due: float | None = None

    @override
    def wait(self, seconds: float, cost: float) -> bool:
        now = time.monotonic()
        if self._due is None:
            self._due = now + max(MIN_PAUSE, SHARE * cost)
        time.sleep(max(0.0, min(seconds, self._due - now)))
        if time.monotonic() < self._due:
            return False
        self._due = None
        return True

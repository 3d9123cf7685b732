"""What tells a watch that its source may have changed. None of them decides whether it did: the source does."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol, runtime_checkable

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from outcrop.core.protocols import Source
from outcrop.sources.watch_paths import WatchPaths

# Seconds without a further change after which the source is looked at: programs write in bursts.
SETTLE = 0.15

REST = 0.5
# When nothing happened for a minute, signs are looked for twice a second only: each look wakes the processor.
REST_AFTER = 60.0

# Seconds of changes without a pause after which it is looked at all the same.
LONGEST = 1.6

POLL = 0.5
# Seconds between two looks at the state of a file, and when nothing happened for a minute.
REST_POLL = 2.0

LEAST_PAUSE = 2.0
# Without events the source itself has to be asked: at most every two seconds, and for one part in 100 of the time.
SHARE = 100

_ATTEMPTS = 5
_DELETED = 3


class Trigger(Protocol):
    """Waits for a sign of change."""

    @property
    def how(self) -> str:
        """How it learns of changes, for people."""

    @property
    def reason(self) -> str | None:
        """Why it is not the usual one."""

    def wait(self, seconds: float, cost: float) -> bool:
        """Sleep until something may have changed, and no longer than this.

        Args:
            seconds: How long at most.
            cost: Seconds that it takes to ask the source.
        """

    def close(self) -> None:
        """Let go of what it holds."""


class EventsFailed(Exception):
    """The system tells of no changes here, and why."""


@runtime_checkable
class Placed(Protocol):
    """A source that says where its changes show."""

    def watch_paths(self) -> WatchPaths:
        """The folders to watch."""


def trigger_of(source: Source) -> Trigger:
    """The trigger that suits a source."""
    if source.type == "fossil":
        return FilePolling(source.store_path())
    if not isinstance(source, Placed):
        return Polling("nothing tells of its changes")
    try:
        return FileEvents(source)
    except EventsFailed as error:
        return Polling(str(error))


class FileEvents:
    """The system's own notices of changed files, for the folders of a source and no others."""

    how = "file events"
    reason = None

    def __init__(self, source: Placed) -> None:
        self._source = source
        self._notify: RustNotify | None = None
        self._last = time.monotonic() - REST_AFTER
        self._arm()

    def wait(self, seconds: float, cost: float) -> bool:
        """See :class:`Trigger`."""
        assert self._notify is not None
        busy = time.monotonic() - self._last < REST_AFTER
        step = int((SETTLE if busy else REST) * 1000)
        try:
            found = self._notify.watch(int(LONGEST * 1000), step, max(step, int(seconds * 1000)), None)
        except WatchfilesRustInternalError as error:
            if "decode" not in str(error):
                raise EventsFailed(str(error)) from error
            # A name that is not UTF-8: no more is told after it, but that something happened.
            self._arm()
            return True
        if found == "signal":
            raise KeyboardInterrupt
        if isinstance(found, str):
            return False
        self._last = time.monotonic()
        moved = any((path in self._folders if kind == _DELETED else self._places.moves(path)) for kind, path in found)
        if moved:
            # Before anybody looks at the source: what comes into a new folder from now on is seen.
            self._arm()
        return moved or any(self._places.counts(path) for _, path in found)

    def close(self) -> None:
        """Let go of the system's watches."""
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _arm(self) -> None:
        for _ in range(_ATTEMPTS):
            self._places = self._source.watch_paths()
            # A name that is not UTF-8 cannot be handed over; the regular look finds what changes there.
            folders = [folder for folder in self._places.all() if folder.isprintable() or _is_text(folder)]
            self._folders = frozenset(folders)
            try:
                # The last argument would pass over refused folders, and with them over the system's limit.
                fresh = RustNotify(folders, False, False, 0, False, False)
            except FileNotFoundError:
                continue  # one of them went in between
            except (OSError, WatchfilesRustInternalError) as error:
                self.close()
                raise EventsFailed(_plain(error)) from error
            self.close()
            self._notify = fresh
            return
        self.close()
        raise EventsFailed("the folders change faster than they can be watched")


def _is_text(folder: str) -> bool:
    try:
        folder.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(error: Exception) -> str:
    words = str(error)
    if "limit" in words or "Too many open files" in words:
        return "the system's limit of watched folders is reached (raise fs.inotify.max_user_watches or _instances)"
    return f"the system cannot tell of changes here ({words})"


class FilePolling:
    """Size and time of a database file and its log: every write moves them, and looking at them opens nothing."""

    how = "the state of the repository's file"
    reason = None

    def __init__(self, path: Path) -> None:
        self._files = (str(path), f"{path}-wal")
        self._last = self._state()
        self._moved = time.monotonic() - REST_AFTER

    def wait(self, seconds: float, cost: float) -> bool:
        """See :class:`Trigger`."""
        until = time.monotonic() + seconds
        while self._state() == self._last:
            left = until - time.monotonic()
            if left <= 0:
                return False
            rests = time.monotonic() - self._moved > REST_AFTER
            time.sleep(min(REST_POLL if rests else POLL, left))
        self._moved = time.monotonic()
        settled = time.monotonic() + LONGEST
        while time.monotonic() < settled:
            now = self._state()
            if now == self._last:
                break
            self._last = now
            time.sleep(SETTLE)
        return True

    def close(self) -> None:
        """Nothing is held."""

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(_about(path) for path in self._files)


def _about(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116, a Path takes several times as long
    except OSError:
        return (0, 0, 0)
    return status.st_size, status.st_mtime_ns, status.st_ino


class Polling:
    """No sign at all: the source is asked again and again, for a small part of the time."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.how = "polling"
        self._due: float | None = None

    def wait(self, seconds: float, cost: float) -> bool:
        """See :class:`Trigger`."""
        now = time.monotonic()
        if self._due is None:
            self._due = now + max(LEAST_PAUSE, SHARE * cost)
        time.sleep(max(0.0, min(seconds, self._due - now)))
        if time.monotonic() < self._due:
            return False
        self._due = None
        return True

    def close(self) -> None:
        """Nothing is held."""

"""Keeps an index current: waits for a sign of change, asks the source for its revision, updates the index.

Signs may be false or missing: only the source's revision decides, and it is asked now and then without a sign. What
fails is tried again at growing intervals, and ``status`` reports it meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from outcrop.app import watch_lock
from outcrop.app.index import Index
from outcrop.app.update import is_stale, unmanaged_corpora, update
from outcrop.app.watch_lock import UPDATING, WAITING, WATCHING, WatchNote
from outcrop.config.settings import REPOSITORY_FILE, user_file
from outcrop.core.model import FileState
from outcrop.core.reports import Progress, Watcher
from outcrop.errors import EgressRefused, NoLocks, NotARepository, OutcropError, SourceLocked, StoreLocked
from outcrop.surfaces.render import duration
from outcrop.surfaces.watch.once import SHOWN_REVISION, describe
from outcrop.surfaces.watch.triggers import EventsFailed, Polling, Trigger, file_identity, make_trigger

# Seconds of one wait; after each, the folder, the settings and the clock are checked.
WAIT = 5.0

# Without a sign the source is asked every five minutes at most, and for one part in 3,000 of the time.
SWEEP = 300.0
SWEEP_SHARE = 3000

# With signs, asking the source takes at most one part in ten of the time.
SIGN_SHARE = 10

# Seconds until a failed update is tried again, the first time and at most; doubled each time.
FIRST_RETRY = 5.0
LAST_RETRY = 600.0

# Seconds until the next try while another process builds the index or writes the repository.
BUSY_RETRY = 1.0

# Seconds between two checks whether a folder that is gone is back.
RETURN_POLL = 2.0

# Files that the output may go to at once, and how much of the end of each is looked at.
MAX_OUTPUTS = 4
END_BYTES = 1 << 16

# Seconds between two clocks above which the machine, or this process, was suspended.
CLOCK_JUMP = 5.0


@dataclass(frozen=True, slots=True)
class Event:
    """``watching``, ``updated``, ``waiting``, ``corpora``, ``gone`` or ``back``: as a line, and as plain values."""

    name: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)


EventHandler = Callable[[Event], None]
# Shows the progress of one build.
ProgressDisplay = Callable[[], AbstractContextManager[Callable[[Progress], None]]]


def watch(open_index: Callable[[], Index], on_event: EventHandler, display: ProgressDisplay) -> Watcher:
    """Keep an index current until the program ends.

    ``open_index`` opens it with the current settings, again after each change of them. Returns only the watch of
    another process, if there is one.
    """
    watched: tuple[str, Path] | None = None
    gone = False
    while True:
        try:
            index = open_index()
            opened = (index.source.type, index.source.root)
            if watched not in (None, opened):
                index.close()
                raise NotARepository(f"{_describe(watched)} is {_describe(opened)} now", "Start the watch again")
        except (OutcropError, OSError) as error:
            if watched is None:
                raise
            if not gone:
                on_event(Event("gone", f"waiting: {error}", {"reason": str(error)}))
            gone = True
            time.sleep(RETURN_POLL)
            continue
        if gone:
            on_event(Event("back", f"{index.source.root} is back", {"root": str(index.source.root)}))
        with index, watch_lock.claim(index.store, "starting") as heartbeat:
            if heartbeat is None:
                return watch_lock.read(index.store) or Watcher(0, 0.0, "unknown", WATCHING)
            _Session(index, heartbeat, on_event, display, retry_consent=watched is not None).run()
        watched, gone = opened, False


class _Session:
    """One index from its opening until its folder goes or its settings change.

    With ``retry_consent`` missing consent is a failure to wait for; at the beginning it ends the watch.
    """

    def __init__(
        self, index: Index, heartbeat: WatchNote, on_event: EventHandler, display: ProgressDisplay, retry_consent: bool
    ) -> None:
        self._index = index
        self._heartbeat = heartbeat
        self._on_event = on_event
        self._display = display
        self._retry_consent = retry_consent
        source = index.source
        # Strings: what runs every few seconds must cost next to nothing.
        self._folders = [
            str(source.root),
            str(source.store_path() if source.type == "fossil" else source.root / ".git"),
        ]
        self._settings = [str(source.root / REPOSITORY_FILE), str(user_file())]
        self._opened_as = self._identities()
        self._failures = 0
        self._left_out: list[str] = []
        self._announced: bytes | None = None
        # Seconds that asking the source takes.
        self._cost = 0.0
        self._trigger = self._start_trigger(None)

    def run(self) -> None:
        due, not_before, sweep = True, 0.0, 0.0
        try:
            while self._identities() == self._opened_as:
                if due and time.monotonic() >= not_before:
                    retry = self._update_if_behind()
                    due = retry is not None
                    not_before = time.monotonic() + (SIGN_SHARE * self._cost if retry is None else retry)
                    sweep = time.monotonic() + max(SWEEP, SWEEP_SHARE * self._cost)
                sign, suspended = self._wait((not_before if due else sweep) - time.monotonic())
                if suspended:
                    not_before = 0.0
                due = due or sign or suspended or time.monotonic() >= sweep
        finally:
            self._trigger.close()

    def _wait(self, seconds: float) -> tuple[bool, bool]:
        """Wait for a sign. Returns whether there was one, and whether the process was suspended meanwhile."""
        seconds = max(0.0, min(WAIT, seconds))
        began = time.monotonic()
        offset = time.time() - began
        try:
            sign = self._trigger.wait(seconds, self._cost)
        except EventsFailed as failure:
            self._trigger.close()
            self._trigger, sign = self._start_trigger(str(failure)), True
        except OutcropError:
            sign = True  # the source cannot be read now: the update reports why
        now = time.monotonic()
        # A machine that sleeps stops one of the clocks; for a stopped process both go on.
        suspended = abs(time.time() - now - offset) > CLOCK_JUMP or now - began > seconds + CLOCK_JUMP
        return sign, suspended

    def _identities(self) -> tuple[object, ...]:
        return (*(file_identity(path)[:2] for path in self._folders), *map(file_identity, self._settings))

    def _start_trigger(self, failure: str | None) -> Trigger:
        try:
            trigger = make_trigger(self._index.source) if failure is None else Polling(failure)
        except OutcropError as error:
            trigger = Polling(str(error))
        source, reason = self._index.source, f": {trigger.reason}" if trigger.reason else ""
        self._emit(
            "watching",
            f"watching {source.root} ({source.type}) by {trigger.how}{reason}",
            root=str(source.root),
            source=source.type,
            how=trigger.how,
            reason=trigger.reason,
        )
        self._heartbeat.say(how=trigger.how, reason=trigger.reason)
        return trigger

    def _update_if_behind(self) -> float | None:
        """Returns the seconds until the next try; None after success."""
        try:
            began = time.perf_counter()
            behind = is_stale(self._index)
            self._cost = time.perf_counter() - began
            if behind:
                self._update()
            left_out = unmanaged_corpora(self._index)
        except (StoreLocked, SourceLocked):
            return BUSY_RETRY
        except (OutcropError, OSError) as error:
            if isinstance(error, NoLocks) or (isinstance(error, EgressRefused) and not self._retry_consent):
                # No later try ends otherwise.
                raise
            return self._wait_after(error)
        if self._failures:
            self._emit("watching", "working again")
        if left_out != self._left_out:
            text = f"not kept current: {', '.join(left_out)} (set their paths: corpora)"
            self._emit("corpora", text, left_out=left_out)
        self._left_out, self._failures, self._retry_consent = left_out, 0, True
        self._heartbeat.say(state=WATCHING, reason=self._trigger.reason, retry=None)
        return None

    def _update(self) -> None:
        self._heartbeat.say(state=UPDATING)
        before = self._index.store.seen() if self._index.store.exists else {}
        with self._display() as progress:
            done = update(self._index, progress)
        self._heartbeat.say(updated=time.time())
        echoes = self._echoes(before)
        # A line about nothing but the file that lines go to would be the next change of it, and so on for ever.
        if done.added > echoes or done.removed > echoes or (done.embedded and not echoes):
            self._announced = done.revision[:SHOWN_REVISION].encode()
            text = f"{describe(done)}, {done.reused:,} known ({duration(done.seconds)})"
            self._emit("updated", text, **asdict(done))

    def _echoes(self, before: Mapping[str, FileState]) -> int:
        """How many of the files that changed hold the last line about an update: the output goes there."""
        seen = self._index.store.seen()
        changed = [path for path, state in seen.items() if path not in before or before[path].hash != state.hash]
        if self._announced is None or len(changed) > MAX_OUTPUTS:
            return 0
        return sum(self._announced in _end_of(self._index.source.root / path) for path in changed)

    def _wait_after(self, error: Exception) -> float:
        if self._identities() != self._opened_as:
            return 0.0  # the folder is gone: run() ends
        pause = min(LAST_RETRY, FIRST_RETRY * 2.0**self._failures)
        self._failures += 1
        self._retry_consent = True
        self._heartbeat.say(state=WAITING, reason=str(error), retry=time.time() + pause)
        text = f"{str(error).rstrip('.')}. Trying again in {duration(pause)}."
        self._emit("waiting", text, reason=str(error), seconds=pause)
        return pause

    def _emit(self, name: str, text: str, **details: Any) -> None:
        self._on_event(Event(name, text, details))


def _end_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - END_BYTES))
            return file.read(END_BYTES)
    except OSError:
        return b""


def _describe(place: tuple[str, Path] | None) -> str:
    return "" if place is None else f"{place[1]} ({place[0]})"

"""Keeping an index current: wait for a sign, ask the source whether it moved, bring the index up to date.

A sign proves nothing and a missed one harms little: the source's revision alone decides, and it is asked now and then
without any sign. Whatever fails is tried again, later and later, and ``status`` says so meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from outcrop.app import watch_lock
from outcrop.app.index import Index
from outcrop.app.update import is_stale, unmanaged_corpora, update
from outcrop.app.watch_lock import UPDATING, WAITING, WATCHING, WatchNote
from outcrop.config.settings import REPOSITORY_FILE, user_file
from outcrop.core.reports import Progress, Watcher
from outcrop.errors import EgressRefused, NotARepository, OutcropError, SourceLocked, StoreLocked
from outcrop.surfaces.render import counted, duration
from outcrop.surfaces.watch.triggers import EventsFailed, Polling, Trigger, trigger_of

# Seconds that are waited at a stretch; after each, the folder, the settings and the clock are looked at.
SLICE = 5.0

SWEEP = 300.0
# Without any sign the source is asked every five minutes at most, and for one part in 3,000 of the time.
SWEEP_SHARE = 3000

# However often something changes, asking the source takes no more than one part in ten of the time.
GAP_SHARE = 10

FIRST_RETRY = 5.0
# Seconds until something that failed is tried again, the first time and at most; doubled each time.
LAST_RETRY = 600.0

# Seconds until the next try while another process builds, or writes the repository.
BUSY_RETRY = 1.0

# Seconds between two looks whether a folder that went is back.
RETURN_LOOK = 2.0

# A clock that is off by this many seconds tells that the machine, or this process, was asleep.
JUMP = 5.0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a watch did or met.

    Attributes:
        name: ``watching``, ``updated``, ``waiting``, ``corpora``, ``gone`` or ``back``.
        text: The same for a person, on one line.
        details: The same for a program: plain values.
    """

    name: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)


Tell = Callable[[Event], None]
# Gives what shows how far a build is.
Show = Callable[[], AbstractContextManager[Callable[[Progress], None]]]


def watch(open_index: Callable[[], Index], tell: Tell, show: Show) -> Watcher:
    """Keep an index current until somebody ends the program.

    Args:
        open_index: Opens it, with the settings of that moment.
        tell: Told of everything that happens.
        show: Shows builds.

    Returns:
        The watch that another process keeps already; otherwise this does not return.
    """
    place: tuple[str, Path] | None = None
    gone = False
    while True:
        try:
            index = open_index()
            found = (index.source.type, index.source.root)
            if place not in (None, found):
                index.close()
                raise NotARepository(f"{_named(place)} is {_named(found)} now", "Start the watch again")
        except (OutcropError, OSError) as error:
            if place is None:
                raise
            if not gone:
                tell(Event("gone", f"waiting: {error}", {"reason": str(error)}))
            gone = True
            time.sleep(RETURN_LOOK)
            continue
        if gone:
            tell(Event("back", f"{index.source.root} is back", {"root": str(index.source.root)}))
        with index, watch_lock.claim(index.store, "starting") as pulse:
            if pulse is None:
                return watch_lock.read(index.store) or Watcher(0, 0.0, "unknown", WATCHING)
            _Session(index, pulse, tell, show, patient=place is not None).run()
        place, gone = found, False


class _Session:
    """One index from its opening until its folder goes or its settings change.

    Args:
        index: The index.
        pulse: What status reads.
        tell: As in :func:`watch`.
        show: As in :func:`watch`.
        patient: Whether to wait for consent; at the beginning its lack is final.
    """

    def __init__(self, index: Index, pulse: WatchNote, tell: Tell, show: Show, patient: bool) -> None:
        self._index = index
        self._pulse = pulse
        self._tell = tell
        self._show = show
        self._patient = patient
        source = index.source
        # Kept as texts: what happens every few seconds has to cost next to nothing.
        self._places = [str(source.root), str(source.store_path() if source.type == "fossil" else source.root / ".git")]
        self._settings = [str(source.root / REPOSITORY_FILE), str(user_file())]
        self._standing = self._stand()
        self._failures = 0
        self._left: list[str] = []
        self._cost = 0.0
        self._trigger = self._arm(None)

    def run(self) -> None:
        """Keep it current."""
        wanted, not_before, sweep = True, 0.0, 0.0
        try:
            while self._stand() == self._standing:
                if wanted and time.monotonic() >= not_before:
                    pause = self._look()
                    wanted = pause is not None
                    not_before = time.monotonic() + (GAP_SHARE * self._cost if pause is None else pause)
                    sweep = time.monotonic() + max(SWEEP, SWEEP_SHARE * self._cost)
                sign, slept = self._wait((not_before if wanted else sweep) - time.monotonic())
                if slept:
                    not_before = 0.0
                wanted = wanted or sign or slept or time.monotonic() >= sweep
        finally:
            self._trigger.close()

    def _wait(self, seconds: float) -> tuple[bool, bool]:
        """Wait for a sign. Returns whether there was one, and whether time passed that this process did not see."""
        seconds = max(0.0, min(SLICE, seconds))
        began = time.monotonic()
        ahead = time.time() - began
        try:
            sign = self._trigger.wait(seconds, self._cost)
        except EventsFailed as failure:
            self._trigger.close()
            self._trigger, sign = self._arm(str(failure)), True
        except OutcropError:
            sign = True  # the source cannot be read just now: looking at it says why
        now = time.monotonic()
        # A machine that sleeps stops one clock and not the other; a process that is stopped sees both go on.
        return sign, abs(time.time() - now - ahead) > JUMP or now - began > seconds + JUMP

    def _stand(self) -> tuple[object, ...]:
        """What an opened index rests on: its folder, and the files that its settings come from."""
        return (*(_identity(path)[:2] for path in self._places), *map(_identity, self._settings))

    def _arm(self, failure: str | None) -> Trigger:
        try:
            trigger = trigger_of(self._index.source) if failure is None else Polling(failure)
        except OutcropError as error:
            trigger = Polling(str(error))
        source, reason = self._index.source, f": {trigger.reason}" if trigger.reason else ""
        self._say(
            "watching",
            f"watching {source.root} ({source.type}) by {trigger.how}{reason}",
            root=str(source.root),
            source=source.type,
            how=trigger.how,
            reason=trigger.reason,
        )
        self._pulse.say(how=trigger.how, reason=trigger.reason)
        return trigger

    def _look(self) -> float | None:
        """Bring the index up to date if it is behind. Returns in how many seconds to try again, None if all is well."""
        try:
            began = time.perf_counter()
            behind = is_stale(self._index)
            self._cost = time.perf_counter() - began
            if behind:
                self._update()
            left = unmanaged_corpora(self._index)
        except (StoreLocked, SourceLocked):
            return BUSY_RETRY
        except EgressRefused as error:
            if not self._patient:
                raise
            return self._failed(error)
        except (OutcropError, OSError) as error:
            return self._failed(error)
        if self._failures:
            self._say("watching", "all is well again")
        if left != self._left:
            self._say("corpora", f"not kept current: {', '.join(left)} (set their paths: corpora)", left_out=left)
        self._left, self._failures, self._patient = left, 0, True
        self._pulse.say(state=WATCHING, reason=self._trigger.reason, retry=None)
        return None

    def _update(self) -> None:
        self._pulse.say(state=UPDATING)
        with self._show() as progress:
            done = update(self._index, progress)
        self._pulse.say(updated=time.time())
        if done.added or done.removed or done.embedded:
            self._say(
                "updated",
                f"current to {done.revision[:12]}: {counted(done.added, 'artifact')} new or changed, "
                f"{done.removed:,} removed, {counted(done.embedded, 'passage')} embedded, {done.reused:,} known "
                f"({duration(done.seconds)})",
                **asdict(done),
            )

    def _failed(self, error: Exception) -> float:
        """Say what failed. Returns the seconds until the next try."""
        if self._stand() != self._standing:
            return 0.0  # the folder went, which the loop deals with
        pause = min(LAST_RETRY, FIRST_RETRY * 2.0**self._failures)
        self._failures += 1
        self._patient = True
        self._pulse.say(state=WAITING, reason=str(error), retry=time.time() + pause)
        self._say(
            "waiting", f"{str(error).rstrip('.')}. Trying again in {duration(pause)}.", reason=str(error), seconds=pause
        )
        return pause

    def _say(self, name: str, text: str, **details: Any) -> None:
        self._tell(Event(name, text, details))


def _named(place: tuple[str, Path] | None) -> str:
    return "" if place is None else f"{place[1]} ({place[0]})"


def _identity(path: str) -> tuple[int, int, int, int]:
    """Which file stands at a path and when it changed; zeros where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116, a Path takes several times as long
    except OSError:
        return (0, 0, 0, 0)
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size

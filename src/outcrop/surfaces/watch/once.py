"""One update of an index, for hooks. Of many calls at once, one works and one waits.

A rebase of a hundred commits runs its hook a hundred times. The first call works, the second waits and then sees every
change until its start, the others exit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from filelock import FileLock, Timeout

from outcrop.app import watch_lock
from outcrop.app.index import Index
from outcrop.app.update import Update, is_stale, update
from outcrop.core.reports import Progress
from outcrop.errors import SourceLocked, StoreLocked
from outcrop.surfaces.render import counted, duration

# Seconds to wait for another build; the first one of a large repository takes that long on a small machine.
BUILD_TIMEOUT = 3600.0

RETRY_PAUSE = 0.5

# Characters of a revision in a line.
SHOWN_REVISION = 12


@dataclass(frozen=True, slots=True)
class OnceResult:
    """The result as a line for a person and as plain values for a program."""

    text: str
    details: dict[str, Any]


def update_once(index: Index, progress: Callable[[Progress], None], *, if_indexed: bool) -> OnceResult:
    """Update an index, unless another process does; with ``if_indexed`` only if it exists."""
    if if_indexed and not (index.store.exists and index.store.has_members()):
        return _not_updated("there is no index yet")
    if (other := watch_lock.read(index.store)) is not None:
        return _not_updated(f"process {other.process} watches this and keeps it current")
    waiting_path, working_path = (watch_lock.state_file(index.store, suffix) for suffix in (".next", ".turn"))
    watch_lock.make_folder(working_path, index.store)
    with ExitStack() as stack:
        try:
            waiting = stack.enter_context(FileLock(waiting_path, timeout=0))
        except Timeout:
            return _not_updated("another call waits and will see the same changes")
        stack.enter_context(FileLock(working_path, timeout=BUILD_TIMEOUT))
        waiting.release()
        done = _update(index, progress)
    if done is None:
        return OnceResult("up to date", {"updated": False, "reason": None})
    text = f"{describe(done)} ({duration(done.seconds)})"
    return OnceResult(text, {"updated": True, "reason": None, **asdict(done)})


def describe(done: Update) -> str:
    words_only = f", {len(done.words_only):,} by words only" if done.words_only else ""
    return (
        f"current to {done.revision[:SHOWN_REVISION]}: {counted(done.added, 'artifact')} new or changed,"
        f" {done.removed:,} removed, {counted(done.embedded, 'passage')} embedded{words_only}"
    )


def _not_updated(reason: str) -> OnceResult:
    return OnceResult(reason, {"updated": False, "reason": reason})


def _update(index: Index, progress: Callable[[Progress], None]) -> Update | None:
    deadline = time.monotonic() + BUILD_TIMEOUT
    while True:
        try:
            return update(index, progress) if is_stale(index) else None
        except (StoreLocked, SourceLocked):
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_PAUSE)

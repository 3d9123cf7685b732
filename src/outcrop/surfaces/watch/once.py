"""Bringing an index up to date once, for hooks. Who comes while another is at it waits, and one who waits is enough.

A rebase of a hundred commits calls its hook a hundred times. The first call works, the second waits for it and will see
everything that happened until then, the others leave at once.
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

# Seconds to wait for another build; a first one of a large repository takes that long on a small machine.
PATIENCE = 3600.0

PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it: a line for a person, and plain values."""

    text: str
    details: dict[str, Any]


def update_once(index: Index, progress: Callable[[Progress], None], *, if_indexed: bool) -> Result:
    """Bring an index up to date unless somebody does already.

    Args:
        index: The index.
        progress: Told how far it is.
        if_indexed: Leave a view alone that was never indexed.
    """
    if if_indexed and not (index.store.exists and index.store.has_members()):
        return Result("there is no index yet", {"updated": False, "reason": "there is no index yet"})
    if (other := watch_lock.read(index.store)) is not None:
        reason = f"process {other.process} is watching this and keeps it current"
        return Result(reason, {"updated": False, "reason": reason})
    waiting_room, turn = (watch_lock.state_file(index.store, suffix) for suffix in (".next", ".turn"))
    watch_lock.make_folder(turn, index.store)
    with ExitStack() as stack:
        try:
            waiting = stack.enter_context(FileLock(waiting_room, timeout=0))
        except Timeout:
            reason = "another call waits for its turn and will see what this one would"
            return Result(reason, {"updated": False, "reason": reason})
        stack.enter_context(FileLock(turn, timeout=PATIENCE))
        waiting.release()
        done = _update(index, progress)
    if done is None:
        return Result("up to date", {"updated": False, "reason": None})
    text = (
        f"current to {done.revision[:12]}: {counted(done.added, 'artifact')} new or changed, {done.removed:,} removed, "
        f"{counted(done.embedded, 'passage')} embedded ({duration(done.seconds)})"
    )
    return Result(text, {"updated": True, "reason": None, **asdict(done)})


def _update(index: Index, progress: Callable[[Progress], None]) -> Update | None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return update(index, progress) if is_stale(index) else None
        except (StoreLocked, SourceLocked):
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE)

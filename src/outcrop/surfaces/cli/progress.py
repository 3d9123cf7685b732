"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcrop.core.reports import Progress
from outcrop.surfaces.cli.options import open_index
from outcrop.surfaces.cli.terminal import is_terminal, note
from outcrop.surfaces.render import duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from outcrop.app.index import Index

# A build that finds nothing to do is done by then, and never imports rich.
BARS_AFTER_SECONDS = 0.4

LINE_EVERY_SECONDS = 10.0


class Display:
    """What a build reports its progress to; this one shows nothing."""

    def __call__(self, progress: Progress) -> None: ...

    def hide(self) -> None:
        """Leave the terminal to others until the next call."""


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Display]:
    display = Display() if quiet else Bars() if is_terminal(sys.stderr) else PlainLines()
    try:
        yield display
    finally:
        display.hide()


@contextmanager
def open_with_progress(
    directory: Path, flags: dict[str, Any], *, rev: str | None = None, quiet: bool = False
) -> Iterator[tuple[Index, Display]]:
    with progress(quiet=quiet) as display, open_index(directory, flags, rev=rev, before_asking=display.hide) as index:
        yield index, display


class Bars(Display):
    """The bar of the current phase, with rate and remaining time."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._rich: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self._started < BARS_AFTER_SECONDS:
            return
        if self._rich is None:
            self._rich = _rich_progress()
            self._rich.start()
        if progress.phase not in self._tasks:
            self._tasks[progress.phase] = self._rich.add_task(progress.phase, total=progress.total or None)
        for phase, task in self._tasks.items():
            self._rich.update(task, visible=phase == progress.phase)
        self._rich.update(self._tasks[progress.phase], completed=progress.done, total=progress.total or None)

    def hide(self) -> None:
        if self._rich is not None:
            self._rich.stop()
            self._rich = None
            self._tasks.clear()


def _rich_progress() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    return RichProgress(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=5,
    )


class PlainLines(Display):
    """A line every ten seconds, for logs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] = note) -> None:
        self._clock = clock
        self._write = write
        self._last = clock()
        self._phase = ""
        self._since = 0.0
        self._base = 0

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if progress.phase != self._phase:
            self._phase, self._since, self._base = progress.phase, now, progress.done
        if now - self._last < LINE_EVERY_SECONDS or (progress.total and progress.done >= progress.total):
            return
        self._last = now
        line = f"{progress.phase}: {progress.done:,}"
        if progress.total:
            line += f" of {progress.total:,} ({progress.done * 100 // progress.total} %)"
            rate = (progress.done - self._base) / (now - self._since) if now > self._since else 0.0
            if rate > 0:
                line += f" · {rate:,.0f}/s · {duration((progress.total - progress.done) / rate)} left"
        self._write(line)

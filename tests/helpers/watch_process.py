"""Watches for tests: one in this process, driven by its events, and real ones as processes."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import outcrop
from outcrop.app.update import is_stale
from outcrop.core.reports import Progress
from outcrop.surfaces.watch.daemon import Event, watch

# Gets every event, changes the source, and ends the watch by returning.
Scenario = Generator[None, Event, None]

TIMEOUT = 60.0


class Done(BaseException):
    """Ends a watch from inside, like Ctrl-C."""


@contextmanager
def no_display() -> Iterator[Callable[[Progress], None]]:
    yield lambda _: None


def play(root: Path, scenario: Scenario, **settings: Any) -> None:
    """Watch a place in this process until the scenario ends."""
    next(scenario)

    def on_event(event: Event) -> None:
        try:
            scenario.send(event)
        except StopIteration:
            raise Done from None

    try:
        watch(lambda: outcrop.open(root, settings={"embedder": "hash"} | settings), on_event, no_display)
    except Done:
        return
    raise AssertionError("another process watches this")


class Process:
    """``outcrop watch --json`` as a process of its own."""

    def __init__(self, root: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "outcrop", "watch", "-C", str(root), "--embedder", "hash", "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"OUTCROP_CONFIG": os.devnull} | (environment or {}),
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def await_event(self, name: str) -> dict[str, Any]:
        """The next event of this name."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            event = self.events.get(timeout=max(0.1, deadline - time.monotonic()))
            if event["event"] == name:
                return event

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it; its exit code and standard error."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> tuple[int, str]:
        code = self.process.wait(TIMEOUT)
        self._reader.join()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, errors


@contextmanager
def watched(root: Path, *arguments: str) -> Iterator[Process]:
    process = Process(root, *arguments)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.send_signal(signal.SIGCONT)
            process.stop()


def await_current(root: Path) -> None:
    """Return when the index is up to date."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        with outcrop.open(root, settings={"embedder": "hash"}) as index:
            if not is_stale(index):
                return
        time.sleep(0.05)
    raise AssertionError("the index did not become current")


def found(root: Path, question: str) -> list[str | None]:
    """Paths of the passages that hold a word, from an index that must not be behind."""
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        answer = index.search(question, mode="keyword")
    assert answer.stale is None
    return [hit.path for hit in answer.hits]

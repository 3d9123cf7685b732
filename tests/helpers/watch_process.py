"""Watches for tests: one in this process whose events drive a scenario, and real ones as processes."""

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

Scenario = Generator[None, Event, None]
"""Is sent every event, does something about it, and ends the watch by returning."""

PATIENCE = 60.0


class Done(BaseException):
    """Ends a watch from its inside, as Ctrl-C does."""


@contextmanager
def unseen() -> Iterator[Callable[[Progress], None]]:
    yield lambda _: None


def play(root: Path, scenario: Scenario, **settings: Any) -> None:
    """Watch a place in this process until the scenario ends."""
    next(scenario)

    def tell(event: Event) -> None:
        try:
            scenario.send(event)
        except StopIteration:
            raise Done from None

    try:
        watch(lambda: outcrop.open(root, settings={"embedder": "hash"} | settings), tell, unseen)
    except Done:
        return
    raise AssertionError("somebody else watches this")


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
        """The next event of this name; others are passed over."""
        until = time.monotonic() + PATIENCE
        while True:
            event = self.events.get(timeout=max(0.1, until - time.monotonic()))
            if event["event"] == name:
                return event

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it; its exit code and what it said."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> tuple[int, str]:
        code = self.process.wait(PATIENCE)
        self._reader.join()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, errors


@contextmanager
def watched(root: Path, *arguments: str) -> Iterator[Process]:
    """A watch of a place, ended at the end."""
    process = Process(root, *arguments)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.send_signal(signal.SIGCONT)
            process.stop()


def await_current(root: Path) -> None:
    """Return when the index is up to date."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
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

"""Texts to chunks on all cores, in worker processes: one that a text ends costs only that text its structure.

The processes are shared by all threads of this one, start when there is work, and end when there is none for a while.
"""

from __future__ import annotations

import logging
import os
from _thread import start_new_thread
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from outcrop.chunking import cut_commit
from outcrop.chunking.workers.messages import Job
from outcrop.chunking.workers.process import TOO_LONG, WorkerProcess
from outcrop.core.model import Chunk, Kind
from outcrop.core.parallel import usable_cpus
from outcrop.errors import FormatError, WorkerUnavailable

# Characters that go to a worker at once: enough that it need not wait, few enough that all have something to do.
BATCH = 1 << 16

# Characters that are read ahead of the chunks that are taken.
AHEAD = 8 << 20

# Seconds without work after which a worker process ends; starting another takes a tenth of one.
IDLE_SECONDS = 20.0

# Texts after which a process is replaced, in case its parsers lose memory.
TURNS = 2_000

# Seconds for one text where no processor time is used, as by a process that is stopped; and for each character.
OVERDUE_SECONDS = 300.0
OVERDUE_PER_CHARACTER = 200e-6

Item = TypeVar("Item")


class Text(NamedTuple):
    """What is cut. Its path and its kind say in which format."""

    text: str
    path: str | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Cut:
    """The chunks of a text, or why it is not valid for its format."""

    chunks: Sequence[Chunk]
    error: FormatError | None = None
    by_lines: str = ""  # Why it was cut by lines; empty where its structure could be read


def cut_all(items: Iterable[tuple[Item, Text | None]]) -> Iterator[tuple[Item, Cut | None]]:
    """Cut the texts that come with items, in their order; an item without a text only passes.

    Items are read ahead of those that are taken.

    Raises:
        WorkerUnavailable
    """
    client = _Client()
    waiting: deque[tuple[Item, Text | None, _Task | None]] = deque()
    ahead = 0
    try:
        for item, text in items:
            # No parser reads a commit, so that it needs no worker.
            task = client.add(("chunk", *text)) if text and text.kind is not Kind.COMMIT else None
            waiting.append((item, text, task))
            ahead += len(text.text) if text else 0
            while waiting and (ahead > AHEAD or _is_done(waiting[0][2])):
                first, its_text, task = waiting.popleft()
                ahead -= len(its_text.text) if its_text else 0
                yield first, _cut_of(client, its_text, task)
        while waiting:
            first, its_text, task = waiting.popleft()
            yield first, _cut_of(client, its_text, task)
    finally:
        client.cancel()


def cut(text: Text) -> Cut:
    return next(cut for _, cut in cut_all([(None, text)]) if cut is not None)


def lines_of(text: str, form: str, name: str) -> tuple[int, int] | None:
    """As in :mod:`outcrop.chunking.definitions`; None also where the text cannot be parsed."""
    client = _Client()
    try:
        task = client.add(("lines", text, form, name))
        found = client.wait(task).get("lines")
    finally:
        client.cancel()
    return (int(found[0]), int(found[1])) if found else None


def prepare() -> None:
    """Start a process in the background, where there is none, since there will soon be texts."""
    _pool.prepare()


def _cut_of(client: _Client, text: Text | None, task: _Task | None) -> Cut | None:
    if text is None:
        return None
    if task is None:
        return Cut(cut_commit(text.text))
    answer = client.wait(task)
    if "error" in answer:
        return Cut((), FormatError(*answer["error"]))
    failure = answer.get("failed")
    if failure is None:
        return Cut(answer["chunks"])
    # Imported here: few texts are cut in this process.
    from outcrop.chunking.artifact import chunk_by_lines

    return Cut(chunk_by_lines(*text), by_lines=failure)


def _is_done(task: _Task | None) -> bool:
    return task is None or task.answer is not None


class _Task:
    """A job, and in time its answer."""

    __slots__ = ("answer", "client", "is_cancelled", "job", "process", "ticks", "tries")

    def __init__(self, client: _Client, job: Job) -> None:
        self.client, self.job = client, job
        self.answer: dict[str, Any] | Exception | None = None
        self.process: WorkerProcess | None = None  # While it works on this
        self.is_cancelled = False
        self.ticks = 0
        self.tries = 0

    def finish(self, answer: dict[str, Any] | Exception) -> None:
        self.answer = answer
        self.client.wake.put(None)


class _Client:
    """The tasks of one thread that wants them done."""

    def __init__(self) -> None:
        # Waiting at it can be interrupted, and takes no lock that Python code holds.
        self.wake: SimpleQueue[None] = SimpleQueue()
        self._open: deque[_Task] = deque()
        self._batch: list[_Task] = []
        self._characters = 0

    def add(self, job: Job) -> _Task:
        task = _Task(self, job)
        self._open.append(task)
        self._batch.append(task)
        self._characters += len(job[1])
        if self._characters >= BATCH:
            self.submit()
        return task

    def submit(self) -> None:
        if self._batch:
            batch, self._batch, self._characters = self._batch, [], 0
            _pool.submit(batch)

    def wait(self, task: _Task) -> dict[str, Any]:
        if task.answer is None:
            self.submit()
        while task.answer is None:
            try:
                self.wake.get(timeout=1)
            except Empty:
                # Seconds in which this process waits, so that one that was stopped meanwhile blames no text.
                _pool.revive()
                process = task.process
                task.ticks += process is not None
                if process is not None and task.ticks > OVERDUE_SECONDS + OVERDUE_PER_CHARACTER * len(task.job[1]):
                    process.kill(overdue=True)
        while self._open and self._open[0].answer is not None:
            self._open.popleft()
        if isinstance(task.answer, Exception):
            raise task.answer
        return task.answer

    def cancel(self) -> None:
        for task in self._open:
            task.is_cancelled = True
            if task.process is not None:
                task.process.kill()


class _Pool:
    """The worker processes, each with a thread that hands it its texts."""

    def __init__(self) -> None:
        self._batches: SimpleQueue[list[_Task]] = SimpleQueue()
        self._threads: list[object] = []
        self._logged: set[tuple[str, str]] = set()

    def submit(self, batch: list[_Task]) -> None:
        self._batches.put(batch)
        # One that waits takes a batch at once: of two, one needs another process.
        if not self._threads or (self._batches.qsize() > 1 and len(self._threads) < usable_cpus()):
            self._start()

    def prepare(self) -> None:
        if not self._threads:
            self.submit([])

    def revive(self) -> None:
        """Start a thread if the last one ended when a batch came."""
        if not self._threads and not self._batches.empty():
            self._start()

    def _start(self) -> None:
        self._threads.append(None)
        try:
            start_new_thread(self._serve, ())
        except RuntimeError as error:
            self._threads.pop()
            raise WorkerUnavailable(f"no thread could be started that reads source code ({error})") from error

    def _serve(self) -> None:
        process: WorkerProcess | None = None
        try:
            while True:
                batch = self._batches.get(timeout=IDLE_SECONDS)
                process = self._run(batch, process)
        except Empty:
            pass
        finally:
            self._threads.pop()
            if process is not None:
                process.close()

    def _run(self, batch: Sequence[_Task], process: WorkerProcess | None) -> WorkerProcess | None:
        """Have every task of a batch answered; returns the process that goes on."""
        todo = deque(batch)
        try:
            process = process or WorkerProcess()
            while todo := deque(task for task in todo if not task.is_cancelled):
                if process is not None and process.done >= TURNS:
                    process.close()
                    process = None
                process = process or WorkerProcess()
                if not self._work(todo, process):
                    process = None
        except Exception as error:
            # Whoever waits for the answers must not wait for ever.
            for task in todo:
                task.finish(error)
            return None
        return process

    def _work(self, todo: deque[_Task], process: WorkerProcess) -> bool:
        """Take out of a batch what a process answers; returns whether it is still there then."""
        process.send([task.job for task in todo])
        while todo:
            task = todo[0]
            task.process = process
            answer = process.receive(task.job)
            task.process = None
            if answer is None:
                reason, is_fault = process.end()
                task.tries += 1
                # What came before may have damaged a process, and another program may have ended it.
                if reason is TOO_LONG or (is_fault and process.done == 0) or task.tries > 1:
                    todo.popleft().finish({"failed": reason})
                return False
            for name, level, message in answer.pop("log", ()):
                if (name, message) not in self._logged:
                    self._logged.add((name, message))
                    logging.getLogger(name).log(level, message)
            process.done += 1
            todo.popleft().finish(answer)
        return True


_pool = _Pool()

if hasattr(os, "register_at_fork"):
    # Threads stay behind, and with them what they had begun.
    os.register_at_fork(after_in_child=_pool.__init__)  # type: ignore[misc]

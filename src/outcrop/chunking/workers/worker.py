"""The worker process: cuts the texts that come on its standard input until that is closed.

A text may cost processor time and memory in proportion to its length; one that costs more ends the process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from outcrop.chunking import format_of
from outcrop.chunking.artifact import chunk
from outcrop.chunking.code import has_grammar
from outcrop.chunking.definitions import lines_of
from outcrop.chunking.workers.messages import NO_MEMORY, READY, Job, receive, rows_of, send
from outcrop.core.model import Kind
from outcrop.errors import FormatError
from outcrop.text.tokenizer import count

if sys.platform != "win32":
    import fcntl
    import resource

# Seconds of processor time of any text, and of each character. Real files take less than a tenth of it.
BASE_SECONDS = 2.0
SECONDS_PER_CHARACTER = 20e-6

# Bytes of memory beside the program, and for each character; real files take up to 60.
BASE_MEMORY = 256 << 20
MEMORY_PER_CHARACTER = 256


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    # What a grammar prints must not get between the answers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # Ctrl-C is for the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    warnings = _Warnings()
    logging.getLogger("outcrop").addHandler(warnings)
    requests = sys.stdin.buffer
    # What is loaded once counts for no text.
    count("")
    with contextlib.suppress(BrokenPipeError):
        send(answers, READY)
        while (jobs := receive(requests)) is not None:
            with _ending_with_parent():
                for job in jobs[:-1]:
                    send(answers, _answer(job, warnings))
                last = _answer(jobs[-1], warnings)
            send(answers, last)
    # Without the interpreter's own clean-up, in which a damaged process may hang.
    os._exit(0)


class _Warnings(logging.Handler):
    """Collects what the parent's log shall have."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append((record.name, record.levelno, record.getMessage()))


def _answer(job: Job, warnings: _Warnings) -> dict[str, Any]:
    operation, text, *arguments = job
    try:
        answer = _OPERATIONS[operation](text, *arguments)
    except MemoryError:
        os._exit(NO_MEMORY)
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"[:200]}
    if warnings.records:
        answer["log"] = warnings.records[:]
        warnings.records.clear()
    return answer


def _chunk(text: str, path: str | None, kind: str) -> dict[str, Any]:
    has_grammar(format_of(path, Kind(kind)))
    try:
        with _bounded(len(text)):
            return {"chunks": rows_of(chunk(text, path, Kind(kind)), text)}
    except FormatError as error:
        return {"error": [error.what, error.fix]}


def _lines(text: str, form: str, name: str) -> dict[str, Any]:
    has_grammar(form)
    with _bounded(len(text)):
        return {"lines": lines_of(text, form, name)}


_OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {"chunk": _chunk, "lines": _lines}


@contextlib.contextmanager
def _bounded(characters: int) -> Iterator[None]:
    """Let the kernel end this process where a text takes too much of it; nothing else stops a parser."""
    if sys.platform == "win32":
        yield
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    memory = BASE_MEMORY + MEMORY_PER_CHARACTER * characters
    resource.setrlimit(resource.RLIMIT_DATA, (memory if most < 0 else min(memory, most), most))
    signal.setitimer(signal.ITIMER_PROF, BASE_SECONDS + SECONDS_PER_CHARACTER * characters)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextlib.contextmanager
def _ending_with_parent() -> Iterator[None]:
    """On Linux, the kernel's signal that the other end of standard input is closed ends this process at once.

    The parent sends nothing while it waits for answers, so the signal means nothing else. Elsewhere the process ends
    with its job.
    """
    if sys.platform != "linux":
        yield
        return
    flags = fcntl.fcntl(0, fcntl.F_GETFL)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, flags | os.O_ASYNC)
    try:
        yield
    finally:
        fcntl.fcntl(0, fcntl.F_SETFL, flags)

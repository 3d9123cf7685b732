"""One worker process, as the process that started it sees it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import outcrop
from outcrop.chunking.workers.messages import NO_MEMORY, READY, Job, chunks_of, receive, send
from outcrop.errors import WorkerUnavailable

TOO_LONG = "its parser took too long"
TOO_LARGE = "its parser took too much memory"

# Bytes of an answer, and for each character of the text: many more than chunks of it have.
_ANSWER = 1 << 20
_ANSWER_PER_CHARACTER = 64

# Neither the settings nor the site packages of a Python decide what a worker imports, but what its parent imports.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from outcrop.chunking.workers.worker import main; main()"
_PACKAGES = str(Path(outcrop.__file__).parents[1])

# How a parser ends its process: a damaged or overflowing stack, a failed assertion, the limit of processor time.
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")


class WorkerProcess:
    """A running worker. ``done`` is how many texts it has cut."""

    def __init__(self) -> None:
        path = [entry for entry in sys.path if entry]
        if _PACKAGES not in path:
            path.append(_PACKAGES)
        self.done = 0
        self.is_overdue = False
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, *path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, TypeError, ValueError) as error:
            raise _unstartable(str(error)) from error
        self._requests, self._answers = cast(BinaryIO, self._popen.stdin), cast(BinaryIO, self._popen.stdout)
        if self._receive(_ANSWER) != READY:
            raise _unstartable(f"it ended at once, with {self._end()}")

    def send(self, jobs: Sequence[Job]) -> None:
        # One that has ended answers nothing.
        with suppress(OSError):
            send(self._requests, jobs)

    def receive(self, job: Job) -> dict[str, Any] | None:
        """The answer to the next job, its chunks as such; None where there is none."""
        answer = self._receive(_ANSWER + _ANSWER_PER_CHARACTER * len(job[1]))
        try:
            return answer | {"chunks": chunks_of(answer["chunks"], job[1])} if "chunks" in answer else dict(answer)
        except (TypeError, ValueError):
            # None, or not an answer: something may have overwritten it.
            return None

    def kill(self, *, overdue: bool = False) -> None:
        self.is_overdue = self.is_overdue or overdue
        self._popen.kill()

    def close(self) -> None:
        with suppress(OSError):
            self._requests.close()
        self._end()

    def end(self) -> tuple[str, bool]:
        """Why there is no answer, and whether that is the fault of the text that it was working on."""
        code = self._end()
        if self.is_overdue or -code == getattr(signal, "SIGPROF", None):
            return TOO_LONG, True
        if code == NO_MEMORY:
            return TOO_LARGE, True
        name = next((each.name for each in signal.Signals if each == -code), f"exit code {code}")
        return f"its parser crashed or ran out of memory ({name})", code >= 0 or name in _CRASHES

    def _receive(self, limit: int) -> Any:
        try:
            return receive(self._answers, limit)
        except (OSError, ValueError):
            return None

    def _end(self) -> int:
        """Its exit code, negative for a signal; one that does not end by itself is ended."""
        try:
            return self._popen.wait(1)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()
        finally:
            self._answers.close()
            with suppress(OSError):
                self._requests.close()


def _unstartable(reason: str) -> WorkerUnavailable:
    return WorkerUnavailable(
        f"no process could be started that reads source code ({reason})",
        "Let this user have more processes or memory, then try again",
    )

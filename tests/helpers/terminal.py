"""The command on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time


def on_terminal(*arguments: str, typed: bytes = b"", when: bytes = b"") -> tuple[int, str]:
    """Run on a real pseudo-terminal, typing ``typed`` once ``when`` was shown."""
    ours, theirs = pty.openpty()
    environ = os.environ | {"TERM": "xterm", "COLUMNS": "90"}
    process = subprocess.Popen(
        [sys.executable, "-m", "outcrop", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environ,
        start_new_session=True, preexec_fn=_take_terminal,
    )  # fmt: skip
    os.close(theirs)
    shown, deadline, next_try = b"", time.monotonic() + 60, 0.0
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
        # Nobody types in the instant between the prompt and the reading, in which Ctrl-C waits for the next key.
        if typed and when in shown and time.monotonic() > (next_try := next_try or time.monotonic() + 0.2):
            os.write(ours, typed)
            next_try += 2
    os.close(ours)
    return process.wait(60), shown.decode()


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

"""``outcrop serve`` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Server:
    """A running server; ``address`` is what it printed, ``base`` the same without the path."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.base = address.split("/ext/")[0]

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; returns exit code and standard error."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def start(folder: Path, *options: str, descriptors: int | None = None, **variables: str) -> subprocess.Popen[str]:
    """Start it with the ``hash`` embedder, and do not wait. It may have so many ``descriptors``; None for the usual."""
    limited = ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh") if descriptors else ()
    return subprocess.Popen(
        [*limited, sys.executable, "-m", "outcrop", "serve", str(folder), "--embedder", "hash", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OUTCROP_CONFIG": os.devnull} | variables,
    )


@contextmanager
def serving(folder: Path, *options: str, descriptors: int | None = None, **variables: str) -> Iterator[Server]:
    """A server that answers."""
    process = start(folder, "--port", "0", *options, descriptors=descriptors, **variables)
    assert process.stdout is not None
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        address = process.stdout.readline().strip()
        if not address.startswith("http://"):
            process.kill()
            raise AssertionError(process.communicate()[1])
        watchdog.cancel()
        yield Server(process, address)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()

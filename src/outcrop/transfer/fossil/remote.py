"""Moving unversioned content between copies of a Fossil repository, by the ``fossil`` program.

A push without capability ``y`` moves nothing, without a message and with exit code 0. So the server is asked once more
what it would take: its answer holds ``pragma uv-pull-only`` where it has other files and takes none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from outcrop.core.reports import SyncReport
from outcrop.errors import SourceError, StoreError
from outcrop.vcs.fossil import fetch_rows, open_fossil
from outcrop.vcs.git import hide_password

PROGRAM = "fossil"

# How long one exchange may take: thousands of blobs over a slow line.
EXCHANGE_TIMEOUT = 3600.0

_PREFIX = "outcrop-fossil-"

# Requests of one exchange that moves nothing are two or three.
_MOST_REQUESTS = 1000
# What a server says of itself is at the head of its reply.
_MOST_REPLY_BYTES = 1 << 20

_MOVED = re.compile(r"[\r\n]Unversioned-file (sent|received): vec/")
_ANSWERED = re.compile(r"wire bytes sent: \d+ +received: [1-9]")
_REFUSAL = b"pragma uv-pull-only"


def exchange(repository: Path, url: str | None = None) -> SyncReport:
    """Give both copies (without a URL: that of the last synchronisation) the latest of every unversioned file."""
    moved = _MOVED.findall(_run(repository, "sync", *([url] if url else []), "--verbose", folder=None))
    _clear_abandoned()
    with TemporaryDirectory(prefix=_PREFIX) as folder:
        # Requests and replies are written to files. A request holds proof of the login, which a process that is killed
        # would leave behind: it goes nowhere.
        for number in range(_MOST_REQUESTS):
            Path(folder, f"http-request-{number}.txt").symlink_to(os.devnull)
        _run(repository, "sync", *([url] if url else []), "--dry-run", "--httptrace", folder=Path(folder))
        refused = any(map(_holds_refusal, Path(folder).glob("http-reply-*.txt")))
    return SyncReport(moved.count("sent"), moved.count("received"), refused)


def _holds_refusal(reply: Path) -> bool:
    with reply.open("rb") as file:
        return _REFUSAL in file.read(_MOST_REPLY_BYTES)


def _clear_abandoned() -> None:
    """Delete the folders of processes that were killed."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        if time.time() - folder.lstat().st_mtime > 2 * EXCHANGE_TIMEOUT:
            shutil.rmtree(folder, ignore_errors=True)


def _run(repository: Path, *arguments: str, folder: Path | None) -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise StoreError(
            "the program fossil is not installed, and only it can reach other copies",
            "Install it (Debian: apt-get install fossil); everything else works without",
        )
    # With this variable the program takes itself for a CGI script.
    environment = {name: value for name, value in os.environ.items() if name != "GATEWAY_INTERFACE"}
    # The program does nothing for a user that the repository does not know, as under the login of a service.
    environment.setdefault("FOSSIL_USER", _owner(repository))
    try:
        done = subprocess.run(
            [program, "unversioned", *arguments, "-R", str(repository.absolute())],
            cwd=folder or repository.absolute().parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=EXCHANGE_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise StoreError(f"fossil did not end within {EXCHANGE_TIMEOUT:.0f} s", "Try: fossil uv sync") from error
    output = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")
    # Even without any answer it ends with 0.
    if done.returncode or not _ANSWERED.search(output):
        words = hide_password(" ".join(done.stderr.decode("utf-8", "replace").split()))
        raise StoreError(f"fossil could not reach the other copy ({words[:300]})", "Try: fossil uv sync --verbose")
    return output


def _owner(repository: Path) -> str:
    try:
        with open_fossil(repository) as database:
            found = fetch_rows(database, "SELECT login FROM user WHERE cap GLOB '*s*' ORDER BY uid LIMIT 1")
    except SourceError as error:
        raise StoreError(error.what, error.fix) from error
    return str(found[0][0]) if found else "anonymous"

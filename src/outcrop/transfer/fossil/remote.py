"""Moving unversioned content between copies of a Fossil repository, by the ``fossil`` program.

Whoever pushes without capability ``y`` is told nothing and the program exits with 0. So the server is asked once more
what it would take: its answer holds ``pragma uv-pull-only`` where it has other files and takes none.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from outcrop.errors import StoreError

PROGRAM = "fossil"
# How long one exchange may take: thousands of blobs over a slow line.
SECONDS = 3600.0

# How long to wait for another program's transaction.
SECONDS_LOCKED = 20.0

_MOVED = re.compile(r"[\r\n]Unversioned-file (sent|received): vec/")
_ANSWERED = re.compile(r"wire bytes sent: \d+ +received: [1-9]")
_PASSWORD = re.compile(r"://[^/@\s]*@")
_REFUSAL = b"pragma uv-pull-only"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one exchange moved.

    Attributes:
        sent: Blobs that the other copy took.
        received: Blobs that came.
        refused: Whether the other copy has other blobs than ours and takes none from this user.
    """

    sent: int
    received: int
    refused: bool


def exchange(repository: Path, url: str | None = None) -> Exchange:
    """Let both copies have the latest of every unversioned file.

    Args:
        repository: The repository file.
        url: The other copy; None for the one that was synchronised with last.
    """
    moved = _MOVED.findall(_run(repository, "sync", *([url] if url else []), "--verbose", folder=None))
    with TemporaryDirectory() as folder:
        # What was asked and answered is written to files; they hold proof of the login, and go with the folder.
        _run(repository, "sync", *([url] if url else []), "--dry-run", "--httptrace", folder=Path(folder))
        refused = any(_REFUSAL in reply.read_bytes() for reply in Path(folder).glob("http-reply-*.txt"))
    return Exchange(moved.count("sent"), moved.count("received"), refused)


def _run(repository: Path, *arguments: str, folder: Path | None) -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise StoreError(
            "the program fossil is not installed, and only it can reach other copies",
            "Install it (Debian: apt-get install fossil); everything else works without",
        )
    # With this variable the program takes itself for a CGI script.
    environment = {name: value for name, value in os.environ.items() if name != "GATEWAY_INTERFACE"}
    # The program does nothing for somebody whom the repository does not know, as under the login of a service.
    environment.setdefault("FOSSIL_USER", _owner(repository))
    try:
        done = subprocess.run(
            [program, "unversioned", *arguments, "-R", str(repository.absolute())],
            cwd=folder or repository.absolute().parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise StoreError(f"fossil did not come to an end in {SECONDS:.0f} s", "Try: fossil uv sync") from error
    output = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")
    # Even when nobody answered it ends with 0.
    if done.returncode or not _ANSWERED.search(output):
        words = _PASSWORD.sub("://", " ".join(done.stderr.decode("utf-8", "replace").split()))
        raise StoreError(f"fossil could not reach the other copy ({words[:300]})", "Try: fossil uv sync --verbose")
    return output


def _owner(repository: Path) -> str:
    """The login of the repository's owner in this copy."""
    try:
        database = sqlite3.connect(f"{repository.absolute().as_uri()}?mode=ro", uri=True, timeout=SECONDS_LOCKED)
        try:
            found = database.execute("SELECT login FROM user WHERE cap GLOB '*s*' ORDER BY uid LIMIT 1").fetchall()
        finally:
            database.close()
    except sqlite3.Error as error:
        raise StoreError(f"{repository} cannot be read ({error})", "Look at: fossil test-integrity") from error
    return str(found[0][0]) if found else "anonymous"

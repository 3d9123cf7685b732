"""Real git repositories for tests, and a count of the files that were opened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ISOLATED = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z",
}
"""Variables that keep the machine's own git settings out of the tests."""

KETTLE: dict[str, str | bytes] = {
    "README.md": "# Kettle\n\nBoils water.\n",
    "src/boil.py": "def boil(water):\n    return heat(water, 100)\n",
    "shared.md": "The same words stand in two repositories.\n",
}

_opened: list[str] | None = None


def git(folder: Path, *arguments: str, stdin: bytes | None = None) -> bytes:
    """Run git in a folder and return what it says."""
    return subprocess.run(
        ["git", "-C", str(folder), "-c", "protocol.file.allow=always", *arguments],
        env=os.environ | ISOLATED,
        input=stdin,
        check=True,
        capture_output=True,
    ).stdout


def make_repository(folder: Path, files: dict[str, str | bytes], *options: str) -> Path:
    """A repository with one commit of these files."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main", *options)
    write(folder, files)
    commit(folder)
    return folder


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit(folder: Path, message: str = "change") -> str:
    """Commit everything, and return the commit's id."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD").decode().strip()


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The names of the files that this process opens inside the block."""
    global _opened
    names: list[str] = []
    _opened = names
    try:
        yield names
    finally:
        _opened = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(arguments[0], str | bytes):
        _opened.append(os.fsdecode(arguments[0]))


sys.addaudithook(_note)

"""The commits behind a commit. Plumbing only: ``git log`` would obey settings that run programs (signatures)."""

from __future__ import annotations

import hashlib
import re
import subprocess
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from outcrop.core.model import History
from outcrop.vcs.git import Repository, git_output, start_git

# Bytes of a message and of a name that are read, and files of one commit that are named; the rest is only counted.
MAX_FIELD_BYTES = 1 << 16
MAX_FILES = 64

_BLOCK = 1 << 16
_START = re.compile(rb"(?:\n?commit [0-9a-f]{40,64}\n)?\x01([0-9a-f]{40}(?:[0-9a-f]{24})?)")
_TREELESS = re.compile(rb"partialclonefilter[ \t]*+=[ \t]*+\"?(?:tree:|combine:[^\n]*tree)", re.IGNORECASE)
# Hash, author, author's date and message. With -z a zero byte ends each record and each path.
_FORMAT = "%x01%H%x00%an%x00%ad%x00%B"


@dataclass(slots=True)
class Commit:
    """One commit; ``files`` are the first of the ``count`` paths that it touched."""

    hash: str
    author: bytes
    date: str  # 2026-12-01, in the author's time zone
    message: bytes
    files: list[bytes] = field(default_factory=list)
    count: int = 0


def list_commits(repository: Repository, commit: str, most: History) -> list[str]:
    """The ids of a commit and of those it comes from, newest first, merges left out."""
    limit = [] if most == "all" else [f"--max-count={most}"]
    process = start_git(repository, "rev-list", "--no-merges", *limit, commit, "--")
    return git_output(process, "list its commits").decode().split()


def reachable(repository: Repository, commits: Collection[str]) -> frozenset[str]:
    """Every commit that these come from, they included."""
    process = start_git(repository, "rev-list", "--stdin", stdin=subprocess.PIPE)
    output, _ = process.communicate("".join(f"{commit}\n" for commit in commits).encode())
    return frozenset(output.decode().split())


def shallow_commits(repository: Repository) -> frozenset[str]:
    """Commits whose parents a shallow clone does not have, so that nobody can say what they touched."""
    try:
        return frozenset((repository.common_dir / "shallow").read_text("ascii").split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def shallow_mark(repository: Repository) -> str:
    """Empty for a whole clone; of a shallow one it changes whenever that gets more, or fewer, commits."""
    commits = shallow_commits(repository)
    return hashlib.sha256(" ".join(sorted(commits)).encode()).hexdigest()[:16] if commits else ""


def is_treeless(repository: Repository) -> bool:
    """Whether a partial clone lacks the trees of old commits, so that it cannot say what these touched."""
    return _TREELESS.search(repository.config()) is not None


def read_commits(repository: Repository, ids: Sequence[str], *, files: bool) -> Iterator[Commit]:
    """Commits by their ids, in order; those that cannot be read are missing. ``files``: with what they touched."""
    command = (
        ("diff-tree", "-z", "--name-only", "--no-renames", "--root", "-r", "--always", f"--format={_FORMAT}")
        if files
        else ("rev-list", "--no-walk=unsorted", "--ignore-missing", f"--format={_FORMAT}%x00")
    )
    process = start_git(
        repository,
        *(*command, "--stdin", "--encoding=UTF-8", "--date=short"),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # Both pipes are bounded, so that one thread writes while this one reads.
    writer = threading.Thread(target=_feed, args=(process.stdin, ids), daemon=True)
    writer.start()
    try:
        yield from _parse(_fields(process.stdout), frozenset(ids))
    finally:
        process.kill()
        writer.join()
        process.stdout.close()
        process.wait()


def _feed(stdin: IO[bytes], ids: Sequence[str]) -> None:
    with suppress(OSError):
        stdin.write("".join(f"{each}\n" for each in ids).encode())
    with suppress(OSError):
        stdin.close()


def _fields(stdout: IO[bytes]) -> Iterator[bytes]:
    """What stands between zero bytes, each cut to ``MAX_FIELD_BYTES``."""
    kept = b""
    while block := stdout.read(_BLOCK):
        first, *others = block.split(b"\0")
        if len(kept) < MAX_FIELD_BYTES:
            kept += first
        for part in others:
            yield kept[:MAX_FIELD_BYTES]
            kept = part
    if kept:
        yield kept[:MAX_FIELD_BYTES]


def _parse(fields: Iterator[bytes], wanted: frozenset[str]) -> Iterator[Commit]:
    commit: Commit | None = None
    for part in fields:
        start = _START.fullmatch(part)
        if start is not None and (name := start[1].decode()) in wanted:
            if commit is not None:
                yield commit
            author, date, message = (next(fields, b"") for _ in range(3))
            commit = Commit(name, author, date.decode("ascii", "replace"), message)
        elif commit is not None:
            # Before the first path git puts an empty line.
            path = part if commit.count else part.removeprefix(b"\n")
            if path:
                commit.count += 1
                commit.files += [path] if commit.count <= MAX_FILES else []
    if commit is not None:
        yield commit

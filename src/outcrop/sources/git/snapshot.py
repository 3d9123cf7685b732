"""What git says about a working tree at one moment: its index and how the files on disk differ from it.

Two processes answer everything: ``ls-files`` (paths and blob ids, about 2 ms for 3,000 files) and ``status`` (what is
staged, changed or untracked, about 6 ms), after a third has listed the filters that must not run. Submodules that are
checked out have their own snapshots.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from outcrop.errors import SourceError, SourceLocked
from outcrop.vcs.git import Repository, git_output, start_git
from outcrop.vcs.git_config import filters_off
from outcrop.vcs.git_repository import find_submodule

# How often both questions are asked while the index changes between them, and seconds in between.
_ATTEMPTS = 20
_PAUSE = 0.05

# In place of the commit where there is none yet.
UNBORN = "unborn"

_LINK = re.compile(rb"(?:\A|\0)\S 160000 [0-9a-f]+ 0\t([^\0]+)")
_SPARSE = re.compile(rb"(?:\A|\0)(S [^\0]+)")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One path of an index: ``sparse`` where it is tracked but not wanted on disk."""

    path: bytes
    mode: bytes
    hash: str
    sparse: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One working tree as git sees it. Paths are relative to its top.

    Attributes:
        prefix: Path of its top inside the outermost working tree, with a trailing slash; empty for that one itself.
        staged: Paths that differ between commit and index and not on disk, with their blob ids.
        changed: Tracked paths whose file on disk is not what the index says, deleted files and conflicts included.
        untracked: Files that git neither tracks nor ignores; a trailing slash marks a repository inside this one.
        index: The output of ``ls-files``.
    """

    repository: Repository
    prefix: bytes
    head: str
    staged: Mapping[bytes, bytes]
    changed: frozenset[bytes]
    untracked: tuple[bytes, ...]
    index: bytes
    absent_submodules: tuple[bytes, ...]

    def entries(self) -> Iterator[IndexEntry]:
        """Every tracked path, submodules and conflicts left out."""
        for record in self.index.split(b"\0"):
            meta, tab, path = record.partition(b"\t")
            if tab and meta[-1:] == b"0" and meta[2:8] != b"160000":
                yield IndexEntry(path, meta[2:8], meta[9:-2].decode(), meta[:1] == b"S")

    def sparse(self) -> list[bytes]:
        """The tracked paths that a sparse checkout leaves out, as index records."""
        return _SPARSE.findall(self.index) if b"\0S " in self.index or self.index.startswith(b"S ") else []


def read_snapshots(repository: Repository) -> list[Snapshot]:
    """The working tree and, after it, those of its submodules."""
    found: list[Snapshot] = []
    pending = [(repository, b"")]
    while pending:
        outer, prefix = pending.pop()
        index, status = _steady_query(outer)
        absent: list[bytes] = []
        inner: list[tuple[Repository, bytes]] = []
        for link in _LINK.findall(index) if b" 160000 " in index else ():
            submodule = find_submodule(outer.top, os.fsdecode(link), outer.object_format)
            if submodule is None:
                absent.append(link)
            else:
                inner.append((submodule, prefix + link + b"/"))
        found.append(Snapshot(outer, prefix, *_parse_status(status), index, tuple(absent)))
        pending += reversed(inner)
    return found


def _steady_query(repository: Repository) -> tuple[bytes, bytes]:
    """The index and the status of one moment."""
    for attempt in range(_ATTEMPTS):
        before = _index_stamp(repository)
        index, status = _query(repository)
        if _index_stamp(repository) == before:
            break
        time.sleep(_PAUSE * min(attempt, 4))
    else:
        # Two answers about different moments could name a revision that is not the one of these files.
        raise SourceLocked(f"the index of {repository.top} changes all the time", "Try again in a moment")
    if _leads_outside(index):
        raise SourceError(
            f"the index of {repository.top} names files outside of it",
            "It was made by hand, or is damaged; make it anew: git read-tree HEAD",
        )
    return index, status


def _query(repository: Repository) -> tuple[bytes, bytes]:
    index_process = start_git(repository, "ls-files", "-z", "-s", "-t")
    try:
        without_filters = filters_off(repository)
    except SourceError:
        index_process.communicate()
        raise
    status_process = start_git(
        repository,
        *"status --porcelain=v2 -z --branch --no-ahead-behind --no-renames --untracked-files=all".split(),
        "--ignore-submodules=all",
        variables=without_filters,
    )
    try:
        index = git_output(index_process, "list the files it tracks")
    except SourceError:
        status_process.communicate()
        raise
    return index, git_output(status_process, "compare its files")


def _leads_outside(index: bytes) -> bool:
    # No git writes such a path, and none looks for it when it reads an index.
    if not (b"/../" in index or b"\t../" in index or b"\t/" in index):
        return False
    paths = (record.partition(b"\t")[2].split(b"/") for record in index.split(b"\0"))
    return any(b".." in parts or parts[0] == b"" != parts[-1] for parts in paths)


def _index_stamp(repository: Repository) -> tuple[int, int, int]:
    try:
        status = (repository.git_dir / "index").stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _parse_status(status: bytes) -> tuple[str, dict[bytes, bytes], frozenset[bytes], tuple[bytes, ...]]:
    """Head, staged, changed and untracked of ``status --porcelain=v2 -z``, as its manual page describes it."""
    head = UNBORN
    staged: dict[bytes, bytes] = {}
    changed: list[bytes] = []
    untracked: list[bytes] = []
    for record in status.split(b"\0"):
        sort = record[:2]
        if sort == b"1 ":
            _, states, _, _, _, _, _, blob, path = record.split(b" ", 8)
            if states[1:] == b".":
                staged[path] = blob
            else:
                changed.append(path)
        elif sort == b"u ":
            changed.append(record.split(b" ", 10)[10])
        elif sort == b"? ":
            untracked.append(record[2:])
        elif record.startswith(b"# branch.oid ") and not record.endswith(b"(initial)"):
            head = record[len(b"# branch.oid ") :].decode()
    return head, staged, frozenset(changed), tuple(untracked)

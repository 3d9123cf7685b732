"""Where a git repository is published, and which of its files are there word for word, as far as this clone knows.

Nothing asks the network: what the remote has is what the last fetch or push saw.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outcrop.errors import SourceError
from outcrop.sources.paths import to_bytes
from outcrop.vcs.git import Repository, answer, find_commit, start_git
from outcrop.vcs.git_repository import find_repository

REMOTE = "origin"


@dataclass(frozen=True, slots=True)
class Publication:
    """The newest commit known to be at the remote (``url``) that is, or that leads to, the requested one."""

    repository: Repository
    url: str
    commit: str

    def blobs(self, paths: Sequence[str]) -> Mapping[str, str]:
        """The blob that each path is in that commit; paths that are not in it are missing."""
        asked = [path for path in paths if "\n" not in path]
        process = start_git(self.repository, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=-1)
        lines = b"".join(b"%s:%s\n" % (self.commit.encode(), to_bytes(path)) for path in asked)
        output, _ = process.communicate(lines)
        answers = [line.split(b" ") for line in output.splitlines()]
        return {
            path: os.fsdecode(found[0])
            for path, found in zip(asked, answers, strict=False)
            if len(found) == 2 and found[1] == b"blob"
        }

    def ancestors(self, commits: Sequence[str]) -> frozenset[str]:
        """Those that this commit comes from, itself among them."""
        if not commits:
            return frozenset()
        process = start_git(self.repository, "rev-list", "--ignore-missing", "--stdin", stdin=-1)
        output, _ = process.communicate("".join(f"{each}\n" for each in [*commits, f"^{self.commit}"]).encode())
        if process.returncode:
            return frozenset()
        return frozenset(commits) - frozenset(output.decode().split())


class PublishedRemote:
    """The remote of the repository at ``root``, if it is one, read again whenever HEAD or a remote branch moved."""

    def __init__(self, root: Path, commit: str = "HEAD") -> None:
        self._commit = commit
        self._known: tuple[str, Publication | None] = ("", None)
        try:
            self._repository = find_repository(root)
        except SourceError:
            self._repository = None

    def published(self) -> Publication | None:
        """What of the commit is on the remote; None where there is no remote, or nothing is known to be there."""
        if self._repository is None:
            return None
        state = answer(self._repository, "rev-parse", "HEAD", f"--glob=refs/remotes/{REMOTE}")
        if not state or state != self._known[0]:
            self._known = (state, _publication(self._repository, self._commit))
        return self._known[1]


def _publication(repository: Repository, commit: str) -> Publication | None:
    url = answer(repository, "remote", "get-url", REMOTE).partition("\n")[0]
    here = find_commit(repository, commit)
    if not url or not here:
        return None
    tracked = f"refs/remotes/{REMOTE}"
    if answer(repository, "for-each-ref", "--count=1", f"--contains={here}", "--format=%(refname)", tracked):
        return Publication(repository, url, here)
    for other in (f"{tracked}/HEAD", f"{tracked}/main", f"{tracked}/master"):
        base = answer(repository, "merge-base", here, other).partition("\n")[0]
        if base:
            return Publication(repository, url, base)
    return None

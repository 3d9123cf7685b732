"""Where changes of a source show: the folders to watch, and which of their entries count."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from outcrop.sources.paths import IGNORE_FILE, INTERNAL
from outcrop.text.files import walk
from outcrop.vcs.git import Repository

# What changes in git's own folders when the commit, the index or the ignore rules do.
_GIT_FILES = frozenset({"HEAD", "index", "packed-refs", "config", "config.worktree", "exclude", "tables.list"})

_INTERNAL = frozenset(os.fsdecode(name) for name in INTERNAL)
_RULES = frozenset({".gitignore", "exclude", os.fsdecode(IGNORE_FILE)})


@dataclass(frozen=True, slots=True)
class WatchPaths:
    """Folders in which something shows when the source changes; ignored folders are not among them.

    Attributes:
        folders: Of the material: every entry counts but what version control keeps for itself.
        own: Of version control: only some entries count.
        branches: Folders with a file for each branch: every entry counts.
    """

    folders: frozenset[str]
    own: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()

    def all(self) -> list[str]:
        return sorted(self.folders | self.own | self.branches)

    def counts(self, path: str) -> bool:
        """Whether a change of this entry can be a change of the source."""
        folder, name = os.path.split(path)
        if path in self.folders or (folder in self.folders and name not in _INTERNAL):
            return True
        if name.endswith(".lock"):
            return False
        return (folder in self.own and name in _GIT_FILES) or folder in self.branches

    def moves(self, path: str) -> bool:
        """Whether this change may be one of the folders themselves, so that they have to be found anew."""
        folder, name = os.path.split(path)
        if path in self.folders or path in self.branches or path in self.own:
            return True
        if folder in self.own and name not in _RULES:
            return name in ("logs", "info") and Path(path).is_dir()
        return name in _RULES or (name not in _INTERNAL and Path(path).is_dir() and not Path(path).is_symlink())


def git_watch_paths(repositories: Iterable[Repository], folders: Iterable[str]) -> WatchPaths:
    """The paths of a working tree (whose material is in ``folders``) with its submodules, or of a bare repository."""
    own: set[str] = set()
    branches: set[str] = set()
    for repository in repositories:
        git_dir, common = repository.git_dir, repository.common_dir
        found = (git_dir, git_dir / "logs", common, common / "info", common / "reftable")
        own |= {str(folder) for folder in found if folder.is_dir()}
        heads = common / "refs" / "heads"
        branches |= {entry.path for entry in walk(heads) if entry.is_dir(follow_symlinks=False)}
        branches |= {str(heads)} if heads.is_dir() else set()
    return WatchPaths(frozenset(folders), frozenset(own), frozenset(branches))

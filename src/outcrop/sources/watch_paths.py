"""Where changes of a source show: the folders to watch, and which of their entries count."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from outcrop.sources.selection import IGNORE_FILE, INTERNAL
from outcrop.vcs.git import Repository

# What moves in git's own folders when the commit, the index or what is ignored does.
_GIT_FILES = frozenset({"HEAD", "index", "packed-refs", "config", "config.worktree", "exclude", "tables.list"})

_INTERNAL = frozenset(os.fsdecode(name) for name in INTERNAL)
_RULES = frozenset({".gitignore", "exclude", os.fsdecode(IGNORE_FILE)})


@dataclass(frozen=True, slots=True)
class Places:
    """Folders in which something shows when the source changes; what is ignored is not among them.

    Attributes:
        folders: Of the material: every entry counts but what version control keeps for itself.
        own: Of version control: only some entries count.
        branches: Folders with a file for each branch: every entry counts.
    """

    folders: frozenset[str]
    own: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()

    def all(self) -> list[str]:
        """Every folder to watch."""
        return sorted(self.folders | self.own | self.branches)

    def counts(self, path: str) -> bool:
        """Whether a change of this entry can be one of the source."""
        folder, name = os.path.split(path)
        if folder in self.folders and name not in _INTERNAL:
            return True
        if path in self.folders:
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


def git_places(repositories: Iterable[Repository], files: Iterable[str]) -> Places:
    """The places of a working tree, its submodules included, or of a bare repository.

    Args:
        repositories: The repository and its submodules.
        files: Folders of the material.
    """
    own: set[str] = set()
    branches: set[str] = set()
    for repository in repositories:
        git_dir, common = repository.git_dir, repository.common_dir
        found = (git_dir, git_dir / "logs", common, common / "info", common / "reftable")
        own |= {str(folder) for folder in found if folder.is_dir()}
        branches |= set(_folders(common / "refs" / "heads"))
    return Places(frozenset(files), frozenset(own), frozenset(branches))


def _folders(top: Path) -> Iterator[str]:
    for folder, _, _ in os.walk(top):
        yield folder

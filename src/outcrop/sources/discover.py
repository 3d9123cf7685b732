"""From a path to its source: the enclosing git repository, or a plain folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from outcrop.errors import NotARepository
from outcrop.ports import Source
from outcrop.sources.folder import FolderSource
from outcrop.sources.git import GitSource
from outcrop.sources.git_plumbing import Repository, discover, is_ignored
from outcrop.sources.options import Options


@dataclass(frozen=True, slots=True)
class Place:
    """What encloses a path, before any setting is known.

    Attributes:
        root: The folder whose settings apply: top of the working tree, or the plain folder.
        repository: The git repository, or None.
        rev: The commit that was asked for.
    """

    root: Path
    repository: Repository | None
    rev: str | None


def find_root(path: Path, rev: str | None = None) -> Place:
    """Find the source that a path belongs to.

    A folder inside a git repository means the whole repository, unless that repository ignores the folder. A plain
    folder means itself, or the nearest folder
    above that the same user has indexed already.

    Args:
        path: A folder, or a file in one.
        rev: A commit to look at instead of the working tree.

    Raises:
        NotARepository: There is no such folder, or ``rev`` is given outside a git repository.
        SourceError: The git repository cannot be used.
    """
    if not path.exists():
        raise NotARepository(f"There is no {path}", "Name a folder or a repository")
    folder = path.resolve()
    folder = folder if folder.is_dir() else folder.parent
    repository = discover(folder)
    if repository is not None and not (rev is None and is_ignored(repository, folder)):
        return Place(repository.top, repository, rev)
    if rev is not None:
        raise NotARepository(f"{path} is not in a git repository, so it has no commit {rev}", "Leave the commit out")
    indexed = (parent for parent in (folder, *folder.parents) if _has_own_index(parent))
    return Place(next(indexed, folder), None, None)


def open_source(place: Place, options: Options) -> Source:
    """The source at a place, under these settings.

    Raises:
        SourceError: It has no such commit.
    """
    if place.repository is not None:
        return GitSource(place.root, options, place.rev, place.repository)
    return FolderSource(place.root, options)


def _has_own_index(folder: Path) -> bool:
    """Whether this user indexed the folder. An index that somebody else put above ours would widen what we read."""
    try:
        owner = (folder / ".outcrop" / "index.sqlite").stat().st_uid
    except OSError:
        return False
    return owner == os.geteuid() if hasattr(os, "geteuid") else True

"""From a path to its source: the nearest Fossil or git repository around it, or a plain folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from outcrop.core.protocols import Source
from outcrop.errors import NotARepository, UsageError
from outcrop.sources.folder import FolderSource
from outcrop.sources.git.source import GitSource
from outcrop.sources.options import Options
from outcrop.vcs.fossil import FossilLocation, find_fossil
from outcrop.vcs.git import Repository
from outcrop.vcs.git_repository import find_repository, is_ignored


@dataclass(frozen=True, slots=True)
class FoundRoot:
    """The folder whose settings apply to a path (top of the working tree or checkout), and its repository."""

    root: Path
    repository: Repository | None = None
    fossil: FossilLocation | None = None
    rev: str | None = None
    branch: str | None = None


def find_root(path: Path, rev: str | None = None, branch: str | None = None) -> FoundRoot:
    """Find the source that a path belongs to.

    A Fossil repository is named by its file or by any folder of a checkout. A folder inside a git repository means the
    whole repository, unless that repository ignores the folder. Of a checkout and a git repository around a path, the
    nearer one is meant. A plain folder means itself, or the nearest folder above that the same user has indexed.
    """
    if not path.exists():
        raise NotARepository(f"There is no {path}", "Name a folder or a repository")
    place = path.resolve()
    folder = place if place.is_dir() else place.parent
    repository = find_repository(folder)
    fossil = find_fossil(place, repository.top if repository else None) if rev is None else None
    if fossil is not None:
        return FoundRoot(fossil.checkout or fossil.repository.parent, fossil=fossil, branch=branch)
    if branch is not None:
        raise UsageError(f"{path} is not in a Fossil repository, so it has no --branch", "In git, name it with --rev")
    if repository is not None and not (rev is None and is_ignored(repository, folder)):
        return FoundRoot(repository.top, repository, rev=rev)
    if rev is not None:
        raise NotARepository(f"{path} is not in a git repository, so it has no commit {rev}", "Leave the commit out")
    if place != folder:
        raise NotARepository(f"{path} is a file, not a folder", f"Name its folder: {folder}")
    indexed = (parent for parent in (folder, *folder.parents) if _has_own_index(parent))
    return FoundRoot(next(indexed, folder))


def open_source(found: FoundRoot, options: Options) -> Source:
    if found.fossil is not None:
        # Imported here: a search in any other repository starts sooner without it.
        from outcrop.sources.fossil.source import FossilSource

        return FossilSource(found.fossil, options, found.branch)
    if found.repository is not None:
        return GitSource(found.root, options, found.rev, found.repository)
    return FolderSource(found.root, options)


def _has_own_index(folder: Path) -> bool:
    """Whether this user indexed the folder. Another user's index above ours would widen what we read."""
    try:
        owner = (folder / ".outcrop" / "index.sqlite").lstat().st_uid
    except OSError:
        return False
    return owner == os.geteuid() if hasattr(os, "geteuid") else True

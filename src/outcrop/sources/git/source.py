"""A git repository as a source: the working tree, or one commit, keyed by git blob ids."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from outcrop.core.model import Artifact, CommitListing, FileState, Listing, Ref, Skipped, SkipReason
from outcrop.core.protocols import Historied, override
from outcrop.errors import NotARepository
from outcrop.sources.file_state import oversize
from outcrop.sources.folder import FolderSource
from outcrop.sources.git import commit as git_commit
from outcrop.sources.git.history import list_history, read_history
from outcrop.sources.git.snapshot import UNBORN, Snapshot, read_snapshots
from outcrop.sources.git.working_tree import WorkingFiles
from outcrop.sources.options import Options
from outcrop.sources.paths import to_bytes, to_slug
from outcrop.sources.selection import FileSource
from outcrop.sources.store_place import checked_store
from outcrop.sources.watch_paths import WatchPaths, git_watch_paths
from outcrop.vcs.git import Repository, answer, blob_id, find_commit, missing_objects, read_blobs
from outcrop.vcs.git_history import shallow_mark
from outcrop.vcs.git_repository import find_repository, line_of

# Artifacts of one request to git: their sizes are known before the first of them is read.
_SLICE = 1024


class GitSource(FileSource, Historied):
    """Implements :class:`outcrop.core.protocols.Source`.

    The source is the whole working tree around ``root``, or one commit (``rev``; of a bare repository that at HEAD).
    """

    type = "git"

    def __init__(
        self, root: Path, options: Options | None = None, rev: str | None = None, repository: Repository | None = None
    ) -> None:
        super().__init__(options)
        found = repository or find_repository(root.resolve())
        if found is None:
            raise NotARepository(f"{root} is not in a git repository", "Name a folder inside one")
        self._repository = found
        self._commit = None if rev is None else git_commit.resolve(found, rev)
        self._submodules: list[tuple[bytes, Repository]] | None = None
        self._from_disk: frozenset[str] = frozenset()

    @property
    @override
    def root(self) -> Path:
        return self._repository.top

    @override
    @cached_property
    def project(self) -> str:
        url = answer(self._repository, "config", "--get", "remote.origin.url")
        name = re.split(r"[/:\\]", url.rstrip("/"))[-1]
        if not name:
            common = self._repository.common_dir
            name = common.parent.name if common.name == ".git" else common.name
        return to_slug(name.removesuffix(".git"))

    @property
    @override
    def worktree(self) -> str:
        if self._commit is not None:
            return f"rev:{self._commit}"
        same = self._repository.git_dir.resolve() == self._repository.common_dir
        return "" if same else self._repository.git_dir.name

    @override
    def worktrees(self) -> frozenset[str]:
        names = {"", self.worktree}
        try:
            for entry in (self._repository.common_dir / "worktrees").iterdir():
                place = line_of(entry / "gitdir")
                if (entry / "locked").exists() or (entry / place).exists():
                    names.add(entry.name)
        except OSError:
            return frozenset(names)
        return frozenset(names)

    @override
    def store_path(self) -> Path:
        return checked_store(self._repository.common_dir / "outcrop")

    def watch_paths(self) -> WatchPaths:
        """The folders of tracked files, those that nothing ignores, and git's own."""
        if self._repository.bare:
            return git_watch_paths([self._repository], ())
        snapshots = self._read_snapshots()
        tracked = {
            snapshot.prefix + entry.path.rpartition(b"/")[0] for snapshot in snapshots for entry in snapshot.entries()
        }
        named = {f"{self.root}/{os.fsdecode(folder)}".rstrip("/") for folder in tracked}
        walked = FolderSource(self.root, self._options).watch_paths().folders
        # A sparse checkout leaves folders out, and a deleted folder need not be committed as such.
        folders = walked | {folder for folder in named - walked if Path(folder).is_dir()}
        return git_watch_paths([snapshot.repository for snapshot in snapshots], folders)

    @override
    def revision(self, seen: Mapping[str, FileState]) -> str:
        commit = self._fixed_commit()
        if commit is not None:
            return self._commit_revision(commit)
        snapshots = self._read_snapshots()
        items = WorkingFiles(snapshots, self._options, self._selection).disk_items(seen)
        return _revision(snapshots, items, "".join(self._marks()))

    @override
    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        commit = self._fixed_commit()
        if commit is not None:
            files = git_commit.collect(self._repository, commit, self._options, self._selection)
            return files.listing(self._commit_revision(commit), self._read_files)
        snapshots = self._read_snapshots()
        items, files = WorkingFiles(snapshots, self._options, self._selection).collect(seen)
        self._from_disk = frozenset(state.hash for state in files.states.values())
        return files.listing(_revision(snapshots, items, "".join(self._marks())), self._read_files)

    @property
    @override
    def has_history(self) -> bool:
        return self._options.history != 0

    @override
    def commits(self, revision: str) -> CommitListing:
        commit = revision.partition("+")[0]
        return CommitListing() if commit == UNBORN else list_history(self._repository, commit, self._options.history)

    @override
    def _read_commits(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        return read_history(self._repository, refs, self._selection)

    @override
    def _read_files(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        commit = self._fixed_commit()
        if commit is None and self._submodules is None:
            self._read_snapshots()
        missing: dict[bytes, frozenset[str]] = {}
        for first in range(0, len(refs), _SLICE):
            yield from self._read_slice(refs[first : first + _SLICE], commit, missing)

    def _read_slice(
        self, refs: Sequence[Ref], commit: str | None, missing: dict[bytes, frozenset[str]]
    ) -> Iterator[Artifact | Skipped]:
        homes = [self._home(to_bytes(ref.path or "")) for ref in refs]
        limits = [self._selection.limit(ref.path or "") for ref in refs]
        blobs: dict[bytes, Iterator[bytes | int | None]] = {}
        for prefix, repository in dict(homes).items():
            if prefix not in missing:
                missing[prefix] = self._missing(repository, commit or "HEAD")
            asked = zip(refs, limits, homes, strict=True)
            wanted = [(ref.hash, limit) for ref, limit, home in asked if home[0] == prefix]
            blobs[prefix] = read_blobs(repository, wanted, missing[prefix])
        base = os.fsencode(self.root) + b"/"
        for ref, limit, (prefix, repository) in zip(refs, limits, homes, strict=True):
            path = ref.path or ""
            data = next(blobs[prefix])
            if isinstance(data, bytes):
                yield self._selection.to_artifact(ref, path, data)
            elif data is not None:
                yield oversize(path or ref.hash, data, limit)
            elif commit is not None:
                yield Skipped(path or ref.hash, SkipReason.UNREADABLE, "its content is not in this clone")
            else:
                yield self._selection.read_disk(base, ref, partial(blob_id, object_format=repository.object_format))

    def _read_snapshots(self) -> list[Snapshot]:
        snapshots = read_snapshots(self._repository)
        inner = [(snapshot.prefix, snapshot.repository) for snapshot in snapshots[1:]]
        self._submodules = sorted(inner, key=lambda item: -len(item[0]))
        return snapshots

    def _home(self, path: bytes) -> tuple[bytes, Repository]:
        """The submodule that a path lies in, or the repository itself."""
        for prefix, repository in self._submodules or ():
            if path.startswith(prefix):
                return prefix, repository
        return b"", self._repository

    def _missing(self, repository: Repository, commit: str) -> frozenset[str]:
        """Names that a partial clone does not have, or only the disk. Asking for one would make git use the network."""
        if not repository.is_partial():
            return frozenset()
        return self._from_disk | (missing_objects(repository, commit) if commit != UNBORN else frozenset())

    def _marks(self) -> tuple[str, str]:
        """What beside commit and files decides what is listed: settings, and how much history a shallow clone has."""
        return self._options.mark, shallow_mark(self._repository) if self._options.history else ""

    def _commit_revision(self, commit: str) -> str:
        mark = "".join(each[:8] for each in self._marks())
        return f"{commit}+{mark}" if mark else commit

    def _fixed_commit(self) -> str | None:
        if self._commit is not None or not self._repository.bare:
            return self._commit
        return find_commit(self._repository, "HEAD") or UNBORN


def _revision(snapshots: Sequence[Snapshot], items: Mapping[bytes, str], settings: str) -> str:
    """The outermost commit and a digest of what differs from it, and from the default settings."""
    lines = [b"%s\0%s\n" % (path, state.encode()) for path, state in items.items()]
    if settings:
        lines.append(b"settings\0%s\n" % settings.encode())
    for snapshot in snapshots:
        lines += [b"staged\0%s%s\0%s\n" % (snapshot.prefix, path, blob) for path, blob in snapshot.staged.items()]
        lines += [b"sparse\0%s%s\n" % (snapshot.prefix, record) for record in snapshot.sparse()]
        if snapshot.prefix:
            lines.append(b"submodule\0%s\0%s\n" % (snapshot.prefix, snapshot.head.encode()))
    head = snapshots[0].head
    return f"{head}+{hashlib.sha256(b''.join(sorted(lines))).hexdigest()[:8]}" if lines else head

"""A git repository as a source: the working tree, or one commit, keyed by git blob ids."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from outcrop.core.model import Artifact, FileState, Listing, Ref, Skipped
from outcrop.core.protocols import Source, override
from outcrop.errors import NotARepository
from outcrop.sources import media
from outcrop.sources.file_state import read_inside
from outcrop.sources.folder import FolderSource
from outcrop.sources.git import commit as git_commit
from outcrop.sources.git.snapshot import UNBORN, Snapshot, take
from outcrop.sources.git.working_tree import WorkingFiles
from outcrop.sources.options import Options
from outcrop.sources.paths import to_bytes, to_slug
from outcrop.sources.selection import Selection
from outcrop.sources.watch_paths import Places, git_places
from outcrop.vcs.git import Repository, absent, blob_id, contents, sizes, start
from outcrop.vcs.git_repository import discover

# Artifacts asked of git at a time: their sizes are known before the first of them is read.
_SLICE = 1024


class GitSource(Source):
    """Implements :class:`outcrop.core.protocols.Source`.

    Args:
        root: Any folder of the working tree; the whole repository is the source. Or a bare repository, of which the
            commit at HEAD is the source.
        options: The user's settings.
        rev: A commit to look at instead of the working tree.
        repository: The repository at ``root``, where it is known already.
    """

    def __init__(
        self, root: Path, options: Options | None = None, rev: str | None = None, repository: Repository | None = None
    ) -> None:
        found = repository or discover(root.resolve())
        if found is None:
            raise NotARepository(f"{root} is not in a git repository", "Name a folder inside one")
        self._repository = found
        self._options = options or Options()
        self._selection = Selection(self._options)
        self._commit = None if rev is None else git_commit.resolve(found, rev)
        self._inner: list[tuple[bytes, Repository]] | None = None
        self._from_disk: frozenset[str] = frozenset()

    @property
    @override
    def type(self) -> str:
        return "git"

    @property
    @override
    def root(self) -> Path:
        return self._repository.top

    @override
    @cached_property
    def project(self) -> str:
        url, _ = start(self._repository, "config", "--get", "remote.origin.url").communicate()
        name = re.split(r"[/:\\]", url.decode("utf-8", "replace").strip().rstrip("/"))[-1]
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

    @property
    @override
    def rules(self) -> str:
        return self._options.rules

    def with_options(self, options: Options) -> GitSource:
        """The same repository and commit under other settings."""
        return GitSource(self.root, options, self._commit, self._repository)

    @override
    def worktrees(self) -> frozenset[str]:
        names = {"", self.worktree}
        try:
            for entry in (self._repository.common_dir / "worktrees").iterdir():
                place = (entry / "gitdir").read_text("utf-8", "surrogateescape").rstrip("\r\n")
                if (entry / "locked").exists() or (entry / place).exists():
                    names.add(entry.name)
        except OSError:
            return frozenset(names)
        return frozenset(names)

    @override
    def store_path(self) -> Path:
        return self._repository.common_dir / "outcrop" / "index.sqlite"

    def places(self) -> Places:
        """The folders of tracked files, those that nothing ignores, and git's own."""
        if self._repository.bare:
            return git_places([self._repository], ())
        snapshots = self._take()
        tracked = {
            snapshot.prefix + entry.path.rpartition(b"/")[0] for snapshot in snapshots for entry in snapshot.entries()
        }
        top = str(self.root)
        named = {f"{top}/{os.fsdecode(folder)}".rstrip("/") for folder in tracked}
        walked = FolderSource(self.root, self._options).places().folders
        # A sparse checkout leaves folders out, and whoever deleted one need not have committed that.
        folders = walked | {folder for folder in named - walked if Path(folder).is_dir()}
        return git_places([snapshot.repository for snapshot in snapshots], folders)

    @override
    def revision(self, seen: Mapping[str, FileState]) -> str:
        commit = self._fixed_commit()
        if commit is not None:
            return self._of_commit(commit)
        snapshots = self._take()
        items = WorkingFiles(snapshots, self._options, self._selection).states(seen)
        return _revision(snapshots, items, self._options.mark)

    @override
    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        commit = self._fixed_commit()
        if commit is not None:
            whole = git_commit.artifacts(self._repository, commit, self._options, self._selection)
            refs, skipped = media.resolve(whole.refs, whole.skipped, self._read_files)
            return replace(whole, revision=self._of_commit(commit), refs=refs, skipped=skipped)
        snapshots = self._take()
        files = WorkingFiles(snapshots, self._options, self._selection)
        items, refs, skipped, states = files.listing(seen)
        self._from_disk = frozenset(state.hash for state in states.values())
        refs, skipped = media.resolve(refs, skipped, self._read_files)
        return Listing(_revision(snapshots, items, self._options.mark), refs, skipped, states)

    @override
    def read(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        return media.assembled(refs, self._read_files)

    def _read_files(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        commit = self._fixed_commit()
        if commit is None and self._inner is None:
            self._take()
        missing: dict[bytes, frozenset[str]] = {}
        for first in range(0, len(refs), _SLICE):
            yield from self._read_slice(refs[first : first + _SLICE], commit, missing)

    def _read_slice(
        self, refs: Sequence[Ref], commit: str | None, missing: dict[bytes, frozenset[str]]
    ) -> Iterator[Artifact | Skipped]:
        homes = [self._home(to_bytes(ref.path or "")) for ref in refs]
        known: dict[bytes, dict[str, int]] = {}
        blobs: dict[bytes, Iterator[bytes | None]] = {}
        for prefix, repository in dict(homes).items():
            if prefix not in missing:
                missing[prefix] = _missing(repository, commit or "HEAD") | self._unstored(repository)
            asked = [ref for ref, home in zip(refs, homes, strict=True) if home[0] == prefix]
            known[prefix] = sizes(repository, [ref.hash for ref in asked if ref.hash not in missing[prefix]])
            stored = known[prefix]
            wanted = [
                ref.hash
                for ref in asked
                if ref.hash in stored and stored[ref.hash] <= self._selection.limit(ref.path or "")
            ]
            blobs[prefix] = contents(repository, wanted)
        for ref, (prefix, repository) in zip(refs, homes, strict=True):
            path = ref.path or ""
            size = known[prefix].get(ref.hash)
            limit = self._selection.limit(path)
            data = None if size is None or size > limit else next(blobs[prefix])
            if data is not None:
                yield self._selection.to_artifact(ref, path, data)
            elif size is not None and size > limit:
                yield git_commit.too_large(ref, size, limit)
            elif commit is not None:
                yield git_commit.not_stored(ref)
            else:
                yield self._read_disk(ref, path, repository)

    def _read_disk(self, ref: Ref, path: str, repository: Repository) -> Artifact | Skipped:
        base = os.fsencode(self.root) + b"/"
        outcome = self._selection.refuse_name(path) or read_inside(base, path, self._selection.limit(path))
        if isinstance(outcome, Skipped):
            return outcome
        data = outcome[0]
        hash = blob_id(data, repository.object_format)
        if hash != ref.hash:
            ref = Ref(hash, ref.kind, ref.path, hash, len(data))
        return self._selection.to_artifact(ref, path, data)

    def _take(self) -> list[Snapshot]:
        snapshots = take(self._repository)
        inner = [(snapshot.prefix, snapshot.repository) for snapshot in snapshots[1:]]
        self._inner = sorted(inner, key=lambda item: -len(item[0]))
        return snapshots

    def _home(self, path: bytes) -> tuple[bytes, Repository]:
        """The submodule that a path lies in, or the repository itself."""
        for prefix, repository in self._inner or ():
            if path.startswith(prefix):
                return prefix, repository
        return b"", self._repository

    def _unstored(self, repository: Repository) -> frozenset[str]:
        """Names that only the disk has. Asking a partial clone for one of them would make git look at the remote."""
        return self._from_disk if repository.is_partial() else frozenset()

    def _of_commit(self, commit: str) -> str:
        mark = self._options.mark
        return f"{commit}+{mark[:8]}" if mark else commit

    def _fixed_commit(self) -> str | None:
        """The commit that stands for the source, or None when the working tree does."""
        if self._commit is not None or not self._repository.bare:
            return self._commit
        return git_commit.head(self._repository)


def _missing(repository: Repository, commit: str) -> frozenset[str]:
    return absent(repository, commit) if repository.is_partial() and commit != UNBORN else frozenset()


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

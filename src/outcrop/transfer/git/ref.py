"""Transfer blobs as the files of one commit without parents, at ``refs/outcrop/vectors`` of a git repository.

A commit without parents has no history, so that replacing it at each export leaves only objects that the next ``git
gc`` removes. Everything is written as objects: no index, working tree, branch or reflog is touched. Author, date and
message are always the same, so that equal files are an equal commit, whoever made it.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Collection, Iterator, Mapping

from outcrop.core.model import Skipped, SkipReason
from outcrop.core.protocols import TransferStore, override
from outcrop.core.rows import TransferCounts
from outcrop.errors import StoreError, StoreFull, StoreLocked
from outcrop.transfer import blob
from outcrop.vcs.git import (
    Repository,
    blob_id,
    find_commit,
    git_complaint,
    git_output,
    missing_objects,
    read_blobs,
    start_git,
)

REF = "refs/outcrop/vectors"

_FOLDER = b"vec"
_SIGNATURE = b"outcrop <outcrop@localhost> 946684800 +0000"
_MESSAGE = b"Vectors of this repository's files\n\nMade by outcrop; see docs/formats.md there.\n"
# Vectors hardly compress, and zlib's best level takes four times as long on them.
_FAST = ("-c", "core.compression=1", "-c", "pack.compression=1")


class GitTransfer(TransferStore):
    """Implements :class:`outcrop.core.protocols.TransferStore` with the files of the ref, which every change moves.

    With a commit it begins with the files of that commit (None: no files) and moves the ref at :meth:`publish` only.
    """

    def __init__(self, repository: Repository, commit: str | None = "") -> None:
        self._repository = repository
        self._is_detached = commit != ""
        self._commit = commit or None
        self._listed: tuple[str | None, Mapping[str, str]] = (None, {})

    @property
    def commit(self) -> str | None:
        return self._commit if self._is_detached else find_commit(self._repository, REF)

    def ids(self) -> Mapping[str, str]:
        """The object of each file, by name. Equal objects are equal files."""
        commit = self.commit
        if commit is None:
            return {}
        if self._listed[0] != commit:
            self._listed = (commit, _entries(self._repository, commit))
        return self._listed[1]

    @override
    def names(self) -> frozenset[str]:
        return frozenset(self.ids())

    @override
    def read(self, name: str) -> bytes | Skipped | None:
        found = self.ids().get(name)
        return None if found is None else next(data for _, data in self._contents({name: found}))

    @override
    def read_all(self) -> Iterator[tuple[str, bytes | Skipped]]:
        yield from self._contents(dict(sorted(self.ids().items())))

    @override
    def replace(self, adds: Mapping[str, bytes], removes: Collection[str]) -> TransferCounts:
        blob.check_names((*adds, *removes))
        before = self.commit
        there = self.ids()
        new = {name: blob_id(data, self._repository.object_format) for name, data in adds.items()}
        added = {name: written for name, written in new.items() if there.get(name) != written}
        gone = {name for name in removes if name in there and name not in adds}
        if added or gone:
            _write_blobs(self._repository, {added[name]: adds[name] for name in added})
            self._move(before, {name: old for name, old in there.items() if name not in gone} | added)
        return TransferCounts(len(added), len(gone))

    def copy_blobs(self, other: GitTransfer, hashes: Collection[str]) -> None:
        """Add the blobs of these artifacts from another commit of the repository, without reading them.

        A blob that is here already stays as it is.
        """
        entries = self.ids()
        found = {
            name: there for name, there in other.ids().items() if name not in entries and blob.hash_of(name) in hashes
        }
        if found:
            self._move(self.commit, {**entries, **found})

    def publish(self) -> None:
        """Move the ref to what was kept off it."""
        if self._commit is not None:
            _set_ref(self._repository, self._commit, None)

    def _move(self, before: str | None, entries: Mapping[str, str]) -> None:
        commit = _write_commit(self._repository, entries)
        if self._is_detached:
            self._commit = commit
        else:
            _set_ref(self._repository, commit, before)
        self._listed = (commit, entries)

    def _contents(self, ids: Mapping[str, str]) -> Iterator[tuple[str, bytes | Skipped]]:
        commit = self.commit
        missing = missing_objects(self._repository, commit) if commit and self._repository.is_partial() else frozenset()
        wanted = [(found, blob.most_bytes(name)) for name, found in ids.items()]
        for name, data in zip(ids, read_blobs(self._repository, wanted, missing), strict=True):
            if data is None:
                yield name, Skipped(name, SkipReason.UNREADABLE, "its content is not in this clone")
            else:
                yield name, blob.oversize(name) if isinstance(data, int) else data


def delete_ref(repository: Repository, ref: str) -> None:
    start_git(repository, "update-ref", "-d", ref).communicate()


def _entries(repository: Repository, commit: str) -> dict[str, str]:
    """Ordinary files of the folder by name, with their objects; anything else there is passed over."""
    listed = git_output(start_git(repository, "ls-tree", "-z", "--full-tree", commit, blob.FOLDER), "list the vectors")
    found: dict[str, str] = {}
    for record in listed.split(b"\0"):
        meta, _, path = record.partition(b"\t")
        name = path.decode("utf-8", "replace")
        if meta.startswith(b"100") and blob.is_name(name):
            found[name] = meta.split()[2].decode()
    return found


def _write_blobs(repository: Repository, blobs: Mapping[str, bytes]) -> None:
    """Store contents as objects: one process for all of them, which packs them where they are many."""
    # Which of them are there already is not asked: git looks into every pack anew for each that is not. And deltas are
    # not tried: between vectors they save nothing, and take as long as all the rest.
    if not blobs:
        return
    process = start_git(repository, *_FAST, "fast-import", "--quiet", "--depth=0", stdin=subprocess.PIPE)
    assert process.stdin is not None
    # A process that ended early says why below.
    with contextlib.suppress(BrokenPipeError):
        for data in blobs.values():
            process.stdin.write(b"blob\ndata %d\n" % len(data))
            process.stdin.write(data)
            process.stdin.write(b"\n")
    _complete(process, b"")


def _write_commit(repository: Repository, entries: Mapping[str, str]) -> str:
    files = b"".join(
        b"100644 blob %s\t%s\0" % (entries[name].encode(), name.rpartition("/")[2].encode()) for name in sorted(entries)
    )
    folder = _write(repository, files, "mktree", "-z", "--missing")
    root = _write(repository, b"040000 tree %s\t%s\0" % (folder, _FOLDER), "mktree", "-z")
    commit = b"tree %s\nauthor %s\ncommitter %s\n\n%s" % (root, _SIGNATURE, _SIGNATURE, _MESSAGE)
    return _write(repository, commit, "hash-object", "-t", "commit", "-w", "--stdin").decode()


def _write(repository: Repository, data: bytes, *arguments: str) -> bytes:
    return _complete(start_git(repository, *_FAST, *arguments, stdin=subprocess.PIPE), data).strip()


def _set_ref(repository: Repository, commit: str, before: str | None) -> None:
    """Move the ref to a commit, if it names ``before`` (None: anything). No reflog is begun, whatever the settings."""
    expected = () if before is None else (before,)
    process = start_git(repository, "-c", "core.logAllRefUpdates=false", "update-ref", REF, commit, *expected)
    _, errors = process.communicate()
    reason = git_complaint(errors)
    if process.returncode and "lock" in reason:
        raise StoreLocked(f"{REF} was changed by another process ({reason})", "Run the command again")
    if process.returncode:
        raise _failure(f"git cannot move {REF}", reason)


def _complete(process: subprocess.Popen[bytes], data: bytes) -> bytes:
    output, errors = process.communicate(data or None)
    if process.returncode:
        raise _failure("git cannot store the vectors", git_complaint(errors))
    return output


def _failure(what: str, reason: str) -> StoreError:
    words = f"{what}: {reason}"
    if any(word in reason for word in ("No space", "Permission denied", "insufficient permission", "Read-only")):
        return StoreFull(words, "Check the permissions of the repository and the free space of its disk")
    return StoreError(words, "Look at: git fsck")

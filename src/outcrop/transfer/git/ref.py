"""Transfer blobs as the files of one commit without parents, at ``refs/outcrop/vectors`` of a git repository.

A commit without parents has no history, so that replacing it at each export leaves nothing behind but objects that the
next ``git gc`` takes. Everything is written as objects: no index, working tree, branch or reflog is touched. Author,
date and message are always the same, so that equal files are an equal commit, whoever made it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Iterator, Mapping

from outcrop.core.model import Skipped, SkipReason
from outcrop.core.protocols import TransferStore, override
from outcrop.core.rows import TransferCounts
from outcrop.errors import BlobError, StoreError, StoreFull, StoreLocked
from outcrop.transfer.blob import hash_of
from outcrop.vcs.git import Repository, absent, blob_id, contents, finish, first_line, sizes, start

REF = "refs/outcrop/vectors"

# A larger file is not read: some 100,000 passages of one artifact.
MOST_BYTES = 256 << 20

_PAGE_BYTES = 16 << 20
_AT_ONCE = 500
_NAME = re.compile(r"vec/\w[\w.-]*", re.ASCII)
_FOLDER = b"vec"
_FILE = b"100644"
_SIGNATURE = b"outcrop <outcrop@localhost> 946684800 +0000"
_MESSAGE = b"Vectors of this repository's files\n\nMade by outcrop; see docs/formats.md there.\n"
# Vectors hardly compress, and the best that zlib can do with them takes four times as long.
_QUICKLY = ("-c", "core.compression=1", "-c", "pack.compression=1")


class GitTransfer(TransferStore):
    """Implements :class:`outcrop.core.protocols.TransferStore`.

    Args:
        repository: Where.
        commit: Begin with the files of this commit and keep what is changed apart, until :meth:`publish`; None for no
            files. Left out, the files are those of ``ref``, and every change moves it.
        ref: The name that the files have.
    """

    def __init__(self, repository: Repository, commit: str | None = "", ref: str = REF) -> None:
        self._repository = repository
        self._ref = ref
        self._is_apart = commit != ""
        self._commit = commit or None
        self._listed: tuple[str | None, Mapping[str, str]] = (None, {})

    @property
    def commit(self) -> str | None:
        """The commit that holds the files; None where there is none yet."""
        return self._commit if self._is_apart else resolve(self._repository, self._ref)

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
        id = self.ids().get(name)
        return None if id is None else next(data for _, data in self._contents({name: id}))

    @override
    def read_all(self) -> Iterator[tuple[str, bytes | Skipped]]:
        yield from self._contents(dict(sorted(self.ids().items())))

    @override
    def replace(self, adds: Mapping[str, bytes], removes: Collection[str]) -> TransferCounts:
        for name in (*adds, *removes):
            if not _NAME.fullmatch(name):
                raise BlobError(f"{name!r} is no name of the transfer store")
        before = self.commit
        there = self.ids()
        entries = dict(there)
        new: dict[str, bytes] = {}
        for name, data in adds.items():
            id = blob_id(data, self._repository.object_format)
            if entries.get(name) != id:
                new[id] = data
                entries[name] = id
        added = sum(there.get(name) != id for name, id in entries.items())
        gone = [name for name in removes if name in entries and name not in adds]
        for name in gone:
            del entries[name]
        if added or gone:
            _write_blobs(self._repository, new)
            self._move(before, entries)
        return TransferCounts(added, len(gone))

    def take(self, other: GitTransfer, hashes: Collection[str]) -> int:
        """Take blobs over from another commit of the same repository, without reading them; those here are stronger.

        Args:
            other: Whose blobs.
            hashes: The artifacts that are meant.

        Returns:
            How many were taken.
        """
        entries = dict(self.ids())
        taken = {name: id for name, id in other.ids().items() if name not in entries and hash_of(name) in hashes}
        if taken:
            self._move(self.commit, entries | taken)
        return len(taken)

    def publish(self) -> None:
        """Let the ref be what was kept apart."""
        if self._commit is not None:
            _point(self._repository, self._ref, self._commit, None)

    def _move(self, before: str | None, entries: Mapping[str, str]) -> None:
        commit = _write_commit(self._repository, entries)
        if self._is_apart:
            self._commit = commit
        else:
            _point(self._repository, self._ref, commit, before)
        self._listed = (commit, entries)

    def _contents(self, ids: Mapping[str, str]) -> Iterator[tuple[str, bytes | Skipped]]:
        commit = self.commit
        # Asking a partial clone for the size of what it does not have would make git look at the remote.
        left = absent(self._repository, commit) if commit and self._repository.is_partial() else frozenset()
        known = sizes(self._repository, [id for id in ids.values() if id not in left])
        for names in _pages(ids, known):
            readable = [ids[name] for name in names if known.get(ids[name], MOST_BYTES + 1) <= MOST_BYTES]
            found = dict(zip(readable, contents(self._repository, readable), strict=True))
            for name in names:
                data = found.get(ids[name])
                if data is not None:
                    yield name, data
                elif known.get(ids[name], 0) > MOST_BYTES:
                    yield name, Skipped(name, SkipReason.OVERSIZE, f"it has more than {MOST_BYTES >> 20} MiB")
                else:
                    yield name, Skipped(name, SkipReason.UNREADABLE, "its content is not in this clone")


def resolve(repository: Repository, name: str) -> str | None:
    """The commit that a ref or an object's name stands for, or None where it is none, or not in this clone."""
    output, _ = start(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").communicate()
    return output.decode().strip() or None


def remove(repository: Repository, ref: str) -> None:
    """Delete a ref, where it is there."""
    start(repository, "update-ref", "-d", ref).communicate()


def _entries(repository: Repository, commit: str) -> dict[str, str]:
    """Ordinary files of the folder by name, with their objects; whatever else somebody put there is passed over."""
    listed = finish(
        start(repository, "ls-tree", "-z", "--full-tree", commit, f"{_FOLDER.decode()}/"), "list the vectors"
    )
    found: dict[str, str] = {}
    for record in listed.split(b"\0"):
        meta, _, path = record.partition(b"\t")
        name = path.decode("utf-8", "replace")
        if meta.startswith(b"100") and _NAME.fullmatch(name):
            found[name] = meta.split()[2].decode()
    return found


def _pages(ids: Mapping[str, str], known: Mapping[str, int]) -> Iterator[list[str]]:
    names: list[str] = []
    size = 0
    for name, id in ids.items():
        bytes_ = known.get(id, 0)
        if names and (size + bytes_ > _PAGE_BYTES or len(names) == _AT_ONCE):
            yield names
            names, size = [], 0
        names.append(name)
        size += bytes_
    if names:
        yield names


def _write_blobs(repository: Repository, blobs: Mapping[str, bytes]) -> None:
    """Store contents as objects: one process for all of them, which packs them where they are many."""
    # Which of them are there already is not asked: git looks into every pack anew for each that is not. And deltas are
    # not tried: between vectors they save nothing, and take as long as all the rest.
    if not blobs:
        return
    process = start(repository, *_QUICKLY, "fast-import", "--quiet", "--depth=0", stdin=subprocess.PIPE)
    assert process.stdin is not None
    try:
        for data in blobs.values():
            process.stdin.write(b"blob\ndata %d\n" % len(data))
            process.stdin.write(data)
            process.stdin.write(b"\n")
    except BrokenPipeError:
        # It says why below.
        pass
    _done(process, b"", "store the vectors")


def _write_commit(repository: Repository, entries: Mapping[str, str]) -> str:
    """A commit without parents whose only folder holds these files."""
    files = b"".join(
        b"%s blob %s\t%s\0" % (_FILE, entries[name].encode(), name.rpartition("/")[2].encode())
        for name in sorted(entries)
    )
    folder = _made(repository, files, "mktree", "-z", "--missing")
    root = _made(repository, b"040000 tree %s\t%s\0" % (folder, _FOLDER), "mktree", "-z")
    commit = b"tree %s\nauthor %s\ncommitter %s\n\n%s" % (root, _SIGNATURE, _SIGNATURE, _MESSAGE)
    return _made(repository, commit, "hash-object", "-t", "commit", "-w", "--stdin").decode()


def _made(repository: Repository, data: bytes, *arguments: str) -> bytes:
    process = start(repository, *_QUICKLY, *arguments, stdin=subprocess.PIPE)
    return _done(process, data, "store the vectors").strip()


def _point(repository: Repository, ref: str, commit: str, before: str | None) -> None:
    """Let a ref name a commit. No reflog is begun, also where the user wants one for every ref.

    Args:
        repository: Whose ref.
        ref: Its name.
        commit: What it will name.
        before: What it has to name until then; None for anything.
    """
    expected = () if before is None else (before,)
    process = start(repository, "-c", "core.logAllRefUpdates=false", "update-ref", ref, commit, *expected)
    _, errors = process.communicate()
    if not process.returncode:
        return
    reason = first_line(errors)
    if "lock" in reason:
        raise StoreLocked(f"{ref} was changed by another process ({reason})", "Run the command again")
    raise _failure(f"git cannot move {ref}", reason)


def _done(process: subprocess.Popen[bytes], data: bytes, what: str) -> bytes:
    output, errors = process.communicate(data or None)
    if process.returncode:
        raise _failure(f"git cannot {what}", first_line(errors))
    return output


def _failure(what: str, reason: str) -> StoreError:
    words = f"{what}: {reason}"
    if any(word in reason for word in ("No space", "Permission denied", "insufficient permission", "Read-only")):
        return StoreFull(words, "Check the permissions of the repository and the room on its disk")
    return StoreError(words, "Look at: git fsck")

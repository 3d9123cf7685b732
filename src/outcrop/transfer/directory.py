"""Transfer blobs as files of a folder, to be carried on a stick, a share or a web server.

Each file is written under another name and renamed when it is whole, so that nobody ever reads half of one. A folder
that somebody else gives us may hold anything: what is not an ordinary file is passed over, and no link is followed.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from outcrop.core.model import Skipped, SkipReason
from outcrop.core.protocols import TransferStore, override
from outcrop.core.rows import TransferCounts
from outcrop.errors import BlobError, StoreError, StoreFull, UsageError
from outcrop.transfer import blob, members

# A larger file is not read: some 100,000 passages of one artifact.
MOST_BYTES = 256 << 20

# A half-written file that is older was left behind by a process that was killed.
SECONDS_ABANDONED = 3600.0

_NAME = re.compile(r"vec/\w[\w.-]*", re.ASCII)
_FOLDER = blob.FOLDER.rstrip("/")
_PARTIAL = ".partial-"
_IGNORE = ".outcropignore"
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class DirectoryTransfer(TransferStore):
    """Implements :class:`outcrop.core.protocols.TransferStore`.

    Args:
        folder: Where ``vec`` is, or will be. Reading never creates it.
    """

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._place = folder / _FOLDER

    @override
    def names(self) -> frozenset[str]:
        return frozenset(f"{blob.FOLDER}{name}" for name in self._listed() if _NAME.fullmatch(f"vec/{name}"))

    @override
    def read(self, name: str) -> bytes | Skipped | None:
        if not _NAME.fullmatch(name):
            return None
        try:
            return self._read(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Skipped(name, SkipReason.UNREADABLE, str(error.strerror or error))

    @override
    def read_all(self) -> Iterator[tuple[str, bytes | Skipped]]:
        for name in sorted(self.names()):
            data = self.read(name)
            if data is not None:
                yield name, data

    @override
    def replace(self, adds: Mapping[str, bytes], removes: Collection[str]) -> TransferCounts:
        for name in (*adds, *removes):
            if not _NAME.fullmatch(name):
                raise BlobError(f"{name!r} is no name of the transfer store")
        there = self.names()
        gone = [name for name in removes if name in there and name not in adds]
        fresh = [name for name, data in adds.items() if name not in there or self.read(name) != data]
        if not fresh and not gone:
            return TransferCounts(0, 0)
        self._claim()
        try:
            for name in fresh:
                self._write(name, adds[name])
            for name in gone:
                (self._root / name).unlink(missing_ok=True)
        except OSError as error:
            raise _explain(error, self._root) from error
        return TransferCounts(len(fresh), len(gone))

    def _listed(self) -> list[str]:
        try:
            with os.scandir(self._place) as entries:
                return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoreError(
                f"{self._place} cannot be read ({error.strerror})", "Check the permissions of the folder"
            ) from error

    def _read(self, name: str) -> bytes | Skipped:
        descriptor = os.open(self._root / name, _READ)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return Skipped(name, SkipReason.NOT_A_FILE)
            if status.st_size > MOST_BYTES:
                return Skipped(name, SkipReason.OVERSIZE, f"it has more than {MOST_BYTES >> 20} MiB")
            return file.read(MOST_BYTES)

    def _claim(self) -> None:
        """Make the folder ours."""
        try:
            self._refuse_foreign()
            self._place.mkdir(parents=True, exist_ok=True)
            for left in self._place.glob(f"{_PARTIAL}*"):
                if time.time() - left.lstat().st_mtime > SECONDS_ABANDONED:
                    left.unlink()
            if not (self._place / _IGNORE).exists():
                # The export may lie in a folder that is indexed itself.
                (self._place / _IGNORE).write_bytes(b"*\n")
        except OSError as error:
            raise _explain(error, self._root) from error

    def _refuse_foreign(self) -> None:
        if not os.path.lexists(self._root):
            return
        if not self._root.is_dir():
            raise UsageError(f"{self._root} is not a folder", "Name a folder that is new or empty")
        is_ours = self._place.is_dir() and not self._place.is_symlink()
        inside = [entry.name for entry in self._place.iterdir()] if is_ours else []
        if inside and all(map(_is_ours, inside)):
            return
        if list(self._root.iterdir()):
            raise UsageError(
                f"{self._root} holds something else than an export of vectors, and was left alone",
                "Name a folder that is new or empty",
            )

    def _write(self, name: str, data: bytes) -> None:
        final = self._root / name
        partial = self._place / f"{_PARTIAL}{os.getpid()}-{final.name}"
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                if name in (blob.NOTE, members.NAME):
                    # What says that the rest is whole must not be there before the rest.
                    os.fsync(file.fileno())
            partial.replace(final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def is_export(folder: Path) -> bool:
    """Whether a folder holds exported vectors."""
    place = folder / _FOLDER
    try:
        names = [entry.name for entry in place.iterdir()]
    except OSError:
        return False
    wholes = [f"{blob.FOLDER}{name}" for name in names]
    return any(whole == blob.NOTE or blob.hash_of(whole) is not None for whole in wholes)


def _is_ours(name: str) -> bool:
    whole = f"{blob.FOLDER}{name}"
    return (
        whole in (blob.NOTE, members.NAME)
        or name == _IGNORE
        or name.startswith(_PARTIAL)
        or blob.hash_of(whole) is not None
    )


def _explain(error: OSError, folder: Path) -> StoreFull:
    return StoreFull(
        f"{folder} cannot be written ({error.strerror or error})", "Check its permissions and the room on its disk"
    )

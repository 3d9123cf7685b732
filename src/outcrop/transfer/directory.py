"""Transfer blobs as files of a folder, to be carried on a stick, a share or a web server.

Each file is written under another name and renamed when it is whole, so that no process ever reads half of one. The
folder may come from other people and hold anything: only ordinary files are read, and no link is followed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from outcrop.core.model import Skipped, SkipReason
from outcrop.core.protocols import TransferStore, override
from outcrop.core.rows import TransferCounts
from outcrop.errors import StoreError, StoreFull, UsageError
from outcrop.sources.file_state import read_file
from outcrop.transfer import blob, members

# A half-written file that is older was left behind by a process that was killed.
SECONDS_ABANDONED = 3600.0

_PARTIAL = ".partial-"
_IGNORE = ".outcropignore"


class DirectoryTransfer(TransferStore):
    """Implements :class:`outcrop.core.protocols.TransferStore`. Reading never creates the folder."""

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._vec = folder / blob.FOLDER

    @override
    def names(self) -> frozenset[str]:
        try:
            with os.scandir(self._vec) as entries:
                found = [f"{blob.FOLDER}{entry.name}" for entry in entries if entry.is_file(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except OSError as error:
            raise StoreError(
                f"{self._vec} cannot be read ({error.strerror})", "Check the permissions of the folder"
            ) from error
        return frozenset(filter(blob.is_name, found))

    @override
    def read(self, name: str) -> bytes | Skipped | None:
        if not blob.is_name(name):
            return None
        content = read_file(os.fsencode(self._root / name), name, blob.most_bytes(name))
        if isinstance(content, Skipped):
            return None if content.reason is SkipReason.VANISHED else content
        return content.data

    @override
    def read_all(self) -> Iterator[tuple[str, bytes | Skipped]]:
        for name in sorted(self.names()):
            if (data := self.read(name)) is not None:
                yield name, data

    @override
    def replace(self, adds: Mapping[str, bytes], removes: Collection[str]) -> TransferCounts:
        blob.check_names((*adds, *removes))
        there = self.names()
        gone = [name for name in removes if name in there and name not in adds]
        fresh = [name for name, data in adds.items() if name not in there or self.read(name) != data]
        if not fresh and not gone:
            return TransferCounts(0, 0)
        try:
            self._prepare()
            for name in fresh:
                self._write(name, adds[name])
            for name in gone:
                (self._root / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreFull(
                f"{self._root} cannot be written ({error.strerror or error})",
                "Check its permissions and the free space of its disk",
            ) from error
        return TransferCounts(len(fresh), len(gone))

    def _prepare(self) -> None:
        self._check_own()
        self._vec.mkdir(parents=True, exist_ok=True)
        for left in self._vec.glob(f"{_PARTIAL}*"):
            if time.time() - left.lstat().st_mtime > SECONDS_ABANDONED:
                left.unlink()
        if not (self._vec / _IGNORE).exists():
            # The export may lie in a folder that is indexed itself.
            (self._vec / _IGNORE).write_bytes(b"*\n")

    def _check_own(self) -> None:
        if not os.path.lexists(self._root):
            return
        if not self._root.is_dir():
            raise UsageError(f"{self._root} is not a folder", "Name a folder that is new or empty")
        inside = list(self._vec.iterdir()) if self._vec.is_dir() and not self._vec.is_symlink() else []
        if not (inside and all(_is_own(path.name) for path in inside)) and any(self._root.iterdir()):
            raise UsageError(
                f"{self._root} holds something else than an export of vectors, and was left alone",
                "Name a folder that is new or empty",
            )

    def _write(self, name: str, data: bytes) -> None:
        final = self._root / name
        partial = self._vec / f"{_PARTIAL}{os.getpid()}-{final.name}"
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
    try:
        names = [f"{blob.FOLDER}{path.name}" for path in (folder / blob.FOLDER).iterdir()]
    except OSError:
        return False
    return blob.NOTE in names or bool(blob.hashes_of(names))


def _is_own(name: str) -> bool:
    whole = f"{blob.FOLDER}{name}"
    is_file = name == _IGNORE or whole in (blob.NOTE, members.NAME) or blob.hash_of(whole) is not None
    return is_file or name.startswith(_PARTIAL)

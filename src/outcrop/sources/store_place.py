"""The place of an index inside a source, which whoever prepared the source may have laid out beforehand."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from outcrop.errors import StoreError

_KINDS = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def checked_store(folder: Path) -> Path:
    """The database in a folder of the source.

    Raises:
        StoreError: The folder is a link, or something in it is no file of its own, so that what is written there would
            land elsewhere, and what is read comes from elsewhere.
    """
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode):
            raise _refusal(folder, status.st_mode)
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise StoreError(f"{folder} cannot be read ({error.strerror})", "Check its permissions") from error
    for path in (folder / name for name in names if name.startswith(("index.", ".gitignore"))):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise _refusal(path, status.st_mode)
        if status.st_nlink > 1:
            raise StoreError(
                f"{path} has another name elsewhere (a hard link), where a change of the index would show",
                "Make it a file of its own: copy it and move the copy over it",
            )
    return folder / "index.sqlite"


def _refusal(path: Path, mode: int) -> StoreError:
    kind = _KINDS.get(stat.S_IFMT(mode), "a file" if stat.S_ISREG(mode) else "a device")
    return StoreError(f"{path} is {kind}, and no index is kept there", "Delete it, or name a place with --store")

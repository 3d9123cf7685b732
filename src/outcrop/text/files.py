"""Reading a file that other people made, and writing one whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def read_regular(path: Path, most: int = 1 << 20) -> bytes:
    """A file's bytes; an ``OSError`` that says why where it is a pipe or a device, or has more than ``most`` bytes.

    A pipe would be waited for, and a device never ends. Links are followed.
    """
    # A device is not even opened: that alone may do something.
    _check_regular(path.stat(), path)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        _check_regular(os.fstat(descriptor), path)
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes", str(path))
    return data


def walk(top: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder but what is behind links, as deep as it is; folders that cannot be read are empty."""
    pending = [os.fspath(top)]
    while pending:
        try:
            with os.scandir(pending.pop()) as found:
                entries = list(found)
        except OSError:
            continue
        yield from entries
        pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _check_regular(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def write_atomically(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a draft beside the file, and put it in the file's place.

    ``mode`` are the permission bits, from the first byte on; None for those of any new file.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)

"""Files on disk: what they look like, whether they were touched since they were hashed, and their bytes."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable

from outcrop.core.model import FileState, Skipped, SkipReason
from outcrop.sources.paths import to_bytes
from outcrop.sources.selection import INTERNAL

# The content address of a file's bytes, lower-case hex.
Digest = Callable[[bytes], str]

# In :attr:`FileState.mtime_ns`: the file had been written so recently that its time proves nothing.
UNTRUSTED = -1

_FINE_NS = 50_000_000
_COARSE_NS = 2_000_000_000


def time_of(status: os.stat_result) -> int:
    """When the file last changed in any way, ns. The later of both times, so that restoring an old mtime shows too."""
    return max(status.st_mtime_ns, status.st_ctime_ns)


def is_untouched(seen: FileState | None, status: os.stat_result) -> bool:
    """Whether the hash in ``seen`` still holds, judged without reading."""
    return (
        seen is not None
        and seen.size == status.st_size
        and seen.mtime_ns == time_of(status)
        and seen.inode == status.st_ino
    )


def remember(status: os.stat_result, hash: str, looked_ns: int) -> FileState:
    """The state behind a hash, for the next listing.

    A file may be written once more within the same tick of the file system's clock, and then look the same. So a file
    that changed just before it was read is not trusted: for two seconds where times are coarse (FAT, HFS+, some
    network drives), for a moment where they are fine. A time far in the future is no sign of a recent write.

    Args:
        status: Taken before the bytes were read.
        hash: Of these bytes.
        looked_ns: The clock before they were read.
    """
    changed = time_of(status)
    tick = _FINE_NS if changed % 1_000_000 else _COARSE_NS
    time_ns = UNTRUSTED if abs(looked_ns - changed) < tick else changed
    return FileState(status.st_size, time_ns, status.st_ino, hash)


def reason_of(error: OSError, path: str) -> Skipped:
    """Why a file could not be opened or read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Skipped(path, SkipReason.VANISHED)
    if error.errno == errno.ELOOP:
        return Skipped(path, SkipReason.SYMLINK)
    return Skipped(path, SkipReason.UNREADABLE, error.strerror or type(error).__name__)


def not_a_file(mode: int, path: str) -> Skipped | None:
    """Why something of this ``st_mode`` is not read, or None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISLNK(mode):
        return Skipped(path, SkipReason.SYMLINK)
    names = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFDIR: "folder"}
    return Skipped(path, SkipReason.NOT_A_FILE, names.get(stat.S_IFMT(mode), "device"))


def oversize(path: str, size: int, limit: int) -> Skipped:
    """The verdict on a file that is too large."""
    return Skipped(path, SkipReason.OVERSIZE, f"{size} bytes, limit {limit}")


def read_inside(base: bytes, path: str, limit: int) -> tuple[bytes, os.stat_result, int] | Skipped:
    """The bytes of a file below a folder: what :func:`read_file` gives, and never of anything outside.

    A path that was listed once may lead elsewhere by now, and one that came with somebody's index may always have.

    Args:
        base: The folder, with a slash at the end.
        path: Its path in the index.
        limit: The most bytes it may have.
    """
    parts = to_bytes(path).split(b"/")
    if not {b"", b".", b"..", *INTERNAL}.isdisjoint(parts):
        return Skipped(path, SkipReason.NOT_A_FILE, "not a path of this source")
    folder = base.rstrip(b"/")
    for part in parts[:-1]:
        folder += b"/" + part
        try:
            if stat.S_ISLNK(os.lstat(folder).st_mode):
                return Skipped(path, SkipReason.SYMLINK, "below one")
        except OSError as error:
            return reason_of(error, path)
    return read_file(folder + b"/" + parts[-1], path, limit)


def read_file(name: bytes, path: str, limit: int) -> tuple[bytes, os.stat_result, int] | Skipped:
    """The bytes of a regular file, never through a symbolic link and never waiting for a pipe.

    Args:
        name: Where it is on disk.
        path: Its path in the index, for the verdict.
        limit: The most bytes it may have.

    Returns:
        The bytes, its status and the clock (ns) from before they were read; or why there are none.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(name, flags | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        # A socket cannot be opened at all, and says so with an error of its own.
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):
            return Skipped(path, SkipReason.NOT_A_FILE, "socket")
        return reason_of(error, path)
    try:
        looked_ns = time.time_ns()
        status = os.fstat(descriptor)
        odd = not_a_file(status.st_mode, path)
        if odd is not None:
            return odd
        if status.st_size > limit:
            return oversize(path, status.st_size, limit)
        data = _read_all(descriptor, status.st_size, limit)
    except OSError as error:
        return reason_of(error, path)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        return oversize(path, len(data), limit)
    return data, status, looked_ns


def _read_all(descriptor: int, size: int, limit: int) -> bytes:
    """Everything up to one byte past the limit; a file may grow while it is read, and some say their size is 0."""
    blocks = []
    left = limit + 1
    while left > 0:
        block = os.read(descriptor, min(left, max(size + 1, 1 << 16)))
        if not block:
            break
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)

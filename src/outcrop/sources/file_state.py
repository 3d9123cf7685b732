"""Files on disk: their state, whether they changed since they were hashed, and their bytes."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass

from outcrop.core.model import FileState, Skipped, SkipReason
from outcrop.sources.paths import INTERNAL, to_bytes

# The content address of a file's bytes, lower-case hex.
Digest = Callable[[bytes], str]

# In :attr:`FileState.mtime_ns`: the file was written so recently that its time proves nothing.
UNTRUSTED = -1

# Clock ticks of file systems with fine and with coarse times (FAT, HFS+, some network drives), ns.
_FINE_NS = 50_000_000
_COARSE_NS = 2_000_000_000

_READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file, with its status and the clock (ns) from before they were read."""

    data: bytes
    status: os.stat_result
    clock_ns: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What is at a path: its item in the revision, the state behind a hash, or why there is none."""

    item: str | None
    state: FileState | None = None
    refusal: Skipped | None = None


def is_unchanged(known: FileState, status: os.stat_result) -> bool:
    """Whether the hash of a state still holds, judged without reading."""
    return (known.size, known.mtime_ns, known.inode) == (status.st_size, time_of(status), status.st_ino)


def time_of(status: os.stat_result) -> int:
    # The later of both times, so that restoring an old mtime shows too.
    return max(status.st_mtime_ns, status.st_ctime_ns)


def state_of(content: FileContent, digest: Digest) -> FileState:
    # A file may be written once more within the same tick of the file system's clock, and then look the same. So a file
    # that changed just before it was read is not trusted. A time far in the future is no sign of a recent write.
    changed = time_of(content.status)
    tick = _FINE_NS if changed % 1_000_000 else _COARSE_NS
    time_ns = UNTRUSTED if abs(content.clock_ns - changed) < tick else changed
    return FileState(content.status.st_size, time_ns, content.status.st_ino, digest(content.data))


def refuse_error(error: OSError, path: str) -> Skipped:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Skipped(path, SkipReason.VANISHED)
    if error.errno == errno.ELOOP:
        return Skipped(path, SkipReason.SYMLINK)
    return Skipped(path, SkipReason.UNREADABLE, error.strerror or type(error).__name__)


def refuse_status(status: os.stat_result, path: str, limit: int) -> Skipped | None:
    if stat.S_ISLNK(status.st_mode):
        return Skipped(path, SkipReason.SYMLINK)
    if not stat.S_ISREG(status.st_mode):
        names = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFDIR: "folder"}
        return Skipped(path, SkipReason.NOT_A_FILE, names.get(stat.S_IFMT(status.st_mode), "device"))
    return refuse_size(path, status.st_size, limit)


def refuse_size(path: str, size: int | None, limit: int) -> Skipped | None:
    return None if size is None or size <= limit else oversize(path, size, limit)


def oversize(path: str, size: int, limit: int) -> Skipped:
    return Skipped(path, SkipReason.OVERSIZE, f"{size} bytes, limit {limit}")


def read_inside(base: bytes, path: str, limit: int) -> FileContent | Skipped:
    """As :func:`read_file`, below the folder ``base`` (with a slash at the end), and never anything outside.

    A path that was listed once may lead elsewhere by now, and the path in an index of other people may always have.
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
            return refuse_error(error, path)
    return read_file(folder + b"/" + parts[-1], path, limit)


def read_file(name: bytes, path: str, limit: int) -> FileContent | Skipped:
    """Read a regular file of at most ``limit`` bytes, never through a symbolic link and without waiting for a pipe."""
    try:
        descriptor = os.open(name, _READ_FLAGS)
    except OSError as error:
        # A socket cannot be opened at all, and has an error of its own.
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):
            return Skipped(path, SkipReason.NOT_A_FILE, "socket")
        return refuse_error(error, path)
    try:
        clock_ns = time.time_ns()
        status = os.fstat(descriptor)
        refusal = refuse_status(status, path, limit)
        if refusal is not None:
            return refusal
        data = _read_all(descriptor, status.st_size, limit)
    except OSError as error:
        return refuse_error(error, path)
    finally:
        os.close(descriptor)
    return refuse_size(path, len(data), limit) or FileContent(data, status, clock_ns)


def _read_all(descriptor: int, size: int, limit: int) -> bytes:
    """Everything up to one byte past the limit; a file may grow while it is read, and some files report size 0."""
    blocks = []
    left = limit + 1
    while left > 0:
        block = os.read(descriptor, min(left, max(size + 1, 1 << 16)))
        if not block:
            break
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)

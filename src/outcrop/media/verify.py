"""Checking a downloaded asset against its manifest, before it is used."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from outcrop.app import index as app
from outcrop.app.index import Index
from outcrop.core.model import Manifest
from outcrop.core.reports import Progress
from outcrop.errors import FormatError, IntegrityError, UsageError
from outcrop.media.assets import Asset, find, list_media, local_copy, name_of
from outcrop.text import manifest

# Bytes hashed at a time: a film is never in memory.
BLOCK = 1 << 20

# Progress is counted in megabytes.
MEGA = 1_000_000

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a check."""

    file: str  # The asset, or its URI where it is not on this machine
    manifest: str | None
    ok: bool | None  # None where there is no file to check
    detail: str


def verify_media(
    file: str | os.PathLike[str],
    about: Manifest | str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] = ".",
    progress: Report | None = None,
) -> Manifest:
    """See that a downloaded asset is the one that its manifest names; returns the manifest.

    Args:
        about: Its manifest, or the path of that, as a hit has it; None to take the one of the repository that has the
            file's hash, or its name.
        progress: Takes how far the hashing is, in megabytes.

    Raises:
        IntegrityError: It is another file, or not whole.
        ManifestError: The manifest is broken.
        UsageError: No such file, or no manifest is about it.
    """
    file = Path(file)
    if not isinstance(about, Manifest):
        with app.open(directory) as index:
            if about is None:
                return match(list_media(index).assets, file, progress).manifest
            about = find(index, os.fspath(about))
    check(file, about, progress)
    return about


def verify_all(
    index: Index, items: Sequence[str], about: str | None = None, progress: Report | None = None
) -> list[Checked]:
    """Check files, or manifests (``….json``) whose asset is on this machine; without any, every manifest."""
    if about is not None and len(items) != 1:
        raise UsageError("a manifest is checked against one file", "Name the downloaded file")
    assets = list_media(index).assets
    if not items:
        return [_checked_copy(index, asset.path, asset.manifest, progress) for asset in assets]
    checked: list[Checked] = []
    for item in items:
        try:
            if about is not None:
                check(Path(item), find(index, about), progress)
                checked.append(Checked(item, about, True, ""))
            elif item.lower().endswith(".json"):
                checked.append(_checked_copy(index, item, find(index, item), progress))
            else:
                checked.append(Checked(item, match(assets, Path(item), progress).path, True, ""))
        except (FormatError, UsageError) as error:
            checked.append(Checked(item, about, False, str(error)))
    return checked


def _checked_copy(index: Index, path: str, one: Manifest, progress: Report | None) -> Checked:
    """The asset that lies where its URI says, if that is on this machine."""
    copy = local_copy(index, one)
    if copy is None:
        return Checked(one.uri, path, None, "download it, then: outcrop media verify FILE")
    try:
        check(copy, one, progress)
    except (FormatError, UsageError) as error:
        return Checked(str(copy), path, False, str(error))
    return Checked(str(copy), path, True, "")


def check(file: Path, one: Manifest, progress: Report | None = None) -> None:
    """Compare a file with its manifest; one of another size is not even read."""
    size = size_of(file)
    manifest.check_asset(one, *((size, "") if size != one.bytes else measure(file, progress)))


def match(assets: Sequence[Asset], file: Path, progress: Report | None = None) -> Asset:
    size = size_of(file)
    # A film whose size no manifest names is not read.
    sha3 = measure(file, progress)[1] if any(asset.manifest.bytes == size for asset in assets) else ""
    for asset in assets:
        if (asset.manifest.bytes, asset.manifest.sha3) == (size, sha3):
            return asset
    for asset in assets:
        if name_of(asset.manifest.uri) == file.name:
            try:
                manifest.check_asset(asset.manifest, size, sha3)
            except IntegrityError as error:
                error.what = f"{file.name} is not what {asset.path} names: {error.what}"
                raise
    raise UsageError(
        f"no manifest here is about {file.name}", "Name its manifest with --manifest, or see: outcrop media list"
    )


def measure(file: Path, progress: Report | None = None) -> tuple[int, str]:
    total = size_of(file)
    hasher = hashlib.sha3_256()
    size = 0
    with _reading(file), file.open("rb") as stream:
        while block := stream.read(BLOCK):
            hasher.update(block)
            size += len(block)
            if progress is not None:
                progress(Progress("hashing", size // MEGA, max(1, total // MEGA)))
    return size, hasher.hexdigest()


def read_whole(file: Path) -> bytes:
    with _reading(file):
        return file.read_bytes()


def size_of(file: Path) -> int:
    with _reading(file):
        status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{file} is not a file", "Name a file that can be read")
    return status.st_size


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}", "Name a file that can be read") from error

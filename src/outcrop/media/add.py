"""Writing the manifest of an asset. Nothing is ever downloaded for it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from mimetypes import MimeTypes
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from outcrop.app.index import Index
from outcrop.core.model import Manifest, SkipReason
from outcrop.errors import FormatError, ManifestError, SourceError, UsageError
from outcrop.media.assets import is_manifest_path, list_media, name_of, split
from outcrop.media.verify import Report, measure, read_whole, size_of
from outcrop.text import decoding, manifest
from outcrop.text.files import write_atomically
from outcrop.text.transcripts import is_silent

# What the root of a checkout holds, by type of source.
_MARKS = {"git": (".git",), "fossil": (".fslckout", "_FOSSIL_")}

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SHA3 = re.compile(r"[0-9a-fA-F]{64}")
# Types that Python's own table lacks in some version, or calls by an unregistered name.
_TYPES = {
    "mkv": "video/x-matroska", "ogv": "video/ogg", "m4v": "video/mp4", "webm": "video/webm", "mts": "video/mp2t",
    "mka": "audio/x-matroska", "m4a": "audio/mp4", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/opus",
    "flac": "audio/flac", "wav": "audio/wav", "aac": "audio/aac", "webp": "image/webp", "avif": "image/avif",
    "heic": "image/heic", "jxl": "image/jxl", "glb": "model/gltf-binary",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Added:
    """A manifest that was written, where, and what its author should know (empty: nothing)."""

    path: str
    manifest: Manifest
    remark: str


def add_media(
    index: Index,
    asset: str,
    text: Path,
    *,
    to: str | None = None,
    file: Path | None = None,
    mime: str | None = None,
    sha3: str | None = None,
    size: int | None = None,
    replace: bool = False,
    progress: Report | None = None,
) -> Added:
    """Write the manifest of an asset (a file, or a URI) into the working tree. It is found once it is indexed.

    Args:
        to: Where the manifest is written, below ``media``; None for beside the transcript, or ``media`` itself.
        file: A local copy of what the URI names, to take hash and size from.
        mime: None to derive it from the name.
        replace: Whether a manifest that is there already gives way.
    """
    root = _working_folder(index)
    inside = _inside(root, text, "the transcript")
    _see_that_it_is_text(text, index.settings.max_bytes)
    uri, copy, remark = _place_of(root, asset)
    path = _target(root, to, uri, inside)
    place = root / path
    if os.path.lexists(place) and not replace:
        raise UsageError(f"{path} is there already", "Name another place with --to, or replace it with --force")
    copy = copy or file
    if copy is not None:
        size, sha3 = _as_said(copy, measure(copy, progress), size, sha3)
    if size is None or sha3 is None or not _SHA3.fullmatch(sha3):
        raise UsageError(
            f"{asset} is elsewhere, and Outcrop downloads nothing",
            "Give a local copy with --file, or both its --sha3 (64 hexadecimal digits) and its --bytes",
        )
    one = Manifest(uri, sha3.lower(), mime or mime_of(uri), size, inside)
    try:
        made = manifest.serialize_manifest(one)
    except ManifestError as error:
        raise UsageError(
            f"no manifest can be made of that: {error.what}", "See docs/media.md for what one holds"
        ) from error
    _write(place, made)
    return Added(path, one, "; ".join(filter(None, (remark, _left_out(index, path)))))


def _write(place: Path, text: str) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, text.encode())
    except OSError as error:
        raise SourceError(
            f"{place} cannot be written: {error.strerror or error}", "Check the disk and the permissions of the folder"
        ) from error


def _as_said(copy: Path, measured: tuple[int, str], size: int | None, sha3: str | None) -> tuple[int, str]:
    """What was measured, unless its author said something else."""
    if (size is not None and size != measured[0]) or (sha3 is not None and sha3.lower() != measured[1]):
        raise UsageError(
            f"{copy} has {measured[0]:,} bytes and the SHA3-256 {measured[1]}, not what was said",
            "Give the right file, or leave --sha3 and --bytes out",
        )
    return measured


def _left_out(index: Index, path: str) -> str:
    """Why the manifest will not be indexed as things are, or empty."""
    if index.source.type == "fossil":
        return "it is indexed once it and its transcript are checked in"
    there = list_media(index)
    if any(asset.path == path for asset in there.assets):
        return ""
    why = {item.path: item.detail or item.reason for item in there.skipped}
    return f"it will not be indexed: {why.get(path, 'ignored, or not in what is indexed')}"


def mime_of(uri: str) -> str:
    name = name_of(uri)
    own = _TYPES.get(name.rpartition(".")[2].lower())
    return own or MimeTypes(filenames=()).guess_type(name)[0] or "application/octet-stream"


def _working_folder(index: Index) -> Path:
    root = index.source.root
    marks = _MARKS.get(index.source.type, ())
    if marks and not any((root / mark).exists() for mark in marks):
        raise UsageError(f"{root} has no checked-out files to put a manifest beside", "Run it in a checkout")
    return root


def _inside(root: Path, path: Path, what: str) -> str:
    whole = path.resolve()
    if not whole.is_relative_to(root.resolve()):
        raise UsageError(
            f"{what} is outside of {root}: {path}", "Copy it into the repository first, for example to media/"
        )
    return whole.relative_to(root.resolve()).as_posix()


def _see_that_it_is_text(path: Path, limit: int) -> None:
    if (size := size_of(path)) > limit:
        raise FormatError(
            f"{path} has {size:,} bytes, more than the {limit:,} of a file that is indexed", "See the setting max_bytes"
        )
    found = decoding.refuse_name(path.name) or decoding.decode(read_whole(path), path.name, by_hand=True)
    if isinstance(found, SkipReason):
        raise FormatError(f"{path} is no transcript: {found}", "Give plain text, WebVTT or SubRip")
    if is_silent(found):
        raise FormatError(f"{path} is empty", "Give plain text, WebVTT or SubRip")


def _place_of(root: Path, asset: str) -> tuple[str, Path | None, str]:
    """The URI of an asset, where it is on this machine, and what its author should know."""
    file = Path(asset)
    if not file.exists() and _URI.match(asset):
        parts = split(asset)
        local = parts.scheme.lower() == "file" and parts.netloc in ("", "localhost")
        return asset, Path(unquote(parts.path)) if local else None, ""
    size_of(file)
    whole = file.resolve()
    if whole.is_relative_to(root.resolve()):
        return quote(os.fsencode(whole.relative_to(root.resolve()).as_posix())), file, ""
    return whole.as_uri(), file, "its URI names a file of this machine, which is of no use on another"


def _target(root: Path, to: str | None, uri: str, text: str) -> str:
    if to is None:
        folder = text.rpartition("/")[0]
        below = folder.lower() == "media" or folder.lower().startswith("media/")
        stem = PurePosixPath(name_of(uri)).stem or PurePosixPath(text).stem
        to = f"{folder if below else 'media'}/{stem}.json"
    path = _inside(root, root / to, "the manifest")
    if not is_manifest_path(path):
        raise UsageError(
            f"{to} is no place for a manifest", "Name a .json file below media, at the root of the repository"
        )
    return path

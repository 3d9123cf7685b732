"""The transfer format: VE01 bytes ↔ records, and ``vec/space.json``, which names their space. See docs/formats.md.

A blob holds the chunks of one artifact: the header ``VE01``, then per chunk ``seq u16 · proj_len u16 · project UTF-8 ·
text_len u32 · text UTF-8 · vector float32[dim]``, all little-endian, vectors L2-normalised. Older tools wrote the same
records without the header and without normalising. The blob names neither model nor dim; ``vec/space.json`` does.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outcrop.core import vectors
from outcrop.core.model import Skipped, SkipReason, Space
from outcrop.core.protocols import Vector
from outcrop.errors import BadEmbedding, BlobError

HEADER = b"VE01"
FORMAT = "VE01"

# Every name of a transfer store begins so.
FOLDER = "vec/"

NOTE = "vec/space.json"

# How far the length of a stored vector may be from 1.
TOLERANCE = 1e-3

# No embedder makes longer vectors; bounds the search for an unknown dim.
LARGEST_DIM = 1 << 16

MOST_SEQ = MOST_PROJECT = 0xFFFF
MOST_TEXT = 0xFFFF_FFFF

MEMBERS = "vec/members.json"

# A larger file of a transfer store is not read: some 100,000 passages of one artifact.
MOST_BYTES = 256 << 20

# The same for the files that are JSON, which takes many times its length in memory: places of 600,000 passages.
_MOST_JSON = {NOTE: 64 << 10, MEMBERS: 64 << 20}

# Blobs that are held in memory at once, where one by one is not enough.
MOST_HELD = 1 << 30

_HEAD = struct.Struct("<HH")
_LENGTH = struct.Struct("<I")
_BLOB_NAME = re.compile(r"vec/([0-9a-f]{40,128})\.bin")
_ANY_NAME = re.compile(r"vec/\w[\w.-]*", re.ASCII)
_OLD_FORM = "Blobs of older tools can be brought up to date with: outcrop normalize"


@dataclass(frozen=True, slots=True, eq=False)
class BlobRecord:
    """One chunk as it travels, with its ordinal and its vector (float32 ``[dim]``, L2-normalised).

    The project is the slug of the repository it came from; empty for the one that holds the blob.
    """

    seq: int
    project: str
    text: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class SpaceNote:
    """What ``space.json`` says of all blobs beside it; chunker and revision of the source are empty where unknown."""

    space: Space
    chunker: str = ""
    revision: str = ""


def name_of(artifact: str) -> str:
    return f"{FOLDER}{artifact}.bin"


def hash_of(name: str) -> str | None:
    """The artifact that a blob of this name belongs to, or None for any other name."""
    found = _BLOB_NAME.fullmatch(name)
    return found[1] if found else None


def hashes_of(names: Iterable[str]) -> set[str]:
    return {found for name in names if (found := hash_of(name)) is not None}


def is_name(name: str) -> bool:
    return _ANY_NAME.fullmatch(name) is not None


def check_names(names: Iterable[str]) -> None:
    for name in names:
        if not is_name(name):
            raise BlobError(f"{name!r} is no name of the transfer store")


def most_bytes(name: str) -> int:
    """The most bytes of a file of this name; more are not read."""
    return _MOST_JSON.get(name, MOST_BYTES)


def oversize(name: str) -> Skipped:
    return Skipped(name, SkipReason.OVERSIZE, f"it has more than {most_bytes(name) >> 10:,} KiB")


def encode(records: Iterable[BlobRecord], dim: int) -> bytes:
    parts = [HEADER]
    keys: set[tuple[str, int]] = set()
    for record in records:
        where = f"record {record.seq}"
        _check_repeated(keys, record.project, record.seq)
        project = _to_utf8(record.project, "project", where)
        text = _to_utf8(record.text, "text", where)
        for what, value, limit in (
            ("seq", record.seq, MOST_SEQ),
            ("length of the project", len(project), MOST_PROJECT),
            ("length of the text", len(text), MOST_TEXT),
        ):
            if not 0 <= value <= limit:
                raise BlobError(f"{where}: the {what} is {value}, and the format ends at {limit}")
        if record.vector.shape != (dim,):
            raise BlobError(f"{where}: the vector has shape {record.vector.shape}, not {dim} components")
        _check_length(record.vector, where)
        parts += (_HEAD.pack(record.seq, len(project)), project, _LENGTH.pack(len(text)), text)
        parts.append(vectors.to_bytes(record.vector))
    return b"".join(parts)


def decode(data: bytes, dim: int, *, normalise: bool = False) -> list[BlobRecord]:
    """The records of a blob, with or without its header, in their order.

    With ``normalise``, vectors of any length are accepted and brought to length 1.
    """
    if not data:
        raise BlobError("the blob is empty")
    if not 1 <= dim <= LARGEST_DIM:
        raise BlobError(f"a dim of {dim} is impossible")
    records = _records(data, dim)
    if normalise and records:
        try:
            matrix = vectors.normalise(np.stack([record.vector for record in records]))
        except BadEmbedding as error:
            raise BlobError(error.what) from error
        records = [replace(record, vector=row) for record, row in zip(records, matrix, strict=True)]
    for number, record in enumerate(records):
        _check_length(record.vector, f"record {number}")
    return records


def infer_dim(blobs: Sequence[bytes]) -> int:
    """The dim of blobs that come without their note: the only one with which every one of them parses whole.

    A few short blobs can be read in more than one way. Then it is the only dim by which all vectors have length 1.
    """
    # The short ones first: they leave few dims to try on the long ones.
    blobs = sorted((data for data in blobs if len(data) > _start(data)), key=len)
    candidates: Collection[int] = range(1, min(len(blobs[0]) // 4, LARGEST_DIM) + 1) if blobs else ()
    for data in blobs:
        candidates = [dim for dim in candidates if _fits(data, dim) and _parses(data, dim)]
    if len(candidates) > 1:
        units = [
            dim
            for dim in candidates
            if all(abs(_length(record.vector) - 1) <= TOLERANCE for data in blobs for record in _records(data, dim))
        ]
        candidates = units if len(units) == 1 else candidates
    if len(candidates) != 1:
        found = f"several fit: {', '.join(map(str, list(candidates)[:5]))}" if candidates else "none fits"
        raise BlobError(f"the blobs do not show how long their vectors are ({found})", "Name the model and its dim")
    return next(iter(candidates))


def encode_note(note: SpaceNote) -> bytes:
    values = {"format": FORMAT, "model": note.space.model, "dim": note.space.dim, "chunker": note.chunker}
    if note.revision:
        values["revision"] = note.revision
    return (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode()


def decode_note(data: bytes) -> SpaceNote:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BlobError(f"{NOTE} is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise BlobError(f"{NOTE} is not a JSON object")
    model, dim, form = values.get("model"), values.get("dim"), values.get("format", FORMAT)
    if not isinstance(model, str) or not model:
        raise BlobError(f"{NOTE} names no model")
    if not isinstance(dim, int) or isinstance(dim, bool) or not 1 <= dim <= LARGEST_DIM:
        raise BlobError(f"{NOTE} names no possible dim: {dim!r:.40}")
    if form != FORMAT:
        raise BlobError(f"{NOTE} is of format {form!r:.40}, and only {FORMAT} is known", "Update Outcrop")
    return SpaceNote(Space(model, dim), *(_text_or_empty(values.get(key)) for key in ("chunker", "revision")))


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _records(data: bytes, dim: int) -> list[BlobRecord]:
    """Every record, with vectors of any length; they fill the blob to its last byte."""
    records: list[BlobRecord] = []
    keys: set[tuple[str, int]] = set()
    at, end = _start(data), len(data)
    while at < end:
        where = f"record {len(records)}"
        if at + _HEAD.size > end:
            raise BlobError(f"{where} is truncated: {end - at} bytes are left over")
        seq, length = _HEAD.unpack_from(data, at)
        project = slice(at + _HEAD.size, at + _HEAD.size + length)
        if project.stop + _LENGTH.size > end:
            raise BlobError(f"{where} is truncated in its project")
        (length,) = _LENGTH.unpack_from(data, project.stop)
        text = slice(project.stop + _LENGTH.size, project.stop + _LENGTH.size + length)
        at = text.stop + 4 * dim
        if at > end:
            part = "text" if text.stop > end else f"vector of {dim} components"
            raise BlobError(f"{where} is truncated in its {part}")
        name = _from_utf8(data[project], "project", where)
        _check_repeated(keys, name, seq)
        vector = vectors.from_bytes(data[text.stop : at], dim)
        records.append(BlobRecord(seq, name, _from_utf8(data[text], "text", where), vector))
    return records


def _start(data: bytes) -> int:
    return len(HEADER) if data.startswith(HEADER) else 0


def _fits(data: bytes, dim: int) -> bool:
    """Whether records of this dim end where the blob ends; asked of thousands of dims, so it looks at nothing else."""
    at, end = _start(data), len(data)
    while at < end:
        at += _HEAD.size + int.from_bytes(data[at + 2 : at + 4], "little")
        at += _LENGTH.size + int.from_bytes(data[at : at + 4], "little") + 4 * dim
    return at == end


def _parses(data: bytes, dim: int) -> bool:
    """Whether the records hold text and numbers, each under a key of its own."""
    try:
        return all(np.isfinite(record.vector).all() for record in _records(data, dim))
    except BlobError:
        return False


def _check_length(vector: Vector, where: str) -> None:
    length = _length(vector)
    if not np.isfinite(length):
        raise BlobError(f"{where}: the vector holds NaN or infinity")
    if abs(length - 1) > TOLERANCE:
        raise BlobError(f"{where}: the vector has length {length:.4g}, not 1", _OLD_FORM)


def _length(vector: Vector) -> float:
    # In float64, because the square of a float32 may be too large for one. A signalling NaN would print a warning.
    with np.errstate(invalid="ignore"):
        return float(np.sqrt(np.square(vector, dtype=np.float64).sum()))


def _check_repeated(keys: set[tuple[str, int]], project: str, seq: int) -> None:
    if (project, seq) in keys:
        raise BlobError(f"record {seq} of project {project!r} is there twice")
    keys.add((project, seq))


def _to_utf8(text: str, what: str, where: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BlobError(f"{where}: the {what} is not valid text ({error.reason})") from error


def _from_utf8(data: bytes, what: str, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BlobError(f"{where}: the {what} is not UTF-8 ({error.reason} at byte {error.start})") from error

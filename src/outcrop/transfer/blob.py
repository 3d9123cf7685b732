"""The transfer format: VE01 bytes ↔ records, and the note that says which space they are of. SPEC section 6.

A blob holds the chunks of one artifact: the header ``VE01``, then per chunk ``seq u16 · proj_len u16 · project UTF-8 ·
text_len u32 · text UTF-8 · vector float32[dim]``, all little-endian, vectors L2-normalised. Older tools wrote the same
records without the header and without normalising. The blob names neither model nor dim; ``vec/space.json`` does.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outcrop.core import vectors
from outcrop.core.model import Space
from outcrop.core.protocols import Vector
from outcrop.errors import BadEmbedding, BlobError

HEADER = b"VE01"
# What the note calls this format.
FORMAT = "VE01"

# Under which every name of the transfer store stands.
FOLDER = "vec/"

# The name of the note.
NOTE = "vec/space.json"

# How far the length of a stored vector may be from 1.
TOLERANCE = 1e-3

# No embedder makes longer vectors; bounds the search for an unknown dim.
LARGEST_DIM = 1 << 16

MOST_SEQ = MOST_PROJECT = 0xFFFF
MOST_TEXT = 0xFFFF_FFFF

_HEAD = struct.Struct("<HH")
_LENGTH = struct.Struct("<I")
_NAME = re.compile(r"vec/([0-9a-f]{40,128})\.bin")
_OLD_FORM = "Blobs of older tools can be brought up to date with: outcrop normalize"


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One chunk as it travels.

    Attributes:
        seq: Ordinal within the artifact, 0 to 65535.
        project: Slug of the repository it came from; empty for the one that holds the blob.
        text: The chunk.
        vector: float32 ``[dim]``, L2-normalised.
    """

    seq: int
    project: str
    text: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class Blob:
    """A decoded blob.

    Attributes:
        records: Its chunks, in the order in which they stand.
        dim: Components of each vector; 0 when there are no records and none was given.
        headerless: Whether it is of the older form, without ``VE01``.
    """

    records: tuple[Record, ...]
    dim: int
    headerless: bool


@dataclass(frozen=True, slots=True)
class Note:
    """What ``space.json`` says of all blobs beside it.

    Attributes:
        space: Model id and dim of the vectors.
        chunker: Version of the chunker that made the texts, empty where it is not said.
        format: Of the blobs.
        revision: What the blobs are current to, as their source names it; empty where it is not said.
    """

    space: Space
    chunker: str = ""
    format: str = FORMAT
    revision: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    """Where the parts of one record lie."""

    seq: int
    project: slice
    text: slice
    vector: slice


def name_of(hash: str) -> str:
    """The name of an artifact's blob: ``vec/HASH.bin``."""
    return f"{FOLDER}{hash}.bin"


def hash_of(name: str) -> str | None:
    """The artifact that a blob of this name belongs to, or None for any other name."""
    found = _NAME.fullmatch(name)
    return found[1] if found else None


def encode(records: Iterable[Record], dim: int) -> bytes:
    """A blob of these records.

    Args:
        records: The chunks of one artifact.
        dim: Components that each vector must have.
    """
    parts = [HEADER]
    keys: set[tuple[str, int]] = set()
    for record in records:
        where = f"record {record.seq}"
        _refuse_repeated(keys, record.project, record.seq)
        project = _to_utf8(record.project, "project", where)
        text = _to_utf8(record.text, "text", where)
        _refuse_over("seq", record.seq, MOST_SEQ, where)
        _refuse_over("length of the project", len(project), MOST_PROJECT, where)
        _refuse_over("length of the text", len(text), MOST_TEXT, where)
        if record.vector.shape != (dim,):
            raise BlobError(f"{where}: the vector has shape {record.vector.shape}, not {dim} components")
        _refuse_unfit(record.vector, where)
        parts += (_HEAD.pack(record.seq, len(project)), project, _LENGTH.pack(len(text)), text)
        parts.append(vectors.to_bytes(record.vector))
    return b"".join(parts)


def decode(data: bytes, dim: int | None = None, *, normalise: bool = False) -> Blob:
    """The records of a blob, with or without its header.

    Args:
        data: The whole blob.
        dim: Components of its vectors; None to find the only number with which it parses whole.
        normalise: Accept vectors of any length and bring them to length 1.
    """
    headerless = not data.startswith(HEADER)
    if headerless and not data:
        raise BlobError("the blob is empty")
    start = _start(data)
    if dim is None:
        if start == len(data):
            return Blob((), 0, headerless)
        dim = infer_dim([data])
    if not 1 <= dim <= LARGEST_DIM:
        raise BlobError(f"a dim of {dim} is impossible")
    keys: set[tuple[str, int]] = set()
    records: list[Record] = []
    for number, span in enumerate(_spans(data, start, dim)):
        where = f"record {number}"
        vector = vectors.from_bytes(data[span.vector], dim)
        project = _from_utf8(data[span.project], "project", where)
        _refuse_repeated(keys, project, span.seq)
        records.append(Record(span.seq, project, _from_utf8(data[span.text], "text", where), vector))
    blob = Blob(tuple(records), dim, headerless)
    if normalise:
        return _normalised(blob)
    for number, record in enumerate(records):
        _refuse_unfit(record.vector, f"record {number}")
    return blob


def infer_dim(blobs: Sequence[bytes]) -> int:
    """The dim of blobs that come without their note: the only one with which every one of them parses whole.

    A few short blobs can be read in more than one way. Then that one is taken, if it is alone, by which all vectors
    are of unit length.

    Args:
        blobs: All of them, or many; those without records say nothing.
    """
    candidates: Sequence[int] | None = None
    for data in blobs:
        start = _start(data)
        if start == len(data):
            continue
        if candidates is None:
            candidates = range(1, min(len(data) // 4, LARGEST_DIM) + 1)
        candidates = [dim for dim in candidates if _fits(data, start, dim) and _parses(data, start, dim)]
        if not candidates:
            break
    if candidates and len(candidates) > 1:
        units = [dim for dim in candidates if all(_holds_units(data, dim) for data in blobs)]
        candidates = units if len(units) == 1 else candidates
    if candidates and len(candidates) == 1:
        return candidates[0]
    words = "none fits" if not candidates else "several fit: " + ", ".join(map(str, candidates[:5]))
    raise BlobError(f"the blobs do not tell how long their vectors are ({words})", "Name the model and its dim")


def encode_note(note: Note) -> bytes:
    """``space.json``."""
    values = {"format": note.format, "model": note.space.model, "dim": note.space.dim, "chunker": note.chunker}
    if note.revision:
        values["revision"] = note.revision
    return (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode()


def decode_note(data: bytes) -> Note:
    """What ``space.json`` says; keys that a later version adds are passed over."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BlobError(f"{NOTE} is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise BlobError(f"{NOTE} is not a JSON object")
    model, dim, format = values.get("model"), values.get("dim"), values.get("format", FORMAT)
    if not isinstance(model, str) or not model:
        raise BlobError(f"{NOTE} names no model")
    if not isinstance(dim, int) or isinstance(dim, bool) or not 1 <= dim <= LARGEST_DIM:
        raise BlobError(f"{NOTE} names no possible dim: {dim!r}")
    if format != FORMAT:
        raise BlobError(f"{NOTE} says format {format!r}, and only {FORMAT} is known here", "Update Outcrop")
    return Note(Space(model, dim), str(values.get("chunker", "")), FORMAT, str(values.get("revision", "")))


def _spans(data: bytes, start: int, dim: int) -> Iterator[_Span]:
    """Each record's parts; they fill the blob to its last byte."""
    at, end, number = start, len(data), 0
    while at < end:
        where = f"record {number}"
        if at + _HEAD.size > end:
            raise BlobError(f"{where} is truncated: {end - at} bytes are left over")
        seq, length = _HEAD.unpack_from(data, at)
        project = slice(at + _HEAD.size, at + _HEAD.size + length)
        if project.stop + _LENGTH.size > end:
            raise BlobError(f"{where} is truncated in its project")
        (length,) = _LENGTH.unpack_from(data, project.stop)
        text = slice(project.stop + _LENGTH.size, project.stop + _LENGTH.size + length)
        vector = slice(text.stop, text.stop + 4 * dim)
        if vector.stop > end:
            raise BlobError(
                f"{where} is truncated in its {'text' if text.stop > end else f'vector of {dim} components'}"
            )
        yield _Span(seq, project, text, vector)
        at, number = vector.stop, number + 1


def _start(data: bytes) -> int:
    return len(HEADER) if data.startswith(HEADER) else 0


def _fits(data: bytes, at: int, dim: int) -> bool:
    """Whether records of this dim end where the blob ends; asked of thousands of dims, so nothing else is looked at."""
    end = len(data)
    while at < end:
        at += _HEAD.size + int.from_bytes(data[at + 2 : at + 4], "little")
        at += _LENGTH.size + int.from_bytes(data[at : at + 4], "little") + 4 * dim
    return at == end


def _parses(data: bytes, start: int, dim: int) -> bool:
    """Whether the records hold text and numbers, each under a key of its own."""
    keys: set[tuple[str, int]] = set()
    try:
        for span in _spans(data, start, dim):
            _refuse_repeated(keys, data[span.project].decode("utf-8"), span.seq)
            data[span.text].decode("utf-8")
            if not np.isfinite(np.frombuffer(data[span.vector], vectors.ON_DISK)).all():
                return False
    except (BlobError, UnicodeDecodeError):
        return False
    return True


def _holds_units(data: bytes, dim: int) -> bool:
    found = (vectors.from_bytes(data[span.vector], dim) for span in _spans(data, _start(data), dim))
    return all(abs(_length(vector) - 1) <= TOLERANCE for vector in found)


def _normalised(blob: Blob) -> Blob:
    if not blob.records:
        return blob
    try:
        matrix = vectors.normalise(np.stack([record.vector for record in blob.records]))
    except BadEmbedding as error:
        raise BlobError(error.what) from error
    return replace(
        blob,
        records=tuple(replace(record, vector=row) for record, row in zip(blob.records, matrix, strict=True)),
    )


def _refuse_unfit(vector: Vector, where: str) -> None:
    length = _length(vector)
    if not np.isfinite(length):
        raise BlobError(f"{where}: the vector holds NaN or infinity")
    if abs(length - 1) > TOLERANCE:
        raise BlobError(f"{where}: the vector has length {length:.4g}, not 1", _OLD_FORM)


def _length(vector: Vector) -> float:
    # In float64, because the square of a float32 may be too large for one.
    return float(np.sqrt(np.square(vector, dtype=np.float64).sum()))


def _refuse_over(what: str, value: int, limit: int, where: str) -> None:
    if not 0 <= value <= limit:
        raise BlobError(f"{where}: the {what} is {value}, and the format ends at {limit}")


def _refuse_repeated(keys: set[tuple[str, int]], project: str, seq: int) -> None:
    if (project, seq) in keys:
        raise BlobError(f"record {seq} of project {project!r} stands there twice")
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

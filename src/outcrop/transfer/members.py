"""``vec/members.json``: where the artifacts of an export are, so that it can be read without its source.

The blobs beside it have texts and vectors. Here is the rest: path and kind of each artifact, and for each passage its
lines and its name. docs/formats.md describes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from outcrop.core.model import Chunk, Kind, MediaNote, Part, Skipped, SkipReason
from outcrop.errors import BlobError
from outcrop.transfer import blob

NAME = blob.MEMBERS

# Changes when a reader of an earlier version would misunderstand the file; keys may be added without.
FORMAT = 1

MOST_LINES = 1 << 31

# Bytes of an artifact that names itself and a place.
SHORTEST_ARTIFACT = 64

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Location:
    """One place of an artifact, or of a part of it."""

    path: str | None
    kind: Kind
    part: Part = Part.WHOLE


@dataclass(frozen=True, slots=True)
class ExportedArtifact:
    """What the file says of one artifact: its passages in the order of ``seq``, with empty texts (see its blob)."""

    hash: str
    locations: Sequence[Location]
    chunks: Sequence[Chunk]
    media: MediaNote | None = None


@dataclass(frozen=True, slots=True)
class MembersFile:
    """The whole file: type, slug and revision of the source, its artifacts by hash, and entries that were refused."""

    source: str
    project: str
    revision: str
    artifacts: Mapping[str, ExportedArtifact]
    refused: Sequence[Skipped] = ()


def encode(members: MembersFile) -> bytes:
    """The file, an artifact a line, in the order of their hashes."""
    head = {"format": FORMAT, "source": members.source, "project": members.project, "revision": members.revision}
    lines = [json.dumps(_values(artifact)) for _, artifact in sorted(members.artifacts.items())]
    return (json.dumps(head)[:-1] + ', "artifacts": [\n' + ",\n".join(lines) + "\n]}\n").encode()


def decode(data: bytes) -> MembersFile:
    """What the file says. An entry that makes no sense is refused alone."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BlobError(f"{NAME} is not JSON ({error})") from error
    if not isinstance(values, dict) or not isinstance(values.get("artifacts"), list):
        raise BlobError(f"{NAME} does not list artifacts")
    if values.get("format") != FORMAT:
        raise BlobError(
            f"{NAME} is of format {_shown(values.get('format'))}, and only {FORMAT} is known", "Update Outcrop"
        )
    if len(values["artifacts"]) > len(data) // SHORTEST_ARTIFACT:
        raise BlobError(f"{NAME} lists {len(values['artifacts']):,} artifacts in {len(data):,} bytes, which is too few")
    found: dict[str, ExportedArtifact] = {}
    refused: list[Skipped] = []
    for number, entry in enumerate(values["artifacts"]):
        try:
            artifact = _artifact(entry)
            found[artifact.hash] = artifact
        # RecursionError: the message of another error shows the value, however deep it is.
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            name = entry.get("hash") if isinstance(entry, dict) else None
            where = name if isinstance(name, str) and blob.hash_of(blob.name_of(name)) else f"artifact {number}"
            refused.append(Skipped(f"{NAME}: {where}", SkipReason.BROKEN, f"it makes no sense ({error!r:.100})"))
    source, project, revision = (_optional(_text, values.get(key)) or "" for key in ("source", "project", "revision"))
    return MembersFile(source, project, revision, found, tuple(refused))


def _values(artifact: ExportedArtifact) -> dict[str, Any]:
    values: dict[str, Any] = {
        "hash": artifact.hash,
        "at": [
            {"path": item.path, "kind": item.kind} | ({"part": item.part} if item.part else {})
            for item in artifact.locations
        ],
        "chunks": [_chunk_values(chunk) for chunk in artifact.chunks],
    }
    if artifact.media is not None:
        values["media"] = {"uri": artifact.media.uri, "transcript": artifact.media.transcript}
    return values


def _chunk_values(chunk: Chunk) -> dict[str, Any]:
    optional = {
        "name": chunk.name,
        "part": chunk.part or None,
        "cell": chunk.cell,
        "cell_id": chunk.cell_id,
        "seconds": chunk.seconds,
    }
    return {"seq": chunk.seq, "lines": [chunk.first_line, chunk.last_line]} | {
        key: value for key, value in optional.items() if value is not None
    }


def _artifact(values: dict[str, Any]) -> ExportedArtifact:
    locations = tuple(
        Location(_optional(_path, item["path"]), Kind(item["kind"]), Part(item.get("part", "")))
        for item in values["at"]
    )
    if not locations:
        raise ValueError("it is nowhere")
    chunks = sorted(map(_chunk, values["chunks"]), key=lambda chunk: chunk.seq)
    if len({chunk.seq for chunk in chunks}) < len(chunks):
        raise ValueError("one passage is there twice")
    media = _optional(lambda note: MediaNote(_text(note["uri"]), _text(note["transcript"])), values.get("media"))
    return ExportedArtifact(_text(values["hash"]), locations, tuple(chunks), media)


def _chunk(values: dict[str, Any]) -> Chunk:
    first, last = (_number(line) for line in values["lines"])
    return Chunk(
        seq=_number(values["seq"]),
        text="",
        start=0,
        end=0,
        first_line=max(1, first),
        last_line=max(1, first, last),
        name=_optional(_text, values.get("name")),
        part=Part(values.get("part", "")),
        cell=_optional(_number, values.get("cell")),
        cell_id=_optional(_text, values.get("cell_id")),
        seconds=_optional(lambda pair: (_second(pair[0]), _second(pair[1])), values.get("seconds")),
    )


def _optional(read: Callable[[Any], Value], value: Any) -> Value | None:
    return None if value is None else read(value)


def _path(value: object) -> str:
    path = _text(value)
    if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise ValueError(f"{path!r} is no path inside a repository")
    return path


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{_shown(value)} is no text")
    # Half of a character (a lone surrogate) is no text, and no index takes it.
    value.encode()
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MOST_LINES:
        raise ValueError(f"{_shown(value)} is no number of a line")
    return value


def _second(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{_shown(value)} is no time")
    return float(value)


def _shown(value: object) -> str:
    """A value in a message; of lists and objects, which may be of any size, the type alone."""
    return repr(value)[:40] if isinstance(value, str | int | float | None) else type(value).__name__

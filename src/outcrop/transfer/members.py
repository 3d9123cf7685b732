"""``vec/members.json``: where the artifacts of an export stand, so that it can be read without its source.

The blobs beside it have texts and vectors. Here is the rest: path and kind of each artifact, and for each passage its
lines and its name. docs/formats.md describes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outcrop.core.model import Chunk, Kind, MediaNote, Part, Skipped, SkipReason
from outcrop.errors import BlobError

NAME = "vec/members.json"

# Raised when a reader of an earlier version would misunderstand it; keys may be added without.
FORMAT = 1

MOST_LINES = 1 << 31


@dataclass(frozen=True, slots=True)
class Location:
    """One place at which an artifact, or a part of it, stands."""

    path: str | None
    kind: Kind
    part: Part = Part.WHOLE


@dataclass(frozen=True, slots=True)
class Listed:
    """What is said of one artifact.

    Attributes:
        hash: Its content address.
        locations: Where it stands; one at least.
        chunks: Its passages in the order of ``seq``, with empty texts: these are in its blob.
        media: Of a media manifest: where its asset is, and what was read for it.
    """

    hash: str
    locations: Sequence[Location]
    chunks: Sequence[Chunk]
    media: MediaNote | None = None


@dataclass(frozen=True, slots=True)
class Members:
    """The whole file.

    Attributes:
        source: ``folder``, ``git`` or ``fossil``.
        project: Slug of the repository that was exported.
        revision: What the export is current to, as its source names it.
        artifacts: By hash.
        refused: Entries that cannot be used, and why.
    """

    source: str
    project: str
    revision: str
    artifacts: Mapping[str, Listed]
    refused: Sequence[Skipped] = ()


def encode(members: Members) -> bytes:
    """The file, an artifact a line, in the order of their hashes."""
    head = {
        "format": FORMAT,
        "source": members.source,
        "project": members.project,
        "revision": members.revision,
    }
    lines = [json.dumps(_values(members.artifacts[hash])) for hash in sorted(members.artifacts)]
    return (json.dumps(head)[:-1] + ', "artifacts": [\n' + ",\n".join(lines) + "\n]}\n").encode()


def decode(data: bytes) -> Members:
    """What the file says. An entry that makes no sense is refused alone."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BlobError(f"{NAME} is not JSON ({error})") from error
    if not isinstance(values, dict) or not isinstance(values.get("artifacts"), list):
        raise BlobError(f"{NAME} does not list artifacts")
    if values.get("format") != FORMAT:
        raise BlobError(f"{NAME} is of format {values.get('format')!r}, and only {FORMAT} is known", "Update Outcrop")
    found: dict[str, Listed] = {}
    refused: list[Skipped] = []
    for number, entry in enumerate(values["artifacts"]):
        try:
            listed = _listed(entry)
            found[listed.hash] = listed
        except (LookupError, TypeError, ValueError) as error:
            hash = entry.get("hash") if isinstance(entry, dict) else None
            where = hash if isinstance(hash, str) else f"artifact {number}"
            refused.append(Skipped(f"{NAME}: {where}", SkipReason.BROKEN, f"it makes no sense ({error!r:.100})"))
    text = {key: str(values.get(key, "")) for key in ("source", "project", "revision")}
    return Members(text["source"], text["project"], text["revision"], found, tuple(refused))


def _values(listed: Listed) -> dict[str, Any]:
    values: dict[str, Any] = {
        "hash": listed.hash,
        "at": [
            {"path": item.path, "kind": item.kind} | ({"part": item.part} if item.part else {})
            for item in listed.locations
        ],
        "chunks": [_chunk_values(chunk) for chunk in listed.chunks],
    }
    if listed.media is not None:
        values["media"] = {"uri": listed.media.uri, "transcript": listed.media.transcript}
    return values


def _chunk_values(chunk: Chunk) -> dict[str, Any]:
    values: dict[str, Any] = {"seq": chunk.seq, "lines": [chunk.first_line, chunk.last_line]}
    if chunk.name is not None:
        values["name"] = chunk.name
    if chunk.part:
        values["part"] = chunk.part
    if chunk.cell is not None:
        values["cell"] = chunk.cell
    if chunk.cell_id is not None:
        values["cell_id"] = chunk.cell_id
    if chunk.seconds is not None:
        values["seconds"] = list(chunk.seconds)
    return values


def _listed(values: dict[str, Any]) -> Listed:
    locations = tuple(
        Location(_path(item["path"]), Kind(item["kind"]), Part(item.get("part", ""))) for item in values["at"]
    )
    if not locations:
        raise ValueError("it stands nowhere")
    chunks = sorted(map(_chunk, values["chunks"]), key=lambda chunk: chunk.seq)
    if len({chunk.seq for chunk in chunks}) < len(chunks):
        raise ValueError("one passage stands there twice")
    media = values.get("media")
    note = None if media is None else MediaNote(_text(media["uri"]), _text(media["transcript"]))
    return Listed(_text(values["hash"]), locations, tuple(chunks), note)


def _chunk(values: dict[str, Any]) -> Chunk:
    first, last = (_number(line) for line in values["lines"])
    name, cell, cell_id, seconds = (values.get(key) for key in ("name", "cell", "cell_id", "seconds"))
    return Chunk(
        seq=_number(values["seq"]),
        text="",
        start=0,
        end=0,
        first_line=max(1, first),
        last_line=max(1, first, last),
        name=None if name is None else _text(name),
        part=Part(values.get("part", "")),
        cell=None if cell is None else _number(cell),
        cell_id=None if cell_id is None else _text(cell_id),
        seconds=None if seconds is None else (_second(seconds[0]), _second(seconds[1])),
    )


def _path(value: object) -> str | None:
    """A path that stays inside, or none."""
    if value is None:
        return None
    path = _text(value)
    if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise ValueError(f"{path!r} is no path inside a repository")
    return path


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MOST_LINES:
        raise ValueError(f"{value!r} is no number of a line")
    return value


def _second(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no time")
    return float(value)

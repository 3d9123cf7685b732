"""What a worker process and the process that started it send each other: frames of JSON.

A frame is the length of its JSON as four bytes, big-endian, then the JSON. The worker's first frame says that it is
ready. A request is a list of jobs; each is answered with a frame of its own, in their order.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

from outcrop.core.model import Chunk, Part

READY = "ready"

# Exit code of a worker whose memory ran out.
NO_MEMORY = 77

# Name of an operation of the worker, the text, and the operation's other arguments.
Job = tuple[str, str, *tuple[str | None, ...]]

_LENGTH = struct.Struct(">I")


def send(stream: BinaryIO, message: object) -> None:
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO, limit: int | None = None) -> Any:
    """The next message, or None at the end.

    Raises:
        ValueError: What came is no message, or longer than ``limit`` bytes.
    """
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if limit is not None and length > limit:
        raise ValueError(f"a message of {length:,} bytes")
    data = stream.read(length)
    return json.loads(data) if len(data) == length else None


def rows_of(chunks: Sequence[Chunk], text: str) -> list[list[object]]:
    """Chunks as JSON; the text of one is left out where its offsets say it."""
    return [
        [
            chunk.start,
            chunk.end,
            chunk.first_line,
            chunk.last_line,
            chunk.name,
            chunk.part,
            chunk.cell,
            chunk.cell_id,
            chunk.seconds,
            None if text[chunk.start : chunk.end] == chunk.text else chunk.text,
        ]
        for chunk in chunks
    ]


def chunks_of(rows: Any, text: str) -> list[Chunk]:
    """The inverse of :func:`rows_of`.

    Raises:
        ValueError: These are not the rows of chunks; a grammar may have overwritten anything in its process.
    """
    chunks: list[Chunk] = []
    try:
        for seq, (start, end, first, last, name, part, cell, cell_id, seconds, own) in enumerate(rows):
            body = text[start:end] if own is None else own
            _check(body, str)
            for number in (start, end, first, last, 0 if cell is None else cell):
                _check(number, int)
            for label in (name, cell_id):
                _check(label, str | None)
            times = None if seconds is None else (float(seconds[0]), float(seconds[1]))
            chunks.append(Chunk(seq, body, start, end, first, last, name, Part(part), cell, cell_id, times))
    except (TypeError, IndexError) as error:
        raise ValueError(str(error)) from error
    return chunks


def _check(value: object, types: Any) -> None:
    if not isinstance(value, types):
        raise ValueError(f"{value!r} is not {types}")

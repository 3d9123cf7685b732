"""Timed transcripts to chunks: cues are joined to lines, and lines are cut under the ceiling where speech pauses.

A chunk begins and ends with a cue, unless one cue alone is over the ceiling.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from outcrop.chunking.rows import TextRows, prose_cost
from outcrop.core.model import Chunk
from outcrop.text.transcripts import Cue, parse

# Characters after which a line ends with any cue: automatic captions have no full stops.
_LINE_LENGTH = 160

# Seconds of silence that end a line, a paragraph (the best place for a cut), a chunk.
_PAUSE = 2.0
_LONG_PAUSE = 5.0
SILENCE = 60.0

_SENTENCE = re.compile(r"[.!?…。！？]['\"”’)\]]*$")


def cut_transcript(text: str) -> list[Chunk]:
    """The chunks of a transcript with times, else none; offsets are in the spoken text, lines in the file."""
    chunks: list[Chunk] = []
    base = 0
    for cues in _stretches(parse(text)):
        spoken, starts = _joined(cues)
        ends = [start + len(cue.text) for start, cue in zip(starts, cues, strict=True)]
        for start, end, _ in TextRows(spoken).all_slices(None, prose_cost):
            first = bisect_right(ends, start)
            inside = cues[first : max(first + 1, bisect_left(starts, end))]
            chunks.append(
                Chunk(
                    seq=len(chunks),
                    text=spoken[start:end],
                    start=base + start,
                    end=base + end,
                    first_line=min(cue.first_line for cue in inside),
                    last_line=max(cue.last_line for cue in inside),
                    seconds=(min(cue.start for cue in inside), max(cue.end for cue in inside)),
                )
            )
        base += len(spoken) + 1
    return chunks


def _stretches(cues: Sequence[Cue]) -> Iterator[Sequence[Cue]]:
    """Cues without a long silence between them."""
    first = 0
    for place in range(1, len(cues) + 1):
        if place == len(cues) or cues[place].start - cues[place - 1].end >= SILENCE:
            yield cues[first:place]
            first = place


def _joined(cues: Sequence[Cue]) -> tuple[str, list[int]]:
    """The spoken text, and where each cue's own words begin in it."""
    parts: list[str] = []
    starts: list[int] = []
    length = width = 0
    before: Cue | None = None
    for cue in cues:
        gap = _gap(before, cue, width)
        named = f"{cue.voice}: " if cue.voice and (before is None or before.voice != cue.voice) else ""
        parts += [gap, named, cue.text]
        starts.append(length + len(gap) + len(named))
        length += len(gap) + len(named) + len(cue.text)
        width = (0 if "\n" in gap else width) + len(named) + len(cue.text)
        before = cue
    return "".join(parts), starts


def _gap(before: Cue | None, cue: Cue, width: int) -> str:
    """The white space between two cues."""
    if before is None:
        return ""
    silence = cue.start - before.end
    if silence >= _LONG_PAUSE:
        return "\n\n"
    ends = _SENTENCE.search(before.text) or width >= _LINE_LENGTH or silence >= _PAUSE or cue.voice != before.voice
    return "\n" if ends or "\n" in cue.text else " "

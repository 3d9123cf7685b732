"""WebVTT and SubRip → what is said, and when. Anything else is plain text, which knows no times.

Formats: https://www.w3.org/TR/webvtt1/ and, for SubRip, which nobody ever wrote down, what is found in the wild. Both
are read by one pass that forgives what players forgive: either decimal mark, hours left out, missing numbers and blank
lines, markup of the other format; also ``[00:01.000 --> 00:04.000] words``, as speech recognition prints them. Captions
that roll (each shows the end of the one before) are told once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

# Seconds between two captions that still follow each other; only such repeat what is still on the screen.
ADJOINING = 0.05

# Lines that hold text, among which a file without a header must have a time to count as SubRip.
SNIFFED_LINES = 12

_TIME = r"(?:(\d{1,4})\s?:\s?)?(\d{1,4})\s?:\s?(\d{1,2})(?:\s?[.,]\s?(\d{1,9}))?(?!\d)"
_TIMING = re.compile(rf"\s*\[?{_TIME}\s*-{{1,2}}>\s*{_TIME}(?:\](.*))?", re.ASCII)
_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?(?:\s+([^<>]*))?>|</v>")
_TAG = re.compile(
    r"</?(?:b|i|u|s|c|v|lang|ruby|rt|font|span)(?:[.\s][^<>]*)?/?>|<(?:\d+:)?\d+:\d+(?:[.,]\d+)?>|\{\\[^{}]*\}",
    re.IGNORECASE | re.ASCII,
)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_HARD_BREAK = re.compile(r"\\[Nn]|<br\s*/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cue:
    """Something said without a break.

    Attributes:
        text: One line, or several where the caption has a dialogue. No markup; never blank.
        start: Seconds from the beginning.
        end: The same; never before ``start``.
        first_line: 1-based line of the file where the text begins.
        last_line: And where it ends.
        voice: Who says it, where the file tells.
    """

    text: str
    start: float
    end: float
    first_line: int
    last_line: int
    voice: str | None = None


@dataclass(slots=True)
class _Block:
    """A timing line and the lines below it, each with its number and whether a blank line stands before it."""

    start: float
    end: float
    lines: list[tuple[int, str, bool]] = field(default_factory=list)


# Line number, text and voice of one line of a caption.
_Row = tuple[int, str, str | None]


def parse(text: str) -> list[Cue]:
    """What is said in a transcript, by time; nothing for one that is not WebVTT or SubRip."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    with_header = lines[0].startswith("WEBVTT")
    if not with_header:
        filled = [line for line in lines if line.strip()][:SNIFFED_LINES]
        if not any(map(_TIMING.match, filled)):
            return []
    blocks = sorted(_blocks(lines, with_header), key=lambda block: block.start)
    return _told_once((block, list(_rows(block))) for block in blocks)


def is_silent(text: str) -> bool:
    """Whether nothing is said in a transcript: it is blank, or a header, times and numbers are all it has."""
    lines = text.removeprefix("\ufeff").splitlines()
    if lines and lines[0].startswith("WEBVTT"):
        lines[0] = ""
    elif any(map(_TIMING.match, lines)):
        lines = [line for line in lines if not _NUMBER.fullmatch(line.strip())]
    return not any(line.strip() and not ((timing := _TIMING.match(line)) and not timing[9]) for line in lines)


def _blocks(lines: Sequence[str], with_header: bool) -> Iterator[_Block]:
    """Captions in the order of the file, still with their markup.

    In WebVTT a blank line ends a caption, unless nothing was said in it yet; what then stands before the next timing
    line is its name. In SubRip blank lines end nothing, because there are captions that hold some; only a number right
    before the next timing is taken off.
    """
    block: _Block | None = None
    number = 0
    aside = in_header = with_header
    after_blank = False
    for place, line in enumerate(lines, 1):
        timing = None if aside and not in_header else _TIMING.match(line)
        if timing:
            if block is not None:
                number = _without_name(block, place) if with_header else _without_number(block, number)
                yield block
            start = _seconds(timing.groups()[:4])
            block = _Block(start, max(start, _seconds(timing.groups()[4:8])))
            if timing[9]:
                block.lines.append((place, timing[9], False))
            aside = in_header = after_blank = False
        elif not line or not (line.strip() or _is_padding(block, with_header)):
            aside = in_header = False
            after_blank = True
        elif with_header and after_blank and (block is None or block.lines or _BLOCK.match(line)):
            aside = aside or _BLOCK.match(line) is not None
        elif block is None and _NUMBER.fullmatch(line.strip()):
            number = int(line)
        elif block is not None and not aside:
            block.lines.append((place, line, after_blank))
            after_blank = False
    if block is not None:
        yield block


def _is_padding(block: _Block | None, with_header: bool) -> bool:
    """Whether a line of spaces is part of a caption: automatic WebVTT fills the upper of two lines with one."""
    return with_header and block is not None and not block.lines


def _without_name(block: _Block, place: int) -> int:
    """Take the next caption's name off this one, which is empty then. Returns 0: names are no numbers."""
    if len(block.lines) == 1 and block.lines[0][2] and block.lines[0][0] == place - 1:
        block.lines.pop()
    return 0


def _without_number(block: _Block, number: int) -> int:
    """Take the next caption's number off the end of this one. Returns it, or the one before where there is none."""
    if not block.lines or not _NUMBER.fullmatch(block.lines[-1][1].strip()):
        return number
    value = int(block.lines[-1][1])
    # Without a blank line before it, a number may well be what was said.
    if not block.lines[-1][2] and len(block.lines) > 1 and value != number + 1:
        return number
    block.lines.pop()
    return value


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = parts
    return round(int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(f"{seconds}.{fraction or 0}"), 3)


def _rows(block: _Block) -> Iterator[_Row]:
    """The lines of a caption without markup, each with who says it."""
    voice: str | None = None
    for place, line, _ in block.lines:
        at = 0
        pieces: list[tuple[str | None, str]] = []
        for found in _VOICE.finditer(line):
            pieces.append((voice, line[at : found.start()]))
            voice = _clean(found[1] or "") or None
            at = found.end()
        pieces.append((voice, line[at:]))
        for speaker, piece in pieces:
            for part in _HARD_BREAK.split(piece):
                if text := _clean(part):
                    yield place, text, speaker


def _clean(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", text)).replace("\\h", " ").split())


def _told_once(blocks: Iterator[tuple[_Block, list[_Row]]]) -> list[Cue]:
    """Cues, without what a caption only repeats from the one that it follows."""
    cues: list[Cue] = []
    shown: list[str] = []
    until = -1.0
    for block, rows in blocks:
        if not rows:
            continue
        now = [text for _, text, _ in rows]
        if block.start <= until + ADJOINING:
            rows = _new(shown, rows)
        if rows:
            cues += _cues(block, rows)
        elif cues:
            cues[-1] = replace(cues[-1], end=max(cues[-1].end, block.end))
        shown, until = now, max(until, block.end)
    return cues


def _new(shown: Sequence[str], rows: list[_Row]) -> list[_Row]:
    """What of a caption is not on the screen yet."""
    now = [text for _, text, _ in rows]
    for count in range(min(len(shown), len(now)), 0, -1):
        if shown[-count:] == now[:count]:
            return rows[count:]
    # Live captions grow word by word. A single word that another follows is no growth yet.
    before = " ".join(shown)
    whole = " ".join(now)
    if " " in before and whole.startswith(f"{before} "):
        place, _, voice = rows[-1]
        return [(place, whole[len(before) + 1 :], voice)]
    return rows


def _cues(block: _Block, rows: Sequence[_Row]) -> Iterator[Cue]:
    """One cue a voice; the lines of a caption were broken to fit a screen, but for those of a dialogue."""
    at = 0
    while at < len(rows):
        stop = at + 1
        text = rows[at][1]
        while stop < len(rows) and rows[stop][2] == rows[at][2]:
            text += ("\n" if rows[stop][1].startswith(("-", "–", "—")) else " ") + rows[stop][1]
            stop += 1
        yield Cue(text, block.start, block.end, rows[at][0], rows[stop - 1][0], rows[at][2])
        at = stop

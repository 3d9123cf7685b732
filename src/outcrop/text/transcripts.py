"""WebVTT and SubRip to cues with times. Any other text has none.

Formats: https://www.w3.org/TR/webvtt1/; SubRip has no specification. Both are read by one pass that accepts what
players accept: either decimal mark, no hours, missing numbers and blank lines, markup of the other format; also
``[00:01.000 --> 00:04.000] words``, as speech recognition prints them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

# Most seconds between two captions of which the second may repeat the first.
_ADJOINING = 0.05

# Most lines of a caption that the next one repeats.
_MOST_LINES = 100

# A file without a header is SubRip if one of its first lines with text has a time.
_SNIFFED_LINES = 12

_TIME = r"(?:(\d{1,4})\s?:\s?)?(\d{1,4})\s?:\s?(\d{1,2})(?:\s?[.,]\s?(\d{1,9}))?(?!\d)"
_TIMING = re.compile(rf"\s*\[?{_TIME}\s*-{{1,2}}>\s*{_TIME}(?:\](.*))?", re.ASCII)
_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?+(?:\s++([^<>]*+))?+>|</v>")
_TAG = re.compile(
    r"</?(?:b|i|u|s|c|v|lang|ruby|rt|font|span)(?:[.\s][^<>]*)?/?>|<(?:\d+:)?\d+:\d+(?:[.,]\d+)?>|\{\\[^{}]*\}",
    re.IGNORECASE | re.ASCII,
)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_HARD_BREAK = re.compile(r"\\[Nn]|<br\s*/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cue:
    """Text said without a break: no markup, never blank, several lines for a dialogue.

    Times are seconds, lines 1-based in the file; ``voice`` is the speaker, if the file names one.
    """

    text: str
    start: float
    end: float
    first_line: int
    last_line: int
    voice: str | None = None


@dataclass(slots=True)
class _Caption:
    """A timing line and the lines below it, each with its number and whether a blank line is before it."""

    start: float
    end: float
    lines: list[tuple[int, str, bool]] = field(default_factory=list)


# Line number, text and voice of one line of a caption.
_CaptionLine = tuple[int, str, str | None]


def parse(text: str) -> list[Cue]:
    """The cues of a transcript by time; none if it is not WebVTT or SubRip."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    with_header = lines[0].startswith("WEBVTT")
    if not with_header:
        filled = [line for line in lines if line.strip()][:_SNIFFED_LINES]
        if not any(map(_TIMING.match, filled)):
            return []
    captions = sorted(_captions(lines, with_header), key=lambda caption: caption.start)
    return _merge_rolling_captions((caption, list(_rows(caption))) for caption in captions)


def is_silent(text: str) -> bool:
    """Whether a transcript holds no words: it is blank, or has only a header, times and numbers."""
    lines = text.removeprefix("\ufeff").splitlines()
    if lines and lines[0].startswith("WEBVTT"):
        lines[0] = ""
    elif any(map(_TIMING.match, lines)):
        lines = [line for line in lines if not _NUMBER.fullmatch(line.strip())]
    return not any(line.strip() and not ((timing := _TIMING.match(line)) and not timing[9]) for line in lines)


def _captions(lines: Sequence[str], with_header: bool) -> Iterator[_Caption]:
    """Captions in the order of the file, still with their markup.

    In WebVTT a blank line ends a caption that has text; a line between it and the next timing is the next caption's
    name. In SubRip captions can hold blank lines; only a number directly before the next timing is removed.
    """
    caption: _Caption | None = None
    number = 0
    skipping = in_header = with_header
    after_blank = False
    for line_number, line in enumerate(lines, 1):
        timing = None if skipping and not in_header else _TIMING.match(line)
        if timing:
            if caption is not None:
                if not with_header:
                    number = _remove_number(caption, number)
                elif len(caption.lines) == 1 and caption.lines[0][2] and caption.lines[0][0] == line_number - 1:
                    caption.lines.pop()  # the next caption's name
                yield caption
            start = _seconds(timing.groups()[:4])
            caption = _Caption(start, max(start, _seconds(timing.groups()[4:8])))
            if timing[9]:
                caption.lines.append((line_number, timing[9], False))
            skipping = in_header = after_blank = False
        elif not line or not (line.strip() or (with_header and caption is not None and not caption.lines)):
            # A line of spaces is the upper of two in automatic WebVTT, and no end of the caption.
            skipping = in_header = False
            after_blank = True
        elif with_header and after_blank and (caption is None or caption.lines or _BLOCK.match(line)):
            skipping = skipping or _BLOCK.match(line) is not None
        elif caption is None and _NUMBER.fullmatch(line.strip()):
            number = int(line)
        elif caption is not None and not skipping:
            caption.lines.append((line_number, line, after_blank))
            after_blank = False
    if caption is not None:
        yield caption


def _remove_number(caption: _Caption, number: int) -> int:
    """Remove the next caption's number from the end of this one. Returns it, or ``number`` where there is none."""
    if not caption.lines or not _NUMBER.fullmatch(caption.lines[-1][1].strip()):
        return number
    value = int(caption.lines[-1][1])
    # Without a blank line before it, a number may well be what was said.
    if not caption.lines[-1][2] and len(caption.lines) > 1 and value != number + 1:
        return number
    caption.lines.pop()
    return value


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = parts
    return round(int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(f"{seconds}.{fraction or 0}"), 3)


def _rows(caption: _Caption) -> Iterator[_CaptionLine]:
    """The lines of a caption without markup, each with who says it."""
    voice: str | None = None
    for line_number, line, _ in caption.lines:
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
                    yield line_number, text, speaker


def _clean(text: str) -> str:
    plain = _TAG.sub("", text)
    # Python refuses to read a character's number of thousands of digits.
    with suppress(ValueError):
        plain = html.unescape(plain)
    return " ".join(plain.replace("\\h", " ").split())


def _merge_rolling_captions(captions: Iterator[tuple[_Caption, list[_CaptionLine]]]) -> list[Cue]:
    """Cues without the text that a caption repeats from the one before it."""
    cues: list[Cue] = []
    shown: list[str] = []
    until = -1.0
    for caption, rows in captions:
        if not rows:
            continue
        now = [text for _, text, _ in rows]
        if caption.start <= until + _ADJOINING:
            rows = _unseen_lines(shown, rows)
        if rows:
            cues += _cues(caption, rows)
        elif cues:
            cues[-1] = replace(cues[-1], end=max(cues[-1].end, caption.end))
        shown, until = now, max(until, caption.end)
    return cues


def _unseen_lines(shown: Sequence[str], rows: list[_CaptionLine]) -> list[_CaptionLine]:
    now = [text for _, text, _ in rows]
    for count in range(min(len(shown), len(now), _MOST_LINES), 0, -1):
        if shown[-count:] == now[:count]:
            return rows[count:]
    # Live captions grow word by word. A single word that another follows is no growth yet.
    before = " ".join(shown)
    whole = " ".join(now)
    if " " in before and whole.startswith(f"{before} "):
        line_number, _, voice = rows[-1]
        return [(line_number, whole[len(before) + 1 :], voice)]
    return rows


def _cues(caption: _Caption, rows: Sequence[_CaptionLine]) -> Iterator[Cue]:
    """One cue a voice; the lines of a caption were broken to fit a screen, but for those of a dialogue."""
    at = 0
    while at < len(rows):
        stop = at + 1
        text = rows[at][1]
        while stop < len(rows) and rows[stop][2] == rows[at][2]:
            text += ("\n" if rows[stop][1].startswith(("-", "–", "—")) else " ") + rows[stop][1]
            stop += 1
        yield Cue(text, caption.start, caption.end, rows[at][0], rows[stop - 1][0], rows[at][2])
        at = stop

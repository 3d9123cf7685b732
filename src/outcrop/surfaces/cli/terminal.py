"""The terminal: where text goes, how wide it is, whether it has colours, and asking the person at it."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from outcrop.errors import UsageError
from outcrop.surfaces.render import Line, harmless

# Columns where no terminal has a width: only minified text is cut.
PIPED_WIDTH = 400

_STYLES = {"path": "1;35", "line": "32", "name": "36", "dim": "2", "match": "1;31", "good": "32", "warn": "33"}

_COLOURS = re.compile(rf"(\x1b\[(?:0|{'|'.join(_STYLES.values())})m)")


@dataclass(frozen=True, slots=True)
class Paint:
    """Puts one of the colours of ``_STYLES`` on text, or leaves the text alone."""

    on: bool

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def choose_paint(choice: str, stream: TextIO | None = None) -> Paint:
    """Colour by the option ``--color``: ``always``, ``never``, or ``auto`` for a terminal without NO_COLOR."""
    if choice != "auto":
        return Paint(choice == "always")
    return Paint(
        is_terminal(stream or sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at the other end. A stream that was closed before the program started is None."""
    return stream is not None and stream.isatty()


def width() -> int:
    return shutil.get_terminal_size((100, 24)).columns if is_terminal(sys.stdout) else PIPED_WIDTH


def make_streams_robust() -> None:
    """Neither a character that the terminal cannot show nor a closed stream ends the program."""
    # A closed descriptor 1 would go to the next file that is opened, which may be the index.
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115, it stays open as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print a result, on stdout."""
    sys.stdout.write(_safe(text) + "\n")


def note(text: str) -> None:
    """Print a message on stderr, so that a pipe gets results only."""
    sys.stderr.write(_safe(text) + "\n")
    sys.stderr.flush()


def _safe(text: str) -> str:
    """The same without anything that only its writer did not make harmless; our own colours stay."""
    return "".join(part if at % 2 else harmless(part) for at, part in enumerate(_COLOURS.split(text)))


def confirm(question: str) -> None:
    """Go on only after a yes. Where there is no terminal to ask on, an error names ``--yes``."""
    if not is_terminal(sys.stdin):
        raise UsageError("this needs a yes, and there is no terminal to ask on; nothing was changed", "Add --yes.")
    if not click.confirm(_safe(question), err=True):
        note("nothing was changed")
        raise click.exceptions.Exit(1)


def is_utf8() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8")


def cells(text: str) -> int:
    """Columns that a text takes: two for wide characters, none for combining ones."""
    return len(text) if text.isascii() else sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, columns: int) -> str:
    if cells(text) <= columns:
        return text
    used = 0
    for at, char in enumerate(text):
        used += _cell(char)
        if used >= columns:
            return text[:at] + "…"
    return text


def fit(line: Line, columns: int) -> Line:
    """A line in so many columns; where its first match is beyond them, the part around that match."""
    if len(line.text) * 2 <= columns or cells(line.text) <= columns:
        return line
    text, marks, shift = line.text, line.marks, 0
    if marks and cells(text[: marks[0][1]]) >= columns:
        start = max(0, marks[0][0] - columns // 3)
        text, shift = "…" + text[start:], start - 1
    text = cut(text[: columns * 4], columns)
    end = len(text) - text.endswith("…")
    kept = tuple((a - shift, min(b - shift, end)) for a, b in marks if a - shift < end)
    return Line(line.number, text, kept)

"""What every surface shows the same way: errors, safe text, excerpts, JSON, numbers."""

from __future__ import annotations

import errno
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from outcrop import errors
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.text import terms
from outcrop.text.visible import escape_hidden
from outcrop.text.visible import harmless as harmless
from outcrop.text.visible import harmless_line as harmless_line

if TYPE_CHECKING:
    from outcrop.core.model import Answer, Stale

BUG_HINT = "This is a bug. Run it again with OUTCROP_DEBUG=1 to see where it happens."

# Columns of a tab in a shown passage; 8 would move code out of the window.
TAB = 4

REVISION_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an error leaves the program: exit code (1 failed, 2 usage error), HTTP status, JSON-RPC error code."""

    exit: int
    http: int
    mcp: int


INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

# The only table from error to exit code, HTTP status and MCP error. The nearest class counts.
OUTCOMES: dict[type[BaseException], Outcome] = {
    errors.UsageError: Outcome(2, 400, INVALID_PARAMS),
    errors.UnknownArtifact: Outcome(2, 404, INVALID_PARAMS),
    errors.NotARepository: Outcome(1, 404, INVALID_PARAMS),
    errors.SourceLocked: Outcome(1, 503, INTERNAL_ERROR),
    errors.EmbedderError: Outcome(1, 502, INTERNAL_ERROR),
    errors.EmbedderUnavailable: Outcome(1, 503, INTERNAL_ERROR),
    errors.EmbedderTimeout: Outcome(1, 504, INTERNAL_ERROR),
    errors.EgressRefused: Outcome(1, 403, INTERNAL_ERROR),
    errors.IndexMissing: Outcome(1, 404, INTERNAL_ERROR),
    errors.SpaceMismatch: Outcome(1, 409, INTERNAL_ERROR),
    errors.SchemaTooNew: Outcome(1, 409, INTERNAL_ERROR),
    errors.StoreLocked: Outcome(1, 503, INTERNAL_ERROR),
    errors.StoreFull: Outcome(1, 507, INTERNAL_ERROR),
    errors.FormatError: Outcome(1, 422, INVALID_PARAMS),
    KeyboardInterrupt: Outcome(130, 503, INTERNAL_ERROR),
    BaseException: Outcome(1, 500, INTERNAL_ERROR),
}


def outcome(error: BaseException) -> Outcome:
    return next(OUTCOMES[each] for each in type(error).__mro__ if each in OUTCOMES)


_FULL = "Free some space; earlier work is kept."
_FORBIDDEN = "Check its permissions, or put the index somewhere else with --store."
_FIXES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EROFS: _FORBIDDEN,
    errno.EMFILE: "Allow more open files with ulimit -n.",
}


def explain(error: BaseException) -> tuple[str, str]:
    """What happened and what to do about it; the second may be empty."""
    if isinstance(error, errors.OutcropError):
        return error.what, error.fix
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}", _FIXES.get(error.errno or 0, "")
    if isinstance(error, MemoryError):
        return "there is not enough memory", "Close other programs, or index a smaller folder."
    detail = f": {error}" if str(error) else ""
    return f"unexpected error: {type(error).__name__}{detail}", BUG_HINT


def message(error: BaseException) -> str:
    """The error for a person, without control characters: one line, and one of what to do."""
    what, fix = (harmless_line(part) for part in explain(error))
    return f"outcrop: {what}\n  → {fix}" if fix else f"outcrop: {what}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a passage, safe to show: 1-based number in the file, and character ranges that match the question."""

    number: int
    text: str
    marks: tuple[tuple[int, int], ...]


def passage(text: str, first_line: int, words: Collection[str], *, trim: bool = True) -> list[Line]:
    """The lines of a passage; ``words`` as in ``terms.query_words``. ``trim`` drops blank lines at its edges."""
    lines = [
        Line(number, line, tuple(terms.spans(line, words)))
        for number, line in enumerate((each.expandtabs(TAB) for each in harmless(text).split("\n")), first_line)
    ]
    if not trim:
        return lines
    filled = [at for at, line in enumerate(lines) if line.text.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def excerpt(lines: list[Line], limit: int) -> list[Line]:
    """The ``limit`` consecutive lines with most of the question's words, the first of equals.

    Different words count before repeated ones.
    """
    found = [[line.text[start:end].casefold() for start, end in line.marks] for line in lines]

    def worth(at: int) -> tuple[int, int]:
        inside = [word for line in found[at : at + limit] for word in line]
        return len(set(inside)), len(inside)

    best = max(range(max(1, len(lines) - limit + 1)), key=worth)
    return lines[best : best + limit]


def to_json(value: object, *, ascii_only: bool = False) -> str:
    """Plain values or a dataclass as JSON on one line, safe on a terminal; null for what is no number in JSON."""
    try:
        text = json.dumps(value, ensure_ascii=ascii_only, default=_plain, allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
        text = json.dumps(plain, ensure_ascii=ascii_only)
    return escape_hidden(text)


def _plain(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def corrections(answer: Answer) -> list[str]:
    return [
        harmless_line(f"{typed} is not in the index; the search used {meant}")
        for typed, meant in answer.corrected.items()
    ]


def staleness(stale: Stale) -> str:
    """How the index is behind; without revisions for a reader who may not see them."""
    # Imported here: help prints no answer.
    from outcrop.search.staleness import UNREADABLE

    before, now = (harmless_line(each or "")[:REVISION_CHARACTERS] for each in (stale.indexed, stale.current))
    custom = "" if set(stale.corpora) <= set(DEFAULT_BUILDERS) else f"{harmless_line(', '.join(stale.corpora))}: "
    if stale.current.startswith(UNREADABLE):
        # Why is for whoever runs commands there: it may name folders of this machine.
        return f"{custom}what is there now cannot be read (outcrop status says why)"
    if now and not before:
        return f"{custom}a part was not built, or was removed"
    if now and now != before:
        return f"{custom}made at {before}, the source is at {now}"
    return f"{custom}files, commits or settings changed since it was made"


def counted(number: int, noun: str) -> str:
    """``1 passage``, ``2,143 passages``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(items: Sequence[str], most: int) -> str:
    """``a, b, c and 4 more``."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def size(number: int) -> str:
    """Bytes in decimal units: ``812 B``, ``11.8 MB``."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.95 or unit == "GB":
            break
        value /= 1000
    return f"{number} B" if unit == "B" else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """``0.4 s``, ``40 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def clock(seconds: float) -> str:
    """A moment of a recording: ``0:07``, ``1:02:03``."""
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def columns(rows: Sequence[tuple[str, ...]], right: Collection[int] = ()) -> Iterator[str]:
    """Rows as aligned lines; ``right`` are the columns of numbers."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))] if rows else []
    for row in rows:
        cells = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()

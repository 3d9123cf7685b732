"""An answer as lines for a person: the hits, and at the end how they were found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from outcrop.core.model import Answer, Hit, Kind, Mode
from outcrop.surfaces import render
from outcrop.surfaces.cli.terminal import Paint, cells, cut, fit
from outcrop.text import terms

# Lines of a passage: enough to judge it, and ten hits fill two screens.
SHOWN_LINES = 6

OTHER_PATHS = 3

# Their paths show the kind; every other kind is named.
_OBVIOUS = frozenset({Kind.CODE, Kind.DOC})
_NO_FILE = frozenset({Kind.WIKI, Kind.TECHNOTE, Kind.TICKET, Kind.FORUM})


@dataclass(frozen=True, slots=True)
class AnswerView:
    """How an answer is shown: hits have paths relative to ``root``, shown ones are relative to ``here``."""

    root: Path
    here: Path
    paint: Paint
    width: int
    full: bool = False


def answer_lines(answer: Answer, query: str, view: AnswerView) -> Iterator[str]:
    wanted = frozenset([*terms.query_words(query), *answer.corrected.values()])
    for hit in answer.hits:
        yield _header(hit, answer.mode, view)
        if hit.uri is not None:
            yield view.paint("dim", f"  {render.harmless_line(hit.uri)}")
        if hit.explanation:
            yield view.paint("dim", f"  {render.harmless_line('  '.join(hit.explanation))}")
        yield from _passage(hit, wanted, view)
        yield from _other_locations(hit, view)
        yield ""
    yield from _footer(answer, view)


def location(hit: Hit, view: AnswerView, path: str | None = None) -> str:
    """Where a hit (or another path of it) is; a file by its path from the current folder."""
    path = hit.path if path is None else path
    if path is None and hit.record is not None:
        return render.harmless_line(f"{hit.corpus[0]}: {hit.record.id}")
    if path is None:
        return f"{hit.kind} {hit.hash[: render.REVISION_CHARACTERS]}"
    if hit.project:
        return render.harmless_line(f"{hit.project}: {path}")
    if hit.kind in _NO_FILE:
        return render.harmless_line(path)
    return render.harmless_line(os.path.relpath(view.root / path, view.here))


def _header(hit: Hit, mode: Mode, view: AnswerView) -> str:
    paint = view.paint
    where, line = location(hit, view), ""
    if hit.cell is not None:
        line = f" cell {hit.cell + 1}"
    elif hit.start is not None and hit.end is not None:
        line = f" {render.clock(hit.start)}-{render.clock(hit.end)}"
    elif hit.uri is not None:
        line = ""
    elif hit.path is not None:
        line = f":{hit.lines[0]}"
    after = [f"{hit.score:.2f}"]
    if hit.kind not in _OBVIOUS and hit.path is not None:
        after.append(hit.kind)
    if hit.mode != mode and hit.mode is Mode.KEYWORD:
        after.append("by keyword")
    end = " · ".join(after)
    parts = [paint("path", where) + paint("line", line)]
    if hit.name:
        columns = max(20, view.width - cells(where + line) - len(end) - 4)
        parts.append(paint("name", cut(render.harmless_line(hit.name), columns)))
    return "  ".join([*parts, paint("dim", end)])


def _passage(hit: Hit, wanted: frozenset[str], view: AnswerView) -> Iterator[str]:
    lines = render.passage(hit.text, hit.lines[0], wanted)
    shown = lines if view.full else render.excerpt(lines, SHOWN_LINES)
    digits = len(str(shown[-1].number)) if shown else 0
    for line in shown:
        fitted = line if view.full else fit(line, max(20, view.width - digits - 4))
        # The lines of a timed transcript are not those of its text.
        number = "" if hit.start is not None else str(line.number)
        yield f"  {view.paint('dim', number.rjust(digits))}  {_marked(fitted, view.paint)}".rstrip()
    if left := len(lines) - len(shown):
        yield view.paint("dim", f"  {' ' * digits}  … {render.counted(left, 'more line')}")


def _marked(line: render.Line, paint: Paint) -> str:
    parts, at = [], 0
    for start, end in line.marks:
        parts += [line.text[at:start], paint("match", line.text[start:end])]
        at = end
    return "".join([*parts, line.text[at:]])


def _other_locations(hit: Hit, view: AnswerView) -> Iterator[str]:
    others = [location(hit, view, path) for path in hit.paths if path != hit.path]
    copies = []
    for copy in hit.copies:
        where = location(replace(hit, kind=copy.kind, project=copy.project, path=copy.path, hash=copy.hash), view)
        copies.append(f"{where} cell {copy.cell + 1}" if copy.cell is not None else f"{where}:{copy.lines[0]}")
    for what, found in (("also at", others), ("nearly the same at", copies)):
        if found:
            yield view.paint("dim", f"  {what} {render.listed(found, OTHER_PATHS)}")


def _footer(answer: Answer, view: AnswerView) -> Iterator[str]:
    paint = view.paint
    found = render.counted(len(answer.hits), "hit") if answer.hits else "nothing found"
    mode = "keyword only" if answer.mode is Mode.KEYWORD and answer.reason else answer.mode
    yield paint("dim", " · ".join(part for part in (mode, answer.space, found) if part))
    for line in render.corrections(answer):
        yield paint("warn", line)
    if answer.reason:
        yield paint("warn", render.harmless_line(answer.reason))
    if answer.stale is not None:
        yield paint("warn", f"the index is behind: {render.staleness(answer.stale)} → {answer.stale.update}")


def suggestions(answer: Answer, *, filtered: bool, min_score: bool) -> str:
    tries = []
    if filtered:
        tries.append("fewer of --kind --project --corpus --path")
    if min_score:
        tries.append("a lower --min-score")
    if answer.mode is Mode.KEYWORD:
        tries.append("other words: by keyword only exact forms are found")
    return "try " + ", or ".join(tries or ["other words; outcrop status shows what is indexed"])

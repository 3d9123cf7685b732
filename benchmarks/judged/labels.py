"""The judged questions and the passages that their labels mean.

A label names a file and, where one part of it answers, a definition (`Class.method`), a heading, or the beginning of a
notebook cell. `locate` turns it into line ranges, so that a ranking can be scored by file or by passage.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUESTIONS = Path(__file__).with_name("questions.jsonl")
CATEGORIES = ("symbol", "behaviour", "architecture", "how-to", "error", "typo", "long", "foreign")
HALVES = ("tuning", "reporting")

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Answer:
    """One passage that answers a question.

    Attributes:
        path: File below the corpus's folder, with `/`.
        name: Definition, heading or beginning of a cell; None where the whole file answers.
        grade: 2 for a direct answer, 1 for one that helps.
    """

    path: str
    name: str | None
    grade: int


@dataclass(frozen=True, slots=True)
class Question:
    """One line of `questions.jsonl`."""

    id: str
    corpus: str
    query: str
    category: str
    half: str
    answers: tuple[Answer, ...]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The first and last line (1-based, inclusive) of a passage; cells instead of lines in a notebook."""

    first: int
    last: int
    text: str


def load_questions(path: Path = QUESTIONS) -> list[Question]:
    """Read the questions in their order; the file is JSON, one object a line."""
    with path.open(encoding="utf-8") as lines:
        return [_question(json.loads(line)) for line in lines if line.strip()]


def _question(fields: dict[str, Any]) -> Question:
    answers = tuple(Answer(**answer) for answer in fields.pop("answers"))
    return Question(answers=answers, **fields)


def locate(root: Path, answer: Answer) -> list[Span]:
    """Find the passages a label means: several where a heading stands more than once in its file.

    Args:
        root: The corpus's own folder, as `lay_out` returns it.
        answer: The label.

    Returns:
        The spans, empty if the label names nothing that is there.

    Raises:
        OSError: The file cannot be read.
    """
    text = (root / answer.path).read_text(encoding="utf-8")
    suffix = Path(answer.path).suffix
    if suffix == ".ipynb":
        return _in_notebook(text, answer.name)
    lines = text.splitlines()
    if answer.name is None:
        return [Span(1, len(lines), text)]
    if suffix == ".py":
        ranges = _definitions(text, answer.name)
    elif suffix in {".md", ".rst"}:
        ranges = _sections(lines, answer.name, markdown=suffix == ".md")
    else:
        ranges = _braced(lines, answer.name)
    return [Span(first, last, "\n".join(lines[first - 1 : last])) for first, last in ranges]


def _definitions(text: str, name: str) -> list[tuple[int, int]]:
    found: list[_Definition] = []
    scopes: list[ast.AST] = [ast.parse(text)]
    for part in name.split("."):
        found = [inner for scope in scopes for inner in _definitions_in(scope) if inner.name == part]
        scopes = list(found)
    return [(min([n.lineno, *(d.lineno for d in n.decorator_list)]), n.end_lineno or n.lineno) for n in found]


def _definitions_in(scope: ast.AST) -> Iterable[_Definition]:
    # Definitions below an `if` or a `try` belong to the same scope.
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, _Definition):
            yield child
        elif not isinstance(child, ast.expr):
            yield from _definitions_in(child)


def _sections(lines: Sequence[str], name: str, *, markdown: bool) -> list[tuple[int, int]]:
    headings = _markdown_headings(lines) if markdown else _underlined_headings(lines)
    ranges = []
    for at, (first, level, title) in enumerate(headings):
        if title == name:
            following = (line - 1 for line, other, _ in headings[at + 1 :] if other <= level)
            ranges.append((first, next(following, len(lines))))
    return ranges


def _markdown_headings(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    headings = []
    fence = ""
    for number, line in enumerate(lines, 1):
        opening = re.match(r"\s*(```+|~~~+)", line)
        if opening and not fence:
            fence = opening[1]
        elif opening and opening[1].startswith(fence):
            fence = ""
        heading = re.match(r"(#{1,6})\s+(.*?)\s*#*\s*$", line)
        if heading and not fence:
            headings.append((number, len(heading[1]), heading[2]))
    return headings


def _underlined_headings(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    headings = []
    styles: list[tuple[str, bool]] = []
    for number in range(1, len(lines)):
        rule, title = lines[number].rstrip(), lines[number - 1].rstrip()
        if not re.fullmatch(r"([-=~`'\"^#*+.:_])\1{2,}", rule) or not re.search(r"\w", title):
            continue
        overlined = number > 1 and lines[number - 2].rstrip() == rule
        if len(rule) < min(len(title), 4) or (title[0].isspace() and not overlined):
            continue
        style = (rule[0], overlined)
        if style not in styles:
            styles.append(style)
        headings.append((number - overlined, styles.index(style), title.strip()))
    return headings


def _braced(lines: Sequence[str], name: str) -> list[tuple[int, int]]:
    word = re.escape(name)
    for pattern in (rf"function\s+{word}\b", rf"(?<![\w.]){word}\s*[=:]", word):
        first = next((n for n, line in enumerate(lines, 1) if re.search(pattern, line)), None)
        if first is not None:
            return [(first, _closing_line(lines, first))]
    return []


def _closing_line(lines: Sequence[str], first: int) -> int:
    depth = 0
    for number in range(first, len(lines) + 1):
        depth += lines[number - 1].count("{") - lines[number - 1].count("}")
        if depth <= 0 and "}" in lines[number - 1]:
            return number
    return first


def _in_notebook(text: str, name: str | None) -> list[Span]:
    cells = json.loads(text)["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    if name is None:
        return [Span(1, len(cells), "\n\n".join(sources))]
    lines: list[str] = []
    cell_of: list[int] = []
    for number, (cell, source) in enumerate(zip(cells, sources, strict=True), 1):
        # An empty line between two cells, and none of the code: a comment's rule is no heading.
        shown = [*(source.splitlines() if cell["cell_type"] != "code" else []), ""]
        lines += shown
        cell_of += [number] * len(shown)
    sections = _sections(lines, name, markdown=True) or _sections(lines, name, markdown=False)
    ranges = [(cell_of[a - 1], cell_of[b - 1]) for a, b in sections]
    if not ranges:
        for number, source in enumerate(sources, 1):
            if source.lstrip().startswith(name):
                prose = (n for n in range(number + 1, len(cells) + 1) if cells[n - 1]["cell_type"] != "code")
                ranges.append((number, next(prose, len(cells) + 1) - 1))
    return [Span(first, last, "\n\n".join(sources[first - 1 : last])) for first, last in ranges]

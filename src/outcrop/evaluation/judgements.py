"""Reading judged questions: JSON Lines, or TREC judgements (qrels) with their topics (docs/cli.md, ``outcrop eval``).

Whatever is wrong with a file is reported with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from outcrop.errors import FormatError, UsageError

# What a line of one's own file may say; other fields are ignored.
FIELDS = ("id", "query", "relevant", "kind", "corpus", "project")

# Of what is merely named as relevant.
GRADE = 1

# Larger grades are a column taken for another.
MAX_GRADE = 1000

_QRELS = re.compile(r"(\S+)\s+\S+\s+(\S.*?)\s+([+-]?\d{1,9})")
_SCORES = re.compile(r"([^\t]+)\t([^\t]+)\t([+-]?\d{1,9})")
_SCORES_HEADER = re.compile(r"query-?id\tcorpus-?id\tscore", re.IGNORECASE)
_EXAMPLE = 'A line each: {"query": "…", "relevant": ["path"]}'


@dataclass(frozen=True, slots=True)
class Judgement:
    """A question and what answers it."""

    id: str
    query: str
    labels: Mapping[str, int]  # Grade of each label, above 0 for what answers; the highest grade is the best answer
    line: int
    kind: tuple[str, ...] = ()  # Only these kinds may answer; empty for all
    corpus: tuple[str, ...] = ()
    project: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged questions."""

    file: Path
    questions: tuple[Judgement, ...]
    without_answer: tuple[str, ...] = ()  # Ids of questions for which nothing is judged relevant; they cannot be scored
    without_topic: tuple[str, ...] = ()  # Ids that are judged and have no question
    not_judged: int = 0  # How many topics are not judged at all


def read(file: Path, topics: Path | None = None) -> Judged:
    """Read JSON Lines, or TREC qrels (the first line decides) with their questions in ``topics``."""
    lines = _lines(file)
    if not lines:
        raise FormatError(f"{file} holds no questions", _EXAMPLE)
    if lines[0].text.startswith(("{", "[")):
        if topics is not None:
            raise UsageError(f"{file} holds its questions, so none are taken from {topics}", "Leave --topics out")
        return Judged(file, tuple(_own(lines)))
    judged = _qrels(lines)
    if topics is None:
        raise UsageError(f"{file} holds TREC judgements, without the questions", "Name their file: --topics FILE")
    return _joined(judged, file, topics)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that says something."""

    file: Path
    number: int
    text: str

    def refuse(self, what: str, fix: str = "") -> NoReturn:
        raise FormatError(f"{self.file}, line {self.number}: {what}", fix)


def _lines(file: Path) -> list[_Line]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror or error})", "Name a file of questions") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _Line(file, data.count(b"\n", 0, error.start) + 1, "").refuse("this is not UTF-8 text", "Save it as UTF-8")
    # Not splitlines: it would also break at signs that may occur inside a JSON string.
    numbered = enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1)
    lines = [_Line(file, number, line.strip(" ")) for number, line in numbered if line.strip()]
    for line in lines:
        if "\0" in line.text:
            line.refuse("this is no text", "Save it as UTF-8")
    return lines


# -- JSON Lines -------------------------------------------------------------------------------------------------------


def _own(lines: Sequence[_Line]) -> Iterator[Judgement]:
    seen: dict[str, int] = {}
    for line in lines:
        fields = _object(line)
        for name in fields:
            close = get_close_matches(name, FIELDS, n=1, cutoff=0.8)
            if name not in FIELDS and close and close[0] not in fields:
                line.refuse(f"there is no field {name!r}", f"Did you mean {close[0]!r}?")
        query = fields.get("query")
        if not isinstance(query, str) or not query.strip():
            line.refuse("there is no question", 'Give it as "query": "…"')
        labels = _labels(line, fields.get("relevant"))
        if not any(labels.values()):
            line.refuse("nothing is relevant", "A question without an answer cannot be scored: take it out")
        yield Judgement(
            id=_new_id(line, fields.get("id", f"line-{line.number}"), seen),
            query=query.strip(),
            labels=labels,
            line=line.number,
            kind=_names(line, "kind", fields.get("kind")),
            corpus=_names(line, "corpus", fields.get("corpus")),
            project=_names(line, "project", fields.get("project")),
        )


def _object(line: _Line) -> dict[str, Any]:
    try:
        value = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        line.refuse(f"this is not valid JSON ({error})", "Each line is one whole JSON object, with no list around them")
    if not isinstance(value, dict):
        line.refuse("this is not a JSON object", _EXAMPLE)
    return value


def _labels(line: _Line, value: object) -> dict[str, int]:
    """From ``["path", …]``, ``{"path": grade, …}`` or a single ``"path"``."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        for each in value:
            if not isinstance(each, str):
                line.refuse(f"{json.dumps(each)} is no label", "Name a path, a passage of one, or a hash, as a string")
        value = dict.fromkeys(value, GRADE)
    if not isinstance(value, dict) or not value:
        line.refuse("nothing is named as relevant", 'Give "relevant": ["path"], or {"path": grade}')
    for label, grade in value.items():
        if not label.strip():
            line.refuse("a label is empty", "Name a path, a passage of one, or a hash")
        if isinstance(grade, bool) or not isinstance(grade, int) or not 0 <= grade <= MAX_GRADE:
            line.refuse(f"the grade of {label!r} is {json.dumps(grade)}", f"Grades are whole, from 0 to {MAX_GRADE}")
    return value


def _new_id(line: _Line, value: object, seen: dict[str, int]) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        line.refuse(f"{json.dumps(value)} is no id", "An id is a string or a number")
    name = str(value).strip()
    if name in seen:
        line.refuse(f"the id {name!r} is used in line {seen[name]} already", "Give each question an id of its own")
    seen[name] = line.number
    return name


def _names(line: _Line, field: str, value: object) -> tuple[str, ...]:
    names = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        line.refuse(f"{field} is {json.dumps(value)}", "Give a name, or a list of names")
    return tuple(names)


# -- TREC -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """What qrels say of one question, and the line where they begin to."""

    line: int
    labels: dict[str, int]

    @property
    def has_answer(self) -> bool:
        return any(self.labels.values())


def _qrels(lines: Sequence[_Line]) -> dict[str, _Entry]:
    """By question id. Columns: ``id 0 label grade``, or, under such a header, ``id<TAB>label<TAB>grade``."""
    short = bool(_SCORES_HEADER.fullmatch(lines[0].text))
    found: dict[str, _Entry] = {}
    for line in lines[1:] if short else lines:
        match = (_SCORES if short else _QRELS).fullmatch(line.text.strip())
        if match is None:
            wanted = "id, label and grade between tabs" if short else "id, 0, label, grade"
            line.refuse(f"this is neither JSON nor a judgement ({wanted})", "docs/cli.md shows both formats")
        label, grade = match[2], max(0, int(match[3]))
        if grade > MAX_GRADE:
            line.refuse(f"the grade of {label!r} is {grade}", f"Grades are whole, from 0 to {MAX_GRADE}")
        labels = found.setdefault(match[1], _Entry(line.number, {})).labels
        if labels.setdefault(label, grade) != grade:
            line.refuse(f"{label!r} has another grade for question {match[1]!r} above")
    return found


def _joined(judged: Mapping[str, _Entry], file: Path, topics: Path) -> Judged:
    questions = _topics(topics)
    known = {key: entry for key, entry in judged.items() if key in questions}
    if not known:
        raise FormatError(f"{topics} has none of the ids that {file} judges", "They must be the same in both files")
    return Judged(
        file=file,
        questions=tuple(
            Judgement(key, questions[key], entry.labels, entry.line) for key, entry in known.items() if entry.has_answer
        ),
        without_answer=tuple(key for key, entry in known.items() if not entry.has_answer),
        without_topic=tuple(key for key in judged if key not in questions),
        not_judged=sum(key not in judged for key in questions),
    )


def _topics(file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for line in _lines(file):
        if line.text.startswith("{"):
            fields = _object(line)
            key = next((fields[name] for name in ("id", "_id", "qid") if name in fields), None)
            query = next((fields[name] for name in ("query", "text", "title") if name in fields), None)
        else:
            key, _, query = line.text.partition("\t")
        if not isinstance(query, str) or not query.strip():
            line.refuse("there is no question", 'id<TAB>question, or {"id": "…", "query": "…"}')
        found[_new_id(line, key, seen)] = query.strip()
    return found

"""Notebooks to chunks, cell by cell, and percent scripts, which are notebooks written as one Python file.

Formats: nbformat 4 (``cells`` with ``source``) and nbformat 3 (``worksheets`` of ``cells`` with ``input``). Outputs are
never read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from outcrop.chunking.code import cut_code
from outcrop.chunking.markup import JOINT, Trail, cut_markup, trail_after
from outcrop.chunking.rows import Slice, TextRows, code_cost, prose_cost
from outcrop.core.model import Part
from outcrop.errors import FormatError

_FIX = "Open and save it again in Jupyter, or leave it out with an .outcropignore line."
_PARTS = {"code": Part.CODE, "markdown": Part.DOC, "heading": Part.DOC, "html": Part.DOC, "raw": Part.RAW}
_MAGIC_LANGUAGES = {
    "bash": "bash", "sh": "bash", "javascript": "javascript", "js": "javascript", "sql": "sql", "perl": "perl",
    "ruby": "ruby", "R": "r", "julia": "julia",
}  # fmt: skip
_KERNEL_LANGUAGES = {
    "c++": "cpp",
    "c++17": "cpp",
    "c#": "csharp",
    "f#": "fsharp",
    "node": "javascript",
    "shell": "bash",
}
# Levels of headings in nbformat 3, which has those of HTML.
_DEEPEST = 6

_PERCENT = re.compile(r"^#[ \t]*%%[^\n]*$", re.MULTILINE)
_PERCENT_PROSE = re.compile(r"#[ \t]*%%.*\[(markdown|md)\]")
_COMMENT_HEADING = re.compile(r"#[ \t]+(#{1,6})[ \t]+(.+)")


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """``number`` is 0-based over all cells, None in a percent script; ``slices`` are offsets into ``source``."""

    number: int | None
    part: Part
    source: str
    slices: list[Slice]
    cell_id: str | None = None
    level: int = 0  # Of a heading cell of nbformat 3, which has its level beside the text


def read_cells(text: str) -> Iterator[NotebookCell]:
    """The cells of a notebook, not cut."""
    return _read_cells(_load(text))


def cut_notebook(text: str) -> Iterator[NotebookCell]:
    book = _load(text)
    language = _language(book)
    trail: Trail = ()
    for cell in _read_cells(book):
        source = cell.source
        name = JOINT.join(filter(None, trail)) or None
        if cell.part is Part.CODE:
            slices = cut_cell(source, language, name)
        elif cell.part is Part.RAW:
            slices = TextRows(source).all_slices(name, prose_cost)
        elif cell.level:
            trail = (*trail[: cell.level - 1], " ".join(source.split()))
            slices = TextRows(source).all_slices(JOINT.join(filter(None, trail)) or None, prose_cost)
        else:
            slices = _cut_prose(source, trail)
            trail = trail_after(source, trail)
        yield replace(cell, slices=slices)


def _read_cells(book: dict[str, Any]) -> Iterator[NotebookCell]:
    for number, cell in enumerate(_cells(book)):
        kind = cell.get("cell_type")
        part = _PARTS.get(kind) if isinstance(kind, str) else None
        if part is None:
            raise FormatError(f"Notebook cell {number + 1} has the unknown type {kind!r}", _FIX)
        depth = 0
        if kind == "heading":
            level = cell.get("level")
            depth = min(level, _DEEPEST) if isinstance(level, int) and level > 0 else 1
        cell_id = cell.get("id")
        known_id = cell_id if isinstance(cell_id, str) and cell_id else None
        yield NotebookCell(number, part, _source(cell, number), [], known_id, depth)


def is_percent_script(text: str) -> bool:
    """Whether a Python file is divided into cells by ``# %%`` lines."""
    return _PERCENT.search(text) is not None


def cut_percent_script(text: str) -> Iterator[NotebookCell]:
    """The cells of a percent script; offsets and lines are those of the file."""
    starts = [found.start() for found in _PERCENT.finditer(text)]
    edges = sorted({0, *starts, len(text)})
    trail: list[str] = []
    for start, stop in pairwise(edges):
        piece = text[start:stop]
        prose = _PERCENT_PROSE.match(piece) is not None
        if prose:
            for heading in _COMMENT_HEADING.finditer(piece):
                level = len(heading[1])
                trail[level - 1 :] = [""] * (level - 1 - len(trail)) + [heading[2].strip()]
        name = JOINT.join(filter(None, trail)) or None
        slices = TextRows(piece).all_slices(name, prose_cost) if prose else cut_cell(piece, "python", name)
        shifted = [(start + a, start + b, title) for a, b, title in slices]
        yield NotebookCell(None, Part.DOC if prose else Part.CODE, text, shifted)


def cut_cell(source: str, language: str, name: str | None) -> list[Slice]:
    """A code cell: whole if it fits, else cut like a file; ``name`` is for the parts that define nothing."""
    whole = TextRows(source).all_slices(name, code_cost)
    if len(whole) <= 1:
        return whole
    magic = re.match(r"\s*%%(\w+)", source)
    language = _MAGIC_LANGUAGES.get(magic[1], language) if magic else language
    return [(start, end, title or name) for start, end, title in cut_code(source, language)]


def _cut_prose(source: str, trail: Trail) -> list[Slice]:
    """A Markdown cell: whole if it fits (its author made it one), else by its sections."""
    whole = TextRows(source).all_slices(None, prose_cost)
    if len(whole) > 1:
        return cut_markup(source, "markdown", trail)
    name = JOINT.join(filter(None, trail_after(source, trail))) or None
    return [(start, end, name) for start, end, _ in whole]


def _load(text: str) -> dict[str, Any]:
    try:
        book = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"The notebook is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}", _FIX
        ) from None
    except (RecursionError, ValueError) as error:
        raise FormatError(f"The notebook is not usable JSON: {error}", _FIX) from None
    if not isinstance(book, dict):
        raise FormatError(f"The notebook is a JSON {type(book).__name__}, not an object", _FIX)
    return book


def _cells(book: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[Any] = []
    if "worksheets" in book:
        sheets = book["worksheets"]
        if not isinstance(sheets, list) or not all(
            isinstance(s, dict) and isinstance(s.get("cells"), list) for s in sheets
        ):
            raise FormatError("The notebook's 'worksheets' are not lists of cells", _FIX)
        found = [cell for sheet in sheets for cell in sheet["cells"]]
    elif isinstance(book.get("cells"), list):
        found = book["cells"]
    else:
        raise FormatError("The notebook has no list of 'cells'", _FIX)
    for number, cell in enumerate(found):
        if not isinstance(cell, dict):
            raise FormatError(f"Notebook cell {number + 1} is a JSON {type(cell).__name__}, not an object", _FIX)
    return found


def _source(cell: dict[str, Any], number: int) -> str:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise FormatError(f"Notebook cell {number + 1} has a source that is not text", _FIX)
    # JSON can spell half a surrogate pair, which no database takes.
    return source.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _language(book: dict[str, Any]) -> str:
    metadata = book.get("metadata")
    names: list[Any] = []
    if isinstance(metadata, dict):
        for key, field in (("language_info", "name"), ("kernelspec", "language")):
            entry = metadata.get(key)
            names.append(entry.get(field) if isinstance(entry, dict) else None)
    name = next((name.lower() for name in names if isinstance(name, str) and name), "python")
    return _KERNEL_LANGUAGES.get(name, name)

"""Prose to slices: a section is what a reader cites, so a section is a chunk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from outcrop.chunking import headings
from outcrop.chunking.headings import DocumentStructure
from outcrop.chunking.rows import CEILING, TARGET, Slice, TextRows, avoid_inside, prose_cost

# Tokens below which a section goes with its parent.
SCRAP = CEILING // 10

# Between the headings of a trail.
JOINT = " > "

Trail = tuple[str, ...]


@dataclass(slots=True)
class _Section:
    """Rows under one heading, up to the next heading of any level; ``bare`` is one without a body of its own."""

    first: int
    stop: int
    trail: Trail
    weight: int
    bare: bool


def cut_markup(text: str, language: str, above: Trail = ()) -> list[Slice]:
    """One slice per section, named by its heading trail, which begins with ``above``."""
    structure = headings.read_headings(text, language)
    lines = [0, *(m.end() for m in re.finditer("\n", text)), len(text)]
    cuts = [lines[heading.line] + heading.offset for heading in structure.headings if heading.offset]
    rows = TextRows(text, cuts)
    # Where lines are cut further (HTML on one line), rows are not lines, and nothing solid can be guarded.
    cost = prose_cost if cuts else avoid_inside(prose_cost, structure.solid)
    slices: list[Slice] = []
    for section in _merge_small(_sections(rows, lines, structure, above)):
        slices += rows.slices(section.first, section.stop, JOINT.join(section.trail) or None, cost)
    return slices


def cut_posts(text: str) -> list[Slice]:
    """One slice per comment or post, all named by the subject, which is the text's first line.

    A line with a form feed alone separates two of them. A subject alone before the first post is no slice of its own.
    """
    subject = text.partition("\n")[0].strip()
    name = subject[: headings.TITLE_LIMIT] or None
    edges = [(0, 0), *(found.span() for found in re.finditer(r"^\f[ \t]*$", text, re.MULTILINE)), (len(text), 0)]
    posts = [(start, stop) for (_, start), (stop, _) in pairwise(edges) if text[start:stop].strip()]
    if len(posts) > 1 and text[slice(*posts[0])].strip() == subject:
        del posts[0]
    slices: list[Slice] = []
    for start, stop in posts:
        slices += [(start + a, start + b, name) for a, b, _ in TextRows(text[start:stop]).all_slices(name, prose_cost)]
    return slices


def trail_after(text: str, above: Trail) -> Trail:
    """The heading trail at the end of a Markdown cell: a title a level, empty where the document leaves a level out."""
    trail = list(above)
    for heading in headings.read_markdown(text).headings:
        trail[heading.level - 1 :] = [""] * (heading.level - 1 - len(trail)) + [heading.title]
    return tuple(trail)


def _sections(rows: TextRows, lines: list[int], structure: DocumentStructure, above: Trail) -> list[_Section]:
    row_at = {offset: row for row, offset in enumerate(rows.starts[:-1])}
    prefix = tuple(title for title in above if title)
    trail: list[tuple[int, str]] = []
    if structure.title and all(heading.level > 1 for heading in structure.headings):
        trail.append((0, structure.title))
    marks: list[tuple[int, int, Trail]] = [(0, 0, (*prefix, *(title for _, title in trail)))]
    for heading in structure.headings:
        while trail and trail[-1][0] >= heading.level:
            trail.pop()
        if heading.title:
            trail.append((heading.level, heading.title))
        marks.append(
            (row_at[lines[heading.line] + heading.offset], heading.lines, (*prefix, *(title for _, title in trail)))
        )
    sections: list[_Section] = []
    for (first, height, names), (stop, *_) in zip(marks, [*marks[1:], (len(rows), 0, ())], strict=True):
        if not rows.blank_between(first, stop):
            weight = rows.weight(first, stop)
            empty = height > 0 and rows.blank_between(min(first + height, stop), stop)
            opening = height == 0 and first == 0 and weight < SCRAP
            sections.append(_Section(first, stop, names, weight, empty or opening))
    return sections


def _merge_small(sections: list[_Section]) -> list[_Section]:
    """Join bare headings to the section below, and scraps to the section above, within one parent section."""
    merged: list[_Section] = []
    for section in sections:
        last = merged[-1] if merged else None
        if last is None:
            merged.append(section)
        elif last.bare and _below(section, last) and last.weight + section.weight <= CEILING:
            merged[-1] = _Section(last.first, section.stop, section.trail, last.weight + section.weight, section.bare)
        elif (
            section.weight < SCRAP
            and not section.bare
            and last.weight + section.weight <= TARGET
            and (_under(section.trail, last.trail) or _siblings(section, last))
        ):
            trail = last.trail if _under(section.trail, last.trail) else section.trail[:-1]
            merged[-1] = _Section(last.first, section.stop, trail, last.weight + section.weight, False)
        else:
            merged.append(section)
    return merged


def _below(section: _Section, last: _Section) -> bool:
    # The few words before the first heading go with any section.
    return last.first == 0 or _under(section.trail, last.trail)


def _under(inner: Trail, outer: Trail) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _siblings(section: _Section, last: _Section) -> bool:
    return last.weight < SCRAP and len(section.trail) > 1 and section.trail[:-1] == last.trail[:-1]

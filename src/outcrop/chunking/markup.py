"""Prose to slices: a section is what a reader cites, so a section is a chunk.

A heading without a body goes with the section below it, a section of one line with the section it belongs to, and a
section that is too long is cut between paragraphs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from outcrop.chunking import headings
from outcrop.chunking.headings import Layout
from outcrop.chunking.rows import CEILING, TARGET, Slice, TextRows, guarded, prose_cost

# Tokens below which a section goes with its parent.
SCRAP = CEILING // 10

# Between the headings of a trail.
JOINT = " > "

Trail = tuple[str, ...]


@dataclass(slots=True)
class _Section:
    """Rows under one heading, up to the next heading of any level. ``bare``: nothing there that stands alone."""

    first: int
    stop: int
    trail: Trail
    weight: int
    bare: bool


def cut_markup(text: str, language: str, above: Trail = ()) -> list[Slice]:
    """One slice per section, named by its heading trail.

    Args:
        text: The whole document, or one cell.
        language: One of ``headings.FORMATS``.
        above: Headings that this text stands under.
    """
    layout = headings.read(text, language)
    lines = [0, *(m.end() for m in re.finditer("\n", text)), len(text)]
    cuts = [lines[heading.line] + heading.offset for heading in layout.headings if heading.offset]
    rows = TextRows(text, cuts)
    # Where lines are cut further (HTML on one line), rows are no longer lines, and there is nothing solid to guard.
    cost = prose_cost if cuts else guarded(prose_cost, layout.solid)
    slices: list[Slice] = []
    for section in _tidy(_sections(rows, lines, layout, above)):
        slices += rows.slices(section.first, section.stop, JOINT.join(section.trail) or None, cost)
    return slices


def cut_posts(text: str) -> list[Slice]:
    """One slice per comment or post, all named by the subject, which is the text's first line.

    A line that holds a form feed alone stands between two of them. A subject that stands alone before the first post is
    no slice of its own.
    """
    subject = text.partition("\n")[0].strip()
    name = subject[: headings.TITLE_LIMIT] or None
    edges = [(0, 0), *(found.span() for found in re.finditer(r"^\f[ \t]*$", text, re.MULTILINE)), (len(text), 0)]
    posts = [(start, stop) for (_, start), (stop, _) in pairwise(edges) if text[start:stop].strip()]
    if len(posts) > 1 and text[slice(*posts[0])].strip() == subject:
        del posts[0]
    slices: list[Slice] = []
    for start, stop in posts:
        rows = TextRows(text[start:stop])
        slices += [(start + a, start + b, name) for a, b, name in rows.slices(0, len(rows), name, prose_cost)]
    return slices


def trail_after(text: str, above: Trail) -> Trail:
    """The heading trail that holds at the end of a Markdown cell, for the cells below it.

    Args:
        text: The cell.
        above: The trail that held at its beginning, one heading a level; empty strings where a level was left out.
    """
    trail = list(above)
    for heading in headings.read_markdown(text).headings:
        trail[heading.level - 1 :] = [""] * (heading.level - 1 - len(trail)) + [heading.title]
    return tuple(trail)


def _sections(rows: TextRows, lines: list[int], layout: Layout, above: Trail) -> list[_Section]:
    row_at = {offset: row for row, offset in enumerate(rows.starts[:-1])}
    prefix = tuple(title for title in above if title)
    trail: list[tuple[int, str]] = []
    if layout.title and all(heading.level > 1 for heading in layout.headings):
        trail.append((0, layout.title))
    marks: list[tuple[int, int, Trail]] = [(0, 0, (*prefix, *(title for _, title in trail)))]
    for heading in layout.headings:
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


def _tidy(sections: list[_Section]) -> list[_Section]:
    """Give bare headings to the section below and scraps to the section above, where those are their kin."""
    tidy: list[_Section] = []
    for section in sections:
        last = tidy[-1] if tidy else None
        if last is None:
            tidy.append(section)
        elif last.bare and _below(section, last) and last.weight + section.weight <= CEILING:
            tidy[-1] = _Section(last.first, section.stop, section.trail, last.weight + section.weight, section.bare)
        elif (
            section.weight < SCRAP
            and not section.bare
            and last.weight + section.weight <= TARGET
            and (_under(section.trail, last.trail) or _siblings(section, last))
        ):
            trail = last.trail if _under(section.trail, last.trail) else section.trail[:-1]
            tidy[-1] = _Section(last.first, section.stop, trail, last.weight + section.weight, False)
        else:
            tidy.append(section)
    return tidy


def _below(section: _Section, last: _Section) -> bool:
    """Whether a bare heading, or the few words before the first heading, may go with a section."""
    return last.first == 0 or _under(section.trail, last.trail)


def _under(inner: Trail, outer: Trail) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _siblings(section: _Section, last: _Section) -> bool:
    """Two scraps under one parent."""
    return last.weight < SCRAP and len(section.trail) > 1 and section.trail[:-1] == last.trail[:-1]

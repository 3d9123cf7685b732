"""Hits as a person sees them: where, what, how near and why, with the lines that matter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from outcrop.core.model import Answer, Copy, Hit, Kind, Mode
from outcrop.surfaces.render import clock, excerpt, harmless_line, passage
from outcrop.surfaces.web.pages.highlight import Shown, dedent, dress, reads_as_prose
from outcrop.surfaces.web.pages.links import Link, Place
from outcrop.surfaces.web.pages.urls import Addresses

# Lines of a passage on the results page: enough to judge it.
SHOWN_LINES = 9

# Lines that are shown more, above and below, each time somebody asks.
AROUND = 12

OTHER_PATHS = 3

# What each way of being found is called, and the same in full.
FOUND_BY = {
    Mode.SEMANTIC: ("by meaning", "found by its meaning alone"),
    Mode.KEYWORD: ("by words", "found by its words alone"),
    Mode.HYBRID: ("by both", "found by its meaning and by its words"),
}


@dataclass(frozen=True, slots=True)
class Score:
    """A score in words.

    Attributes:
        value: 0 to 1.
        text: As it is printed.
        meaning: What the number says.
    """

    value: float
    text: str
    meaning: str

    @property
    def width(self) -> str:
        """For a bar of 100 units."""
        return f"{100 * self.value:.0f}"


@dataclass(frozen=True, slots=True)
class Card:
    """One hit on the page.

    Attributes:
        number: Its place, from 1.
        folder: The path's folders, with a slash at the end.
        file: The path's last part, or what stands for a path.
        where: Its lines in words; empty where lines mean nothing.
        title: Name of the definition or heading trail; empty without one.
        hit: The hit.
        score: How near it is.
        found_by: Short, and in full.
        links: The first is where the title leads.
        more: Address of the same artifact with more lines around these.
        lines: Those that are shown.
        left: How many of the passage are not.
        prose: Whether they are running text.
        others: Other paths with the same content.
        uncounted: How many more of these there are.
        copies: Other places with nearly the same text.
        uncounted_copies: How many more of these there are.
        project: Slug to be shown; empty for this repository's own.
    """

    number: int
    folder: str
    file: str
    where: str
    title: str
    hit: Hit
    score: Score
    found_by: tuple[str, str]
    links: Sequence[Link]
    more: str
    lines: Sequence[Shown]
    left: int
    prose: bool
    others: Sequence[str]
    uncounted: int
    copies: Sequence[Link]
    uncounted_copies: int
    project: str


def card(
    number: int,
    hit: Hit,
    answer: Answer,
    wanted: Collection[str],
    links: Sequence[Link],
    copies: Sequence[Link],
    query: str,
    at: Addresses,
) -> Card:
    """Describe a hit.

    Args:
        number: Its place, from 1.
        hit: What was found.
        answer: What it is a hit of.
        wanted: Terms of the question.
        links: To its artifact.
        copies: To the first of its copies.
        query: The question.
        at: The page's addresses.
    """
    lines = passage(hit.text, hit.lines[0], wanted)
    shown = excerpt(lines, SHOWN_LINES)
    # Two lines too many are better shown than hidden behind a link of their own.
    shown = lines if len(lines) <= SHOWN_LINES + 2 else shown
    folder, file = place_parts(hit.kind, hit.path, hit.hash, record="" if hit.record is None else hit.record.id)
    others = [harmless_line(each) for each in hit.paths if each != hit.path]
    return Card(
        number=number,
        folder=folder,
        file=file,
        where=lines_in_words(hit),
        title=harmless_line(hit.name or ""),
        hit=hit,
        score=score_of(hit, answer),
        found_by=FOUND_BY[hit.mode],
        links=[*links, *asset_links(hit)],
        more=more_lines(hit, query, at),
        lines=dress(dedent(shown), hit.path, hit.kind),
        left=len(lines) - len(shown),
        prose=reads_as_prose(hit.kind, hit.path),
        others=others[:OTHER_PATHS],
        uncounted=max(0, len(others) - OTHER_PATHS),
        copies=copies,
        uncounted_copies=len(hit.copies) - len(copies),
        project=hit.project,
    )


def place_parts(kind: Kind, path: str | None, hash: str, record: str = "") -> tuple[str, str]:
    """Folders and last part of where something is, safe to show."""
    if path is None:
        return "", harmless_line(record) or f"{kind.value.capitalize()} {hash[:10]}"
    if kind is Kind.WIKI:
        return "", harmless_line(path)
    if kind is Kind.TECHNOTE:
        return "", f"Technote {harmless_line(path[:10])}"
    folder, slash, file = harmless_line(path).rpartition("/")
    return folder + slash, file


def lines_in_words(hit: Hit) -> str:
    """``line 12``, ``lines 12–40``, ``cell 3, lines 1–9``, ``0:41–1:16``; empty where lines mean nothing."""
    first, last = hit.lines
    if hit.start is not None and hit.end is not None:
        return f"{clock(hit.start)}–{clock(hit.end)}"
    lines = f"line {first}" if first == last else f"lines {first}–{last}"
    if hit.cell is not None:
        return f"cell {hit.cell + 1}, {lines}"
    return "" if hit.path is None or hit.kind in (Kind.WIKI, Kind.TECHNOTE) else lines


def asset_links(hit: Hit) -> list[Link]:
    """To the moment in a recording, where it is on the web."""
    if hit.uri is None or not hit.uri.lower().startswith(("https://", "http://")):
        return []
    return [Link(hit.uri, "Open the recording" if hit.start is None else f"Play from {clock(hit.start)}", outside=True)]


def score_of(hit: Hit, answer: Answer) -> Score:
    """The score in words; a keyword answer's is on a scale of its own."""
    if answer.mode is Mode.KEYWORD:
        return Score(hit.score, f"{100 * hit.score:.0f} %", "of the words' score of this answer's best hit")
    meaning = "similarity of meaning, from 0 (none) to 1 (the same text)"
    return Score(hit.score, f"{hit.score:.2f}", meaning)


def more_lines(hit: Hit, query: str, at: Addresses) -> str:
    """Address of the viewer's part that shows a hit with more lines around it."""
    first, last = hit.lines
    return at.view(
        ("path", hit.path),
        ("hash", hit.hash),
        ("project", hit.project),
        ("cell", None if hit.cell is None else hit.cell + 1),
        ("lines", f"{first}-{last}"),
        ("around", AROUND),
        ("q", query),
    )


def place_of(hit: Hit | Copy) -> Place:
    """What a link has to know of a hit, or of a copy of one."""
    return Place(hit.kind, hit.project, hit.path, hit.hash, hit.lines, hit.cell)


def copy_link(copy: Copy, links: Sequence[Link]) -> Link:
    """Where a copy stands, leading there if anything does."""
    place = "".join(place_parts(copy.kind, copy.path, copy.hash))
    project = f"{harmless_line(copy.project)}: " if copy.project else ""
    where = "" if copy.path is None else f":{copy.lines[0]}"
    if copy.cell is not None:
        where = f" cell {copy.cell + 1}"
    return Link(links[0].href if links else "", f"{project}{place}{where}")

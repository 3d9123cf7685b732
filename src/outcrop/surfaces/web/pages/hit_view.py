"""A hit for the search page: location, name, score, reason, and the lines that matter."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from outcrop.core.model import Answer, Copy, Hit, Kind, Mode
from outcrop.surfaces.render import clock, excerpt, harmless_line, passage
from outcrop.surfaces.web.pages.highlight import dedent, highlight, reads_as_prose
from outcrop.surfaces.web.pages.links import Link, LinkTarget, viewer_address
from outcrop.surfaces.web.pages.urls import Addresses

# Lines of a passage on the search page.
SHOWN_LINES = 9

# Lines that "Show more around" adds above and below.
AROUND = 12

# Other paths and near-duplicates that are named.
OTHER_PATHS = 3

# Short and long label of each mode.
FOUND_BY = {
    Mode.SEMANTIC: ("by meaning", "found by its meaning alone"),
    Mode.KEYWORD: ("by words", "found by its words alone"),
    Mode.HYBRID: ("by both", "found by its meaning and by its words"),
}


class HitView:
    """One hit on the page: the first of ``links`` is for its title, ``more`` leads to the lines around."""

    def __init__(
        self,
        number: int,
        hit: Hit,
        answer: Answer,
        terms: Collection[str],
        links: Sequence[Link],
        copies: Sequence[Link],
        query: str,
        at: Addresses,
    ) -> None:
        self.number = number
        self.hit = hit
        self.project = hit.project
        record = "" if hit.record is None else hit.record.id
        self.folder, self.file = split_location(hit.kind, hit.path, hit.hash, record)
        self.where = _lines_in_words(hit)
        self.title = harmless_line(hit.name or "")
        self.found_by = FOUND_BY[hit.mode]
        if answer.mode is Mode.KEYWORD:
            self.score, self.score_meaning = f"{100 * hit.score:.0f} %", "share of the word score of the best hit"
        else:
            self.score, self.score_meaning = f"{hit.score:.2f}", "similarity of meaning, 0 to 1 (the same text)"
        self.links = list(links)
        if hit.uri is not None and hit.uri.lower().startswith(("https://", "http://")):
            label = "Open the recording" if hit.start is None else f"Play from {clock(hit.start)}"
            self.links.append(Link(hit.uri, label, outside=True))
        self.more = viewer_address(at, target_of(hit), ("around", AROUND), ("q", query))
        lines = passage(hit.text, hit.lines[0], terms)
        # One or two lines more are shown instead of a link to them.
        shown = lines if len(lines) <= SHOWN_LINES + 2 else excerpt(lines, SHOWN_LINES)
        self.lines = highlight(dedent(shown), hit.path, hit.kind)
        self.hidden_lines = len(lines) - len(shown)
        self.prose = reads_as_prose(hit.kind, hit.path)
        others = [harmless_line(path) for path in hit.paths if path != hit.path]
        self.other_paths, self.more_paths = others[:OTHER_PATHS], max(0, len(others) - OTHER_PATHS)
        self.copies, self.more_copies = copies, len(hit.copies) - len(copies)


def split_location(kind: Kind, path: str | None, content_hash: str, record: str = "") -> tuple[str, str]:
    if path is None:
        return "", harmless_line(record) or f"{kind.value.capitalize()} {content_hash[:10]}"
    if kind is Kind.WIKI:
        return "", harmless_line(path)
    if kind is Kind.TECHNOTE:
        return "", f"Technote {harmless_line(path[:10])}"
    folder, slash, file = harmless_line(path).rpartition("/")
    return folder + slash, file


def _lines_in_words(hit: Hit) -> str:
    first, last = hit.lines
    if hit.start is not None and hit.end is not None:
        return f"{clock(hit.start)}–{clock(hit.end)}"
    lines = f"line {first}" if first == last else f"lines {first}–{last}"
    if hit.cell is not None:
        return f"cell {hit.cell + 1}, {lines}"
    return "" if hit.path is None or hit.kind in (Kind.WIKI, Kind.TECHNOTE) else lines


def target_of(hit: Hit | Copy) -> LinkTarget:
    return LinkTarget(hit.kind, hit.project, hit.path, hit.hash, hit.lines, hit.cell)


def copy_link(copy: Copy, links: Sequence[Link]) -> Link:
    location = "".join(split_location(copy.kind, copy.path, copy.hash))
    project = f"{harmless_line(copy.project)}: " if copy.project else ""
    where = "" if copy.path is None else f":{copy.lines[0]}"
    if copy.cell is not None:
        where = f" cell {copy.cell + 1}"
    return Link(links[0].href if links else "", f"{project}{location}{where}")

"""The viewer: one indexed artifact with its lines, or only some of them as a part of another page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outcrop.app.documents import Block, Document
from outcrop.surfaces.render import Line, harmless_line, passage
from outcrop.surfaces.web.http import Request, Response, parse_query
from outcrop.surfaces.web.pages import highlight
from outcrop.surfaces.web.pages.cards import place_parts
from outcrop.surfaces.web.pages.excerpts import excerpt_of, parse_lines
from outcrop.surfaces.web.pages.highlight import Shown, reads_as_prose
from outcrop.surfaces.web.pages.links import Link, Links, Place
from outcrop.surfaces.web.pages.search import KIND_NAMES
from outcrop.surfaces.web.pages.templates import PageHead, fragment, page
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.view_model import Site

MOST_AROUND = 400

# Lines of one artifact on a page; whoever asks and their browser take long over more.
MOST_LINES = 3_000

# Lines that are shown above the ones asked for, where those are further down than that.
ABOVE = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """One block on the page.

    Attributes:
        heading: ``Cell 3``; empty where there is one block only.
        anchor: What the ids of its lines begin with.
        lines: Its lines.
        chosen: First and last line that are pointed at, or None.
        above: How many lines there are above these.
        below: How many there are below.
    """

    heading: str
    anchor: str
    lines: Sequence[Shown]
    chosen: tuple[int, int] | None
    above: int
    below: int


def view_page(site: Site, links: Links, request: Request) -> Response:
    """Answer ``/ext/view``: everything, or with ``part=1`` only the lines asked for, without a frame."""
    lines = parse_lines(request.get("lines"))
    cell = request.number("cell", 0, 0, 10**6) - 1
    document = site.read(
        request.reader,
        path=request.get("path") or None,
        hash=request.get("hash") or None,
        project=request.get("project"),
    )
    wanted = highlight.wanted_terms(request.get("q"), {})
    if request.get("part"):
        return _part(request, document, lines, cell if cell >= 0 else None, wanted)
    place = Place(document.kind, document.project, document.path, document.hash, lines, cell if cell >= 0 else None)
    outside = [link for link in links.of([place])[0] if link.outside]
    return page(
        request,
        "view.html",
        PageHead(harmless_line(document.path or document.hash[:10]), site.project, "view"),
        document=document,
        parts=_parts(document, lines, cell, wanted),
        place=place_parts(document.kind, document.path, document.hash),
        kind=KIND_NAMES[document.kind],
        outside=outside,
        lines=lines,
        back=_back(request),
        prose=reads_as_prose(document.kind, document.path),
        paths=[harmless_line(path) for path in document.paths[1:]],
    )


def _part(
    request: Request, document: Document, lines: tuple[int, int] | None, cell: int | None, wanted: frozenset[str]
) -> Response:
    around = request.number("around", 0, 0, MOST_AROUND)
    excerpt = excerpt_of(document, lines, cell, around)
    grow = around < MOST_AROUND and (excerpt.first_line > excerpt.lowest or excerpt.last_line < excerpt.highest)
    block = Block(excerpt.text, excerpt.first_line)
    html = fragment(
        request,
        "lines.html",
        lines=highlight.dress(highlight.dedent(_every(block, wanted)), document.path, document.kind),
        # A passage that is all there is to see needs no mark.
        chosen=lines if around else None,
        anchor="",
        numbered=True,
        grow=grow,
    )
    return Response(200, html.encode("utf-8", "replace"))


def _parts(document: Document, lines: tuple[int, int] | None, cell: int, wanted: frozenset[str]) -> list[Part]:
    several = len(document.blocks) > 1 or any(block.cell is not None for block in document.blocks)
    left = MOST_LINES
    found = []
    for block in document.blocks:
        here = cell in (-1, block.cell) or block.cell is None
        every = block.lines
        start = 0
        if lines is not None and here and lines[0] - block.first_line > MOST_LINES - ABOVE:
            start = max(0, min(lines[0] - block.first_line, len(every)) - ABOVE)
        kept = every[start : start + left]
        left -= len(kept)
        window = Block("\n".join(kept), block.first_line + start, block.cell)
        shown = highlight.dress(_every(window, wanted), document.path, document.kind) if kept else []
        cell_name = "" if block.cell is None else f"Cell {block.cell + 1}"
        heading = (cell_name or f"From line {block.first_line:,}") if several else ""
        anchor = "" if block.cell is None else f"C{block.cell + 1}-"
        below = len(every) - start - len(kept)
        found.append(Part(heading, anchor, shown, lines if here else None, start, below))
    return found


def _every(block: Block, wanted: frozenset[str]) -> list[Line]:
    """Every line of a block, blank ones at its edges too: their numbers are part of the text."""
    inner = passage(block.text, block.first_line, wanted)
    first, count = block.first_line, block.text.removesuffix("\n").count("\n") + 1
    above = [Line(number, "", ()) for number in range(first, inner[0].number if inner else first + count)]
    below = [Line(number, "", ()) for number in range(inner[-1].number + 1, first + count)] if inner else []
    return [*above, *inner, *below]


def _back(request: Request) -> Link | None:
    query = request.get("q")
    filters = [(name, value) for name, value in parse_query(request.get("from")) if name != "q"]
    return Link(Addresses(request.base).search(("q", query), *filters), "Back to the results") if query else None

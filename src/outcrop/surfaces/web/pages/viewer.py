"""The viewer: one indexed artifact with its lines, or only some of them for insertion into another page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outcrop.app.documents import Block, Document
from outcrop.surfaces.render import Line, harmless_line, passage
from outcrop.surfaces.web.http import Request, Response, parse_query
from outcrop.surfaces.web.pages.excerpts import excerpt_of, parse_lines
from outcrop.surfaces.web.pages.highlight import HtmlLine, dedent, highlight, marked_terms, reads_as_prose
from outcrop.surfaces.web.pages.hit_view import split_location
from outcrop.surfaces.web.pages.links import Link, Links, LinkTarget
from outcrop.surfaces.web.pages.search import KIND_NAMES
from outcrop.surfaces.web.pages.templates import PageHead, fragment, page
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.view_model import Site

MOST_AROUND = 400

# Lines of one artifact on a page; more are slow in a browser.
MOST_LINES = 3_000

# Lines above the requested ones, where those are further down.
ABOVE = 1_000


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block: ``anchor`` begins the ids of its lines, ``above`` and ``below`` count the lines that are not shown."""

    heading: str
    anchor: str
    lines: Sequence[HtmlLine]
    chosen: tuple[int, int] | None
    above: int
    below: int


def view_page(site: Site, links: Links, request: Request) -> Response:
    lines = parse_lines(request.get("lines"))
    cell = request.number("cell", 0, 0, 10**6) - 1
    document = site.read(
        request.reader,
        path=request.get("path") or None,
        content_hash=request.get("hash") or None,
        project=request.get("project"),
    )
    terms = marked_terms(request.get("q"), {})
    if request.get("part"):
        return _part(request, document, lines, cell if cell >= 0 else None, terms)
    back = None
    if query := request.get("q"):
        filters = [(name, value) for name, value in parse_query(request.get("from")) if name != "q"]
        back = Link(Addresses(request.base).search(("q", query), *filters), "Back to the results")
    target = LinkTarget(
        document.kind, document.project, document.path, document.hash, lines, cell if cell >= 0 else None
    )
    return page(
        request,
        "view.html",
        PageHead(harmless_line(document.path or document.hash[:10]), site.project, "view"),
        document=document,
        blocks=_block_views(document, lines, cell, terms),
        location=split_location(document.kind, document.path, document.hash),
        kind=KIND_NAMES[document.kind],
        outside=[link for link in links.to([target])[0] if link.outside],
        lines=lines,
        back=back,
        prose=reads_as_prose(document.kind, document.path),
        paths=[harmless_line(path) for path in document.paths[1:]],
    )


def _part(
    request: Request, document: Document, lines: tuple[int, int] | None, cell: int | None, terms: frozenset[str]
) -> Response:
    around = request.number("around", 0, 0, MOST_AROUND)
    excerpt = excerpt_of(document, lines, cell, around)
    grow = around < MOST_AROUND and (excerpt.first_line > excerpt.lowest or excerpt.last_line < excerpt.highest)
    block = Block(excerpt.text, excerpt.first_line)
    html = fragment(
        request,
        "lines.html",
        lines=highlight(dedent(_every_line(block, terms)), document.path, document.kind),
        # Without lines around it, the passage needs no mark.
        chosen=lines if around else None,
        anchor="",
        numbered=True,
        grow=grow,
    )
    return Response(200, html.encode("utf-8", "replace"))


def _block_views(
    document: Document, lines: tuple[int, int] | None, cell: int, terms: frozenset[str]
) -> list[BlockView]:
    several = len(document.blocks) > 1 or any(block.cell is not None for block in document.blocks)
    left = MOST_LINES
    found = []
    for block in document.blocks:
        chosen = lines if cell in (-1, block.cell) or block.cell is None else None
        every = block.lines
        start = 0
        if chosen is not None and chosen[0] - block.first_line > MOST_LINES - ABOVE:
            start = max(0, min(chosen[0] - block.first_line, len(every)) - ABOVE)
        kept = every[start : start + left]
        left -= len(kept)
        window = Block("\n".join(kept), block.first_line + start, block.cell)
        cell_name = "" if block.cell is None else f"Cell {block.cell + 1}"
        view = BlockView(
            heading=(cell_name or f"From line {block.first_line:,}") if several else "",
            anchor="" if block.cell is None else f"C{block.cell + 1}-",
            lines=highlight(_every_line(window, terms), document.path, document.kind) if kept else [],
            chosen=chosen,
            above=start,
            below=len(every) - start - len(kept),
        )
        found.append(view)
    return found


def _every_line(block: Block, terms: frozenset[str]) -> list[Line]:
    return passage(block.text.removesuffix("\n"), block.first_line, terms, trim=False)

"""The catalog page: what is indexed, how current it is, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outcrop.app.catalog import Folder, Tally
from outcrop.core.model import Kind
from outcrop.surfaces.render import harmless_line
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.search import ALL_PROJECTS, KIND_NAMES, REVISION_CHARACTERS
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.pages.treemap import HEIGHT, WIDTH, Tile, tiles
from outcrop.surfaces.web.view_model import Site
from outcrop.text.globs import escape_path

# Files that are named for each reason to leave files out.
MOST_FILES = 200

# Folders of one folder that are named; the rest is one sum.
MOST_FOLDERS = 12


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a table, with its share of the largest one, and the parameters of a search of just that."""

    label: str
    tally: Tally
    share: float
    params: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One folder in the list below the treemap; ``pattern`` is a path filter for its content."""

    label: str
    pattern: str
    depth: int
    bytes: int
    chunks: int
    share: float


@dataclass(frozen=True, slots=True)
class Tree:
    """The folders of one project."""

    name: str
    project: str
    tiles: Sequence[Tile]
    branches: Sequence[Branch]


def catalog_page(site: Site, request: Request) -> Response:
    found = site.catalog(request.reader)
    return page(
        request,
        "catalog.html",
        PageHead("Catalog", site.project, "catalog"),
        catalog=found,
        revision=harmless_line(found.current)[:REVISION_CHARACTERS],
        corpora=_rows([corpus.tally for corpus in found.corpora], "corpus"),
        stale={corpus.tally.name: corpus.stale for corpus in found.corpora},
        kinds=_rows(found.kinds, "kind"),
        projects=_rows(found.projects, "project", site.project),
        trees=[_tree(folder, site.project) for folder in found.folders if folder.bytes],
        width=WIDTH,
        height=HEIGHT,
        most=MOST_FILES,
        percent=f"{100 * found.complete:.0f}",
    )


def _rows(tallies: Sequence[Tally], noun: str, own: str = "") -> list[TableRow]:
    largest = max((tally.bytes for tally in tallies), default=0) or 1
    projects = () if noun == "project" else (("project", ALL_PROJECTS),)
    rows = []
    for tally in sorted(tallies, key=lambda tally: -tally.bytes):
        label = KIND_NAMES[Kind(tally.name)] if noun == "kind" else tally.name or f"this repository ({own})"
        rows.append(TableRow(harmless_line(label), tally, tally.bytes / largest, (*projects, (noun, tally.name))))
    return rows


def _tree(root: Folder, own: str) -> Tree:
    branches: list[Branch] = []

    def walk(folder: Folder, depth: int) -> None:
        for child in folder.children[:MOST_FOLDERS]:
            share = child.bytes / root.bytes
            label, pattern = harmless_line(child.name), f"{escape_path(child.path)}/"
            branches.append(Branch(label, pattern, depth, child.bytes, child.chunks, share))
            # Only large folders are expanded.
            if depth < 1 and share > 0.05:
                walk(child, depth + 1)
        rest = folder.children[MOST_FOLDERS:]
        if rest:
            size = sum(child.bytes for child in rest)
            chunks = sum(child.chunks for child in rest)
            branches.append(Branch(f"{len(rest):,} more folders", "", depth, size, chunks, size / root.bytes))

    walk(root, 0)
    return Tree(harmless_line(root.name) or own, root.name, tiles(root), branches)

"""The catalog page: what is indexed, how current it is, and what is left out."""

from __future__ import annotations

from outcrop.search.staleness import update_commands
from outcrop.surfaces.render import REVISION_CHARACTERS, harmless_line
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.search import ALL_PROJECTS, KIND_NAMES
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.pages.treemap import HEIGHT, WIDTH, tiles
from outcrop.surfaces.web.view_model import Site
from outcrop.text.globs import escape_path

# Files that are named for each reason to leave files out.
MOST_FILES = 200

# Folders of one folder that are named; the rest is one sum.
MOST_FOLDERS = 12

# Share of the whole above which a folder at the top shows its own folders.
EXPANDED = 0.05


def catalog_page(site: Site, request: Request) -> Response:
    found = site.catalog(request.reader)
    stale = {corpus.tally.name for corpus in found.corpora if corpus.stale}
    return page(
        request,
        "catalog.html",
        PageHead("Catalog", site.project, "catalog"),
        catalog=found,
        project=site.project,
        revision=harmless_line(found.current)[:REVISION_CHARACTERS],
        stale=stale,
        update=update_commands(sorted(stale), dict(site.index.settings.corpora)),
        trees=[(folder, tiles(folder)) for folder in found.folders if folder.bytes],
        kind_names=KIND_NAMES,
        all_projects=ALL_PROJECTS,
        escape_path=escape_path,
        width=WIDTH,
        height=HEIGHT,
        most=MOST_FILES,
        most_folders=MOST_FOLDERS,
        expanded=EXPANDED,
        percent=f"{100 * found.complete:.0f}",
    )

"""The JSON API: each operation is a function whose annotations are its arguments, their check and their description."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from outcrop.app.catalog import Catalog, shown_revision
from outcrop.core.model import Answer, Kind, Mode
from outcrop.core.reports import CollectionStatus, Status
from outcrop.core.schema import Operation
from outcrop.errors import UsageError
from outcrop.surfaces.render import to_json
from outcrop.surfaces.web.http import Reader, Request, Response
from outcrop.surfaces.web.pages.excerpts import excerpt_of, parse_lines
from outcrop.surfaces.web.pages.search import LONGEST_QUESTION, MOST
from outcrop.surfaces.web.pages.viewer import MOST_AROUND
from outcrop.surfaces.web.view_model import SearchArguments, Site

JSON = "application/json"

LONGEST_NAME = 4096
MOST_NAMES = 50
MOST_CELLS = 1_000_000

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Strings = Annotated[list[str] | None, Field(max_length=MOST_NAMES)]


@dataclass(frozen=True, slots=True)
class PassageLines:
    """Lines of one artifact.

    Numbers count from 1, cells from 0. ``state`` is that of the ``Document``.
    """

    hash: str
    kind: Kind
    project: str
    path: str | None
    state: str
    text: str
    lines: tuple[int, int]
    last_line: int
    cell: int | None


def search(
    site: Site,
    reader: Reader,
    *,
    q: Annotated[str, Field(description="the question, in any words", min_length=1, max_length=LONGEST_QUESTION)],
    k: Annotated[StrictInt, Field(description="how many hits at most", ge=1, le=MOST)] = 10,
    mode: Annotated[Mode, Field(description="by meaning and words, by meaning, or by words")] = Mode.HYBRID,
    kind: Annotated[list[Kind] | None, Field(description="only these kinds", max_length=MOST_NAMES)] = None,
    project: Annotated[Strings, Field(description="only these projects; empty for this one")] = None,
    corpus: Annotated[Strings, Field(description="only these corpora, as one ranking")] = None,
    path: Annotated[Strings, Field(description="only paths that match, in .gitignore syntax")] = None,
    min_score: Annotated[StrictFloat | None, Field(description="leave out hits that score lower", ge=0, le=1)] = None,
    explain: Annotated[StrictBool, Field(description="say of each hit what its place is made of")] = False,
) -> Answer:
    """Find the passages nearest to a question.

    The answer is the one of every surface: docs/hit.md describes it.
    """
    kinds, projects, corpora, paths = (tuple(each or ()) for each in (kind, project, corpus, path))
    asked = SearchArguments(q, mode, k, kinds, projects, corpora, paths, min_score, explain)
    return site.search(reader, asked)


def status(site: Site, reader: Reader) -> Status:
    """Say what is indexed, and how current it is.

    As ``outcrop status --json``. Readers who may not see everything get counts of what they may see, without paths.
    """
    if reader.local and reader.kinds is None:
        return site.index.status()
    return _counted(site.index.status(), site.catalog(reader), reader)


def passage(
    site: Site,
    reader: Reader,
    *,
    path: Annotated[Name | None, Field(description="its path, as a hit says it")] = None,
    content_hash: Annotated[
        Name | None,
        Field(alias="hash", description="its content address; decides between several at one path", max_length=128),
    ] = None,
    project: Annotated[str, Field(description="slug of its project; empty for this one", max_length=LONGEST_NAME)] = "",
    lines: Annotated[str, Field(description="12 or 12-40; empty for everything", max_length=20)] = "",
    around: Annotated[StrictInt, Field(description="lines more, above and below", ge=0, le=MOST_AROUND)] = 0,
    cell: Annotated[
        StrictInt | None, Field(description="0-based cell of a notebook, in which the lines count", ge=0, le=MOST_CELLS)
    ] = None,
) -> PassageLines:
    """Show lines of one indexed artifact, read through its source.

    A path or a hash is needed. Nothing that is not indexed is read.
    """
    if path is None and content_hash is None:
        raise UsageError("passage needs a path or a hash", "Take both from a hit")
    document = site.read(reader, path=path, content_hash=content_hash, project=project)
    cut = excerpt_of(document, parse_lines(lines), cell, around)
    return PassageLines(
        hash=document.hash,
        kind=document.kind,
        project=document.project,
        path=document.path,
        state=document.state,
        text=cut.text,
        lines=(cut.first_line, cut.last_line),
        last_line=cut.highest,
        cell=cut.cell,
    )


def catalog(site: Site, reader: Reader) -> Catalog:
    """Count what is indexed, by corpus, kind, project and folder.

    Also how current it is, and what was left out and why.
    """
    return site.catalog(reader)


# Every operation by its name.
OPERATIONS: Mapping[str, Operation] = {
    each.name: each
    for each in (
        Operation("search", search, Answer),
        Operation("passage", passage, PassageLines),
        Operation("status", status, Status),
        Operation("catalog", catalog, Catalog),
    )
}


def respond(site: Site, request: Request, operation: Operation) -> Response:
    result = operation.run(site, request.reader, arguments=typed(operation, request.params))
    return Response(200, to_json(result).encode("utf-8", "replace"), JSON, {"Cache-Control": "no-store"})


def typed(operation: Operation, params: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Values of a query string as the schema has them; what cannot be that stays text, and is refused later."""
    found: dict[str, Any] = {}
    for name, text in params:
        schema = operation.schema["properties"].get(name, {})
        types = {each.get("type") for each in schema.get("anyOf", [schema])}
        if "array" in types:
            found.setdefault(name, []).append(text)
        elif name in found:
            raise UsageError(f"{operation.name}: {name} is given twice", "It takes one value")
        else:
            found[name] = text
            if "string" not in types:
                with suppress(ValueError, RecursionError):
                    # A query string cannot say null: leaving the parameter out does.
                    found[name] = text if (value := json.loads(text)) is None else value
    return found


def _counted(status: Status, catalog: Catalog, reader: Reader) -> Status:
    kinds: dict[str, dict[str, int]] = defaultdict(Counter)
    for cell in catalog.cells:
        kinds[cell.corpus][cell.kind] += cell.tally.chunks
    collections = tuple(
        CollectionStatus(
            **asdict(each.tally) | {"name": f"{each.tally.name}-{catalog.space}"},
            corpus=each.tally.name,
            kinds=dict(kinds[each.tally.name]),
        )
        for each in catalog.corpora
    )
    return replace(
        status,
        root="",
        store="",
        bytes=catalog.bytes or catalog.total.bytes,
        revision=shown_revision(status.revision, reader.kinds),
        current=shown_revision(status.current, reader.kinds) or "",
        complete=catalog.complete,
        address=None,
        collections=collections,
        spaces=catalog.spaces,
        skipped=() if catalog.omissions_hidden else status.skipped,
        cut_by_lines=() if catalog.omissions_hidden else status.cut_by_lines,
    )

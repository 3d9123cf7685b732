"""The JSON API: each operation is a function whose annotations are its arguments, their check and their description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from outcrop.app.catalog import Catalog
from outcrop.core.model import Answer, Kind, Mode
from outcrop.core.reports import CollectionStatus, Status
from outcrop.core.schema import Limits, Schema, check_arguments, schema_of
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


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked.

    Attributes:
        name: Last part of its address.
        summary: What it does, in one sentence.
        description: The same at length.
        schema: JSON Schema of its arguments.
        result: The dataclass that it answers with.
        function: Does it.
    """

    name: str
    summary: str
    description: str
    schema: Schema
    result: type
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of one artifact.

    Attributes:
        hash: Content address of what they are lines of.
        kind: Its kind.
        project: Slug of its repository; empty for this one.
        path: Where it stands; null for what has no path.
        state: ``indexed``, ``changed`` since, or only what is ``stored``.
        text: The lines.
        lines: First and last, 1-based, inclusive (inside the cell for a notebook).
        last_line: The last line that there is.
        cell: 0-based cell in a notebook, or null.
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
    q: Annotated[str, "the question, in any words", Limits(1, LONGEST_QUESTION)],
    k: Annotated[int, "how many hits at most", Limits(1, MOST)] = 10,
    mode: Annotated[Mode, "by meaning and words, by meaning, or by words"] = Mode.HYBRID,
    kind: Annotated[list[Kind] | None, "only these kinds", Limits(0, MOST_NAMES)] = None,
    project: Annotated[list[str] | None, "only these projects; empty for this one", Limits(0, MOST_NAMES)] = None,
    corpus: Annotated[list[str] | None, "only these corpora, as one ranking", Limits(0, MOST_NAMES)] = None,
    path: Annotated[list[str] | None, "only paths that match, in .gitignore syntax", Limits(0, MOST_NAMES)] = None,
    min_score: Annotated[float | None, "leave out hits whose vectors are less near", Limits(0, 1)] = None,
    explain: Annotated[bool, "say of each hit what its place is made of"] = False,
) -> Answer:
    """Find the passages nearest to a question.

    The answer is the one of every surface: docs/hit.md describes it.
    """
    kinds, projects, corpora, paths = (tuple(each or ()) for each in (kind, project, corpus, path))
    asked = SearchArguments(q, mode, k, kinds, projects, corpora, paths, min_score, explain)
    return site.search(reader, asked)


def status(site: Site, reader: Reader) -> Status:
    """Say what is indexed, and how current it is.

    As ``outcrop status --json``. Whoever may not see everything gets counts of what they may see, and no places.
    """
    if reader.local and reader.kinds is None:
        return site.index.status()
    return _counted(site.index.status(), site.catalog(reader), reader)


def passage(
    site: Site,
    reader: Reader,
    *,
    path: Annotated[str | None, "where it stands, as a hit says it", Limits(1, LONGEST_NAME)] = None,
    hash: Annotated[str | None, "its content address; decides between several at one path", Limits(1, 128)] = None,
    project: Annotated[str, "slug of its repository; empty for this one", Limits(0, LONGEST_NAME)] = "",
    lines: Annotated[str, "12 or 12-40; empty for everything", Limits(0, 20)] = "",
    around: Annotated[int, "lines more, above and below", Limits(0, MOST_AROUND)] = 0,
    cell: Annotated[int | None, "0-based cell of a notebook, in which the lines count", Limits(0, 1_000_000)] = None,
) -> Passage:
    """Show lines of one indexed artifact, read through its source.

    A path or a hash is needed. Nothing that is not indexed is read.
    """
    if path is None and hash is None:
        raise UsageError("passage needs a path or a hash", "Take both from a hit")
    document = site.read(reader, path=path, content_hash=hash, project=project)
    cut = excerpt_of(document, parse_lines(lines), cell, around)
    return Passage(
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


def _operation(function: Callable[..., Any], result: type) -> Operation:
    summary, _, rest = (function.__doc__ or "").partition("\n")
    description = " ".join([summary, *rest.split()])
    return Operation(function.__name__, summary, description, schema_of(function), result, function)


# Every operation by its name.
OPERATIONS: Mapping[str, Operation] = {
    each.name: each
    for each in (
        _operation(search, Answer),
        _operation(passage, Passage),
        _operation(status, Status),
        _operation(catalog, Catalog),
    )
}


def respond(site: Site, request: Request, operation: Operation) -> Response:
    """Check the arguments, do it, and answer with JSON."""
    arguments = typed(operation, request.params)
    check_arguments(operation.function, arguments, operation.name)
    result = operation.function(site, request.reader, **arguments)
    return Response(200, to_json(result).encode("utf-8", "replace"), JSON, {"Cache-Control": "no-store"})


def typed(operation: Operation, params: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Values of a query string as what the schema says they are; what cannot be that stays text, and is refused
    later.
    """
    found: dict[str, Any] = {}
    for name, text in params:
        types = _types(operation.schema["properties"].get(name, {}))
        if "array" in types:
            found.setdefault(name, []).append(text)
        elif name in found:
            raise UsageError(f"{operation.name}: {name} is given twice", "It takes one value")
        else:
            found[name] = _typed(text, types)
    return found


def _types(schema: Schema) -> set[str]:
    return {each.get("type", "") for each in schema.get("anyOf", [schema])}


def _typed(text: str, types: set[str]) -> Any:
    if "integer" in types and text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 20:
        return int(text)
    if "number" in types:
        try:
            return float(text)
        except ValueError:
            return text
    if "boolean" in types:
        return {"true": True, "false": False}.get(text, text)
    return text


def _counted(status: Status, catalog: Catalog, reader: Reader) -> Status:
    """A status with the numbers of a catalog, and without places."""
    kinds: dict[str, dict[str, int]] = {}
    for cell in catalog.cells:
        own = kinds.setdefault(cell.corpus, {})
        own[cell.kind] = own.get(cell.kind, 0) + cell.tally.chunks
    collections = tuple(
        CollectionStatus(
            name=f"{each.tally.name}-{catalog.space}",
            corpus=each.tally.name,
            artifacts=each.tally.artifacts,
            chunks=each.tally.chunks,
            embedded=each.tally.embedded,
            characters=each.tally.characters,
            bytes=each.tally.bytes,
            kinds=kinds.get(each.tally.name, {}),
        )
        for each in catalog.corpora
    )
    return replace(
        status,
        root="",
        store="",
        bytes=catalog.bytes or catalog.total.bytes,
        revision=status.revision if reader.sees_files else None,
        current=status.current if reader.sees_files else "",
        complete=catalog.complete,
        address=None,
        collections=collections,
        spaces=catalog.spaces,
        skipped=() if catalog.omissions_hidden else status.skipped,
    )

"""The search page: one form, its answer, and what to do when there is none."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from outcrop.core.model import Answer, Kind, Mode
from outcrop.errors import OutcropError, UsageError
from outcrop.search.parse import replace_words
from outcrop.surfaces.render import corrections, explain, harmless_line, outcome, staleness
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.highlight import marked_terms
from outcrop.surfaces.web.pages.hit_view import OTHER_PATHS, HitView, copy_link, target_of
from outcrop.surfaces.web.pages.links import Links
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.view_model import Facets, SearchArguments, Site
from outcrop.text import globs

PAGE = 10
MOST = 100
LONGEST_QUESTION = 2_000
LONGEST_FILTERS = 1_000

# Value of the project filter for every project; without a value only this repository is searched.
ALL_PROJECTS = "*"

MODES = (
    (Mode.HYBRID, "≈ hybrid", "by meaning and by words"),
    (Mode.SEMANTIC, "≈ semantic", "by meaning"),
    (Mode.KEYWORD, "keyword", "by words"),
)

KIND_NAMES = {
    Kind.DOC: "documents",
    Kind.WIKI: "wiki",
    Kind.TECHNOTE: "technotes",
    Kind.TICKET: "tickets",
    Kind.FORUM: "forum",
    Kind.CODE: "code",
    Kind.INSTRUCTION: "instructions",
    Kind.MEDIA: "media",
    Kind.API: "API",
    Kind.COMMIT: "commits",
}

TITLE_CHARACTERS = 80


# Level (``warn`` or ``info``), text and fix; commands in them are between backquotes.
Notice = tuple[str, str, str]


def search_page(site: Site, links: Links, request: Request) -> Response:
    """Answer ``/ext/search``; an error is shown above the same form."""
    facets = site.facets(request.reader)
    arguments = parse_search(request, facets, site.project)
    results: dict[str, Any] | None = None
    failure: Notice | None = None
    status = 200
    if arguments.query.strip():
        try:
            results = _results(site, links, request, arguments)
        except OutcropError as error:
            what, fix = (site.redact_paths(request.reader, text) for text in explain(error))
            failure, status = ("warn", harmless_line(what), harmless_line(fix)), outcome(error).http
    query = arguments.query
    shown = query if len(query) <= TITLE_CHARACTERS else f"{query[: TITLE_CHARACTERS - 1]}…"
    return page(
        request,
        "search.html",
        PageHead(f"{shown} – search" if shown else "Search", site.project, "search"),
        status,
        arguments=arguments,
        mode=arguments.mode if arguments.mode in set(Mode) else Mode.HYBRID,
        narrowed=arguments.kind or arguments.corpus or arguments.path or arguments.project not in ((), ("",)),
        modes=MODES,
        results=results,
        failure=failure,
        facets=facets,
        own=site.project,
        project=request.get("project") or site.project,
        all_projects=ALL_PROJECTS,
        kinds=facets.kinds(
            ["" if name == site.project else name for name in arguments.project],
            arguments.corpus[0] if arguments.corpus else "",
        ),
        kind_names=KIND_NAMES,
    )


def parse_search(request: Request, facets: Facets, own: str) -> SearchArguments:
    """The question in the address. Without a project it is about this repository, whose slug is ``own``."""
    project = request.get("project")
    projects: tuple[str, ...] = () if project == ALL_PROJECTS else (project,)
    if project in ("", own) and facets.exists and "" not in facets.projects:
        # Nothing of this repository itself is indexed, only other projects.
        projects = ()
    return SearchArguments(
        query=request.get("q")[:LONGEST_QUESTION],
        mode=request.get("mode") or Mode.HYBRID,
        k=request.number("k", PAGE, 1, MOST),
        kind=request.all("kind"),
        project=projects,
        corpus=request.all("corpus"),
        path=tuple(part for text in request.all("path") for part in globs.split_patterns(text)),
    )


def _results(site: Site, links: Links, request: Request, arguments: SearchArguments) -> dict[str, Any]:
    started = time.monotonic()
    if arguments.mode not in set(Mode):
        raise UsageError(f"there is no mode {arguments.mode!r}", f"There is: {', '.join(Mode)}")
    answer = site.search(request.reader, arguments)
    seconds = time.monotonic() - started
    at = Addresses(request.base)
    terms = marked_terms(arguments.query, answer.corrected)
    copies = [hit.copies[:OTHER_PATHS] for hit in answer.hits]
    targets = [target_of(hit) for hit in answer.hits] + [target_of(copy) for each in copies for copy in each]
    # A page that is opened from here marks the searched words, and leads back.
    query = replace_words(arguments.query, answer.corrected)
    filters = urlencode([(name, value) for name, value in request.params if value and name not in ("q", "token")])
    linked = iter(links.to(targets, query, filters[:LONGEST_FILTERS]))
    hit_links = list(islice(linked, len(answer.hits)))
    copy_links = [[copy_link(copy, next(linked)) for copy in each] for each in copies]
    hits = [
        HitView(number, hit, answer, terms, own, near, query, at)
        for number, (hit, own, near) in enumerate(zip(answer.hits, hit_links, copy_links, strict=True), 1)
    ]
    more = _more(request, arguments, answer, at)
    return {"answer": answer, "hits": hits, "notices": _notices(answer), "seconds": seconds, "more": more}


def _more(request: Request, arguments: SearchArguments, answer: Answer, at: Addresses) -> str:
    if len(answer.hits) < arguments.k or arguments.k >= MOST:
        return ""
    kept = [(name, value) for name, value in request.params if name not in ("k", "token")]
    return f"{at.search(*kept, ('k', min(MOST, arguments.k + PAGE)))}#hit-{arguments.k + 1}"


def _notices(answer: Answer) -> list[Notice]:
    found = [("info", f"{line}.", "") for line in corrections(answer)]
    if answer.reason:
        level = "warn" if answer.mode is Mode.KEYWORD else "info"
        reason = harmless_line(answer.reason)
        found.append((level, reason[:1].upper() + reason[1:], ""))
    if answer.stale is not None:
        found.append(("info", f"The index is behind: {staleness(answer.stale)}.", f"`{answer.stale.update}`"))
    return found

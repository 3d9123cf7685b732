"""The search page: one form, its answer, and what to do when there is none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode

from outcrop.core.model import Answer, Kind, Mode
from outcrop.errors import OutcropError, UsageError
from outcrop.search.parse import replace_words
from outcrop.surfaces.render import explain, harmless_line, outcome
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
}

REVISION_CHARACTERS = 12
TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a filter."""

    value: str
    label: str
    chosen: bool
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A limit of an answer; ``level`` is ``warn`` or ``info``, commands in the texts are between backquotes."""

    level: str
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """An answer for the template; ``more`` is the address of a longer one."""

    answer: Answer
    hits: Sequence[HitView]
    notices: Sequence[Notice]
    seconds: float
    more: str


def search_page(site: Site, links: Links, request: Request) -> Response:
    """Answer ``/ext/search``; an error is shown above the same form."""
    facets = site.facets(request.reader)
    arguments = parse_search(request, facets, site.project)
    results: Results | None = None
    failure: Notice | None = None
    status = 200
    if arguments.query.strip():
        try:
            results = _results(site, links, request, arguments)
        except OutcropError as error:
            what, fix = (site.redact_paths(request.reader, text) for text in explain(error))
            failure, status = Notice("warn", harmless_line(what), harmless_line(fix)), outcome(error).http
    return page(
        request,
        "search.html",
        PageHead(_title(arguments.query), site.project, "search"),
        status,
        query=arguments.query,
        mode=arguments.mode if arguments.mode in set(Mode) else Mode.HYBRID,
        path=" ".join(arguments.path),
        narrowed=arguments.kind or arguments.corpus or arguments.path or arguments.project not in ((), ("",)),
        modes=MODES,
        results=results,
        failure=failure,
        facets=facets,
        project=site.project,
        **_choices(arguments, request.get("project"), facets, site.project),
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


def _title(query: str) -> str:
    shown = query if len(query) <= TITLE_CHARACTERS else f"{query[: TITLE_CHARACTERS - 1]}…"
    return f"{shown} – search" if shown else "Search"


def _results(site: Site, links: Links, request: Request, arguments: SearchArguments) -> Results:
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
    return Results(answer, hits, _notices(answer), seconds, _more(request, arguments, answer, at))


def _more(request: Request, arguments: SearchArguments, answer: Answer, at: Addresses) -> str:
    """The address of a longer answer; empty without one."""
    if len(answer.hits) < arguments.k or arguments.k >= MOST:
        return ""
    kept = [(name, value) for name, value in request.params if name not in ("k", "token")]
    return f"{at.search(*kept, ('k', min(MOST, arguments.k + PAGE)))}#hit-{arguments.k + 1}"


def _notices(answer: Answer) -> list[Notice]:
    """Corrected words, the reason for another mode, and a stale index."""
    found = [
        Notice("info", harmless_line(f"{typed} is not in the index; the search used {meant} instead."))
        for typed, meant in answer.corrected.items()
    ]
    if answer.reason:
        level = "warn" if answer.mode is Mode.KEYWORD else "info"
        reason = harmless_line(answer.reason)
        found.append(Notice(level, reason[:1].upper() + reason[1:]))
    if answer.stale is not None:
        found.append(Notice("info", _stale(answer.stale.indexed, answer.stale.current), "`outcrop index`"))
    return found


def _stale(indexed: str | None, current: str) -> str:
    before, now = (harmless_line(each or "")[:REVISION_CHARACTERS] for each in (indexed, current))
    if not before and now:
        return "The index is behind: its first build did not finish."
    if not now or before == now:
        return "The index is behind: files changed after the last build."
    return f"The index is behind: it is at {before}, the source is at {now}."


def _choices(arguments: SearchArguments, project: str, facets: Facets, own: str) -> dict[str, list[Choice]]:
    corpus = arguments.corpus[0] if arguments.corpus else ""
    counts = facets.kinds(tuple("" if name == own else name for name in arguments.project), corpus)
    return {
        "kinds": [Choice(kind, KIND_NAMES[kind], kind in arguments.kind, count) for kind, count in counts.items()],
        "projects": [
            Choice("", f"this repository ({own})", project in ("", own)),
            Choice(ALL_PROJECTS, "all projects", project == ALL_PROJECTS),
            *(Choice(name, harmless_line(name), name == project) for name in facets.projects if name),
        ],
        "corpora": [
            Choice("", "every corpus", corpus == ""),
            *(Choice(name, harmless_line(name), name == corpus) for name in facets.corpora),
        ],
    }

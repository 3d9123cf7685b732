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
from outcrop.surfaces.web.pages.cards import OTHER_PATHS, Card, card, copy_link, place_of
from outcrop.surfaces.web.pages.highlight import wanted_terms
from outcrop.surfaces.web.pages.links import Links
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.view_model import Asked, Facets, Site
from outcrop.text import globs

PAGE = 10
MOST = 100
LONGEST_QUESTION = 2_000
LONGEST_FILTERS = 1_000

# Value of the project choice that means every project; absent means this repository.
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
    """One entry of a filter."""

    value: str
    label: str
    chosen: bool
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The state of every control."""

    query: str
    mode: str
    kinds: Sequence[Choice]
    projects: Sequence[Choice]
    corpora: Sequence[Choice]
    path: str
    k: int
    narrowed: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a reader has to know about an answer.

    Attributes:
        level: ``warn`` or ``info``.
        text: What is so.
        fix: What to do about it; a command is between backquotes.
    """

    level: str
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """An answer as the template takes it."""

    answer: Answer
    cards: Sequence[Card]
    notices: Sequence[Notice]
    seconds: float
    more: str


def search_page(site: Site, links: Links, request: Request) -> Response:
    """Answer ``/ext/search``; an answer that went wrong is a page with the same form."""
    shelf = site.shelf(request.reader)
    asked = asked_of(request, shelf, site.project)
    results: Results | None = None
    failure: Notice | None = None
    status = 200
    if asked.query.strip():
        try:
            results = _results(site, links, request, asked)
        except OutcropError as error:
            what, fix = (site.harmless(request.reader, each) for each in explain(error))
            failure, status = Notice("warn", harmless_line(what), harmless_line(fix)), outcome(error).http
    return page(
        request,
        "search.html",
        PageHead(_title(asked.query), site.project, "search"),
        status,
        form=_form(asked, request, shelf, site),
        modes=MODES,
        results=results,
        failure=failure,
        shelf=shelf,
        project=site.project,
    )


def asked_of(request: Request, shelf: Facets, own: str) -> Asked:
    """The question that the address holds. Without a project it is asked of this repository."""
    project = request.get("project")
    chosen: tuple[str, ...] = () if project == ALL_PROJECTS else (project,)
    if project in ("", own) and shelf.exists and "" not in shelf.projects:
        # Nothing of this repository itself is indexed, only others or records of others.
        chosen = ()
    return Asked(
        query=request.get("q")[:LONGEST_QUESTION],
        mode=request.get("mode") or Mode.HYBRID,
        k=request.number("k", PAGE, 1, MOST),
        kind=request.all("kind"),
        project=chosen,
        corpus=request.all("corpus"),
        path=tuple(part for text in request.all("path") for part in globs.split_patterns(text)),
    )


def _title(query: str) -> str:
    shown = query if len(query) <= TITLE_CHARACTERS else f"{query[: TITLE_CHARACTERS - 1]}…"
    return f"{shown} – search" if shown else "Search"


def _results(site: Site, links: Links, request: Request, asked: Asked) -> Results:
    started = time.monotonic()
    if asked.mode not in set(Mode):
        raise UsageError(f"there is no mode {asked.mode!r}", f"There is: {', '.join(Mode)}")
    answer = site.search(request.reader, asked)
    seconds = time.monotonic() - started
    at = Addresses(request.base)
    wanted = wanted_terms(asked.query, answer.corrected)
    copies = [hit.copies[:OTHER_PATHS] for hit in answer.hits]
    places = [place_of(hit) for hit in answer.hits] + [place_of(copy) for each in copies for copy in each]
    # What is opened from here marks what was searched for, and leads back to it.
    query = replace_words(asked.query, answer.corrected)
    filters = urlencode([(name, value) for name, value in request.params if value and name not in ("q", "token")])
    linked = iter(links.of(places, query, filters[:LONGEST_FILTERS]))
    titles = list(islice(linked, len(answer.hits)))
    others = [[copy_link(copy, next(linked)) for copy in each] for each in copies]
    cards = [
        card(number, hit, answer, wanted, own, near, query, at)
        for number, (hit, own, near) in enumerate(zip(answer.hits, titles, others, strict=True), 1)
    ]
    return Results(answer, cards, notices(answer), seconds, _more(request, asked, answer, at))


def _more(request: Request, asked: Asked, answer: Answer, at: Addresses) -> str:
    """The address of a longer answer, or nothing where there is none."""
    if len(answer.hits) < asked.k or asked.k >= MOST:
        return ""
    kept = [(name, value) for name, value in request.params if name not in ("k", "token")]
    return f"{at.search(*kept, ('k', min(MOST, asked.k + PAGE)))}#hit-{asked.k + 1}"


def notices(answer: Answer) -> list[Notice]:
    """What limits an answer, what was read for a mistyped word, and that the index is behind."""
    found = [
        Notice("info", harmless_line(f"{typed} stands nowhere here, {meant} was searched for instead."))
        for typed, meant in answer.corrected.items()
    ]
    if answer.reason:
        level = "warn" if answer.mode is Mode.KEYWORD else "info"
        found.append(Notice(level, sentence(harmless_line(answer.reason))))
    if answer.stale is not None:
        found.append(Notice("info", _stale(answer.stale.indexed, answer.stale.current), "`outcrop index`"))
    return found


def sentence(text: str) -> str:
    """With a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def _stale(indexed: str | None, current: str) -> str:
    before, now = (harmless_line(each or "")[:REVISION_CHARACTERS] for each in (indexed, current))
    if not before and now:
        return "The index is behind: its first build was never completed."
    if not now or before == now:
        return "The index is behind: files changed since it was made."
    return f"The index is behind: it was made at {before}, the source is at {now}."


def _form(asked: Asked, request: Request, shelf: Facets, site: Site) -> Form:
    project = request.get("project")
    corpus = asked.corpus[0] if asked.corpus else ""
    within = () if asked.project == () else tuple("" if name == site.project else name for name in asked.project)
    counts = shelf.kinds(within, corpus)
    return Form(
        query=asked.query,
        mode=asked.mode if asked.mode in set(Mode) else Mode.HYBRID,
        kinds=[Choice(kind, KIND_NAMES[kind], kind in asked.kind, count) for kind, count in counts.items()],
        projects=_projects(project, shelf, site.project),
        corpora=[
            Choice("", "every corpus", corpus == ""),
            *(Choice(name, harmless_line(name), name == corpus) for name in shelf.corpora),
        ],
        path=" ".join(asked.path),
        k=asked.k,
        narrowed=bool(asked.kind or asked.corpus or asked.path or (asked.project not in ((), ("",)))),
    )


def _projects(chosen: str, shelf: Facets, own: str) -> list[Choice]:
    others = [name for name in shelf.projects if name]
    return [
        Choice("", f"this repository ({own})", chosen in ("", own)),
        Choice(ALL_PROJECTS, "all projects", chosen == ALL_PROJECTS),
        *(Choice(name, harmless_line(name), name == chosen) for name in others),
    ]

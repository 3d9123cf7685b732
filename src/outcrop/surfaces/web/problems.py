"""What went wrong, as a page for people and as problem details for programs."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from outcrop.errors import OutcropError, UnknownArtifact, UsageError
from outcrop.surfaces.render import explain, harmless_line, outcome
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.view_model import Site

# RFC 9457.
PROBLEM = "application/problem+json"

log = logging.getLogger(__name__)

FIX_FOR_STRANGERS = "Whoever runs this site can see more in its log."


class NoSuchPage(UnknownArtifact):
    """Nothing is at that address."""


class WrongMethod(UsageError):
    """An address that exists, asked in a way that it does not answer."""


def problem(status: int, what: str, fix: str = "", headers: dict[str, str] | None = None) -> Response:
    """Problem details: ``type``, ``title``, ``status``, ``detail``, and ``fix`` where there is something to do."""
    body: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": what}
    if fix:
        body["fix"] = fix
    return Response(status, json.dumps(body).encode(), PROBLEM, headers or {})


def describe(site: Site, request: Request, error: BaseException) -> tuple[int, str, str]:
    """Status, what happened and what to do, fit for this reader. What nobody expected is written to the log."""
    status = outcome(error).http
    what, fix = explain(error)
    if not isinstance(error, OutcropError):
        log.error("%s %s", request.path, what, exc_info=error)
        if not request.reader.local:
            what, fix = "something went wrong", FIX_FOR_STRANGERS
    what, fix = (site.harmless(request.reader, each) for each in (what, fix))
    return status, what, fix


def answer(site: Site, request: Request, error: BaseException) -> Response:
    """The response to a request that failed."""
    status, what, fix = describe(site, request, error)
    headers = {"Allow": "GET, HEAD"} if isinstance(error, WrongMethod) else {}
    status = 405 if isinstance(error, WrongMethod) else status
    if request.path.startswith("api/"):
        return problem(status, what, fix, headers)
    shown = error_page(request, site.project, status, what, fix)
    return replace(shown, headers=headers)


def error_page(request: Request, project: str, status: int, what: str, fix: str) -> Response:
    """The same for a person."""
    return page(
        request,
        "error.html",
        PageHead(HTTPStatus(status).phrase, project, ""),
        status,
        code=status,
        phrase=HTTPStatus(status).phrase,
        what=harmless_line(what),
        fix=harmless_line(fix),
    )

"""Errors as a page for people and as problem details for programs."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from outcrop.errors import OutcropError, UsageError
from outcrop.surfaces.render import explain, harmless_line, outcome
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.view_model import Site

# RFC 9457.
PROBLEM = "application/problem+json"

log = logging.getLogger(__name__)

REMOTE_FIX = "The administrator of this site finds details in its log."


class WrongMethod(UsageError):
    """The address exists, but does not accept the method."""


def problem(status: int, what: str, fix: str = "", headers: dict[str, str] | None = None) -> Response:
    body: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": what}
    if fix:
        body["fix"] = fix
    return Response(status, json.dumps(body).encode(), PROBLEM, headers or {})


def error_response(site: Site, request: Request, error: BaseException) -> Response:
    """Status, what happened and what to do, without what the reader may not know. Logs unexpected errors."""
    what, fix = explain(error)
    if not isinstance(error, OutcropError):
        log.error("%s %s", request.path, what, exc_info=error)
        if not request.reader.local:
            what, fix = "something went wrong", REMOTE_FIX
    what, fix = (site.redact_paths(request.reader, text) for text in (what, fix))
    wrong_method = isinstance(error, WrongMethod)
    status, headers = (405, {"Allow": "GET, HEAD"}) if wrong_method else (outcome(error).http, {})
    if request.path.startswith("api/"):
        return problem(status, what, fix, headers)
    return replace(error_page(request, site.project, status, what, fix), headers=headers)


def error_page(request: Request, project: str, status: int, what: str, fix: str) -> Response:
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

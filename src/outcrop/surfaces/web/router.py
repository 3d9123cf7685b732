"""From an address to a view, for an ASGI server and for a CGI."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from outcrop.errors import UnknownArtifact
from outcrop.surfaces.web import problems
from outcrop.surfaces.web.api import openapi, operations
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.catalog import catalog_page
from outcrop.surfaces.web.pages.links import Links
from outcrop.surfaces.web.pages.search import search_page
from outcrop.surfaces.web.pages.templates import STATIC, static_text
from outcrop.surfaces.web.pages.viewer import view_page
from outcrop.surfaces.web.problems import WrongMethod
from outcrop.surfaces.web.view_model import Site

FOREVER = "public, max-age=31536000, immutable"


def respond(site: Site, links: Links, request: Request, method: str = "GET") -> Response:
    """Answer any address of the page and of the API. Raises nothing that a request or an index can cause."""
    try:
        response = _respond(site, links, request, method)
    except Exception as error:
        response = problems.error_response(site, request, error)
    return replace(response, body=b"") if method == "HEAD" else response


def _respond(site: Site, links: Links, request: Request, method: str) -> Response:
    view, _, name = request.path.partition("/")
    if request.path == "search":
        response = partial(search_page, site, links, request)
    elif request.path == "view":
        response = partial(view_page, site, links, request)
    elif request.path == "catalog":
        response = partial(catalog_page, site, request)
    elif view == "static" and name in STATIC:
        response = partial(Response, 200, static_text(name).encode(), STATIC[name], {"Cache-Control": FOREVER})
    elif view == "api" and name == openapi.NAME:
        response = partial(openapi.respond, request)
    elif view == "api" and name in operations.OPERATIONS:
        response = partial(operations.respond, site, request, operations.OPERATIONS[name])
    else:
        raise UnknownArtifact("there is nothing at this address", "Start at the search page")
    if method not in ("GET", "HEAD"):
        raise WrongMethod(f"this address does not accept {method[:20]}", "Use GET")
    return response()

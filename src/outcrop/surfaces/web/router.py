"""From an address to a view. Whatever carries requests, an ASGI server or a CGI, calls :func:`respond`."""

from __future__ import annotations

from dataclasses import replace

from outcrop.surfaces.web import problems
from outcrop.surfaces.web.api import openapi, operations
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.assets import STATIC, content
from outcrop.surfaces.web.pages.catalog import catalog_page
from outcrop.surfaces.web.pages.links import Links
from outcrop.surfaces.web.pages.search import search_page
from outcrop.surfaces.web.pages.viewer import view_page
from outcrop.surfaces.web.problems import NoSuchPage, WrongMethod
from outcrop.surfaces.web.view_model import Site

FOR_EVER = "public, max-age=31536000, immutable"


def respond(site: Site, links: Links, request: Request, method: str = "GET") -> Response:
    """Answer any address of the page and of the API. Never raises for what a request or an index can cause.

    Args:
        site: The index.
        links: Makes links to artifacts.
        request: What is asked.
        method: HTTP method; all that is here is only read.
    """
    try:
        response = _respond(site, links, request, method)
    except Exception as error:
        response = problems.answer(site, request, error)
    return replace(response, body=b"") if method == "HEAD" else response


def _respond(site: Site, links: Links, request: Request, method: str) -> Response:
    view, _, rest = request.path.partition("/")
    known = request.path in ("search", "view", "catalog") or (
        view == "api" and rest in (*operations.OPERATIONS, openapi.NAME)
    )
    static = view == "static" and rest in STATIC
    if not (known or static):
        raise NoSuchPage("there is nothing at this address", "Begin at the search page")
    if method not in ("GET", "HEAD"):
        raise WrongMethod(f"{method[:20]} is not how this is asked", "Use GET")
    if static:
        return Response(200, content(rest).encode(), STATIC[rest], {"Cache-Control": FOR_EVER})
    if request.path == "search":
        return search_page(site, links, request)
    if request.path == "view":
        return view_page(site, links, request)
    if request.path == "catalog":
        return catalog_page(site, request)
    if rest == openapi.NAME:
        return openapi.respond(request)
    return operations.respond(site, request, operations.OPERATIONS[rest])

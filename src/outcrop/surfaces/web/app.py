"""The ASGI application: pages, API and MCP around one open index."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request as WebRequest
from starlette.responses import RedirectResponse
from starlette.responses import Response as WebResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from outcrop.app.index import Index
from outcrop.errors import UsageError
from outcrop.surfaces.web import problems, router
from outcrop.surfaces.web.auth import Authenticator
from outcrop.surfaces.web.http import OWNER, Request, Response, parse_query
from outcrop.surfaces.web.middleware import MCP, Guard
from outcrop.surfaces.web.pages.links import Links, links_for
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.rate_limit import Bounds
from outcrop.surfaces.web.view_model import Site

BASE = "/ext"

# Views that are worked on at once; they take turns at the database, and the model uses every processor by itself.
AT_ONCE = 4


def make_app(
    index: Index,
    *,
    authenticator: Authenticator | None = None,
    bounds: Bounds | None = None,
) -> ASGIApp:
    """Make the application.

    Args:
        index: Open, and closed by whoever opened it, after the application is done.
        authenticator: Who may come in; None for this machine, without a token.
        bounds: What it puts up with; None for the usual.

    Returns:
        An ASGI 3 application. Its lifespan has to run.
    """
    # Imported here: the MCP SDK takes a second, and the page's other rooms do without.
    from outcrop.surfaces.mcp.http import McpEndpoint

    bounds = bounds or Bounds()
    site = Site(index)
    carrier = _Carrier(site, links_for(index, Addresses(BASE)), bounds.waiting)
    endpoint = McpEndpoint(lambda: index)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        carrier.limiter = anyio.CapacityLimiter(AT_ONCE)
        site.load_model()
        async with endpoint.lifespan():
            yield

    routes = [
        Route("/", _to_search),
        Route(BASE, _to_search),
        Route(f"{BASE}/", _to_search),
        Route(MCP, endpoint=_Judged(endpoint), include_in_schema=False),
        Route("/{path:path}", endpoint=carrier),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), authenticator or Authenticator(), bounds, BASE)


async def _to_search(_: WebRequest) -> WebResponse:
    return RedirectResponse(f"{BASE}/search", 303)


class _Judged:
    """Tells an application behind the guard that it was asked for by a host it knows.

    The guard has judged host and origin by then, and knows more names than the MCP SDK can be given.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        kept = [(name, value) for name, value in scope["headers"] if name not in (b"host", b"origin")]
        await self._app({**scope, "headers": [(b"host", b"localhost:80"), *kept]}, receive, send)


class _Carrier:
    """Takes requests from the server to the views, a few at a time, and answers back.

    Attributes:
        limiter: How many are worked on at once.
    """

    def __init__(self, site: Site, links: Links, waiting: int) -> None:
        self.limiter: anyio.CapacityLimiter | None = None
        self._site = site
        self._links = links
        self._left = waiting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface, for any address that is not another route's, and any method."""
        await _carried(await self._respond(WebRequest(scope)))(scope, receive, send)

    async def _respond(self, web: WebRequest) -> Response:
        under, _, inside = web.path_params["path"].partition("/")
        try:
            params = parse_query(web.scope["query_string"].decode("latin-1"))
        except UsageError as error:
            return problems.problem(400, error.what, error.fix)
        request = Request(inside if under == BASE.strip("/") else "", params, OWNER, BASE, web.state.nonce)
        if self._left <= 0:
            return problems.problem(503, "too many requests at once", "Ask again", {"Retry-After": "1"})
        self._left -= 1
        try:
            return await anyio.to_thread.run_sync(
                router.respond, self._site, self._links, request, web.method, limiter=self.limiter
            )
        finally:
            self._left += 1


def _carried(response: Response) -> WebResponse:
    return WebResponse(response.body, response.status, dict(response.headers), response.type)

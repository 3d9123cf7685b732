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
from outcrop.surfaces.web import router
from outcrop.surfaces.web.auth import Authenticator
from outcrop.surfaces.web.http import OWNER, Request, Response, parse_query
from outcrop.surfaces.web.middleware import MCP, SecurityMiddleware, to_starlette
from outcrop.surfaces.web.pages.links import Links, links_for
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.problems import problem
from outcrop.surfaces.web.rate_limit import Bounds
from outcrop.surfaces.web.view_model import Site

BASE = "/ext"

# Views that run at once; they share the database, and the model uses every processor by itself.
CONCURRENT_VIEWS = 4


def make_app(index: Index, *, authenticator: Authenticator | None = None, bounds: Bounds | None = None) -> ASGIApp:
    """The application; its lifespan has to run. Without an authenticator it answers this machine, without a token."""
    # Imported here: the MCP SDK takes a second, and nothing else of the page needs it.
    from outcrop.surfaces.mcp.http import McpEndpoint

    bounds = bounds or Bounds()
    site = Site(index)
    views = _Views(site, links_for(index, Addresses(BASE)), bounds)
    endpoint = McpEndpoint(lambda: index)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        site.load_model()
        async with endpoint.lifespan():
            yield

    routes = [
        *(Route(path, _redirect_to_search) for path in ("/", BASE, f"{BASE}/")),
        Route(MCP, endpoint=endpoint, include_in_schema=False),
        Route("/{path:path}", endpoint=views),
    ]
    return SecurityMiddleware(
        Starlette(routes=routes, lifespan=lifespan), authenticator or Authenticator(), bounds, BASE
    )


async def _redirect_to_search(_: WebRequest) -> WebResponse:
    return RedirectResponse(f"{BASE}/search", 303)


class _Views:
    """The ASGI endpoint of every other address and method: runs the views in threads, a few at a time, in turn."""

    def __init__(self, site: Site, links: Links, bounds: Bounds) -> None:
        self._site = site
        self._links = links
        self._left = bounds.waiting
        self._queue = bounds.queue
        self._turn = anyio.CapacityLimiter(CONCURRENT_VIEWS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await to_starlette(await self._respond(WebRequest(scope)))(scope, receive, send)

    async def _respond(self, web: WebRequest) -> Response:
        base, _, path = web.path_params["path"].partition("/")
        try:
            params = parse_query(web.scope["query_string"].decode("latin-1"))
        except UsageError as error:
            return problem(400, error.what, error.fix)
        request = Request(path if base == BASE.strip("/") else "", params, OWNER, BASE, web.state.nonce)
        busy = problem(503, "too many requests at once", "Try again", {"Retry-After": "1"})
        if self._left <= 0:
            return busy
        self._left -= 1
        try:
            with anyio.move_on_after(self._queue) as waiting:
                await self._turn.acquire()
            if waiting.cancelled_caught:
                return busy
            try:
                return await anyio.to_thread.run_sync(router.respond, self._site, self._links, request, web.method)
            finally:
                self._turn.release()
        finally:
            self._left += 1

"""MCP over streamable HTTP, as an ASGI application to be mounted beside the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from outcrop.app.index import Index
from outcrop.app.warm_index import WarmIndex
from outcrop.surfaces.mcp.server import make_server

# Bytes of one request: a question is a line.
LARGEST_BODY = 1 << 20

# As the query of the address (``/mcp?text-only``): what ``outcrop mcp --text-only`` is over standard input.
TEXT_ONLY = b"text-only"


class McpEndpoint:
    """The application. Requests have no session, so that a restart of the server breaks no client's.

    Who may send requests is decided before: the SDK's own check of the host takes fewer names. ``open_index`` is called
    once, and the index is not closed here.
    """

    def __init__(self, open_index: Callable[[], Index]) -> None:
        self._service = WarmIndex(open_index, closes=False)
        self._structured, self._text_only = (
            StreamableHTTPSessionManager(
                make_server(self._service, structured=structured),
                stateless=True,
                json_response=True,
                max_request_body_size=LARGEST_BODY,
            )
            for structured in (True, False)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            # A stream of what the server says unasked. It says nothing, and each would keep a connection for ever.
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        parameters = scope.get("query_string", b"").split(b"&")
        manager = self._text_only if TEXT_ONLY in parameters else self._structured
        await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Has to be open while requests come in; can be entered once."""
        self._service.start()
        try:
            async with self._structured.run(), self._text_only.run():
                yield
        finally:
            self._service.close()

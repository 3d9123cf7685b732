"""MCP over streamable HTTP, as an ASGI application to be mounted beside the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from outcrop.app.index import Index
from outcrop.app.warm_index import WarmIndex
from outcrop.surfaces.mcp.server import make_server

LOOPBACK_HOSTS = ("127.0.0.1:*", "localhost:*", "[::1]:*")
LOOPBACK_ORIGINS = tuple(f"http://{host}" for host in LOOPBACK_HOSTS)

# Bytes of one request: a question is a line.
LARGEST_BODY = 1 << 20

# As the query of the address (``/mcp?text-only``): what ``outcrop mcp --text-only`` is over standard input.
TEXT_ONLY = b"text-only"


class McpEndpoint:
    """The application. Requests have no session, so that a restart of the server breaks no client's.

    Args:
        open_index: Called once; the index is not closed here.
        hosts: ``Host`` headers that are answered, against DNS rebinding; ``name:*`` means any port.
        origins: ``Origin`` headers that are answered; none is answered too.
    """

    def __init__(
        self,
        open_index: Callable[[], Index],
        *,
        hosts: Sequence[str] = LOOPBACK_HOSTS,
        origins: Sequence[str] = LOOPBACK_ORIGINS,
    ) -> None:
        self._service = WarmIndex(open_index, closes=False)
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=list(hosts), allowed_origins=list(origins)
        )
        self._structured, self._text_only = (
            StreamableHTTPSessionManager(
                make_server(self._service, structured=structured),
                stateless=True,
                json_response=True,
                security_settings=security,
                max_request_body_size=LARGEST_BODY,
            )
            for structured in (True, False)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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

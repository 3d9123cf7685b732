"""The ASGI middleware around every request: host, origin, token, size and rate before, security headers after."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.requests import Request as WebRequest
from starlette.responses import Response as WebResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outcrop.surfaces.web.auth import Authenticator
from outcrop.surfaces.web.http import MAX_QUERY_BYTES, Request, Response
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.problems import problem
from outcrop.surfaces.web.rate_limit import Bounds, RateLimiter

# Bounds its requests itself, and has no pages.
MCP = "/mcp"

SIGN_IN = "sign-in"

_HEADERS: Mapping[str, str] = {
    "Cache-Control": "private, no-cache",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Other sites get nothing; "no-referrer" would also hide from this server that a form is its own.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), interest-cohort=()",
}


# Files of this server, scripts with the nonce, and nothing from other hosts.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'nonce-{}'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def to_starlette(response: Response) -> WebResponse:
    return WebResponse(response.body, response.status, dict(response.headers), response.media_type)


class SecurityMiddleware:
    """Refuses a request, or hands it on with ``state.nonce``, the nonce of its Content-Security-Policy."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, bounds: Bounds, base: str) -> None:
        self._app = app
        self._authenticator = authenticator
        self._bounds = bounds
        self._limiter = RateLimiter(bounds)
        self._base = base
        self._sign_in_path = f"{base}/{SIGN_IN}"
        self._pages = frozenset({"/", *(f"{base}/{name}" for name in ("search", "view", "catalog"))})
        # What the sign-in page consists of.
        self._public = frozenset(
            {self._sign_in_path, *(f"{base}/static/outcrop.{extension}" for extension in ("css", "js"))}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] != MCP:
            receive = self._limit_body(receive)
        request = WebRequest(scope, receive)
        nonce = request.state.nonce = secrets.token_urlsafe(16)

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                policy = _CONTENT_SECURITY_POLICY.format(nonce)
                for name, value in {**_HEADERS, "Content-Security-Policy": policy}.items():
                    headers.setdefault(name, value)
            await send(message)

        response: ASGIApp | None = await self._refuse(request)
        if response is None and self._authenticator.requires_token and scope["path"] == self._sign_in_path:
            response = await self._sign_in(request)
        await (response or self._app)(scope, receive, send_secured)

    async def _refuse(self, request: WebRequest) -> WebResponse | None:
        headers, path = request.headers, request.scope["path"]
        host = headers.get("host", "")
        if not self._authenticator.accepts_host(host):
            return _problem(421, "this server does not accept this host name", "Allow it with --allow-host")
        is_foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        is_refused = is_foreign and not (path in self._pages and _is_navigation(request))
        if is_refused or ("origin" in headers and not self._authenticator.accepts_origin(headers["origin"], host)):
            return _problem(403, "the request comes from a page of another site")
        wait = self._limiter.acquire(request.client.host if request.client else "")
        if wait > self._bounds.queue:
            seconds = math.ceil(wait - self._bounds.queue)
            return _problem(429, "too many requests", f"Wait {seconds} s", {"Retry-After": str(seconds)})
        await anyio.sleep(wait)
        if len(request.scope["query_string"]) > MAX_QUERY_BYTES:
            return _problem(414, "the address is too long", f"At most {MAX_QUERY_BYTES:,} bytes after the ?")
        length = headers.get("content-length", "0")
        if path != MCP and (not length.isdigit() or int(length) > self._bounds.body):
            return _problem(413, "the request is too large", f"At most {self._bounds.body:,} bytes")
        if path in self._public or self._authenticator.is_authorized(request):
            return None
        return self._ask_for_token(request)

    def _ask_for_token(self, request: WebRequest) -> WebResponse:
        given = request.query_params.get("token")
        path = request.scope["path"]
        if request.method == "GET" and given and self._authenticator.is_token(given):
            rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
            # In the address the token would be bookmarked and shared.
            return self._authenticator.signed_in(f"{path}{'?' if rest else ''}{rest}")
        if path not in self._pages:
            challenge = {"WWW-Authenticate": 'Bearer realm="outcrop"'}
            return _problem(401, "a token is required", "Send it as: Authorization: Bearer TOKEN", challenge)
        return self._sign_in_page(request, wrong=given is not None)

    async def _sign_in(self, request: WebRequest) -> WebResponse:
        if request.method != "POST":
            return self._sign_in_page(request, wrong=False)
        try:
            form = dict(parse_qsl((await request.body()).decode("latin-1")))
        except ClientDisconnect:
            form = {}
        if self._authenticator.is_token(form.get("token", "").strip()):
            return self._authenticator.signed_in(f"{self._base}/search")
        return self._sign_in_page(request, wrong=True)

    def _sign_in_page(self, request: WebRequest, wrong: bool) -> WebResponse:
        inner = Request(SIGN_IN, base=self._base, nonce=request.state.nonce)
        head = PageHead("Token", "", "")
        return to_starlette(page(inner, "signin.html", head, 401, wrong=wrong, action=self._sign_in_path))

    def _limit_body(self, receive: Receive) -> Receive:
        """A body without a length that grows too long ends early."""
        left = self._bounds.body

        async def receive_limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}

        return receive_limited


def _is_navigation(request: WebRequest) -> bool:
    """Whether a person follows a link, as far as the browser says: no image, frame, script or page loaded ahead."""
    headers = request.headers
    is_shown = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return is_shown and request.method == "GET" and "sec-purpose" not in headers


def _problem(status: int, what: str, fix: str = "", headers: dict[str, str] | None = None) -> WebResponse:
    return to_starlette(problem(status, what, fix, headers))

"""The ASGI middleware around everything: host, origin, token, size and rate before, security headers after."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outcrop.surfaces.web import problems
from outcrop.surfaces.web.auth import Authenticator
from outcrop.surfaces.web.http import MAX_QUERY_BYTES, Request, Response
from outcrop.surfaces.web.pages.templates import PageHead, page
from outcrop.surfaces.web.rate_limit import Bounds, Rate

# Has a bound of its own for the size of a request, and no pages.
MCP = "/mcp"

SIGN_IN = "sign-in"

_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Nothing for other sites; with "no-referrer" browsers would also hide from us that a form is our own.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), interest-cohort=()",
}


def policy(nonce: str) -> str:
    """The Content-Security-Policy: our own files, scripts with the nonce, and nothing from anywhere else."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


class Guard:
    """Lets a request through, or answers it.

    Args:
        app: What is guarded. Finds the nonce of the request in ``scope["state"]["nonce"]``.
        authenticator: Decides on host, origin and token.
        bounds: Size and rate.
        base: What every address of the page begins with.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator, bounds: Bounds, base: str) -> None:
        self._app = app
        self._door = authenticator
        self._bounds = bounds
        self._rate = Rate(bounds)
        self._base = base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {})["nonce"] = nonce

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _dress(message.get("headers", []), nonce)
            await send(message)

        refusal = self._refuse(scope, nonce)
        if refusal is None and scope["path"] == f"{self._base}/{SIGN_IN}":
            refusal = await self._sign_in(scope, receive, nonce)
        if refusal is not None:
            await _answer(dressed, refusal, scope["method"])
            return
        await self._app(scope, receive if scope["path"] == MCP else self._bounded(receive), dressed)

    def _refuse(self, scope: Scope, nonce: str) -> Response | None:
        """The answer to a request that does not get through, or None."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if not self._door.knows_host(host):
            return problems.problem(421, "this server is not the host that was asked for", "Allow it with --allow-host")
        if "origin" in headers and not self._door.knows_origin(headers["origin"], host):
            return problems.problem(403, "the request comes from another site's page")
        path: str = scope["path"]
        if headers.get("sec-fetch-site") == "cross-site" and not self._is_page(path):
            return problems.problem(403, "the request comes from another site's page")
        wait = self._rate.wait(scope["client"][0] if scope.get("client") else "")
        if wait:
            after = {"Retry-After": str(math.ceil(wait))}
            return problems.problem(429, "too many requests", f"Wait {math.ceil(wait)} s", after)
        if len(scope["query_string"]) > MAX_QUERY_BYTES:
            return problems.problem(414, "the address is too long", f"At most {MAX_QUERY_BYTES:,} bytes after the ?")
        length = headers.get("content-length", "0")
        if path != MCP and (not length.isdigit() or int(length) > self._bounds.body):
            return problems.problem(413, "the request is too large", f"At most {self._bounds.body:,} bytes")
        if path in (f"{self._base}/{SIGN_IN}", *self._open()) or self._door.has_token(headers):
            return None
        return self._ask(scope, nonce)

    def _open(self) -> tuple[str, ...]:
        """What the sign-in page itself is made of."""
        return (f"{self._base}/static/outcrop.css", f"{self._base}/static/outcrop.js")

    def _is_page(self, path: str) -> bool:
        return path == "/" or path in {f"{self._base}/{name}" for name in ("search", "view", "catalog")}

    def _ask(self, scope: Scope, nonce: str) -> Response:
        """Take the token from the address, once, or ask for it."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in pairs if name == "token"]
        if scope["method"] == "GET" and given and self._door.is_token(given[-1]):
            rest = urlencode([(name, value) for name, value in pairs if name != "token"])
            # The token must not stay in the address, where it would be bookmarked and shared.
            return self._welcome(f"{scope['path']}{'?' if rest else ''}{rest}")
        if not self._is_page(scope["path"]):
            challenge = {"WWW-Authenticate": 'Bearer realm="outcrop"'}
            return problems.problem(401, "a token is needed", "Send it as: Authorization: Bearer TOKEN", challenge)
        return self._sign_in_page(nonce, wrong=bool(given))

    def _welcome(self, address: str) -> Response:
        # Two slashes at the front would lead to another host.
        address = "/" + address.lstrip("/\\")
        return Response(303, b"", headers={"Location": address, "Set-Cookie": self._door.cookie("/")})

    def _sign_in_page(self, nonce: str, wrong: bool) -> Response:
        request = Request(SIGN_IN, base=self._base, nonce=nonce)
        action = f"{self._base}/{SIGN_IN}"
        return page(request, "signin.html", PageHead("Token", "", ""), 401, wrong=wrong, action=action)

    async def _sign_in(self, scope: Scope, receive: Receive, nonce: str) -> Response:
        if not self._door.asks or scope["method"] not in ("GET", "HEAD", "POST"):
            return problems.problem(404, "there is nothing to sign in to")
        if scope["method"] != "POST":
            return self._sign_in_page(nonce, wrong=False)
        body = await _body(self._bounded(receive))
        given = dict(parse_qsl(body.decode("latin-1"))).get("token", "")
        if self._door.is_token(given.strip()):
            return self._welcome(f"{self._base}/search")
        return self._sign_in_page(nonce, wrong=True)

    def _bounded(self, receive: Receive) -> Receive:
        """A body that says nothing of its length, and is longer than it may be, ends early."""
        left = self._bounds.body

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}

        return bounded


def _dress(headers: list[tuple[bytes, bytes]], nonce: str) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in headers}
    added = {"Content-Security-Policy": policy(nonce), "Cache-Control": "private, no-cache", **_HEADERS}
    return [*headers, *((k.encode(), v.encode()) for k, v in added.items() if k.lower().encode() not in there)]


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return b"".join(parts)


async def _answer(send: Send, response: Response, method: str) -> None:
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.fields()]
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else response.body})

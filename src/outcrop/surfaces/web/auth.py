"""Who may send requests: accepted hosts, the page's own origin, and the token where one is required."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse

COOKIE = "outcrop"

MONTH = 30 * 24 * 3600


class Authenticator:
    """Checks host, origin and token of a request.

    ``hosts`` are names beside ``localhost`` and any IP address. With ``loopback`` only this machine can connect, and an
    IP address of another machine is refused.
    """

    def __init__(self, hosts: Collection[str] = (), token: str | None = None, loopback: bool = True) -> None:
        self._hosts = frozenset(name.lower().rstrip(".") for name in hosts) | {"localhost"}
        self._token = token
        self._loopback = loopback
        # The cookie proves the token without containing it; a new server with the same token accepts it again.
        self._cookie = hmac.new((token or "").encode(), b"outcrop cookie", hashlib.sha256).hexdigest()

    @property
    def requires_token(self) -> bool:
        return self._token is not None

    def accepts_host(self, host: str) -> bool:
        """Whether a Host header means this server.

        Under DNS rebinding the name of another site leads here, and the browser sends that name. No site can make a
        browser send an IP address that it does not show, so IP addresses are accepted.
        """
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]/?#@\s]+)(?::[0-9]{1,5})?", host)
        if match is None:
            return False
        name = match[1].strip("[]").lower().rstrip(".")
        if name in self._hosts:
            return True
        try:
            number = ipaddress.ip_address(name)
        except ValueError:
            return False
        return number.is_loopback or not self._loopback

    def accepts_origin(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    def is_authorized(self, request: HTTPConnection) -> bool:
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        return (
            self._token is None
            or (scheme.lower() == "bearer" and self.is_token(credentials.strip()))
            or _equal(request.cookies.get(COOKIE, ""), self._cookie)
        )

    def is_token(self, text: str) -> bool:
        return self._token is not None and _equal(text, self._token)

    def signed_in(self, address: str) -> RedirectResponse:
        # Two slashes at the front would lead to another host.
        response = RedirectResponse("/" + address.lstrip("/\\"), 303)
        response.set_cookie(COOKIE, self._cookie, max_age=MONTH, httponly=True, samesite="strict")
        return response


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())

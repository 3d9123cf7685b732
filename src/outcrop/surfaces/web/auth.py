"""Who may come in: a host that was meant, a page of our own, and the token where one is demanded."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

COOKIE = "outcrop"

MONTH = 30 * 24 * 3600


def new_token() -> str:
    """A token that nobody guesses: 192 random bits."""
    return secrets.token_urlsafe(24)


class Authenticator:
    """Checks what a request says of itself.

    Args:
        hosts: Names, without a port, by which this server may be asked for, beside ``localhost`` and any IP address.
        token: What has to come along; None where nothing has to.
        loopback: Whether only this machine can connect, so that no IP address of another one is meant.
    """

    def __init__(self, hosts: Collection[str] = (), token: str | None = None, loopback: bool = True) -> None:
        self._hosts = frozenset(name.lower().rstrip(".") for name in hosts) | {"localhost"}
        self._token = token
        self._loopback = loopback
        # The cookie proves the token without being it; a new server with the same token knows it again.
        self._pass = "" if token is None else hmac.new(token.encode(), b"outcrop cookie", hashlib.sha256).hexdigest()

    @property
    def asks(self) -> bool:
        """Whether a token is demanded."""
        return self._token is not None

    def knows_host(self, host: str) -> bool:
        """Whether a Host header means this server.

        A page elsewhere can make its own name lead here (DNS rebinding), and then the browser sends that name. It
        cannot make a browser send an IP address that it does not show.
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

    def knows_origin(self, origin: str, host: str) -> bool:
        """Whether an Origin header names a page of this server."""
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Whether the token, or the cookie that stands for it, came along."""
        if self._token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(given.strip()):
            return True
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name == COOKIE and _same(value, self._pass) for name, _, value in cookies)

    def is_token(self, text: str) -> bool:
        """Whether this is the token."""
        return self._token is not None and _same(text, self._token)

    def cookie(self, base: str) -> str:
        """The header value that lets a browser come again."""
        return f"{COOKIE}={self._pass}; Path={base or '/'}; Max-Age={MONTH}; HttpOnly; SameSite=Strict"


def _same(given: str, expected: str) -> bool:
    """Compared in a time that tells nothing of where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())

"""The network under httpcore2: only the judged address, and one deadline over the whole exchange."""

from __future__ import annotations

import contextlib
import math
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import httpcore2

from outcrop.core.protocols import override
from outcrop.embedders.http.address import Route
from outcrop.errors import BadEmbedding, EmbedderError, EmbedderTimeout, EmbedderUnavailable, InputRefused

# For a connection and its TLS greeting, in seconds; a machine that is up answers far sooner.
CONNECT_TIMEOUT = 5.0

SEND_BYTES = 1 << 18


class Unreachable(EmbedderUnavailable):
    """No connection can be made; a server that starts again heals this."""


class Broken(InputRefused):
    """The connection ended before the answer was complete: another attempt may succeed, or a text ends the server."""


@dataclass(slots=True)
class RequestGroup:
    """Requests that are cancelled together; each may take ``seconds``."""

    seconds: float
    stopped: threading.Event = field(default_factory=threading.Event)
    exchanges: set[HttpExchange] = field(default_factory=set)

    def stop(self) -> None:
        self.stopped.set()
        for exchange in list(self.exchanges):
            if exchange.sock is not None:
                with contextlib.suppress(OSError):
                    # Not SSLSocket's own method, which would take the TLS state away under the thread that reads.
                    socket.socket.shutdown(exchange.sock, socket.SHUT_RDWR)


@dataclass(slots=True, eq=False)
class HttpExchange:
    """One request and its answer. httpcore2 passes it to each operation where it would pass a time limit.

    ``deadline`` and ``connect_by`` are times on the monotonic clock; ``stage`` decides what an error means.
    """

    deadline: float
    group: RequestGroup
    connect_by: float = math.inf
    stage: Literal["connect", "tunnel", "greeting", "answer"] = "answer"
    sock: socket.socket | None = None
    reused: bool = True
    answered: bool = False
    closed_by_server: bool = False

    def use(self, sock: socket.socket) -> None:
        self.sock = sock
        if self.group.stopped.is_set():
            raise ConnectionAbortedError("the request was cancelled")
        left = min(self.deadline, self.connect_by) - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        sock.settimeout(left)


class RouteBackend(httpcore2.NetworkBackend):
    """Connects along one route; the host and port that httpcore2 names are ignored."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._hosts, self._port = _next_hop(route)

    @override
    def connect_tcp(
        self, host: str, port: int, timeout: Any = None, local_address: object = None, socket_options: object = None
    ) -> httpcore2.NetworkStream:
        exchange: HttpExchange = timeout
        exchange.stage, exchange.reused = "connect", False
        exchange.connect_by = min(exchange.deadline, time.monotonic() + CONNECT_TIMEOUT)
        sock = self._connect(exchange.connect_by)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._route.scheme == "http":
            exchange.stage, exchange.connect_by = "answer", math.inf
        else:
            exchange.stage = "greeting" if self._route.proxy is None else "tunnel"
        return _Stream(sock, self._route.host)

    def _connect(self, latest: float) -> socket.socket:
        """Try the hosts in order; each gets its share of the time that is left."""
        error = OSError("the host has no address")
        for place, host in enumerate(self._hosts):
            share = max(0.001, (latest - time.monotonic()) / (len(self._hosts) - place))
            try:
                return socket.create_connection((host, self._port), timeout=share)
            except OSError as failure:
                error = failure
        raise error


class _Stream(httpcore2.NetworkStream):
    def __init__(self, sock: socket.socket, host: str) -> None:
        self._sock = sock
        self._host = host

    @override
    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        exchange: HttpExchange = timeout
        exchange.use(self._sock)
        data = self._sock.recv(max_bytes)
        # httpcore2 waits for the end of the headers before it looks at the first line.
        if not exchange.answered and data[:5] != b"HTTP/"[: len(data)]:
            raise httpcore2.RemoteProtocolError("no status line")
        exchange.answered |= bool(data)
        exchange.closed_by_server = not data
        return data

    @override
    def write(self, buffer: bytes, timeout: Any = None) -> None:
        rest = memoryview(buffer)
        while rest:
            timeout.use(self._sock)
            try:
                rest = rest[self._sock.send(rest[:SEND_BYTES]) :]
            except (BrokenPipeError, ConnectionResetError) as error:
                # A server may refuse a large body before it has read it all; its answer, which is read next, says why.
                raise httpcore2.WriteError(error) from error

    @override
    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> httpcore2.NetworkStream:
        exchange: HttpExchange = timeout
        exchange.stage = "greeting"
        try:
            exchange.use(self._sock)
            sock = ssl_context.wrap_socket(self._sock, server_hostname=self._host)
        except BaseException:
            self.close()
            raise
        exchange.stage, exchange.connect_by, exchange.answered = "answer", math.inf, False
        return _Stream(sock, self._host)

    @override
    def close(self) -> None:
        self._sock.close()


def make_pool(route: Route) -> httpcore2.ConnectionPool:
    """Connections along a route, and through its proxy if it has one. Connects to nothing yet."""
    proxy = None
    if route.proxy is not None:
        parts = urlsplit(route.proxy)
        login = None
        if parts.username is not None:
            login = unquote(parts.username).encode(), unquote(parts.password or "").encode()
        # The backend connects to the proxy's own host; this URL only says that it speaks plain HTTP.
        proxy = httpcore2.Proxy("http://proxy", auth=login)
    return httpcore2.ConnectionPool(
        ssl_context=ssl.create_default_context() if route.scheme == "https" else None,
        proxy=proxy,
        max_connections=None,
        network_backend=RouteBackend(route),
    )


def _next_hop(route: Route) -> tuple[tuple[str, ...], int]:
    if route.proxy is None:
        return route.ips, route.port
    try:
        parts = urlsplit(route.proxy)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if parts.scheme != "http" or not host:
        raise EmbedderUnavailable(
            f"the proxy that the environment names for {route.address} does not begin with http://",
            "Set HTTPS_PROXY or HTTP_PROXY to an address that begins with http://, or NO_PROXY to go around it.",
        )
    return (host,), port


def explain(error: Exception, exchange: HttpExchange, route: Route, fix: str) -> EmbedderError:
    """What an error of an exchange means to the user; ``fix`` is the advice for a server that is down."""
    address = route.address
    late = isinstance(error, TimeoutError)
    reason = getattr(error, "strerror", None) or str(error)
    greeting_seconds = min(CONNECT_TIMEOUT, exchange.group.seconds)
    if exchange.stage == "connect":
        if late:
            return EmbedderTimeout(f"no connection to {address} within {greeting_seconds:g} s", fix)
        hosts, port = _next_hop(route)
        through = "" if route.proxy is None else f" through the proxy {hosts[0]}:{port}"
        reason = "nothing listens there" if isinstance(error, ConnectionRefusedError) else reason
        return Unreachable(f"no connection to {address}{through}: {reason}", fix)
    if exchange.stage != "answer" and late:
        return EmbedderTimeout(f"{address} gave no TLS greeting within {greeting_seconds:g} s", fix)
    if exchange.stage == "tunnel":
        refused = isinstance(error, httpcore2.ProxyError)
        what = f"refuses with status {str(error).split()[0]}" if refused else "does not answer in HTTP"
        return EmbedderUnavailable(
            f"the proxy for {address} {what}", "Check HTTPS_PROXY, or set NO_PROXY to go around it."
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return EmbedderUnavailable(
            f"the certificate of {address} cannot be trusted: {error.verify_message}",
            "If your own authority signed it, name that authority's file in SSL_CERT_FILE.",
        )
    if exchange.stage == "greeting":
        reason = getattr(error, "reason", None) or "it closed the connection"
        return EmbedderUnavailable(
            f"{address} does not speak TLS: {reason}", "Perhaps its address begins with http://."
        )
    if late:
        return EmbedderTimeout(
            f"{address} gave no whole answer within {exchange.group.seconds:g} s",
            "Give it more time with the setting timeout, or less text at once with batch.",
        )
    logs = "Its own log may say why; what was done so far is kept."
    if isinstance(error, OSError):
        return Broken(f"the connection to {address} failed: {reason}", logs)
    if exchange.closed_by_server:
        return Broken(f"{address} closed the connection before its answer was complete", logs)
    return BadEmbedding(f"{address} answers with something that is not HTTP", "Check the address.")

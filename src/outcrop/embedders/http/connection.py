"""A connection to exactly the machine that was judged, with one deadline over everything that passes through it.

Between the number that ``loopback.py`` judged and the socket there is no second look-up. A server that sends a byte a
second is late, not busy, so it is the whole answer that has to arrive in time.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import socket
import ssl
import time
from urllib.parse import unquote, urlsplit

from outcrop.embedders.http.address import Route
from outcrop.errors import EmbedderTimeout, EmbedderUnavailable

# For a connection and its TLS greeting; a machine that is there answers far sooner.
CONNECT_SECONDS = 5.0

SEND_BYTES = 1 << 18
RECEIVE_BYTES = 1 << 16


class Unreachable(EmbedderUnavailable):
    """No connection can be made, which may be over when a server has started again."""


class Wire:
    """As much of a socket as ``http.client`` uses.

    Args:
        sock: Connected.
        seconds: How long everything may take from now on.

    Attributes:
        answered: Whether a byte has come back since :meth:`allow` was called.
        seconds: What was allowed last.
    """

    def __init__(self, sock: socket.socket, seconds: float) -> None:
        self._sock = sock
        self.allow(seconds, time.monotonic() + seconds)

    def allow(self, seconds: float, deadline: float) -> None:
        """Begin an exchange that has to be over at ``deadline``; ``seconds`` is only for the message."""
        self.seconds = seconds
        self.answered = False
        self._deadline = deadline

    def left(self) -> float:
        """Seconds until the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left

    def sendall(self, data: bytes) -> None:
        """Send all of it in time."""
        rest = memoryview(data)
        while rest:
            self._sock.settimeout(self.left())
            rest = rest[self._sock.send(rest[:SEND_BYTES]) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What comes in, as a file."""
        return io.BufferedReader(_Incoming(self), RECEIVE_BYTES)

    def receive(self, buffer: memoryview) -> int:
        """Wait for bytes and put them into ``buffer``; 0 at the end."""
        self._sock.settimeout(self.left())
        size = self._sock.recv_into(buffer)
        self.answered = self.answered or size > 0
        return size

    def encrypt(self, context: ssl.SSLContext, host: str) -> None:
        """Speak TLS from here on, with a certificate for ``host``."""
        self._sock.settimeout(self.left())
        self._sock = context.wrap_socket(self._sock, server_hostname=host)

    def close(self) -> None:
        """Nothing: ``http.client`` calls it before the body is read, and the connection may be used again."""

    def interrupt(self) -> None:
        """End what another thread waits for on this wire. That thread closes it."""
        with contextlib.suppress(OSError):
            # Not SSLSocket's own method, which would take the TLS state away under the thread that reads.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def cut(self) -> None:
        """Close it for good."""
        self._sock.close()


class _Incoming(io.RawIOBase):
    """The bytes of a wire as a file, whose end is not the wire's."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed asks for every kind of buffer
        return self._wire.receive(buffer)


def connect(route: Route, seconds: float, tls: ssl.SSLContext | None, down: str) -> Wire:
    """Open a connection along a route, through its proxy if it has one, encrypted if its scheme says so.

    Args:
        route: As judged.
        seconds: How long the request that needs it may take.
        tls: For ``https``.
        down: What the user can do when nothing listens there.
    """
    seconds = min(CONNECT_SECONDS, seconds)
    numbers, port = (route.numbers, route.port) if route.proxy is None else _proxy_place(route)
    try:
        wire = Wire(*_dial(numbers, port, seconds))
    except TimeoutError as error:
        raise EmbedderTimeout(f"no connection to {route.address} within {seconds:g} s", down) from error
    except OSError as error:
        reason = "nothing listens there" if isinstance(error, ConnectionRefusedError) else error.strerror or str(error)
        through = f" through the proxy {numbers[0]}:{port}" if route.proxy is not None else ""
        raise Unreachable(f"no connection to {route.address}{through}: {reason}", down) from error
    try:
        if tls is not None:
            if route.proxy is not None:
                _tunnel(wire, route)
            _encrypt(wire, route, tls)
    except TimeoutError as error:
        wire.cut()
        raise EmbedderTimeout(f"{route.address} gave no TLS greeting within {seconds:g} s", down) from error
    except BaseException:
        wire.cut()
        raise
    return wire


def proxy_headers(route: Route) -> dict[str, str]:
    """The login of the proxy, where its address holds one."""
    parts = urlsplit(route.proxy or "")
    if parts.username is None:
        return {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(login.encode()).decode("ascii")}


def _dial(numbers: tuple[str, ...], port: int, seconds: float) -> tuple[socket.socket, float]:
    """A connection to the first of these that takes one, and the seconds that are left."""
    latest = time.monotonic() + seconds
    for place, number in enumerate(numbers):
        share = max(0.001, (latest - time.monotonic()) / (len(numbers) - place))
        try:
            sock = socket.create_connection((number, port), timeout=share)
        except OSError:
            if place == len(numbers) - 1:
                raise
            continue
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock, max(0.001, latest - time.monotonic())
    raise OSError("the host has no address")


def _proxy_place(route: Route) -> tuple[tuple[str], int]:
    try:
        parts = urlsplit(route.proxy or "")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if parts.scheme != "http" or not host:
        raise EmbedderUnavailable(
            f"the proxy that the environment names for {route.address} is not of the kind http://",
            "Set HTTPS_PROXY or HTTP_PROXY to an address that begins with http://, or NO_PROXY to go around it.",
        )
    return (host,), port


def _tunnel(wire: Wire, route: Route) -> None:
    named = f"[{route.host}]" if ":" in route.host else route.host
    lines = [f"CONNECT {named}:{route.port} HTTP/1.1", f"Host: {named}:{route.port}"]
    lines += [f"{name}: {value}" for name, value in proxy_headers(route).items()]
    wire.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    answer = http.client.HTTPResponse(wire, method="CONNECT")  # type: ignore[arg-type]  # as much socket as it uses
    fix = "Check HTTPS_PROXY, or set NO_PROXY to go around it."
    try:
        answer.begin()
    except (http.client.HTTPException, ConnectionError) as error:
        raise EmbedderUnavailable(f"the proxy for {route.address} does not answer in HTTP", fix) from error
    finally:
        answer.close()
    if answer.status != 200:
        raise EmbedderUnavailable(f"the proxy for {route.address} refuses with status {answer.status}", fix)


def _encrypt(wire: Wire, route: Route, tls: ssl.SSLContext) -> None:
    try:
        wire.encrypt(tls, route.host)
    except ssl.SSLCertVerificationError as error:
        raise EmbedderUnavailable(
            f"the certificate of {route.address} cannot be trusted: {error.verify_message}",
            "If your own authority signed it, name that authority's file in SSL_CERT_FILE.",
        ) from error
    except (ssl.SSLError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or "it closed the connection"
        raise EmbedderUnavailable(
            f"{route.address} does not speak TLS: {reason}", "Perhaps its address begins with http://."
        ) from error

"""One request and its answer, with a bound on everything.

The standard library's ``http.client`` on connections of our own, not httpx: the connection has to go to a number
chosen beforehand, one deadline has to cover the whole exchange, and an answer must not be read past what it can
honestly weigh. That is little code here and a layer of adapters there, and it loads in less than half the time.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urljoin, urlsplit

from outcrop.embedders.http.address import Route, canonical
from outcrop.embedders.http.connection import Wire, connect, proxy_headers
from outcrop.errors import BadConfig, BadEmbedding, EgressRefused, EmbedderTimeout, EmbedderUnavailable

REDIRECTS = 3
FOLLOWED = (301, 302, 307, 308)
READ_BYTES = 1 << 16

# A word of a header that is at least this long may be a token; hiding shorter ones would garble what a server says.
SECRET_CHARACTERS = 4

SCHEMES = frozenset({"Bearer", "Basic", "Token"})


class Broken(EmbedderUnavailable):
    """The connection ended where an answer should have been, which trying again may heal."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whatever its status. Names of headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class RequestGroup:
    """Requests that belong together, so that they can be called off together.

    Attributes:
        seconds: How long one request of it may take.
        stopped: Set when nobody waits for the answers any more.
    """

    seconds: float
    stopped: threading.Event = field(default_factory=threading.Event)
    wires: set[Wire] = field(default_factory=set)

    def stop(self) -> None:
        """End every request in flight now."""
        self.stopped.set()
        for wire in list(self.wires):
            wire.interrupt()


class Client:
    """Posts JSON to one address. Several threads may use it; connections stay open between requests.

    Sends nothing until :meth:`admit` was called: whoever judges where the text goes hands over the judgement.

    Args:
        address: Where to.
        headers: Sent with every request; asked when the first is made, since a token may have to be looked up.
        down: What the user can do when nothing listens there.
    """

    def __init__(self, address: str, headers: Callable[[], Mapping[str, str]], down: str) -> None:
        self.address = canonical(address)
        self._ask_headers = headers
        self._own_headers: Mapping[str, str] | None = None
        self._down = down
        self._route: Route | None = None
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._idle: list[Wire] = []
        weakref.finalize(self, _cut_all, self._idle)

    def admit(self, route: Route) -> None:
        """From now on send, along this route only."""
        with self._lock:
            if route != self._route:
                _cut_all(self._idle)
            if route.scheme == "https" and self._tls is None:
                self._tls = ssl.create_default_context()
            self._route = route

    def hide(self, text: str) -> str:
        """A server's words without anything that was sent to it in secret."""
        for value in self._headers().values():
            for part in value.split():
                if len(part) >= SECRET_CHARACTERS and part not in SCHEMES:
                    text = text.replace(part, "[hidden]")
        return text

    def _headers(self) -> Mapping[str, str]:
        if self._own_headers is None:
            self._own_headers = self._ask_headers()
        return self._own_headers

    def post(self, path: str, body: bytes, most: int, flight: RequestGroup) -> Reply:
        """Send one request and read its answer.

        Args:
            path: Added to the address.
            body: JSON.
            most: Bytes that the answer may have.
            flight: What it belongs to.
        """
        route = self._route
        # Compared, so that a judgement of one address never serves another.
        if route is None or route.address != self.address:
            raise EgressRefused(f"nobody agreed to send text to {self.address}", "Get the embedder from outcrop.open.")
        deadline = time.monotonic() + flight.seconds
        target = urlsplit(self.address)
        where = _request_target(target.path + path, target.query)
        for _ in range(REDIRECTS + 1):
            reply = self._exchange(route, where, body, most, flight, deadline)
            if reply.status not in FOLLOWED:
                return reply
            where = self._redirected(route, where, reply.headers.get("location", ""))
        raise EmbedderUnavailable(f"{self.address} redirects again and again", "Check the address.")

    def _redirected(self, route: Route, where: str, location: str) -> str:
        """The path to ask next; another host, port or scheme is another address, and nobody allowed that."""
        origin = f"{route.scheme}://{_authority(route)}"
        target = urlsplit("")
        with contextlib.suppress(ValueError):
            target = urlsplit(urljoin(origin + where, location))
        there = f"{target.scheme}://{target.netloc}" if location and target.netloc else "nowhere"
        with contextlib.suppress(BadConfig):
            if canonical(there) == canonical(origin):
                return _request_target(target.path, target.query)
        raise EgressRefused(
            f"{self.address} redirects to {there}, and text goes only where it was allowed to go",
            "If you trust that address, set it as endpoint_url.",
        )

    def _exchange(
        self, route: Route, where: str, body: bytes, most: int, flight: RequestGroup, deadline: float
    ) -> Reply:
        """On a connection that was left open, or on a new one where the server has closed that meanwhile."""
        while True:
            wire, used = self._take(route, flight)
            wire.allow(flight.seconds, deadline)
            flight.wires.add(wire)
            try:
                if flight.stopped.is_set():
                    raise Broken(f"the request to {self.address} was called off")
                reply, reusable = self._speak(wire, route, where, body, most)
            except Broken:
                wire.cut()
                if used and not wire.answered and not flight.stopped.is_set():
                    continue
                raise
            except BaseException:
                wire.cut()
                raise
            finally:
                flight.wires.discard(wire)
            self._give_back(wire, route, reusable)
            return reply

    def _take(self, route: Route, flight: RequestGroup) -> tuple[Wire, bool]:
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        return connect(route, flight.seconds, self._tls if route.scheme == "https" else None, self._down), False

    def _give_back(self, wire: Wire, route: Route, reusable: bool) -> None:
        with self._lock:
            if reusable and route == self._route:
                self._idle.append(wire)
                return
        wire.cut()

    def _speak(self, wire: Wire, route: Route, where: str, body: bytes, most: int) -> tuple[Reply, bool]:
        connection = http.client.HTTPConnection(route.host, route.port)
        connection.sock = wire
        plain_proxy = route.proxy is not None and route.scheme == "http"
        headers = {
            "Host": _authority(route),
            "User-Agent": "outcrop",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Content-Length": str(len(body)),
            **(proxy_headers(route) if plain_proxy else {}),
            **self._headers(),
        }
        try:
            connection.putrequest(
                "POST", f"http://{_authority(route)}{where}" if plain_proxy else where, skip_host=True
            )
            for name, value in headers.items():
                connection.putheader(name, value)
            # A server may refuse a large body before it has read it all; its answer says why.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.endheaders(body)
            with connection.getresponse() as response:
                data = self._read(response, most)
                told = {name.lower(): value for name, value in response.getheaders()}
                return Reply(response.status, told, data), not response.will_close
        except TimeoutError as error:
            raise EmbedderTimeout(
                f"{self.address} gave no whole answer within {wire.seconds:g} s",
                "Give it more time with the setting timeout, or less text at once with batch.",
            ) from error
        except (http.client.IncompleteRead, http.client.RemoteDisconnected) as error:
            raise Broken(f"{self.address} closed the connection before its answer was complete", _LOGS) from error
        except http.client.HTTPException as error:
            raise BadEmbedding(
                f"{self.address} answers with something that is not HTTP ({type(error).__name__})", "Check the address."
            ) from error
        except OSError as error:
            raise Broken(f"the connection to {self.address} failed: {error.strerror or error}", _LOGS) from error

    def _read(self, response: http.client.HTTPResponse, most: int) -> bytes:
        told = response.length
        parts: list[bytes] = []
        size = told if told is not None and told > most else 0
        while size <= most and (part := response.read(READ_BYTES)):
            parts.append(part)
            size += len(part)
        if size > most:
            raise BadEmbedding(
                f"{self.address} answers with more than {most:,} bytes, which these vectors cannot need",
                "Check the address and the model.",
            )
        # Without a length the end of the connection ends the answer; nothing at all is a connection that broke.
        if (told is not None and size < told) or (told is None and not size and response.status == 200):
            raise http.client.IncompleteRead(b"")
        return b"".join(parts)


_LOGS = "Its own log may say why; what was done so far is kept."


def _authority(route: Route) -> str:
    """Host and port as the ``Host`` header has them."""
    return urlsplit(
        canonical(f"{route.scheme}://{f'[{route.host}]' if ':' in route.host else route.host}:{route.port}")
    ).netloc


def _request_target(path: str, query: str) -> str:
    """Path and query as a request line takes them: in ASCII, what is encoded already left as it is."""
    target = f"{path or '/'}?{query}" if query else path or "/"
    return quote(target, safe="%/?:@!$&'()*+,;=~[]")


def _cut_all(wires: list[Wire]) -> None:
    while wires:
        wires.pop().cut()

"""One request to an embedding server and its answer, with a bound on everything: time, bytes and where it goes."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

import httpcore2

from outcrop.embedders.http.address import Route, canonical
from outcrop.embedders.http.connection import Broken, HttpExchange, RequestGroup, explain, make_pool
from outcrop.errors import BadConfig, BadEmbedding, EgressRefused, EmbedderUnavailable

REDIRECTS = 3
FOLLOWED = (301, 302, 307, 308)

# A word of a header that is at least this long may be a token; hiding shorter ones would garble what a server says.
SECRET_CHARACTERS = 4

SCHEMES = frozenset({"Bearer", "Basic", "Token"})


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A server's answer, whatever its status. Names of headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Connections:
    """Open connections along one route. They close when neither the client nor a request uses them any more."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.pool = make_pool(route)
        weakref.finalize(self, self.pool.close)


class EmbeddingClient:
    """Posts JSON to one address, from any thread. Sends nothing before :meth:`authorize`.

    ``headers`` go with every request; they are a function because a token may need a look-up. ``fix`` is the advice
    where nothing listens at the address.
    """

    def __init__(self, address: str, headers: Callable[[], Mapping[str, str]], fix: str) -> None:
        self.address = canonical(address)
        self._url = urlsplit(self.address)
        self._headers = headers
        self._fix = fix
        self._connections: _Connections | None = None
        self._lock = threading.Lock()

    def authorize(self, route: Route) -> None:
        """Allow requests along this route, and no longer along another."""
        with self._lock:
            if self._connections is None or route != self._connections.route:
                self._connections = _Connections(route)

    def hide(self, text: str) -> str:
        for value in self._headers().values():
            for part in value.split():
                if len(part) >= SECRET_CHARACTERS and part not in SCHEMES:
                    text = text.replace(part, "[hidden]")
        return text

    def post(self, path: str, body: bytes, most_bytes: int, group: RequestGroup) -> HttpResponse:
        """Send JSON to the address plus ``path``; an answer of more than ``most_bytes`` is an error."""
        connections = self._connections
        # Compared, so that a judgement of one address never serves another.
        if connections is None or connections.route.address != self.address:
            raise EgressRefused(f"no consent to send text to {self.address}", "Get the embedder from outcrop.open.")
        deadline = time.monotonic() + group.seconds
        target = _request_target(self._url.path + path, self._url.query)
        for _ in range(REDIRECTS + 1):
            response = self._exchange(connections, target, body, most_bytes, group, deadline)
            if response.status not in FOLLOWED:
                return response
            target = self._redirected(target, response.headers.get("location", ""))
        raise EmbedderUnavailable(f"{self.address} redirects again and again", "Check the address.")

    def _redirected(self, target: str, location: str) -> str:
        """The path of the next request. Another host, port or scheme is another address, without consent."""
        origin = f"{self._url.scheme}://{self._url.netloc}"
        found = urlsplit("")
        with contextlib.suppress(ValueError):
            found = urlsplit(urljoin(origin + target, location))
        there = f"{found.scheme}://{found.netloc}" if location and found.netloc else "nowhere"
        with contextlib.suppress(BadConfig):
            if canonical(there) == canonical(origin):
                return _request_target(found.path, found.query)
        raise EgressRefused(
            f"{self.address} redirects to {there}, and text goes only where it was allowed to go",
            "If you trust that address, set it as endpoint_url.",
        )

    def _exchange(
        self, connections: _Connections, target: str, body: bytes, most_bytes: int, group: RequestGroup, deadline: float
    ) -> HttpResponse:
        """Use an open connection, or a new one where the server has closed that meanwhile."""
        while True:
            exchange = HttpExchange(deadline, group)
            group.exchanges.add(exchange)
            try:
                return self._send(connections, target, body, most_bytes, exchange)
            except Broken:
                if not exchange.reused or exchange.answered or group.stopped.is_set():
                    raise
            finally:
                group.exchanges.discard(exchange)

    def _send(
        self, connections: _Connections, target: str, body: bytes, most_bytes: int, exchange: HttpExchange
    ) -> HttpResponse:
        route = connections.route
        headers = {
            "Host": self._url.netloc,
            "User-Agent": "outcrop",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **{name: value.strip() for name, value in self._headers().items()},
        }
        request = httpcore2.Request(
            "POST",
            httpcore2.URL(
                scheme=route.scheme,
                host=f"[{route.host}]" if ":" in route.host else route.host,
                port=self._url.port,
                target=target,
            ),
            headers=list(headers.items()),
            content=body,
            extensions={"timeout": dict.fromkeys(("connect", "read", "write"), exchange)},
        )
        try:
            with contextlib.closing(connections.pool.handle_request(request)) as response:
                return self._read(response, most_bytes, exchange)
        except (OSError, httpcore2.ProtocolError, httpcore2.ProxyError, httpcore2.NetworkError) as error:
            raise explain(error, exchange, route, self._fix) from error

    def _read(self, response: httpcore2.Response, most_bytes: int, exchange: HttpExchange) -> HttpResponse:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        size = int(headers.get("content-length", 0))
        body = bytearray()
        if size <= most_bytes:
            for part in response.iter_stream():
                body += part
                if len(body) > most_bytes:
                    break
        if max(size, len(body)) > most_bytes:
            raise BadEmbedding(
                f"{self.address} answers with more than {most_bytes:,} bytes, which these vectors cannot need",
                "Check the address and the model.",
            )
        # Without a length the end of the connection ends the answer; nothing at all is a connection that broke.
        if not body and exchange.closed_by_server and response.status == 200:
            raise ConnectionResetError("it ended without an answer")
        return HttpResponse(response.status, headers, bytes(body))


def _request_target(path: str, query: str) -> str:
    """Path and query as a request line takes them: in ASCII; what is already encoded stays."""
    target = f"{path or '/'}?{query}" if query else path or "/"
    return quote(target, safe="%/?:@!$&'()*+,;=~[]")

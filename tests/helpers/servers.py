"""Real HTTP servers on loopback, for tests of what talks to one: faithful ones, and ones that misbehave."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from outcrop.core.protocols import Embedder


@dataclass(frozen=True)
class Request:
    """What a server was sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def texts(self) -> list[str]:
        return self.json["input"]


@dataclass(frozen=True)
class Sent:
    """What a server sends back."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Answer = Sent | Callable[["Handler"], None]
"""Something to send, or a function that does anything with the connection."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listening

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        request = Request(
            self.command,
            self.path,
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(length),
        )
        if len(request.body) < length:  # the client hung up in the middle
            self.close_connection = True
            return
        with self.server.counting():
            self.server.requests.append(request)
            answer = self.server.answer(request)
            if callable(answer):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    answer(self)
                return
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            with contextlib.suppress(OSError):
                self.send_response(answer.status)
                for name, value in ({"Content-Type": "application/json"} | answer.headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

    def do_CONNECT(self) -> None:
        self.do_POST()

    def raw(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Listening(http.server.ThreadingHTTPServer):
    """A server that remembers what it was sent, and how much of it at once."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        self.answer = answer
        self.requests: list[Request] = []
        self.connections = 0
        self.most_at_once = 0
        self.ending = threading.Event()
        self._at_once = 0
        self._lock = threading.Lock()
        self._tls = tls
        self._open: list[socket.socket] = []

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        host = str(self.server_address[0])
        return f"{'https' if self._tls else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request.texts]

    def get_request(self) -> tuple[socket.socket, Any]:
        sock, address = super().get_request()
        self.connections += 1
        if self._tls is not None:
            sock = self._tls.wrap_socket(sock, server_side=True)
        self._open.append(sock)
        return sock, address

    def hang_up(self) -> None:
        """End every connection, as a server does that is stopped."""
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what many tests are about."""

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1


@contextlib.contextmanager
def listening(
    answer: Callable[[Request], Answer], host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, port: int = 0
) -> Iterator[Listening]:
    server = Listening(answer, host, tls, port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ending.set()
        server.shutdown()
        server.server_close()
        server.hang_up()
        thread.join()


def openai_shape(vectors: Sequence[Sequence[float]], model: str = "m") -> Sent:
    data = [{"object": "embedding", "index": place, "embedding": list(row)} for place, row in enumerate(vectors)]
    return Sent({"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def embeddings_shape(vectors: Sequence[Sequence[float]]) -> Sent:
    return Sent({"embeddings": [list(row) for row in vectors]})


def as_endpoint(embedder: Embedder) -> Callable[[Request], Sent]:
    """An OpenAI-shaped server for a real embedder."""
    return lambda request: openai_shape(embedder.embed_passages(request.texts).astype(float).tolist())


def as_ollama(embedder: Embedder, *models: str) -> Callable[[Request], Sent]:
    """Ollama with these models pulled, as its API page and its own answers describe it, for a real embedder."""

    def answer(request: Request) -> Sent:
        if request.path != "/api/embed":
            return Sent(b"404 page not found", 404, {"Content-Type": "text/plain"})
        asked = request.json
        if asked["model"].removesuffix(":latest") not in models:
            return Sent({"error": f'model "{asked["model"]}" not found, try pulling it first'}, 404)
        vectors = embedder.embed_passages(asked["input"]).astype(float)
        if "dimensions" in asked:
            vectors = vectors[:, : asked["dimensions"]]
        return Sent(
            {
                "model": asked["model"],
                "embeddings": vectors.tolist(),
                "total_duration": 14143917,
                "load_duration": 1019500,
                "prompt_eval_count": sum(len(text.split()) for text in asked["input"]),
            }
        )

    return answer


def free_port() -> int:
    """A port of loopback where nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def other_machine() -> str | None:
    """An address of this machine that is not loopback: to a client it is as remote as any."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing; only chooses the way out
        except OSError:
            return None
        host = str(sock.getsockname()[0])
    return None if host.startswith("127.") else host

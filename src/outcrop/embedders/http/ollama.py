"""A model that Ollama serves, on this machine unless its address says otherwise.

``POST /api/embed`` with ``{"model", "input": [...]}`` answers ``{"embeddings": [[...], ...]}``; see the API page of
Ollama's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence

from outcrop.core.protocols import override
from outcrop.embedders.http.endpoint import Dialect
from outcrop.errors import EmbedderError, EmbedderUnavailable

MODEL = "nomic-embed-text"
PORT = 11434
ADDRESS = f"http://127.0.0.1:{PORT}"


def address_of(host: str) -> str:
    """The address that a value of ``OLLAMA_HOST`` means, by Ollama's own rules.

    ``host``, ``host:port``, a bare IPv6 number or a whole URL; the port is 11434 unless a scheme is given, then the
    scheme's own. Empty means the default, as does a port that is no number.
    """
    text = host.strip().strip("\"'").strip()
    scheme, given, rest = text.partition("://")
    port = {"http": 80, "https": 443}.get(scheme, PORT) if given else PORT
    if not given:
        scheme, rest = "http", text
    rest, slash, path = rest.partition("/")
    name, colon, number = rest.rpartition(":")
    if rest.count(":") > 1 and not rest.startswith("["):  # an IPv6 number cannot have a port without brackets
        name, number = f"[{rest}]", ""
    elif not colon or rest.endswith("]"):
        name, number = rest, ""
    if number.isascii() and number.isdigit() and 0 < int(number) <= 65535:
        port = int(number)
    return f"{scheme}://{name or '127.0.0.1'}:{port}{slash}{path}".rstrip("/")


class Ollama(Dialect):
    """Ollama's requests and errors."""

    path = "/api/embed"
    # A few seconds on a machine without a graphics card, well below the timeout.
    batch = 16
    # One that is computed and one that is ready; more would only wait inside the server.
    at_once = 2
    # A request may have to wait until the model is loaded.
    timeout = 120.0
    start_server = "Start Ollama: ollama serve (to install it: https://ollama.com/download)."

    def __init__(self, model: str | None) -> None:
        super().__init__((model or MODEL).removesuffix(":latest"))

    @override
    def request(self, texts: Sequence[str]) -> dict[str, object]:
        # Some versions ignore truncate, either way; false asks for an error instead of a silent cut where it works.
        return super().request(texts) | {"truncate": False}

    @override
    def error(self, status: int, message: str, address: str) -> EmbedderError | None:
        if status == 404 and "not found" in message and "page not found" not in message:
            return EmbedderUnavailable(
                f"Ollama at {address} has no model {self.model}", f"Run: ollama pull {self.model}"
            )
        if status == 404:
            return EmbedderUnavailable(
                f"the server at {address} has no /api/embed", "Check the address; if it is Ollama, update it."
            )
        if "does not support embed" in message:
            return EmbedderUnavailable(
                f"{self.model} is not an embedding model", f"Choose one, for example: ollama pull {MODEL}"
            )
        return None

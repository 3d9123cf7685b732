"""A model that Ollama serves, on this machine unless its address says otherwise.

``POST /api/embed`` with ``{"model", "input": [...]}`` answers ``{"embeddings": [[...], ...]}``; see the API page of
Ollama's documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from outcrop.embedders import known_models
from outcrop.embedders.http.client import Client
from outcrop.embedders.http.embedder import NetworkEmbedder
from outcrop.embedders.known_models import ModelOptions
from outcrop.errors import EmbedderError, EmbedderUnavailable

MODEL = "nomic-embed-text"
PORT = 11434
ADDRESS = f"http://127.0.0.1:{PORT}"

# Texts in a request. On a machine without a graphics card that is a few seconds, well under any time limit.
BATCH = 16

# One that is computed and one that is ready: more would only wait inside the server.
AT_ONCE = 2

# A request may have to wait for the model to be loaded.
SECONDS = 120.0

START = "Start Ollama: ollama serve (to install it: https://ollama.com/download)."


NO_WISHES = ModelOptions()


def make(
    model: str | None = None,
    address: str = ADDRESS,
    wishes: ModelOptions = NO_WISHES,
    headers: Callable[[], Mapping[str, str]] = dict,
) -> NetworkEmbedder:
    """An embedder for a model of Ollama. Sends nothing, and will not before it is admitted.

    Args:
        model: As ``ollama list`` names it.
        address: Of the server, without ``/api/embed``.
        wishes: What the user wants otherwise.
        headers: Sent with every request.
    """
    plan = known_models.plan(model or MODEL, wishes)
    dialect = _Dialect((model or MODEL).removesuffix(":latest"), plan.ask_dim)
    client = Client(address, headers, START)
    return NetworkEmbedder(
        client, dialect, plan, batch=wishes.batch or BATCH, at_once=AT_ONCE, seconds=wishes.seconds or SECONDS
    )


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


class _Dialect:
    path = "/api/embed"

    def __init__(self, model: str, ask_dim: int | None) -> None:
        self._model = model
        self._ask_dim = ask_dim

    def request(self, texts: Sequence[str]) -> dict[str, object]:
        # Some versions ignore truncate, either way; false asks for an error instead of a silent cut where it works.
        body: dict[str, object] = {"model": self._model, "input": list(texts), "truncate": False}
        return body if self._ask_dim is None else body | {"dimensions": self._ask_dim}

    def fault(self, status: int, said: str, address: str) -> EmbedderError | None:
        if status == 404 and "not found" in said and "page not found" not in said:
            return EmbedderUnavailable(
                f"Ollama at {address} has no model {self._model}", f"Run: ollama pull {self._model}"
            )
        if status == 404:
            return EmbedderUnavailable(
                f"the server at {address} has no /api/embed", "Check the address; if it is Ollama, update it."
            )
        if "does not support embed" in said:
            return EmbedderUnavailable(
                f"{self._model} is not an embedding model", f"Choose one, for example: ollama pull {MODEL}"
            )
        return None

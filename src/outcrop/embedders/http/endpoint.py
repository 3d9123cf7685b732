"""A model behind any URL that takes ``{"model", "input": [...]}`` and answers in one of the two usual shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit

from outcrop.embedders import known_models
from outcrop.embedders.http.client import Client
from outcrop.embedders.http.embedder import NetworkEmbedder
from outcrop.embedders.known_models import ModelOptions
from outcrop.errors import BadConfig, EmbedderError

BATCH = 64
AT_ONCE = 4
SECONDS = 60.0

_TOKEN = re.compile(r"key|token|secret|passw|signature|^sig$|auth", re.IGNORECASE)


NO_WISHES = ModelOptions()


def make(
    model: str,
    address: str,
    wishes: ModelOptions = NO_WISHES,
    headers: Callable[[], Mapping[str, str]] = dict,
) -> NetworkEmbedder:
    """An embedder for a model behind a URL. Sends nothing, and will not before it is admitted.

    Args:
        model: As the server calls it.
        address: The whole URL that requests go to.
        wishes: What the user wants otherwise.
        headers: Sent with every request.
    """
    for name, _ in parse_qsl(urlsplit(address).query, keep_blank_values=True):
        if _TOKEN.search(name):
            raise BadConfig(
                f"endpoint_url holds something secret ({name}), and addresses are shown and stored",
                "Take it out, name it with secret_ref, and say with headers where it goes.",
            )
    plan = known_models.plan(model, wishes)
    client = Client(address, headers, "Check endpoint_url, and that the server runs.")
    return NetworkEmbedder(
        client,
        _Dialect(model, plan.ask_dim),
        plan,
        batch=wishes.batch or BATCH,
        at_once=AT_ONCE,
        seconds=wishes.seconds or SECONDS,
    )


class _Dialect:
    path = ""

    def __init__(self, model: str, ask_dim: int | None) -> None:
        self._model = model
        self._ask_dim = ask_dim

    def request(self, texts: Sequence[str]) -> dict[str, object]:
        body: dict[str, object] = {"model": self._model, "input": list(texts)}
        return body if self._ask_dim is None else body | {"dimensions": self._ask_dim}

    def fault(self, status: int, said: str, address: str) -> EmbedderError | None:
        return None

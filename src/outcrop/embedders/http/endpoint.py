"""How a server is asked: any that takes ``{"model", "input": [...]}`` and answers in one of the two usual shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, urlsplit

from outcrop.errors import BadConfig, EmbedderError

_SECRET = re.compile(r"key|token|secret|passw|signature|^sig$|auth", re.IGNORECASE)


class Dialect:
    """The request of one sort of server, the meaning of its errors, and what suits it."""

    # Added to the address.
    path = ""
    # Texts in a request.
    batch = 64
    # Requests in flight.
    at_once = 4
    # Seconds for a request.
    timeout = 60.0
    # What the user can do when nothing listens at the address.
    start_server = "Check endpoint_url, and that the server runs."

    def __init__(self, model: str) -> None:
        self.model = model

    def request(self, texts: Sequence[str]) -> dict[str, object]:
        return {"model": self.model, "input": list(texts)}

    def error(self, status: int, message: str, address: str) -> EmbedderError | None:
        """What an answer means, where this sort of server means something particular by it."""
        return None


def refuse_secrets(address: str) -> None:
    """Refuse an address with a secret in its query, because addresses are shown and stored."""
    for name, _ in parse_qsl(urlsplit(address).query, keep_blank_values=True):
        if _SECRET.search(name):
            raise BadConfig(
                f"endpoint_url holds something secret ({name}), and addresses are shown and stored",
                "Take it out, name it with secret_ref, and say with headers where it goes.",
            )

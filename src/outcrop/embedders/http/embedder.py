"""An embedder that is asked over HTTP: batches, several in flight, in order; too long a text halved, then cut.

What differs between servers (where to ask, what to send, what their errors mean) is a :class:`Dialect`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Protocol

import numpy as np

from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.embedders.http import responses
from outcrop.embedders.http.address import Route
from outcrop.embedders.http.client import Client, Reply, RequestGroup
from outcrop.embedders.http.retry import FOR_PASSAGES, FOR_QUESTIONS, RetryPolicy, persist
from outcrop.embedders.known_models import EmbeddingPlan
from outcrop.embedders.truncate import sanitize, truncate
from outcrop.errors import EmbedderError, EmbedderUnavailable
from outcrop.text import tokenizer

# Most text in one request: about 25,000 tokens, where servers begin to refuse.
BATCH_CHARACTERS = 100_000

# A question waits no longer, whatever a batch of passages may take: enough to load a model, and words answer then.
QUESTION_SECONDS = 30.0

# How often a text is halved before it is clear that its length is not what the server minds.
LONGEST_CUTS = 6

# In the words of Ollama, llama.cpp, vLLM, Text Embeddings Inference, OpenAI, Voyage and Cohere. The last is what
# Ollama says when its runner died of too long a text.
_TOO_LONG = re.compile(
    r"context (length|size|window)|too (long|large|many (input )?tokens)|(max\w*|allowed|input|sequence) (\w+ ){0,3}"
    r"(tokens|length)|(less|fewer|longer|more) than \d+|batch size|do embedding request: EOF",
    re.IGNORECASE,
)

_LENGTH_STATUSES = frozenset({400, 413, 422, 500})

log = logging.getLogger(__name__)


class Dialect(Protocol):
    """How one sort of server is spoken to."""

    @property
    def path(self) -> str:
        """Added to the address."""

    def request(self, texts: Sequence[str]) -> dict[str, object]:
        """The JSON to send."""

    def fault(self, status: int, said: str, address: str) -> EmbedderError | None:
        """What an answer with this status means, where this sort of server means something particular by it."""


class TooLong(EmbedderError):
    """The server calls the input too long."""


class NetworkEmbedder(Embedder):
    """Implements the ``Embedder`` port for a model behind an address. Sends nothing before :meth:`admit`.

    Args:
        client: The connection.
        dialect: How to speak.
        plan: The model, and how it wants to be asked.
        batch: Texts in one request, at most.
        at_once: Requests in flight, at most.
        seconds: How long one request may take.

    Attributes:
        cut: How many texts were shortened because the model reads less.
    """

    def __init__(
        self, client: Client, dialect: Dialect, plan: EmbeddingPlan, *, batch: int, at_once: int, seconds: float
    ) -> None:
        self.cut = 0
        self._client = client
        self._dialect = dialect
        self._plan = plan
        self._batch = batch
        self._at_once = at_once
        self._seconds = seconds
        self._proven = False

    @property
    @override
    def space(self) -> Space:
        return self._plan.space

    @property
    @override
    def address(self) -> str:
        return self._client.address

    @property
    @override
    def max_tokens(self) -> int:
        return self._plan.profile.max_tokens - tokenizer.count(self._plan.profile.passage)

    def admit(self, route: Route) -> None:
        """From now on send, along this route only."""
        self._client.admit(route)

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._plan.profile.passage, FOR_PASSAGES, self._seconds)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        seconds = min(self._seconds, QUESTION_SECONDS)
        return self._embed(texts, self._plan.profile.query, FOR_QUESTIONS, seconds)

    def _embed(self, texts: Sequence[str], prefix: str, patience: RetryPolicy, seconds: float) -> Matrix:
        made: list[Matrix] = [np.empty((0, self.space.dim), np.float32)]
        batches = list(self._batches([self._fit(text, prefix) for text in texts]))
        flight = RequestGroup(seconds)
        # The first request to a server goes alone, so that a fault is met once and at once.
        alone = 1 if not self._proven or len(batches) == 1 else 0
        try:
            made += [self._rows(each, patience, flight) for each in batches[:alone]]
            if batches[alone:]:
                made += self._side_by_side(batches[alone:], patience, flight)
        except BaseException:
            flight.stop()
            raise
        return np.concatenate(made)

    def _side_by_side(
        self, batches: Sequence[Sequence[str]], patience: RetryPolicy, flight: RequestGroup
    ) -> list[Matrix]:
        with ThreadPoolExecutor(min(self._at_once, len(batches)), "embed") as pool:
            futures = [pool.submit(self._rows, each, patience, flight) for each in batches]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                flight.stop()
                raise

    def _batches(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            if batch and (len(batch) == self._batch or size + len(text) > BATCH_CHARACTERS):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch:
            yield batch

    def _fit(self, text: str, prefix: str) -> str:
        """The text as it is sent: cut at what the model reads, with the words that belong before it."""
        whole = sanitize(text)
        kept = truncate(whole, max(1, self._plan.profile.max_tokens - tokenizer.FRAME - tokenizer.count(prefix)))
        if len(kept) < len(whole):
            self._tell_cut(len(whole), len(kept))
        return prefix + kept

    def _rows(self, texts: Sequence[str], patience: RetryPolicy, flight: RequestGroup) -> Matrix:
        """One batch; in halves, down to single texts, where the server calls it too long."""
        try:
            return self._ask(texts, patience, flight)
        except TooLong as error:
            if len(texts) == 1:
                return self._shortened(texts[0], error, patience, flight)
        middle = len(texts) // 2
        return np.concatenate([self._rows(half, patience, flight) for half in (texts[:middle], texts[middle:])])

    def _shortened(self, text: str, error: TooLong, patience: RetryPolicy, flight: RequestGroup) -> Matrix:
        for halvings in range(1, LONGEST_CUTS + 1):
            kept = text[: len(text) >> halvings]
            if not kept:
                break
            try:
                made = self._ask([kept], patience, flight)
            except TooLong as still:
                error = still
                continue
            self._tell_cut(len(text), len(kept))
            return made
        raise EmbedderError(error.what, f"Set max_tokens below {self._plan.profile.max_tokens}.") from error

    def _tell_cut(self, had: int, kept: int) -> None:
        self.cut += 1
        told = log.warning if self.cut == 1 else log.info
        told("%s reads less than a whole text of %d characters: its first %d were sent", self.space.model, had, kept)

    def _ask(self, texts: Sequence[str], patience: RetryPolicy, flight: RequestGroup) -> Matrix:
        """One request, repeated where that can help."""
        body = json.dumps(self._dialect.request(texts)).encode("ascii")
        most = responses.most_bytes(len(texts), self.space.dim)

        def send() -> Reply:
            return self._client.post(self._dialect.path, body, most, flight)

        reply = persist(send, patience, flight, self.address, proven=self._proven, lasting=_is_too_long)
        if not 200 <= reply.status < 300:
            raise self._explain(reply)
        made = responses.vectors(responses.parse(reply.body, self.address), len(texts), self.space.dim, self.address)
        self._proven = True
        return made

    def _explain(self, reply: Reply) -> EmbedderError:
        said = responses.shorten(self._client.hide(responses.message(reply.body)))
        about = f"{self.address} answers with status {reply.status}" + (f": {said}" if said else "")
        if _is_too_long(reply):
            return TooLong(about)
        own = self._dialect.fault(reply.status, said, self.address)
        if own is not None:
            return own
        if reply.status in (401, 403):
            return EmbedderUnavailable(about, "Check the token that secret_ref names, and that it may embed.")
        if reply.status == 407:
            return EmbedderUnavailable(about, "The proxy asks for a login: put it into HTTPS_PROXY.")
        if reply.status == 404:
            return EmbedderUnavailable(about, "Check endpoint_url (it often ends in /v1/embeddings) and model.")
        if reply.status in (429, 503):
            return EmbedderUnavailable(about, "Try again later; what was done so far is kept.")
        return EmbedderUnavailable(about, "Its own log may say more; what was done so far is kept.")


def _is_too_long(reply: Reply) -> bool:
    if reply.status == 413:
        return True
    return reply.status in _LENGTH_STATUSES and bool(_TOO_LONG.search(responses.message(reply.body)))

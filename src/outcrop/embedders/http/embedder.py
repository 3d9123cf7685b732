"""An embedder that is asked over HTTP: batches, several in flight, in order; a text that is too long is halved."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from outcrop.config.settings import Settings
from outcrop.core.parallel import map_threaded
from outcrop.core.protocols import Matrix, override
from outcrop.embedders import known_models
from outcrop.embedders.base import PlannedEmbedder
from outcrop.embedders.http import responses
from outcrop.embedders.http.address import Route
from outcrop.embedders.http.client import EmbeddingClient, HttpResponse
from outcrop.embedders.http.connection import RequestGroup
from outcrop.embedders.http.endpoint import Dialect
from outcrop.embedders.http.retry import FOR_PASSAGES, FOR_QUERIES, ONCE, RetryPolicy, send_with_retries
from outcrop.embedders.truncate import sanitize, truncate
from outcrop.errors import EmbedderError, EmbedderUnavailable, InputRefused
from outcrop.text import tokenizer

# Characters in one request: about 25,000 tokens, where servers begin to refuse.
BATCH_CHARACTERS = 100_000

# Seconds for a question, whatever a batch of passages may take: enough to load a model; after it keywords answer.
QUERY_TIMEOUT = 30.0

# Halvings of a text after which its length cannot be what the server refuses.
MAX_HALVINGS = 6

# In the words of Ollama, llama.cpp, vLLM, Text Embeddings Inference, OpenAI, Voyage and Cohere. The last is what
# Ollama says when its runner died of too long a text.
_TOO_LONG = re.compile(
    r"context (length|size|window)|too (long|large|many (input )?tokens)|(max\w*|allowed|input|sequence) (\w+ ){0,3}"
    r"(tokens|length)|(less|fewer|longer|more) than \d+|batch size|do embedding request: EOF",
    re.IGNORECASE,
)

_LENGTH_STATUSES = frozenset({400, 413, 422, 500})

# What a server that works answers to a text that its model cannot embed; an overloaded one has other statuses.
_INPUT_STATUSES = frozenset({400, 422, 500})

# Ollama's words when a model computes NaN for a text, which it does each time.
_NOT_A_NUMBER = re.compile(r"unsupported value: NaN")

_KEPT = "what was done so far is kept."

_STATUS_FIXES = {
    401: "Check the token that secret_ref names, and that it may embed.",
    403: "Check the token that secret_ref names, and that it may embed.",
    404: "Check endpoint_url (it often ends in /v1/embeddings) and model.",
    407: "The proxy asks for a login: put it into HTTPS_PROXY.",
    429: f"Try again later; {_KEPT}",
    503: f"Try again later; {_KEPT}",
}

log = logging.getLogger(__name__)


class TooLong(EmbedderError):
    """The server calls the input too long."""


class HttpEmbedder(PlannedEmbedder):
    """Implements the ``Embedder`` port for a model behind an address. Sends nothing before :meth:`authorize`."""

    def __init__(
        self,
        dialect: Dialect,
        address: str,
        options: Settings,
        headers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        super().__init__(known_models.plan(dialect.model, options))
        self._client = EmbeddingClient(address, headers, dialect.start_server)
        self._dialect = dialect
        self._batch = options.batch or dialect.batch
        self._timeout = options.timeout or dialect.timeout
        self._policy = FOR_PASSAGES
        self._has_answered = False
        self._has_truncated = False

    @property
    @override
    def address(self) -> str:
        return self._client.address

    @property
    @override
    def max_tokens(self) -> int:
        return super().max_tokens - tokenizer.count(self._plan.profile.passage)

    def without_retries(self) -> HttpEmbedder:
        other = copy.copy(self)
        other._policy = ONCE
        return other

    def authorize(self, route: Route) -> None:
        self._client.authorize(route)

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._plan.profile.passage, self._policy, self._timeout)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._plan.profile.query, FOR_QUERIES, min(self._timeout, QUERY_TIMEOUT))

    def _embed(self, texts: Sequence[str], prefix: str, policy: RetryPolicy, timeout: float) -> Matrix:
        vectors: list[Matrix] = [np.empty((0, self.space.dim), np.float32)]
        batches = list(self._batches([self._truncate(text, prefix) for text in texts]))
        group = RequestGroup(timeout)
        # The first request to a server goes alone, so that an error comes once and at once.
        alone = 1 if not self._has_answered or len(batches) == 1 else 0
        try:
            vectors += [self._embed_batch(batch, policy, group) for batch in batches[:alone]]
            if batches[alone:]:
                vectors += map_threaded(
                    lambda batch: self._embed_batch(batch, policy, group),
                    batches[alone:],
                    self._dialect.at_once,
                    group.stop,
                )
        except BaseException:
            group.stop()
            raise
        return np.concatenate(vectors)

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

    def _truncate(self, text: str, prefix: str) -> str:
        """The text as it is sent: the prefix, then as much as the model reads after it."""
        whole = sanitize(text)
        kept = truncate(whole, max(1, self._plan.profile.max_tokens - tokenizer.FRAME - tokenizer.count(prefix)))
        if len(kept) < len(whole):
            self._log_truncation(len(whole), len(kept))
        return prefix + kept

    def _embed_batch(self, texts: Sequence[str], policy: RetryPolicy, group: RequestGroup) -> Matrix:
        """One batch; in halves, down to single texts, where the server calls it too long."""
        try:
            return self._request(texts, policy, group)
        except TooLong as error:
            if len(texts) == 1:
                return self._embed_shortened(texts[0], error, policy, group)
        middle = len(texts) // 2
        return np.concatenate([self._embed_batch(half, policy, group) for half in (texts[:middle], texts[middle:])])

    def _embed_shortened(self, text: str, error: TooLong, policy: RetryPolicy, group: RequestGroup) -> Matrix:
        for halvings in range(1, MAX_HALVINGS + 1):
            kept = text[: len(text) >> halvings]
            if not kept:
                break
            try:
                vector = self._request([kept], policy, group)
            except TooLong as still:
                error = still
                continue
            self._log_truncation(len(text), len(kept))
            return vector
        raise InputRefused(error.what, f"Set max_tokens below {self._plan.profile.max_tokens}.") from error

    def _log_truncation(self, characters: int, kept: int) -> None:
        level = logging.INFO if self._has_truncated else logging.WARNING
        self._has_truncated = True
        log.log(
            level,
            "%s does not read a whole text of %d characters: its first %d were sent",
            self.space.model,
            characters,
            kept,
        )

    def _request(self, texts: Sequence[str], policy: RetryPolicy, group: RequestGroup) -> Matrix:
        request = self._dialect.request(texts)
        if self._plan.ask_dim is not None:
            request["dimensions"] = self._plan.ask_dim
        body = json.dumps(request).encode("ascii")
        most_bytes = responses.most_bytes(len(texts), self.space.dim)
        response = send_with_retries(
            lambda: self._client.post(self._dialect.path, body, most_bytes, group),
            policy,
            group,
            self.address,
            has_answered=self._has_answered,
            is_final=_is_final,
        )
        if not 200 <= response.status < 300:
            raise self._error(response)
        answer = responses.parse(response.body, self.address)
        vectors = responses.vectors(answer, len(texts), self.space.dim, self.address)
        self._has_answered = True
        return vectors

    def _error(self, response: HttpResponse) -> EmbedderError:
        message = responses.shorten(self._client.hide(responses.message(response.body)))
        what = f"{self.address} answers with status {response.status}" + (f": {message}" if message else "")
        if _is_too_long(response):
            return TooLong(what)
        fix = _STATUS_FIXES.get(response.status, f"Its own log may say more; {_KEPT}")
        kind = InputRefused if response.status in _INPUT_STATUSES else EmbedderUnavailable
        return self._dialect.error(response.status, message, self.address) or kind(what, fix)


def _is_final(response: HttpResponse) -> bool:
    return _is_too_long(response) or bool(_NOT_A_NUMBER.search(responses.message(response.body)))


def _is_too_long(response: HttpResponse) -> bool:
    if response.status == 413:
        return True
    return response.status in _LENGTH_STATUSES and bool(_TOO_LONG.search(responses.message(response.body)))

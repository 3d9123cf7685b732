"""The default embedder: all-MiniLM-L6-v2, computed on this machine, on all its cores, without any network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.core.vectors import normalise
from outcrop.embedders.local.convert import open_fastest
from outcrop.embedders.local.parallel import processors, spread
from outcrop.embedders.local.session import DIM, MAX_TOKENS, Session
from outcrop.text.tokenizer import encode

MODEL = "all-MiniLM-L6-v2"


class LocalEmbedder(Embedder):
    """Implements the ``Embedder`` port. The model is loaded when the first text arrives.

    Args:
        cache: Folder in which the machine's own form of the model is kept (23 MB); None for the user's cache folder.
        threads: Texts to compute at once; None for one per processor that this process may use.

    Attributes:
        notice: After loading, None or a sentence that tells the user why the model is slower than it could be.
    """

    def __init__(self, cache: Path | None = None, threads: int | None = None) -> None:
        self.notice: str | None = None
        self._cache = cache
        self._threads = threads or processors()
        self._session: Session | None = None
        self._loading = Lock()

    @property
    @override
    def space(self) -> Space:
        return Space(MODEL, DIM)

    @property
    @override
    def address(self) -> None:
        """None: the text stays in this process."""

    @property
    @override
    def max_tokens(self) -> int:
        return MAX_TOKENS

    @property
    def loaded(self) -> bool:
        """Whether the next text meets a model that is ready."""
        return self._session is not None

    def load(self) -> None:
        """Load the model now: 0.1 s, and about a second the first time on a machine. Does nothing when it is loaded."""
        self._open()

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        means = np.empty((len(texts), DIM), np.float32)
        if not texts:
            return means
        session = self._open()

        def work(number: int) -> None:
            means[number] = session.mean(encode(texts[number], MAX_TOKENS))

        spread(len(texts), work, self._threads)
        return normalise(means)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed_passages(texts)

    def _open(self) -> Session:
        with self._loading:
            if self._session is None:
                self._session, self.notice = open_fastest(self._cache)
            return self._session

"""The default embedder: all-MiniLM-L6-v2, computed on this machine, on all its cores, without any network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.core.vectors import normalise
from outcrop.embedders.local.parallel import processors, spread
from outcrop.embedders.local.session import Session
from outcrop.errors import EmbedderUnavailable
from outcrop.text.tokenizer import encode

MODEL = "all-MiniLM-L6-v2"
DIM = 384

# The model was trained on texts of at most 128 word pieces, and the graph has no more positions.
MAX_TOKENS = 128

# Made by ``scripts/convert_model.py``.
MODEL_PATH = Path(__file__).parents[2] / "data" / f"{MODEL}.onnx"


class LocalEmbedder(Embedder):
    """Implements the ``Embedder`` port. The model is loaded when the first text arrives.

    Args:
        threads: Texts to compute at once; None for one per processor that this process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
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
        """Load the model now, in 0.1 s. Does nothing when it is loaded."""
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
                try:
                    self._session = Session(MODEL_PATH)
                except Exception as error:  # onnxruntime's errors have no common base
                    raise EmbedderUnavailable(
                        f"The local model cannot be loaded: {error}", "Install Outcrop and onnxruntime again."
                    ) from error
            return self._session

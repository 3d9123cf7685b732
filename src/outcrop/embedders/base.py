"""What embedders share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.core.vectors import normalise
from outcrop.embedders.known_models import EmbeddingPlan
from outcrop.errors import DimensionMismatch


class PlannedEmbedder(Embedder, ABC):
    """Implements the ``Embedder`` port, except for embedding, for one that stays in this process."""

    def __init__(self, plan: EmbeddingPlan) -> None:
        self._plan = plan

    @property
    @override
    def space(self) -> Space:
        return self._plan.space

    @property
    @override
    def address(self) -> str | None:
        return None

    @property
    @override
    def max_tokens(self) -> int:
        return self._plan.profile.max_tokens


class InProcessEmbedder(PlannedEmbedder):
    """Loads a model once, when the first text arrives."""

    def __init__(self, plan: EmbeddingPlan) -> None:
        super().__init__(plan)
        self._model: Any = None
        self._loading = Lock()

    @property
    def loaded(self) -> bool:
        return self._model is not None

    def load(self) -> Any:
        with self._loading:
            if self._model is None:
                self._model = self._open()
            return self._model

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._plan.profile.passage)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._plan.profile.query)

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        dim = self.space.dim
        if not texts:
            return np.empty((0, dim), np.float32)
        vectors = normalise(self._encode(self.load(), texts, prefix))
        found = vectors.shape[1]
        if found != dim:
            raise DimensionMismatch(
                f"{self.space.model} makes vectors of {found} dimensions, but {dim} are expected",
                f"Set dim = {found} and index again.",
            )
        return vectors

    @abstractmethod
    def _open(self) -> Any:
        """The loaded model."""

    @abstractmethod
    def _encode(self, model: Any, texts: Sequence[str], prefix: str) -> npt.ArrayLike:
        """One row a text, not normalised, of the model's own length; there is at least one text."""

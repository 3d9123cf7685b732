"""What embedders of a model of one's own share: they run in this process, by a plan of prefixes and lengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.embedders.known_models import EmbeddingPlan


class PlannedEmbedder(Embedder, ABC):
    """Implements the ``Embedder`` port but for running the model.

    Args:
        plan: The model's space, prefixes and lengths.
    """

    def __init__(self, plan: EmbeddingPlan) -> None:
        self._plan = plan

    @property
    @override
    def space(self) -> Space:
        return self._plan.space

    @property
    @override
    def address(self) -> None:
        return None

    @property
    @override
    def max_tokens(self) -> int:
        return self._plan.recipe.max_tokens

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._plan.recipe.passage)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._plan.recipe.query)

    @abstractmethod
    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        """Embed texts with a prefix."""

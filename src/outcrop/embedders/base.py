"""What embedders of a model of one's own share: they run in this process, by a plan of prefixes and lengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from outcrop.core.model import Space
from outcrop.core.protocols import Matrix
from outcrop.embedders.known_models import EmbeddingPlan


class PlannedEmbedder(ABC):
    """Implements the ``Embedder`` port but for running the model.

    Args:
        plan: The model's space, prefixes and lengths.
    """

    def __init__(self, plan: EmbeddingPlan) -> None:
        self._plan = plan

    @property
    def space(self) -> Space:
        """The model as the user named it; a folder's name with a digest of its contents."""
        return self._plan.space

    @property
    def address(self) -> None:
        """None: the text stays in this process."""
        return None

    @property
    def max_tokens(self) -> int:
        """What is known of the model, or said by its folder."""
        return self._plan.recipe.max_tokens

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts to be found.

        Returns:
            float32 ``[len(texts), dim]``, L2-normalised.

        Raises:
            EmbedderUnavailable: The package or the model is missing.
            DimensionMismatch: The vectors have another length than was said.
            EmbedderError: It failed.
        """
        return self._embed(texts, self._plan.recipe.passage)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Embed questions. Same shape and errors."""
        return self._embed(texts, self._plan.recipe.query)

    @abstractmethod
    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        """Embed texts with a prefix."""

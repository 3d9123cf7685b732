"""A model of the package sentence-transformers (an extra), from a folder or by a name that the package fetches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from outcrop.config.settings import Settings
from outcrop.core.protocols import Matrix, override
from outcrop.embedders import known_models, model_folder
from outcrop.embedders.base import InProcessEmbedder
from outcrop.embedders.truncate import sanitize
from outcrop.errors import EmbedderError, EmbedderUnavailable

BATCH = 32


class SentenceTransformersEmbedder(InProcessEmbedder):
    """Implements the ``Embedder`` port. A model's own Python code never runs (``trust_remote_code`` stays off).

    ``model`` is the path of a folder, or a name that the package fetches; ``options.dim`` is needed for an unknown
    name.
    """

    def __init__(self, model: str, options: Settings) -> None:
        self._source = model
        if model_folder.is_path(model):
            folder = model_folder.read_model_folder(model)
            self._source = str(folder.path)
            # A layer after the pooling may change the length, so the folder's own figure counts only without one.
            profile = replace(folder.profile, dim=None) if folder.modules else folder.profile
            super().__init__(known_models.plan_from_profile(folder.id, profile, options))
        else:
            super().__init__(known_models.plan(model, options))
        self._batch = options.batch or BATCH

    @override
    def _open(self) -> Any:
        try:
            # Here, because it is an extra, and takes seconds to load.
            from sentence_transformers import SentenceTransformer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise EmbedderUnavailable(
                "the package sentence-transformers is not installed",
                "Run: pip install 'outcrop[sentence-transformers]'",
            ) from error
        disable_progress_bar()  # standard error belongs to our own progress
        try:
            model = SentenceTransformer(self._source)
        except Exception as error:
            raise EmbedderUnavailable(
                f"sentence-transformers cannot load {self._source}: {error}", "Name a folder, or check the network."
            ) from error
        model.max_seq_length = self.max_tokens
        return model

    @override
    def _encode(self, model: Any, texts: Sequence[str], prefix: str) -> Matrix:
        try:
            # prompt="" keeps the model's default prompt out: the prefix is ours, and is in the space's id.
            vectors: Matrix = model.encode(
                [prefix + sanitize(text) for text in texts],
                prompt="",
                batch_size=self._batch,
                show_progress_bar=False,
                truncate_dim=self._plan.ask_dim,
            )
        except Exception as error:  # torch and transformers raise all sorts
            raise EmbedderError(f"{self.space.model} failed: {error}") from error
        return vectors

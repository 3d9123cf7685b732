"""A model of the package sentence-transformers (an extra), from a folder or by a name that the package fetches."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from outcrop.core.protocols import Matrix
from outcrop.core.vectors import normalise
from outcrop.embedders import known_models, model_folder
from outcrop.embedders.base import PlannedEmbedder
from outcrop.embedders.known_models import ModelOptions, ModelProfile
from outcrop.embedders.truncate import presentable
from outcrop.errors import DimensionMismatch, EmbedderError, EmbedderUnavailable

BATCH = 32


class SentenceTransformersEmbedder(PlannedEmbedder):
    """Implements the ``Embedder`` port. The model is loaded when the first text arrives.

    A model's own Python code is never run (``trust_remote_code`` stays off).

    Args:
        model: Path of a folder, or a name that the package fetches where this machine may.
        wishes: What the user wants otherwise; ``dim`` is needed for a name that is not known.
    """

    def __init__(self, model: str, wishes: ModelOptions) -> None:
        if model_folder.is_path(model):
            found = model_folder.read(model)
            self._model = str(found.folder)
            # A layer after the pooling may change the length, so the folder's word counts only without one.
            dim = None if found.modules else found.dim
            standard = ModelProfile(found.query, found.passage, dim, found.max_tokens)
            super().__init__(known_models.plan_for(found.id, standard, wishes))
        else:
            self._model = model
            super().__init__(known_models.plan(model, wishes))
        self._batch = wishes.batch or BATCH
        self._loading = Lock()
        self._loaded: Any = None

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        dim = self.space.dim
        if not texts:
            return np.empty((0, dim), np.float32)
        model = self._load()
        try:
            # prompt="" keeps the model's default prompt out: the prefix is ours, and is in the space's id.
            made = model.encode(
                [prefix + presentable(text) for text in texts],
                prompt="",
                batch_size=self._batch,
                show_progress_bar=False,
                truncate_dim=self._plan.ask_dim,
            )
        except Exception as error:  # torch and transformers raise all sorts
            raise EmbedderError(f"{self.space.model} failed: {error}") from error
        if made.shape[1] != dim:
            raise DimensionMismatch(
                f"{self.space.model} makes vectors of {made.shape[1]} dimensions, but {dim} are expected",
                f"Set dim = {made.shape[1]} and index again.",
            )
        return normalise(made)

    def _load(self) -> Any:
        with self._loading:
            if self._loaded is None:
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
                    model = SentenceTransformer(self._model)
                except Exception as error:
                    raise EmbedderUnavailable(
                        f"sentence-transformers cannot load {self._model}: {error}",
                        "Name a folder, or check the network.",
                    ) from error
                model.max_seq_length = self.max_tokens
                self._loaded = model
            return self._loaded

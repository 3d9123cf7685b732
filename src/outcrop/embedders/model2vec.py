"""A static model of the package model2vec (an extra): a table of word vectors, averaged. Quick, and weak."""

from __future__ import annotations

import sys
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


class Model2VecEmbedder(PlannedEmbedder):
    """Implements the ``Embedder`` port. The model is loaded when the first text arrives.

    Args:
        model: Path of a folder, or a name that the package fetches where this machine may.
        wishes: What the user wants otherwise; ``dim`` is needed for a name.
    """

    def __init__(self, model: str, wishes: ModelOptions) -> None:
        if model_folder.is_path(model):
            found = model_folder.read(model)
            self._model = str(found.folder)
            super().__init__(
                known_models.plan_for(found.id, ModelProfile(dim=found.dim, max_tokens=sys.maxsize), wishes)
            )
        else:
            self._model = model
            super().__init__(known_models.plan_for(model, ModelProfile(max_tokens=sys.maxsize), wishes))
        self._loading = Lock()
        self._loaded: Any = None

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        dim = self.space.dim
        if not texts:
            return np.empty((0, dim), np.float32)
        model = self._load()
        if model.dim != dim:
            raise DimensionMismatch(
                f"{self.space.model} makes vectors of {model.dim} dimensions, but {dim} are expected",
                f"Set dim = {model.dim} and index again.",
            )
        try:
            made = model.encode(
                [prefix + presentable(text) for text in texts], max_length=None, use_multiprocessing=False
            )
        except Exception as error:  # the package has no errors of its own
            raise EmbedderError(f"{self.space.model} failed: {error}") from error
        # A text of which it knows no word is all zeros; any one direction will do, as long as it is always the same.
        made[~made.any(axis=1), 0] = 1.0
        return normalise(made)

    def _load(self) -> Any:
        with self._loading:
            if self._loaded is None:
                try:
                    # Here, because it is an extra.
                    from model2vec import StaticModel
                except ImportError as error:
                    raise EmbedderUnavailable(
                        "the package model2vec is not installed", "Run: pip install 'outcrop[model2vec]'"
                    ) from error
                try:
                    self._loaded = StaticModel.from_pretrained(self._model, force_download=False)
                except Exception as error:
                    raise EmbedderUnavailable(
                        f"model2vec cannot load {self._model}: {error}", "Name a folder, or check the network."
                    ) from error
            return self._loaded

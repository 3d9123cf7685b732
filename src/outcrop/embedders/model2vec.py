"""A static model of the package model2vec (an extra): a table of word vectors, averaged. Quick, and weak."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from outcrop.config.settings import Settings
from outcrop.core.protocols import Matrix, override
from outcrop.embedders import known_models, model_folder
from outcrop.embedders.base import InProcessEmbedder
from outcrop.embedders.known_models import ModelProfile
from outcrop.embedders.truncate import sanitize
from outcrop.errors import EmbedderError, EmbedderUnavailable


class Model2VecEmbedder(InProcessEmbedder):
    """Implements the ``Embedder`` port.

    ``model`` is the path of a folder, or a name that the package fetches; ``options.dim`` is needed for a name.
    """

    def __init__(self, model: str, options: Settings) -> None:
        self._source, model_id, dim = model, model, None
        if model_folder.is_path(model):
            folder = model_folder.read_model_folder(model)
            self._source, model_id, dim = str(folder.path), folder.id, folder.profile.dim
        super().__init__(
            known_models.plan_from_profile(model_id, ModelProfile(dim=dim, max_tokens=sys.maxsize), options)
        )

    @override
    def _open(self) -> Any:
        try:
            # Here, because it is an extra.
            from model2vec import StaticModel
        except ImportError as error:
            raise EmbedderUnavailable(
                "the package model2vec is not installed", "Run: pip install 'outcrop[model2vec]'"
            ) from error
        try:
            return StaticModel.from_pretrained(self._source, force_download=False)
        except Exception as error:
            raise EmbedderUnavailable(
                f"model2vec cannot load {self._source}: {error}", "Name a folder, or check the network."
            ) from error

    @override
    def _encode(self, model: Any, texts: Sequence[str], prefix: str) -> Matrix:
        cleaned = [prefix + sanitize(text) for text in texts]
        try:
            vectors: Matrix = model.encode(cleaned, max_length=None, use_multiprocessing=False)
        except Exception as error:  # the package has no errors of its own
            raise EmbedderError(f"{self.space.model} failed: {error}") from error
        # All zeros where the model knows no word: any one direction will do, if it is always the same.
        vectors[~vectors.any(axis=1), 0] = 1.0
        return vectors

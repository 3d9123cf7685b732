"""From settings to a model that the user keeps on this machine, or has a package fetch."""

from __future__ import annotations

from outcrop.config.settings import Settings
from outcrop.core.protocols import Embedder
from outcrop.embedders.known_models import ModelOptions
from outcrop.embedders.local.embedder import MODEL
from outcrop.embedders.model_folder import is_path
from outcrop.errors import BadConfig


def wishes(settings: Settings) -> ModelOptions:
    """What the settings say about how a model is used."""
    return ModelOptions(
        dim=settings.dim,
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
        max_tokens=settings.max_tokens,
        batch=settings.batch,
        seconds=settings.timeout,
    )


def make(settings: Settings) -> Embedder:
    """The embedder for ``local`` with a path, ``sentence-transformers`` or ``model2vec``. Loads nothing."""
    if settings.model is None:
        raise BadConfig(
            f"the embedder {settings.embedder} has no model", "Set model to the path of a folder, or to a name."
        )
    # Each imported where it is chosen: the others' packages may not be there.
    if settings.embedder == "sentence-transformers":
        from outcrop.embedders.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(settings.model, wishes(settings))
    if settings.embedder == "model2vec":
        from outcrop.embedders.model2vec import Model2VecEmbedder

        return Model2VecEmbedder(settings.model, wishes(settings))
    if not is_path(settings.model):
        fix = f"It has {MODEL}; a model of your own is named by the path of its folder (./model, /opt/model)."
        raise BadConfig(f"the local embedder has no model {settings.model!r}", fix)
    from outcrop.embedders.onnx_folder import FolderEmbedder

    return FolderEmbedder(settings.model, wishes(settings))

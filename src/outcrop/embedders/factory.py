"""From settings to an embedder: the only place that knows them by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from outcrop.config.settings import Settings
from outcrop.core.protocols import Embedder
from outcrop.errors import BadConfig

if TYPE_CHECKING:
    from outcrop.embedders.http.consent import Consent

# What the setting ``embedder`` can be.
EMBEDDERS = ("local", "hash", "ollama", "endpoint", "sentence-transformers", "model2vec")


def make_embedder(settings: Settings, consent: Consent | None = None) -> Embedder:
    """The embedder that the settings name. Loads nothing and sends nothing."""
    # Each is imported where it is chosen: the packages of the others may be missing, and HTTP and TLS take time.
    if settings.embedder == "local":
        from outcrop.embedders.local.embedder import DIM, MODEL, LocalEmbedder

        if settings.model not in (None, MODEL):
            return _make_custom(settings)
        if settings.dim not in (None, DIM):
            raise BadConfig(f"{MODEL} has {DIM} dimensions, not {settings.dim}", "Unset dim.")
        return LocalEmbedder()
    if settings.embedder == "hash":
        from outcrop.embedders.hash import HashEmbedder

        return HashEmbedder() if settings.dim is None else HashEmbedder(settings.dim)
    if settings.embedder in ("sentence-transformers", "model2vec"):
        return _make_custom(settings)
    if settings.embedder in ("ollama", "endpoint"):
        from outcrop.embedders.http import from_settings

        return from_settings.make(settings, consent)
    raise BadConfig(f"there is no embedder {settings.embedder!r}", f"There is: {', '.join(EMBEDDERS)}")


def _make_custom(settings: Settings) -> Embedder:
    """An embedder whose model the user keeps on this machine, or has a package fetch."""
    from outcrop.embedders.model_folder import is_path

    model = settings.model
    if model is None:
        raise BadConfig(
            f"the embedder {settings.embedder} has no model", "Set model to the path of a folder, or to a name."
        )
    if settings.embedder == "sentence-transformers":
        from outcrop.embedders.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model, settings)
    if settings.embedder == "model2vec":
        from outcrop.embedders.model2vec import Model2VecEmbedder

        return Model2VecEmbedder(model, settings)
    if not is_path(model):
        from outcrop.embedders.local.embedder import MODEL

        fix = f"It has {MODEL}; a model of your own is named by the path of its folder (./model, /opt/model)."
        raise BadConfig(f"the local embedder has no model {model!r}", fix)
    from outcrop.embedders.onnx_folder import FolderEmbedder

    return FolderEmbedder(model, settings)


def is_model(settings: Settings) -> bool:
    """Whether the embedder that is set finds by meaning, and not by words alone."""
    return settings.embedder != "hash"


def other(settings: Settings, name: str, model: str | None = None, dim: int | None = None) -> Settings:
    """The settings for another embedder, without what belongs to the one that is set.

    ``model`` and ``dim`` are None for what is set for that embedder, or its own default.
    """
    if name == settings.embedder and model in (None, settings.model):
        return settings if dim in (None, settings.dim) else replace(settings, dim=dim)
    plain = replace(
        settings,
        embedder=name,
        model=model,
        dim=dim,
        query_prefix=None,
        passage_prefix=None,
        max_tokens=None,
        batch=None,
        timeout=None,
    )
    if name == "endpoint":
        return replace(plain, model=model or settings.model)
    if settings.embedder == "endpoint":
        # The address and its token belong to the endpoint.
        return replace(plain, endpoint_url=None, secret_ref=None, headers=())
    return plain

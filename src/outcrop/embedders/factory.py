"""Which embedder the settings name, and which others can be tried here."""

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
    if settings.embedder == "local":
        from outcrop.embedders.local.embedder import MODEL, LocalEmbedder

        if settings.model not in (None, MODEL):
            return _own_model(settings)
        local: Embedder = LocalEmbedder()
        if settings.dim not in (None, local.space.dim):
            raise BadConfig(f"{local.space.model} has {local.space.dim} dimensions, not {settings.dim}", "Unset dim")
        return local
    if settings.embedder == "hash":
        from outcrop.embedders.hash import HashEmbedder

        return HashEmbedder() if settings.dim is None else HashEmbedder(settings.dim)
    if settings.embedder in ("sentence-transformers", "model2vec"):
        return _own_model(settings)
    if settings.embedder in ("ollama", "endpoint"):
        # Imported here: HTTP and TLS are for those who use them.
        from outcrop.embedders.http import from_settings

        return from_settings.make(settings, consent)
    raise BadConfig(f"there is no embedder {settings.embedder!r}", f"There is: {', '.join(EMBEDDERS)}")


def _own_model(settings: Settings) -> Embedder:
    # Imported here: this is for those who have a model of their own.
    from outcrop.embedders import local_models

    return local_models.make(settings)


def is_model(settings: Settings) -> bool:
    """Whether the embedder that is set knows anything of meaning."""
    return settings.embedder != "hash"


def other(settings: Settings, name: str, model: str | None = None, dim: int | None = None) -> Settings:
    """The settings of an embedder by its name: what was set for another is none of its business.

    Args:
        settings: What is set.
        name: The embedder; the one that is set keeps its settings.
        model: Its model; None for the one that is set for it, or its own default.
        dim: Length of its vectors; likewise.
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
        # An address of the one is none of the other.
        return replace(plain, endpoint_url=None, secret_ref=None, headers=())
    return plain

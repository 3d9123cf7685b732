"""Outcrop: a searchable index inside the repository it describes.

    import outcrop

    with outcrop.open("path/to/repository") as index:
        index.build()
        for hit in index.search("where are sessions closed?").hits:
            print(hit.path, hit.lines, hit.score)

Names are loaded when first used, so that ``import outcrop`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcrop.app.index import Index, open
    from outcrop.app.rag_context import rag_context
    from outcrop.app.shortcuts import match, semantic_search
    from outcrop.config.settings import Settings
    from outcrop.core.model import Answer, Hit, Kind, Manifest, Mode, Record, Stale
    from outcrop.core.reports import BuildReport, Plan, Progress, Status
    from outcrop.errors import (
        BadConfig,
        BadEmbedding,
        DimensionMismatch,
        EmbedderError,
        EmbedderUnavailable,
        FormatError,
        IndexMissing,
        IntegrityError,
        ManifestError,
        NotARepository,
        OutcropError,
        SchemaTooNew,
        SourceError,
        SpaceMismatch,
        StoreDamaged,
        StoreError,
        StoreFull,
        StoreLocked,
        UnknownCorpus,
        UnknownKind,
        UnknownProject,
        UsageError,
    )
    from outcrop.media.verify import verify_media

__version__ = "0.1.0"

_HOMES = {
    "outcrop.app.index": ("Index", "open"),
    "outcrop.config.settings": ("Settings",),
    "outcrop.errors": (
        "BadConfig",
        "BadEmbedding",
        "DimensionMismatch",
        "EmbedderError",
        "EmbedderUnavailable",
        "FormatError",
        "IndexMissing",
        "IntegrityError",
        "ManifestError",
        "NotARepository",
        "OutcropError",
        "SchemaTooNew",
        "SourceError",
        "SpaceMismatch",
        "StoreDamaged",
        "StoreError",
        "StoreFull",
        "StoreLocked",
        "UnknownCorpus",
        "UnknownKind",
        "UnknownProject",
        "UsageError",
    ),
    "outcrop.media.verify": ("verify_media",),
    "outcrop.core.model": ("Answer", "Hit", "Kind", "Manifest", "Mode", "Record", "Stale"),
    "outcrop.app.rag_context": ("rag_context",),
    "outcrop.app.shortcuts": ("match", "semantic_search"),
    "outcrop.core.reports": ("BuildReport", "Plan", "Progress", "Status"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "BadConfig",
    "BadEmbedding",
    "BuildReport",
    "DimensionMismatch",
    "EmbedderError",
    "EmbedderUnavailable",
    "FormatError",
    "Hit",
    "Index",
    "IndexMissing",
    "IntegrityError",
    "Kind",
    "Manifest",
    "ManifestError",
    "Mode",
    "NotARepository",
    "OutcropError",
    "Plan",
    "Progress",
    "Record",
    "SchemaTooNew",
    "Settings",
    "SourceError",
    "SpaceMismatch",
    "Stale",
    "Status",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "UnknownCorpus",
    "UnknownKind",
    "UnknownProject",
    "UsageError",
    "__version__",
    "match",
    "open",
    "rag_context",
    "semantic_search",
    "verify_media",
]


def __getattr__(name: str) -> Any:
    if name == "capabilities":
        return importlib.import_module("outcrop.app.capabilities")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'outcrop' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

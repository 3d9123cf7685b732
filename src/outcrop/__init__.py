"""Outcrop: a searchable index inside the repository it describes.

    import outcrop

    with outcrop.open("path/to/repository") as index:
        index.build()
        for hit in index.search("where are sessions closed?").hits:
            print(hit.path, hit.lines, hit.score)

Names other than errors are loaded when first used, so that ``import outcrop`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from outcrop.app.index import Index, open  # noqa: A004
    from outcrop.app.rag_context import rag_context
    from outcrop.app.shortcuts import match, semantic_search
    from outcrop.config.settings import Settings
    from outcrop.core.model import Answer, Hit, Kind, Manifest, Mode, Record, Stale
    from outcrop.core.reports import BuildReport, Plan, Progress, Status
    from outcrop.media.verify import verify_media

__version__ = "0.1.0"

_MODULES = {
    "outcrop.app.index": ("Index", "open"),
    "outcrop.app.rag_context": ("rag_context",),
    "outcrop.app.shortcuts": ("match", "semantic_search"),
    "outcrop.config.settings": ("Settings",),
    "outcrop.core.model": ("Answer", "Hit", "Kind", "Manifest", "Mode", "Record", "Stale"),
    "outcrop.core.reports": ("BuildReport", "Plan", "Progress", "Status"),
    "outcrop.media.verify": ("verify_media",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

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
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'outcrop' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

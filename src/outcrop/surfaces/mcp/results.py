"""What the tools give back. Their output schemas are made from these classes and from ``model.Answer``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outcrop.core.model import Kind
from outcrop.core.reports import WordsOnly


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool as a JSON object, and the same in words."""

    value: dict[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """Lines of one artifact: numbers count from 1, cells from 0. ``state`` is that of the ``Document``."""

    path: str | None
    hash: str
    kind: Kind
    project: str
    cell: int | None
    lines: tuple[int, int]
    whole: int
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class CorpusStatus:
    """One corpus of an index: how much there is, and passages per kind."""

    corpus: str
    artifacts: int
    chunks: int
    embedded: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of an index, as :class:`outcrop.Status` where the names are equal. ``ready``: the model is loaded."""

    source: str
    root: str
    project: str
    exists: bool
    stale: bool
    revision: str | None
    current: str
    complete: float
    building: bool
    space: str | None
    embedder: str
    ready: bool
    bytes: int
    corpora: tuple[CorpusStatus, ...]
    projects: tuple[str, ...]
    skipped: Mapping[str, int]
    words_only: tuple[WordsOnly, ...]
    behind: tuple[str, ...]
    update: str
    missing: tuple[str, ...]

"""What the tools give back. Their output schemas are made from these classes, and from ``model.Answer``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outcrop.core.model import Kind


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back: the same as a JSON object, and in words."""

    value: dict[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """Lines of one artifact.

    Attributes:
        path: Where it stands; None for what has no path.
        hash: Content address of what is shown.
        kind: The artifact's kind.
        project: Slug of its repository; empty for this one.
        cell: 0-based cell number in a notebook, else None.
        lines: First and last line, 1-based, inclusive.
        whole: Number of the last line that there is.
        text: The lines.
        state: ``indexed`` word for word, ``changed`` since, or ``stored`` where only the index still has it.
    """

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
    """The state of an index.

    Attributes:
        source: ``folder``, ``git`` or ``fossil``.
        root: The folder that paths are relative to.
        project: Slug of the repository.
        exists: Whether there is an index.
        stale: Whether it is behind its source.
        revision: What it is current to.
        current: What the source is at now.
        complete: Share of the passages that have a vector, 0 to 1.
        building: Whether another process is building it right now.
        space: The space that search scans.
        embedder: The space of the embedder that is set.
        ready: Whether its model is loaded.
        bytes: Size on disk.
        corpora: What it holds.
        projects: Projects beside this one.
        skipped: How many files were left out, by reason.
    """

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

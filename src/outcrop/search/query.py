"""What is asked, checked against what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from outcrop.core.model import Filter, Kind, Mode
from outcrop.core.protocols import Vector
from outcrop.core.rows import Names
from outcrop.errors import EmbedderError, UnknownCorpus, UnknownKind, UnknownProject, UsageError

# One name, several, or None for no restriction.
Choice = str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked.

    Attributes:
        text: The words.
        mode: How to answer.
        k: How many hits at most.
        filter: What may answer.
        min_score: Dot product that a hit must reach, or None.
        explain: Whether each hit says what its place in the list is made of.
        vector: The text embedded already by the embedder that is asked, or why that failed; None for not yet.
    """

    text: str
    mode: Mode
    k: int
    filter: Filter
    min_score: float | None = None
    explain: bool = False
    vector: Vector | EmbedderError | None = field(default=None, compare=False)


def mode_of(name: str) -> Mode:
    """A mode by its name."""
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"there is no mode {name!r}", f"There is: {', '.join(Mode)}") from None


def filter_of(kind: Choice, project: Choice, corpus: Choice, path: Choice) -> Filter:
    """A filter from what a caller names."""
    kinds = []
    for name in _names(kind):
        if name not in set(Kind):
            raise UnknownKind(f"there is no kind {name!r}", f"There is: {', '.join(Kind)}")
        kinds.append(Kind(name))
    return Filter(corpora=_names(corpus), kinds=tuple(kinds), projects=_names(project), paths=_names(path))


def _names(value: Choice) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def check(question: Question) -> None:
    """Refuse what cannot be answered."""
    if not question.text.strip():
        raise UsageError("the question is empty", "Say what to look for")
    if question.min_score is not None and not 0 <= question.min_score <= 1:
        raise UsageError(f"min_score is {question.min_score}", "Scores go from 0 to 1")
    if question.k < 1:
        raise UsageError(f"k is {question.k}", "Ask for at least 1 hit")


def resolve(wanted: Filter, names: Names, own_project: str) -> Filter:
    """Check a filter's names and write this repository's own slug as the empty project."""
    projects = tuple("" if project == own_project else project for project in wanted.projects)
    checks: tuple[tuple[str, Sequence[str], frozenset[str], type[UsageError]], ...] = (
        ("corpus", wanted.corpora, names.corpora, UnknownCorpus),
        ("kind", wanted.kinds, names.kinds, UnknownKind),
        ("project", projects, names.projects, UnknownProject),
    )
    for noun, asked, there, error in checks:
        for name in asked:
            if name not in there:
                known = ", ".join(sorted(entry or f"{own_project} (this one)" for entry in there))
                raise error(f"no {noun} {str(name)!r} in this index", f"There is: {known}")
    return Filter(wanted.corpora, wanted.kinds, projects, wanted.paths)

"""What is asked, checked against what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outcrop.errors import UnknownCorpus, UnknownKind, UnknownProject, UsageError
from outcrop.model import Filter, Mode
from outcrop.records import Names


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
    """

    text: str
    mode: Mode
    k: int
    filter: Filter
    min_score: float | None = None
    explain: bool = False


def check(question: Question) -> None:
    """Refuse what cannot be answered.

    Raises:
        UsageError: Empty question or impossible ``k``.
    """
    if not question.text.strip():
        raise UsageError("the question is empty", "Say what to look for")
    if question.k < 1:
        raise UsageError(f"k is {question.k}", "Ask for at least 1 hit")


def resolve(wanted: Filter, names: Names, own_project: str) -> Filter:
    """Check a filter's names and write this repository's own slug as the empty project.

    Raises:
        UnknownCorpus, UnknownKind, UnknownProject: Naming those that exist.
    """
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
                raise error(f"no {noun} {name!r} in this index", f"There is: {known}")
    return Filter(wanted.corpora, wanted.kinds, projects, wanted.paths)

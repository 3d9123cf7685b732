"""A question with what was read off it, and the checks of what it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from outcrop.core.model import Filter, Kind, Mode
from outcrop.core.protocols import Vector
from outcrop.core.rows import Names
from outcrop.errors import EmbedderError, UnknownCorpus, UnknownKind, UnknownProject, UsageError
from outcrop.search.file_roles import FileRole

# One name, several, or None for no restriction.
Choice = str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Query:
    """A question; :func:`outcrop.search.parse.parse` makes it.

    Attributes:
        explain: Whether each hit says what its rank is made of.
        plain_words: Words that are not identifiers, lower-case; they may be mistyped.
        symbol: The last part of the name when the whole question is one symbol (``Flask.run`` → ``run``); a single
            word of a language can be one too.
        certain: Whether the symbol is written as only symbols are: capitals, underscores, dots, a call.
        phrases: What it puts in double quotation marks, lower-case, white space folded.
        explains: Whether it asks for an explanation rather than for a place; prose answers that.
        file_roles: Roles of files that it asks for by name.
        asks_for_change: Whether it asks when, why or by whom something was changed; commits answer that.
        vector: The text embedded already by the embedder that is asked, or why that failed; None for not yet.
    """

    text: str
    mode: Mode
    k: int
    where: Filter
    min_score: float | None
    explain: bool
    words: tuple[str, ...]
    plain_words: tuple[str, ...]
    symbol: str | None
    certain: bool
    identifiers: frozenset[str]
    phrases: tuple[str, ...]
    explains: bool
    file_roles: frozenset[FileRole]
    asks_for_change: bool
    vector: Vector | EmbedderError | None = field(default=None, compare=False)


def mode_of(name: str) -> Mode:
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"there is no mode {name!r}", f"There is: {', '.join(Mode)}") from None


def filter_of(kind: Choice, project: Choice, corpus: Choice, path: Choice) -> Filter:
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


def check(query: Query) -> None:
    if not query.text.strip():
        raise UsageError("the question is empty", "Say what to look for")
    if query.min_score is not None and not 0 <= query.min_score <= 1:
        raise UsageError(f"min_score is {query.min_score}", "Scores go from 0 to 1")
    if query.k < 1:
        raise UsageError(f"k is {query.k}", "Ask for at least 1 hit")


def hits_of(query: Query, where: Filter) -> Filter:
    """What may be a hit: commits only where their kind is named, or where the question asks for a change."""
    return replace(where, commits=query.asks_for_change)


def resolve(where: Filter, names: Names, own_project: str) -> Filter:
    """Check a filter's names, and replace this repository's own slug by the empty project."""
    projects = tuple("" if project == own_project else project for project in where.projects)
    checks: tuple[tuple[str, Sequence[str], frozenset[str], type[UsageError]], ...] = (
        ("corpus", where.corpora, names.corpora, UnknownCorpus),
        ("kind", where.kinds, names.kinds, UnknownKind),
        ("project", projects, names.projects, UnknownProject),
    )
    for noun, asked, there, error in checks:
        for name in asked:
            if name not in there:
                known = ", ".join(sorted(entry or f"{own_project} (this one)" for entry in there))
                raise error(f"no {noun} {str(name)!r} in this index", f"There is: {known}")
    return replace(where, projects=projects)

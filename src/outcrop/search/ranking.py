"""Two lists of candidates become one ranking; every rule that moves a hit up or down is here.

A candidate starts with its share of the best dot product and of the best keyword score; points for its path, its name
and its file's other passages are added; factors for its file's role are multiplied. Each rule's measured gain is in
docs/design.md, section "Ranking".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from outcrop.core.model import Kind
from outcrop.search.file_roles import FileRole, file_role
from outcrop.search.query import Query
from outcrop.text import terms

# Weight of meaning against words; a bare symbol is a matter of words.
DENSE_SHARE = 0.7
DENSE_SHARE_SYMBOL = 0.4

# For a passage that holds, word for word, what the question puts in quotation marks.
PHRASE = 2.0

# For a question that the file's name covers whole; a part of it counts in proportion.
STEM = 0.8
# Likewise for the folder that the file is in.
FOLDER = 0.5
# Likewise for the definition's or section's own name.
NAME = 0.2

# For the definition of the symbol that was asked for.
DEFINES = 2.0
# For one whose name differs in case.
DEFINES_LOOSELY = 0.5
# For a definition inside it.
DEFINES_MEMBER = 0.5
# For the definition of an identifier that the question mentions.
DEFINES_MENTIONED = 0.5

# For the best passage of the file whose passages together are the strongest.
FILE = 0.4
# Power to which passages count for their file: one strong passage says more than ten weak ones.
FILE_SHARPNESS = 4
# Power of its number of passages by which a file's strength is divided: a long file has something on everything.
FILE_LENGTH = 0.2
# For all passages of the file whose two nearest ones are the nearest together.
FILE_MEANING = 0.2
# For all passages of a file that holds every word of the question somewhere; it falls with the square of the share.
FILE_WORDS = 0.4

# How much lower prose is ranked, per share of code among the candidates beyond half: where nearly everything is code,
# prose only comments on it; where half is prose, prose is what is asked for.
PROSE = 0.8

# Passages of one file that are ranked without a penalty.
CROWD = 5
# Factor of each further one, again for the next.
CROWDED = 0.9

# Kinds whose names are names of definitions.
DEFINING = frozenset({Kind.CODE, Kind.API})

# Letters that the shorter of two words must have to count as the beginning of the longer one.
PREFIX = 3

# Factors of files around the thing itself, unless the question asks for them.
ROLE_FACTORS: Mapping[FileRole, float] = {
    FileRole.TEST: 0.5,
    FileRole.EXAMPLE: 0.7,
    FileRole.VENDORED: 0.7,
    FileRole.CHANGELOG: 0.7,
    FileRole.INSTRUCTIONS: 0.7,
    FileRole.EXPORTS: 0.8,
}


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage to be ranked, with its scores.

    Attributes:
        dense: Dot product with the question, None where there is no vector.
        keyword: Keyword score, None where no word matched.
        path: Empty for what has no path.
    """

    id: int
    dense: float | None
    keyword: float | None
    path: str
    name: str | None
    text: str
    kind: Kind
    siblings: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with the points that it is ranked by (higher is better).

    ``reasons`` say what made the points, in order: words, and a summand (``+0.31``) or factor (``×0.50``).
    """

    id: int
    points: float
    reasons: tuple[tuple[str, str], ...]

    def explained(self) -> tuple[str, ...]:
        """The points and their reasons: ``0.71 points``, ``+0.52 meaning``, ``×0.50 test``."""
        return (f"{self.points:.2f} points", *(f"{amount} {why}" for why, amount in self.reasons))


def rank(query: Query, candidates: Sequence[ScoredPassage]) -> list[Ranked]:
    """Every candidate once, best first, ties by id; the order in which they are given does not matter."""
    points_of = {candidate.id: _Points() for candidate in candidates}
    _add_similarity(query, candidates, points_of)
    _add_file_support(candidates, points_of)
    _add_file_breadth(query, candidates, points_of)
    code = sum(candidate.kind is Kind.CODE for candidate in candidates) / max(1, len(candidates))
    for candidate in candidates:
        points = points_of[candidate.id]
        if not query.certain:
            _add_coverage(query, candidate, points)
        _add_definition(query, candidate, points)
        _add_phrases(query, candidate, points)
        _weigh_role(query, candidate, points, 1 - PROSE * max(0.0, code - 0.5))
    _weigh_crowds(candidates, points_of)
    ranked = [Ranked(key, points.value, tuple(points.reasons)) for key, points in points_of.items()]
    return sorted(ranked, key=lambda item: (-item.points, item.id))


class _Points:
    __slots__ = ("reasons", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.reasons: list[tuple[str, str]] = []

    def add(self, amount: float, why: str) -> None:
        if amount:
            self.value += amount
            self.reasons.append((why, f"+{amount:.2f}"))

    def weigh(self, factor: float, why: str) -> None:
        self.value *= factor
        self.reasons.append((why, f"×{factor:.2f}"))


def _add_similarity(query: Query, candidates: Sequence[ScoredPassage], points_of: Mapping[int, _Points]) -> None:
    products = [candidate.dense for candidate in candidates if candidate.dense is not None]
    best = max(products, default=0.0)
    most = max((candidate.keyword or 0.0 for candidate in candidates), default=0.0)
    share = DENSE_SHARE_SYMBOL if query.certain else DENSE_SHARE
    for candidate in candidates:
        points = points_of[candidate.id]
        if candidate.dense is not None and best > 0:
            points.add(share * max(0.0, candidate.dense / best), "meaning")
        if candidate.keyword is not None and most > 0:
            # Among passages with vectors, the words of one without speak for its meaning too.
            by_words = 1.0 if candidate.dense is None and best > 0 else 1 - share
            points.add(by_words * candidate.keyword / most, "words")


def _add_file_support(candidates: Sequence[ScoredPassage], points_of: Mapping[int, _Points]) -> None:
    strength: dict[str, float] = defaultdict(float)
    best: dict[str, int] = {}
    for candidate in candidates:
        value = points_of[candidate.id].value
        strength[candidate.path] += value**FILE_SHARPNESS / candidate.siblings**FILE_LENGTH
        if candidate.path not in best or value > points_of[best[candidate.path]].value:
            best[candidate.path] = candidate.id
    strongest = max(strength.values(), default=0.0)
    if strongest > 0:
        for path, key in best.items():
            points_of[key].add(FILE * strength[path] / strongest, "best of its file")


def _add_file_breadth(query: Query, candidates: Sequence[ScoredPassage], points_of: Mapping[int, _Points]) -> None:
    """A file that holds the whole question in several places is about it, though no single passage holds everything."""
    products: dict[str, list[float]] = defaultdict(list)
    held: dict[str, set[str]] = defaultdict(set)
    stems = {word: terms.stem(word) for word in query.words}
    # A text that holds a word holds its stem, unless that is spelt otherwise (query, queri).
    spelt = [word for word, stem in stems.items() if not word.startswith(stem)]
    for candidate in candidates:
        if candidate.dense is not None:
            products[candidate.path].append(candidate.dense)
        there = f"{candidate.text} {candidate.path} {candidate.name or ''}".lower()
        holding = held[candidate.path]
        holding.update(word for word, stem in stems.items() if stem in there)
        holding.update(word for word in spelt if word in there)
    nearest = {path: sum(sorted(values)[-2:]) / 2 for path, values in products.items()}
    best = max(nearest.values(), default=0.0)
    for candidate in candidates:
        points = points_of[candidate.id]
        if best > 0:
            points.add(FILE_MEANING * max(0.0, nearest.get(candidate.path, 0.0)) / best, "meaning of its file")
        if stems:
            points.add(FILE_WORDS * (len(held[candidate.path]) / len(stems)) ** 2, "words in its file")


def _add_coverage(query: Query, candidate: ScoredPassage, points: _Points) -> None:
    stem, folder = _path_terms(candidate.path)
    points.add(STEM * _coverage(query.words, stem), "file name")
    points.add(FOLDER * _coverage(query.words, folder), "folder name")
    points.add(NAME * _coverage(query.words, _terms(candidate.name or "")), "name")


def _add_definition(query: Query, candidate: ScoredPassage, points: _Points) -> None:
    if not candidate.name or candidate.kind not in DEFINING:
        return
    names = [name.strip().split(".") for name in candidate.name.split(",")]
    symbol = query.symbol
    if symbol is None:
        if any(parts[-1].lower() in query.identifiers for parts in names):
            points.add(DEFINES_MENTIONED, "defines what is mentioned")
        return
    stem, _ = _path_terms(candidate.path)
    named = 1.5 if symbol.lower().replace("_", "") in stem else 1.0
    if any(parts[-1] == symbol for parts in names):
        points.add(DEFINES * named, "defines it")
    elif any(parts[-1].lower() == symbol.lower() for parts in names):
        points.add(DEFINES_LOOSELY * named, "defines it, but for case")
    elif any(symbol in parts for parts in names):
        points.add(DEFINES_MEMBER, "inside its definition")


def _add_phrases(query: Query, candidate: ScoredPassage, points: _Points) -> None:
    if query.phrases:
        text = " ".join(candidate.text.lower().split())
        points.add(PHRASE * sum(phrase in text for phrase in query.phrases), "word for word")


def _weigh_role(query: Query, candidate: ScoredPassage, points: _Points, prose: float) -> None:
    role = file_role(candidate.path)
    if role in ROLE_FACTORS and role not in query.file_roles:
        points.weigh(ROLE_FACTORS[role], str(role))
    # Commits are among the candidates only where they are asked for.
    if prose < 1 and candidate.kind not in (Kind.CODE, Kind.COMMIT) and not query.explains:
        points.weigh(prose, "prose")


def _weigh_crowds(candidates: Sequence[ScoredPassage], points_of: Mapping[int, _Points]) -> None:
    """Weaken the further passages of a file that has its share of the list already."""
    count: dict[str, int] = defaultdict(int)
    for candidate in sorted(candidates, key=lambda candidate: (-points_of[candidate.id].value, candidate.id)):
        count[candidate.path] += 1
        if candidate.path and count[candidate.path] > CROWD:
            points_of[candidate.id].weigh(CROWDED ** (count[candidate.path] - CROWD), "one of many of its file")


@lru_cache(maxsize=65536)
def _path_terms(path: str) -> tuple[frozenset[str], frozenset[str]]:
    folders, _, file = path.rpartition("/")
    return _terms(file.rpartition(".")[0] or file), _terms(folders.rpartition("/")[2])


@lru_cache(maxsize=65536)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms.words(text))


@lru_cache(maxsize=16384)
def _coverage(words: tuple[str, ...], covering: frozenset[str]) -> float:
    """Share of the words that are there in any form, or begin like one that is (``auth``, ``authentication``)."""
    if not covering or not words:
        return 0.0
    stems = {terms.stem(term) for term in covering}
    long = [term for term in covering if len(term) >= PREFIX]
    heads = {term[:PREFIX] for term in long}
    found = 0
    for word in words:
        found += terms.stem(word) in stems or (
            word[:PREFIX] in heads and any(term.startswith(word) or word.startswith(term) for term in long)
        )
    return found / len(words)

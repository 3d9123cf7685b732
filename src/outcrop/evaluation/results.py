"""What a measurement of retrieval quality says: rows to compare, each question's own figures, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass

from outcrop.core.model import Mode
from outcrop.evaluation.bootstrap import Difference, Interval
from outcrop.evaluation.metrics import Scores


@dataclass(frozen=True, slots=True)
class ResultRow:
    """What one embedder, or none, reached in one mode: NDCG@10, mean recall@10 and mean MRR@10."""

    embedder: str | None  # Its name; None for keyword search, which needs none
    space: str | None
    mode: Mode
    ndcg: Interval  # Mean NDCG@10 over the questions, and its interval
    recall: float
    mrr: float
    against: Difference | None  # NDCG@10 of this row less that of the first one; None in the first


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """How one question went in one row."""

    scores: Scores
    places: tuple[int | None, ...]  # Per label, where it came in the ranking, from 1; None for nowhere
    first: str | None  # The first hit as a label; None without hits


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that was scored."""

    id: str
    query: str
    labels: tuple[str, ...]
    grades: tuple[int, ...]
    results: tuple[QuestionResult, ...]


@dataclass(frozen=True, slots=True)
class MissingLabel:
    """A label that the index does not hold, of the question with this id."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class EmbeddingCost:
    """What had to be embedded to measure an embedder: passages and characters, in how many seconds."""

    embedder: str
    passages: int
    characters: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FailedEmbedder:
    """An embedder that could not be measured, and why."""

    embedder: str
    reason: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The whole measurement."""

    file: str
    by_file: int
    by_passage: int
    rows: tuple[ResultRow, ...]  # One an embedder and mode; the first is what the others are compared with
    questions: tuple[AskedQuestion, ...]
    missing: tuple[MissingLabel, ...]  # Labels that the index does not hold
    left_out: tuple[str, ...]  # Ids of questions of which it holds no answer at all
    without_answer: tuple[str, ...]
    without_topic: tuple[str, ...]
    not_judged: int
    embedded: tuple[EmbeddingCost, ...]
    failures: tuple[FailedEmbedder, ...]
    stale: bool
    passed_over: bool  # Whether passages of the judged files themselves were found, and passed over

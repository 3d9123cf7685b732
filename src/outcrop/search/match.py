"""Matching many documents against many queries, for hosts that choose a tool or a note for each step of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outcrop.core.protocols import Embedder, Matrix
from outcrop.errors import UsageError

OFF = "the hash embedder matches shared words, not meaning: its scores could only promote a wrong candidate"


@dataclass(frozen=True, slots=True)
class Pair:
    """A document by its place among those that were given, with its dot product with a query, 0 to 1."""

    document: int
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """How well each document matches each query; ``reason`` says why matching is off, and then there is no score.

    Attributes:
        scores: float32 ``[queries, documents]``, 0 to 1.
        best: Per query its best documents, best first, ties in the order of the documents.
    """

    scores: Matrix | None
    best: tuple[tuple[Pair, ...], ...]
    space: str | None
    reason: str | None


def match(documents: Sequence[str], queries: Sequence[str], embedder: Embedder, k: int = 1) -> Matches:
    """Score every document for every query, and name the ``k`` best of each. Equal texts are embedded once."""
    if k < 1:
        raise UsageError(f"k is {k}", "Ask for at least 1 document")
    for noun, texts in (("document", documents), ("query", queries)):
        for place, text in enumerate(texts):
            if not text.strip():
                raise UsageError(f"{noun} {place} is blank", "Leave it out")
    if not documents or not queries:
        nothing = np.zeros((len(queries), len(documents)), np.float32)
        return Matches(nothing, ((),) * len(queries), embedder.space.id, None)
    rows, columns = _distinct(queries), _distinct(documents)
    passages = embedder.embed_passages(list(columns))
    questions = embedder.embed_queries(list(rows))
    products: Matrix = np.clip(questions @ passages.T, 0.0, 1.0)
    scores = products[np.ix_([rows[text] for text in queries], [columns[text] for text in documents])]
    return Matches(scores, _best(scores, k), embedder.space.id, None)


def off(queries: Sequence[str]) -> Matches:
    return Matches(None, ((),) * len(queries), None, OFF)


def _distinct(texts: Sequence[str]) -> dict[str, int]:
    return {text: place for place, text in enumerate(dict.fromkeys(texts))}


def _best(scores: Matrix, k: int) -> tuple[tuple[Pair, ...], ...]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(scores, order, axis=1)
    return tuple(
        tuple(Pair(document, score) for document, score in zip(*pair, strict=True))
        for pair in zip(order.tolist(), values.tolist(), strict=True)
    )

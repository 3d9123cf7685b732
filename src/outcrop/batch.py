"""Several questions at once: they are embedded in one call, then answered one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from outcrop import request
from outcrop.errors import BadEmbedding, EmbedderError, IndexMissing
from outcrop.model import Answer, Mode
from outcrop.ports import Embedder, Source, VectorStore
from outcrop.request import Question
from outcrop.search import Fallback, search


def search_all(
    questions: Sequence[Question], store: VectorStore, source: Source, embedder: Embedder, fallback: Fallback
) -> list[Answer]:
    """Answer questions, in order; each answer is what :func:`outcrop.search.search` gives for its question alone.

    Raises:
        UsageError: One of them cannot be asked; none is answered then.
    """
    for question in questions:
        request.check(question)
    if _needs_vectors(questions, store, embedder):
        questions = _embedded(questions, embedder)
    return [search(question, store, source, embedder, fallback) for question in questions]


def _needs_vectors(questions: Sequence[Question], store: VectorStore, embedder: Embedder) -> bool:
    """Whether embedding is of any use; nothing is sent anywhere for an index that cannot answer by meaning."""
    if len(questions) < 2 or all(question.mode is Mode.KEYWORD for question in questions):
        return False
    try:
        state = store.state()
    except IndexMissing:
        return False
    return state is not None and state.space == embedder.space


def _embedded(questions: Sequence[Question], embedder: Embedder) -> list[Question]:
    texts = list(dict.fromkeys(question.text for question in questions))
    try:
        vectors = dict(zip(texts, embedder.embed_queries(texts), strict=True))
    except BadEmbedding:
        # The fault of one text, as a rule: each is asked by itself, so that it spoils no other.
        return list(questions)
    except EmbedderError as error:
        return [replace(question, vector=error) for question in questions]
    return [replace(question, vector=vectors[question.text]) for question in questions]

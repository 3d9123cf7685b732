"""What the stories about travelling vectors share: an index that counts what it embeds, and questions put to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import outcrop
from outcrop.app.index import Index
from outcrop.core.model import Hit, Mode
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder


class Counting(HashEmbedder):
    """Remembers every passage that it was asked for; one that refuses has none to give."""

    def __init__(self, refuse: bool = False, dim: int = 768) -> None:
        super().__init__(dim)
        self.refuse = refuse
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.texts += texts
        if self.refuse:
            raise AssertionError("nothing may be embedded here")
        return super().embed_passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return HashEmbedder.embed_passages(self, texts)


@contextmanager
def opened(path: Path, embedder: Counting | None = None) -> Iterator[Index]:
    """An index whose embedder is counted."""
    counting = embedder or Counting()
    with outcrop.open(path, settings={"embedder": "hash", "dim": counting.space.dim}) as index:
        index.embedder = counting
        yield index


def built(path: Path, embedder: Counting | None = None) -> None:
    """Build the index of a place."""
    with opened(path, embedder) as index:
        assert index.build().complete


def ask(index: Index, *questions: str) -> list[Hit]:
    """What is found by meaning; the answers must be current and really by meaning."""
    found = []
    for question in questions:
        answer = index.search(question, mode="semantic", k=200)
        assert (answer.mode, answer.reason, answer.stale) == (Mode.SEMANTIC, None, None)
        found += answer.hits
    return found


def frozen(hits: Sequence[Hit]) -> list[tuple[object, ...]]:
    """All of a hit but its score, in an order that ties cannot change."""
    return sorted(
        (hit.kind, hit.project, hit.path or "", hit.hash, hit.text, hit.lines, hit.name or "", hit.paths, hit.corpus)
        for hit in hits
    )


def scores(hits: Sequence[Hit]) -> dict[tuple[str, str], float]:
    """Score of each passage."""
    return {(hit.hash, hit.text): hit.score for hit in hits}

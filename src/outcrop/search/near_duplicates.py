"""Near-duplicates in one answer: the best of them represents all, and says where the others are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outcrop.core.model import Copy
from outcrop.core.rows import Passage
from outcrop.search.ranking import Ranked
from outcrop.text import terms

# Share of their words that two passages must have in common.
MIN_SHARED = 0.95

# Words below which a passage is too short to be a duplicate of anything.
MIN_WORDS = 10


def dedupe(ranked: Sequence[Ranked], passages: Mapping[int, Passage], k: int) -> list[tuple[Ranked, tuple[Copy, ...]]]:
    """The best ``k`` of a ranking (best first; each has a passage), with their near-duplicates ranked between them."""
    chosen: list[tuple[Ranked, frozenset[str], list[Copy]]] = []
    for item in ranked:
        if len(chosen) == k:
            break
        passage = passages[item.id]
        words = frozenset(terms.words(passage.chunk.text))
        first = next((copies for _, others, copies in chosen if _are_alike(words, others)), None)
        if first is None:
            chosen.append((item, words, []))
        else:
            first.append(_as_copy(passage))
    return [(item, tuple(copies)) for item, _, copies in chosen]


def _are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(one), len(other)) < max(MIN_WORDS, MIN_SHARED * max(len(one), len(other))):
        return False
    return len(one & other) >= MIN_SHARED * len(one | other)


def _as_copy(passage: Passage) -> Copy:
    chunk = passage.chunk
    return Copy(
        kind=passage.kind,
        project=passage.project,
        path=passage.paths[0] if passage.paths else None,
        hash=passage.hash,
        lines=(chunk.first_line, chunk.last_line),
        cell=chunk.cell,
    )

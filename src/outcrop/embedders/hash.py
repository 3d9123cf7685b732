"""Signed feature hashing: an embedder without a model, which finds shared words and not meaning.

Each distinct term adds its weight to one component or subtracts it; a hash of the term chooses component and sign
(Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", 2009).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import log

import numpy as np

from outcrop.core.model import Space
from outcrop.core.protocols import Matrix, override
from outcrop.core.vectors import normalise
from outcrop.embedders.base import PlannedEmbedder
from outcrop.embedders.known_models import EmbeddingPlan, ModelProfile
from outcrop.text import terms

DEFAULT_DIM = 768

# Another way to split text into terms is another space.
MODEL = "hash" if terms.VERSION == 1 else f"hash-{terms.VERSION}"


class HashEmbedder(PlannedEmbedder):
    """Implements the ``Embedder`` port. The same text gives the same vector on every machine."""

    def __init__(self, dim: int = DEFAULT_DIM) -> None:
        if dim < 1:
            raise ValueError(f"dim must be at least 1, not {dim}")
        # The store distinguishes spaces by the model's name alone, so an unusual length is part of it.
        space = Space(MODEL if dim == DEFAULT_DIM else f"{MODEL}-{dim}", dim)
        super().__init__(EmbeddingPlan(space, ModelProfile(max_tokens=sys.maxsize), None))

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        dim = self.space.dim
        sums = np.zeros((len(texts), dim), np.float64)
        for row, text in zip(sums, texts, strict=True):
            for term, count in Counter(_terms(text)).items():
                digest = _digest(term)
                weight = 1.0 + log(count)
                row[(digest >> 1) % dim] += weight if digest & 1 else -weight
            if not row.any():  # no terms at all, or terms that cancel out
                row[(_digest("") >> 1) % dim] = 1.0
        return normalise(sums)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed_passages(texts)


def _terms(text: str) -> list[str]:
    """A text's terms without common words; with them where it has no others."""
    words = terms.words(text)
    return [word for word in words if word not in terms.STOP_WORDS] or words


@lru_cache(maxsize=1 << 16)
def _digest(term: str) -> int:
    """63 bits that choose the component and one for the sign. ``hash()`` differs from process to process."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")

"""Signed feature hashing: an embedder without a model, which finds shared words and knows nothing of meaning.

Each distinct term of a text adds its weight to one component or takes it away; a hash of the term chooses component
and sign (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", 2009). It proves that the pipeline
works, on any machine and in no time; it does not prove that anything is understood.
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
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.core.vectors import normalise
from outcrop.text import terms

DEFAULT_DIM = 768

# Other terms of the same text are another space.
MODEL = "hash" if terms.VERSION == 1 else f"hash-{terms.VERSION}"


class HashEmbedder(Embedder):
    """Implements the ``Embedder`` port. The same text gives the same vector on every machine.

    Args:
        dim: Number of components, at least 1.
    """

    def __init__(self, dim: int = DEFAULT_DIM) -> None:
        if dim < 1:
            raise ValueError(f"dim must be at least 1, not {dim}")
        # The store tells spaces apart by the model's name alone, so an unusual length is part of it.
        self._space = Space(MODEL if dim == DEFAULT_DIM else f"{MODEL}-{dim}", dim)

    @property
    @override
    def space(self) -> Space:
        return self._space

    @property
    @override
    def address(self) -> None:
        """None: the text stays in this process."""

    @property
    @override
    def max_tokens(self) -> int:
        return sys.maxsize

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        dim = self._space.dim
        sums = np.zeros((len(texts), dim), np.float64)
        for row, text in zip(sums, texts, strict=True):
            for term, times in Counter(_terms(text)).items():
                number = _digest(term)
                weight = 1.0 + log(times)  # the tenth mention of a word says less than the first
                row[(number >> 1) % dim] += weight if number & 1 else -weight
            if not row.any():  # no terms at all, or two that cancel out
                row[(_digest("") >> 1) % dim] = 1.0
        return normalise(sums)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed_passages(texts)


def _terms(text: str) -> list[str]:
    """The terms that tell one text from another; the common words only where there is nothing else."""
    every = terms.words(text)
    return [term for term in every if term not in terms.STOP_WORDS] or every


@lru_cache(maxsize=1 << 16)
def _digest(term: str) -> int:
    """63 bits that choose the component and one for the sign. Not ``hash()``: that differs from process to process."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")

"""Vectors that an index has already, before an embedder is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from outcrop.chunking import text_digest
from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.core.vectors import from_bytes


class SalvagedVectors(Embedder):
    """An embedder that first looks among vectors of its space that are there already, by the digest of their text."""

    def __init__(self, embedder: Embedder, vectors: Mapping[bytes, bytes]) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self.reused = 0

    @property
    @override
    def space(self) -> Space:
        return self._embedder.space

    @property
    @override
    def address(self) -> str | None:
        return self._embedder.address

    @property
    @override
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        there = [self._vectors.get(text_digest(text)) for text in texts]
        missing = [text for text, vector in zip(texts, there, strict=True) if vector is None]
        made = iter(self._embedder.embed_passages(missing) if missing else ())
        self.reused += len(texts) - len(missing)
        return np.stack([next(made) if vector is None else from_bytes(vector, self.space.dim) for vector in there])

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embedder.embed_queries(texts)

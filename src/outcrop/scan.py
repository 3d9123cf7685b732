"""Exact nearest neighbours: one matrix-vector product and a selection. Nothing approximate.

Rows and query are unit vectors, so the dot product is the cosine. Equal scores keep row order, whatever ``k`` is, so
that an answer does not depend on how many hits were asked for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcrop.ports import Matrix, Vector

Indices = npt.NDArray[np.int64]


def top_k(matrix: Matrix, query: Vector, k: int, rows: Indices | None = None) -> tuple[Indices, Vector]:
    """The ``k`` rows nearest to the query.

    Args:
        matrix: float32 ``[n, dim]``, rows L2-normalised.
        query: float32 ``[dim]``, L2-normalised.
        k: How many, at least 1; fewer come back when there are fewer rows.
        rows: Ascending row numbers to choose from, or None for all.

    Returns:
        Row numbers int64 ``[m]`` and their dot products float32 ``[m]``, best first, ``m = min(k, candidates)``.
    """
    # One product over everything and a selection of scores beats gathering the wanted rows first (measured: ENGINES
    # figures in docs/design.md), because the product streams memory in order.
    scores = matrix @ query
    if rows is not None:
        scores = scores[rows]
    best = _select(scores, k)
    return (best if rows is None else rows[best]), scores[best]


def _select(scores: Vector, k: int) -> Indices:
    """Positions of the ``k`` largest, best first, ties by position."""
    if k < len(scores):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        candidates = np.flatnonzero(scores >= threshold)
    else:
        candidates = np.arange(len(scores), dtype=np.int64)
    order = np.lexsort((candidates, -scores[candidates]))
    return candidates[order[:k]].astype(np.int64, copy=False)

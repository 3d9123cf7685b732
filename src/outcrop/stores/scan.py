"""Exact nearest neighbours: one matrix-vector product and a selection. Nothing approximate.

Rows and query are unit vectors, so the dot product is the cosine. Equal scores keep row order, whatever ``k`` is, so
that an answer does not depend on how many hits were asked for. A row's score does not depend on what else is in the
matrix either: the fast product rounds a row by its neighbours and by the number of threads, so it only says who is in
question, and :func:`dots` decides.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcrop.core.protocols import Matrix, Vector

Indices = npt.NDArray[np.int64]


def top_k(matrix: Matrix, query: Vector, k: int, rows: Indices | None = None) -> tuple[Indices, Vector]:
    """The ``k`` rows nearest to the query; of these rows (ascending) only, where some are given.

    Args:
        matrix: float32 ``[n, dim]``, rows L2-normalised.
        query: float32 ``[dim]``, L2-normalised.

    Returns:
        Row numbers int64 ``[m]`` and their dot products float32 ``[m]``, best first, ``m = min(k, candidates)``.
    """
    # One product over everything and a selection of scores beats gathering the wanted rows first (docs/design.md, Scan)
    # because the product streams memory in order.
    scores = matrix @ query
    if rows is not None:
        scores = scores[rows]
    likely = _candidates(scores, k, 2 * _rounding_error(len(query)))
    at = likely if rows is None else rows[likely]
    best, scores = select(dots(matrix[at], query), k)
    return at[best], scores


def dots(block: Matrix, query: Vector) -> Vector:
    """Dot product of every row, float32 ``[n]``, each the same bits in any block."""
    products: Vector = np.einsum("ij,j->i", block, query)
    return products


def select(scores: Vector, k: int, rows: Indices | None = None) -> tuple[Indices, Vector]:
    """The ``k`` largest of given scores, as :func:`top_k` returns them."""
    chosen = scores if rows is None else scores[rows]
    likely = _candidates(chosen, k, 0.0)
    best = likely[np.lexsort((likely, -chosen[likely]))[:k]]
    return (best if rows is None else rows[best]), chosen[best]


def _candidates(scores: Vector, k: int, slack: float) -> Indices:
    """Positions of the ``k`` largest scores and of all that are less than ``slack`` below them, ascending."""
    if k >= len(scores):
        return np.arange(len(scores), dtype=np.int64)
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= least - np.float32(slack)).astype(np.int64, copy=False)


def _rounding_error(dim: int) -> float:
    """How far two ways to sum up a dot product of unit vectors can lie apart.

    Each lies within ``dim * u / (1 - dim * u)`` of the true sum, u = 2 ** -24 (Higham, Accuracy and Stability of
    Numerical Algorithms, section 3.1). That makes 2 of them; the other half is room for lengths that are not quite 1
    and for the rounding of the subtraction above, which is at most u.
    """
    error = dim * 2.0**-24
    return 2.5 * error / (1 - error)

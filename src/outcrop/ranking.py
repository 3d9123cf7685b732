"""Two ranked lists become one. What moves a hit up or down stands here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

RRF_K = 10
"""Reciprocal-rank constant. The usual 60 is too flat for lists of a few dozen: docs/design.md has the measurement."""

DENSE_WEIGHT = 1.0
KEYWORD_WEIGHT = 1.0


def fuse(dense: Sequence[int], keyword: Sequence[int]) -> list[int]:
    """Merge by reciprocal rank (Cormack, Clarke and Buettcher, SIGIR 2009).

    Args:
        dense: Chunk ids by descending dot product.
        keyword: Chunk ids by descending keyword score.

    Returns:
        Every id of either list once, best first; ties keep dense order, then keyword order.
    """
    points: dict[int, float] = {}
    for weight, ranked in ((DENSE_WEIGHT, dense), (KEYWORD_WEIGHT, keyword)):
        for rank, chunk in enumerate(ranked, start=1):
            points[chunk] = points.get(chunk, 0.0) + weight / (RRF_K + rank)
    return sorted(points, key=lambda chunk: -points[chunk])

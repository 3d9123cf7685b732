"""The scan is exact: it agrees with sorting everything, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.scan import top_k


@given(
    n=st.integers(0, 60),
    dim=st.integers(1, 8),
    k=st.integers(1, 70),
    levels=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    some=st.booleans(),
)
def test_same_as_a_full_sort_with_ties_by_row(n: int, dim: int, k: int, levels: int, seed: int, some: bool) -> None:
    random = np.random.default_rng(seed)
    # Few distinct values, exactly representable, so that ties are common and the product has no rounding.
    matrix = (random.integers(0, levels, (n, dim)) / 4).astype(np.float32)
    query = (random.integers(-levels, levels + 1, dim) / 4).astype(np.float32)
    rows = np.flatnonzero(random.random(n) < 0.5).astype(np.int64) if some else None
    scores = matrix @ query
    candidates = range(n) if rows is None else rows.tolist()
    expected = sorted(candidates, key=lambda row: (-scores[row], row))[:k]
    got, values = top_k(matrix, query, k, rows)
    assert got.tolist() == expected
    assert values.tolist() == [scores[row] for row in expected]


def test_a_vector_finds_itself_with_one() -> None:
    random = np.random.default_rng(7)
    matrix = random.standard_normal((500, 384)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    rows, scores = top_k(matrix, matrix[123], 3)
    assert rows[0] == 123
    assert scores[0] == pytest.approx(1.0, abs=1e-6)
    assert scores[1] < 0.5


def test_no_candidates() -> None:
    rows, scores = top_k(np.empty((0, 4), np.float32), np.ones(4, np.float32), 5)
    assert rows.shape == scores.shape == (0,)

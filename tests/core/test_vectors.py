"""Unit rows and stored bytes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from outcrop.core.vectors import from_bytes, normalise, stack, to_bytes
from outcrop.errors import BadEmbedding, FormatError

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROWS = hnp.arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(1, 9)), elements=FLOATS)
VECTORS = hnp.arrays(np.float32, st.integers(0, 20), elements=st.floats(width=32))


@given(ROWS)
def test_rows_become_unit_rows_of_the_same_direction(rows) -> None:
    if not rows.any(axis=1).all():
        with pytest.raises(BadEmbedding, match="only zeros"):
            normalise(rows)
        return
    unit = normalise(rows)
    assert unit.dtype == np.float32
    assert unit.shape == rows.shape
    assert unit.flags.c_contiguous
    wide = rows.astype(np.float64)
    np.testing.assert_allclose(unit, wide / np.linalg.norm(wide, axis=1, keepdims=True), atol=1e-6)


def test_known_rows() -> None:
    np.testing.assert_array_equal(normalise([[3, 4], [0, -2]]), np.float32([[0.6, 0.8], [0, -1]]))


def test_given_rows_are_not_changed() -> None:
    rows = np.float32([[3, 4]])
    normalise(rows)
    assert rows.tolist() == [[3, 4]]


def test_squares_beyond_float32_do_not_overflow_or_vanish() -> None:
    np.testing.assert_allclose(normalise(np.float32([[3e38, 3e38], [1e-40, 0]])), [[0.5**0.5] * 2, [1, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, float("nan")]], "Vector 0 of 1 holds NaN"),
        ([[1.0, 0.0], [float("inf"), 0.0]], "Vector 1 of 2 holds NaN or infinity"),
        ([[0.0, 0.0]], "only zeros"),
        ([[1.0], [1.0, 2.0]], "differ in length"),
        ([1.0, 2.0], r"shape \(2,\)"),
        ([["a", "b"]], "Not rows of real numbers"),
        ([[1 + 2j]], "Not rows of real numbers"),
        ([[]], "only zeros"),
    ],
)
def test_what_is_no_embedding_is_refused(rows, message: str) -> None:
    with pytest.raises(BadEmbedding, match=message):
        normalise(rows)


@given(VECTORS)
def test_bytes_and_back_is_exact(vector) -> None:
    data = to_bytes(vector)
    assert data == struct.pack(f"<{len(vector)}f", *vector.tolist()) or np.isnan(vector).any()
    back = from_bytes(data, len(vector))
    assert back.dtype == np.float32
    assert back.dtype.isnative
    assert back.flags.writeable
    assert back.tobytes() == vector.tobytes()


def test_byte_order_is_fixed() -> None:
    assert to_bytes(np.float32([1.0, -2.0])).hex() == "0000803f000000c0"
    assert to_bytes(np.array([1.0, -2.0], ">f4")).hex() == "0000803f000000c0"


@given(st.lists(hnp.arrays(np.float32, 4, elements=FLOATS), max_size=6))
def test_stack_is_the_rows_in_order(vectors) -> None:
    matrix = stack([to_bytes(vector) for vector in vectors], 4)
    assert matrix.shape == (len(vectors), 4)
    assert matrix.dtype == np.float32
    assert matrix.flags.c_contiguous
    for row, vector in zip(matrix, vectors, strict=True):
        np.testing.assert_array_equal(row, vector)


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(FormatError, match="vector 0 has 7 bytes, not the 8 of 2 components"):
        from_bytes(b"1234567", 2)
    # The total would be right.
    with pytest.raises(FormatError, match="vector 1 has 4 bytes"):
        stack([b"12345678", b"1234", b"123456789012"], 2)
    with pytest.raises(FormatError, match="shape"):
        to_bytes(np.float32([[1.0]]))

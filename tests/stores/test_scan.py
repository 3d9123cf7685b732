"""The scan is exact: it agrees with sorting everything, ties included, and with itself whatever surrounds a row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.core.model import Chunk, Filter, Kind, Part, Ref, Space
from outcrop.core.protocols import Matrix
from outcrop.core.rows import Digested, Entry, Member, ScoredChunk, View
from outcrop.errors import StoreDamaged
from outcrop.stores.scan import dots, select, top_k
from outcrop.stores.sqlite.store import SqliteStore

DIM = 48
SPACE = Space("made-up", DIM)


def unit(n: int, dim: int, seed: int) -> Matrix:
    random = np.random.default_rng(seed)
    matrix = random.standard_normal((n, dim)).astype(np.float32)
    unit_rows: Matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit_rows


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
    chosen, chosen_values = select(scores, k, rows)
    assert (chosen.tolist(), chosen_values.tolist()) == (got.tolist(), values.tolist())


@given(
    n=st.integers(1, 3000), dim=st.integers(1, 400), at=st.data(), seed=st.integers(0, 2**32 - 1), k=st.integers(1, 20)
)
def test_a_score_does_not_depend_on_what_surrounds_the_row(
    n: int, dim: int, at: st.DataObject, seed: int, k: int
) -> None:
    matrix = unit(n, dim, seed)
    query = unit(1, dim, seed + 1)[0]
    start = at.draw(st.integers(0, n - 1))
    stop = at.draw(st.integers(start + 1, n))
    assert dots(matrix, query)[start:stop].tolist() == dots(matrix[start:stop].copy(), query).tolist()
    rows, values = top_k(matrix, query, k)
    again, alone = select(dots(matrix, query), k)
    assert (rows.tolist(), values.tolist()) == (again.tolist(), alone.tolist())


@given(seed=st.integers(0, 2**32 - 1), copies=st.integers(2, 40), k=st.integers(1, 30))
def test_copies_of_one_vector_tie_and_keep_row_order(seed: int, copies: int, k: int) -> None:
    random = np.random.default_rng(seed)
    matrix = unit(500, 384, seed)
    places = np.sort(random.choice(500, copies, replace=False))
    matrix[places] = matrix[places[0]]
    rows, values = top_k(matrix, matrix[places[0]], k)
    assert rows[:copies].tolist() == places[:k].tolist()
    assert len(set(values[:copies].tolist())) == 1


def test_a_vector_finds_itself_with_one() -> None:
    matrix = unit(500, 384, 7)
    rows, scores = top_k(matrix, matrix[123], 3)
    assert rows[0] == 123
    assert scores[0] == pytest.approx(1.0, abs=1e-6)
    assert scores[1] < 0.5


def test_no_candidates() -> None:
    rows, scores = top_k(np.empty((0, 4), np.float32), np.ones(4, np.float32), 5)
    assert rows.shape == scores.shape == (0,)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "index.sqlite")
    yield store
    store.close()


def fill(store: SqliteStore, vectors: Matrix, order: Sequence[int]) -> None:
    """One artifact a vector, ids in row order; vectors are stored in the given order."""
    refs = [Ref(f"{row:040x}", Kind.CODE, f"part{row % 3}/file{row}.py", f"{row:040x}") for row in range(len(vectors))]
    digests = [f"{row:032}".encode() for row in range(len(vectors))]
    store.set_space(SPACE)
    store.write(
        [
            Entry(ref, "test", [Digested(Chunk(0, f"text {row}", 0, 6, 1, 1), digests[row])])
            for row, ref in enumerate(refs)
        ]
    )
    members = [Member("code", "code", ref.hash, Part.WHOLE, ref.path, ref.kind) for ref in refs]
    store.replace(View(("code",), members, {}, [], frozenset({""})))
    store.add_vectors(SPACE, [digests[row] for row in order], vectors[list(order)])


def ask(store: SqliteStore, query: Matrix, wanted: Filter | None = None) -> list[ScoredChunk]:
    return list(store.nearest(query, 25, wanted or Filter()))


@pytest.mark.parametrize("wanted", [Filter(), Filter(paths=("part1/**",))], ids=["all", "some"])
def test_the_first_question_and_the_later_ones_are_answered_with_the_same_bits(
    store: SqliteStore, wanted: Filter
) -> None:
    # More rows than are read at a time, and stored out of order.
    vectors = unit(1300, DIM, 1)
    vectors[700] = vectors[20]
    fill(store, vectors, np.random.default_rng(2).permutation(len(vectors)).tolist())
    query = vectors[20]
    first, second, third = (ask(store, query, wanted) for _ in range(3))
    assert first == second == third
    rows = [row for row in range(len(vectors)) if not wanted.paths or row % 3 == 1]
    best, scores = select(dots(vectors[rows], query), 25)
    assert [found.score for found in first] == scores.tolist()
    assert [found.id - 1 for found in first] == [rows[at] for at in best]


def test_vectors_come_back_the_same_before_and_after_the_matrix_is_read(store: SqliteStore) -> None:
    vectors = unit(40, DIM, 3)
    fill(store, vectors, range(39, -1, -1))
    for _ in range(3):
        found = store.vectors([5, 1, 5, 41, 40])
        assert {key: vector.tolist() for key, vector in found.items()} == {
            key: vectors[key - 1].tolist() for key in (1, 5, 40)
        }
        ask(store, vectors[0])


def test_what_another_connection_writes_is_seen_by_a_process_that_keeps_the_matrix(store: SqliteStore) -> None:
    vectors = unit(30, DIM, 4)
    fill(store, vectors, range(20))
    assert store.progress(SPACE) == (20, 30)
    for _ in range(2):
        assert ask(store, vectors[25])[0].score < 0.9
    other = SqliteStore(store.path)
    other.add_vectors(SPACE, [f"{row:032}".encode() for row in range(20, 30)], vectors[20:])
    other.close()
    assert store.progress(SPACE) == (30, 30)
    assert [(found.id, round(found.score, 5)) for found in ask(store, vectors[25])[:1]] == [(26, 1.0)]


@pytest.mark.parametrize("questions", [1, 2])
def test_a_vector_of_another_length_is_refused(store: SqliteStore, questions: int) -> None:
    vectors = unit(10, DIM, 5)
    fill(store, vectors, range(10))
    for _ in range(questions - 1):
        ask(store, vectors[0])
    # One too short and one too long: together they have the length that two would have.
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("UPDATE fx_vec_embedding SET v = zeroblob(4 * ? - 4) WHERE chunk_id = 4", (DIM,))
        database.execute("UPDATE fx_vec_embedding SET v = zeroblob(4 * ? + 4) WHERE chunk_id = 5", (DIM,))
    with pytest.raises(StoreDamaged, match="wrong length"):
        ask(store, vectors[0])

"""Damage of an index: found, left out of answers, and repaired with as little embedding as it takes."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from fossil_program import SampleRepository
from repositories import git, make_repository, write
from travel import Counting, opened

from outcrop.core.model import Record
from outcrop.errors import IndexMissing, StoreLocked
from outcrop.stores.sqlite.store import SqliteStore

FILES: dict[str, str | bytes] = {
    "kettle.py": "def boil(water):\n    return heat(water, 100)\n",
    "pot.py": "def stew(meat):\n    return simmer(meat, 80)\n",
    "guide.md": "# Guide\n\nSharpen scissors with a whetstone.\n",
}


@pytest.fixture(params=["folder", "git", "fossil", "git with commits", "fossil with commits"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An index in each sort of source; all hold at least one passage that says ``lions``. Commits are stored last."""
    if request.param.endswith("commits"):
        request.getfixturevalue("with_history")
    if request.param.startswith("fossil"):
        sample: SampleRepository = request.getfixturevalue("sample")
        path = sample.copy(tmp_path)
    else:
        path = tmp_path / "place"
        write(path, FILES | {"zoo.md": "# Zoo\n\nThe lions eat at seven.\n"})
        if request.param.startswith("git"):
            make_repository(path, {})
    with opened(path) as index:
        assert index.build().complete
    return path


def database_of(place: Path) -> Path:
    with opened(place) as index:
        return index.store.path


def run(place: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database_of(place), isolation_level=None)) as database:
        for statement in statements:
            assert database.execute(statement).rowcount != 0, statement


def rows(place: Path) -> list[tuple[object, ...]]:
    """Every passage with its place and its vector."""
    with closing(sqlite3.connect(database_of(place))) as database:
        return database.execute(
            "SELECT c.hash, c.seq, c.kind, c.path, c.text, c.name, c.first_line, e.model, e.dim, e.v"
            " FROM fx_vec_chunk c LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id ORDER BY 1, 2"
        ).fetchall()


ONE = "WHERE id = (SELECT max(id) FROM fx_vec_chunk)"
ONE_VECTOR = "WHERE chunk_id = (SELECT max(id) FROM fx_vec_chunk)"

# What is done to the tables, what it is found as, and how many passages are embedded again.
DAMAGE = {
    "a text": (f"UPDATE fx_vec_chunk SET text = text || '!' {ONE}", {"text"}, 0),
    "a text that is no UTF-8": (f"UPDATE fx_vec_chunk SET text = CAST(x'ff41' AS TEXT) {ONE}", {"text", "keywords"}, 0),
    "a line": (f"UPDATE fx_vec_chunk SET first_line = first_line + 1 {ONE}", {"text"}, 0),
    "a digest": (f"UPDATE fx_vec_chunk SET digest = x'00' {ONE}", {"text", "vector"}, 1),
    "a number of a passage": (f"UPDATE fx_vec_chunk SET seq = 500 {ONE}", {"text", "membership"}, 0),
    "a member": (
        "DELETE FROM fx_vec_member WHERE hash = (SELECT hash FROM fx_vec_chunk ORDER BY id LIMIT 1)",
        {"membership"},
        0,
    ),
    "the parts of an artifact": ("UPDATE fx_vec_artifact SET parts = 'x'", {"membership"}, 0),
    "a path": (f"UPDATE fx_vec_chunk SET path = 'elsewhere' {ONE}", {"membership"}, 0),
    "a bit of a vector": (
        f"UPDATE fx_vec_embedding SET v = CAST(x'01' || substr(v, 2) AS BLOB) {ONE_VECTOR}",
        {"vector"},
        1,
    ),
    "a short vector": (f"UPDATE fx_vec_embedding SET v = x'00000000' {ONE_VECTOR}", {"vector"}, 1),
    "a vector of NaN": (f"UPDATE fx_vec_embedding SET v = unhex_nan(length(v)) {ONE_VECTOR}", {"vector"}, 1),
    "an artifact that is gone": (
        "DELETE FROM fx_vec_artifact WHERE hash = (SELECT hash FROM fx_vec_chunk ORDER BY id DESC LIMIT 1)",
        {"membership"},
        0,
    ),
    "words": (
        "UPDATE fx_vec_terms SET body = 'nonsense' WHERE rowid = (SELECT max(id) FROM fx_vec_chunk)",
        {"keywords"},
        0,
    ),
    "postings": (
        "UPDATE fx_vec_terms_data SET block = x'00' WHERE id = (SELECT max(id) FROM fx_vec_terms_data)",
        {"keywords"},
        0,
    ),
}


@pytest.mark.parametrize("sort", DAMAGE)
def test_damage_is_found_and_repaired(place: Path, sort: str) -> None:
    statement, found, embedded = DAMAGE[sort]
    before = rows(place)
    if any(row[2] == "commit" for row in before):
        statement = statement.replace("fx_vec_terms", "fx_vec_commit_terms")
    if "unhex_nan" in statement:
        (size,) = (len(row[-1]) for row in before[-1:])  # type: ignore[arg-type]
        statement = statement.replace("unhex_nan(length(v))", f"x'{np.full(size // 4, np.nan, '<f4').tobytes().hex()}'")
    run(place, statement)
    embedder = Counting()
    with opened(place, embedder) as index:
        looked = index.check()
        assert {each.sort.value for each in looked.damage} == found, looked.damage
        assert looked.left == looked.damage
        assert not looked.repaired
        assert embedder.texts == []
        report = index.check(repair=True)
        assert (report.left, report.repaired) == ((), True)
        assert (report.embedded, len(embedder.texts)) == (embedded, embedded)
        again = index.check()
        assert (again.damage, again.vectors, again.passages) == ((), len(before), len(before))
    assert rows(place) == before


def test_an_intact_index_has_no_damage_and_nothing_is_written(place: Path) -> None:
    path = database_of(place)
    before = path.read_bytes()
    with opened(place, Counting(refuse=True)) as index:
        report = index.check(repair=True)
    assert (report.damage, report.left, report.repaired, report.embedded) == ((), (), False, 0)
    assert report.passages == report.vectors == len(rows(place))
    assert path.read_bytes() == before


def test_a_search_leaves_a_damaged_passage_out_and_says_so(place: Path) -> None:
    with opened(place) as index:
        first = index.search("lions at seven", k=1).hits[0]
    run(place, f"UPDATE fx_vec_chunk SET text = 'lions at eight' WHERE hash = '{first.hash}'")
    with opened(place) as index:
        for mode in ("hybrid", "semantic", "keyword"):
            answer = index.search("lions at seven", mode=mode)
            assert "lions at eight" not in [hit.text for hit in answer.hits]
            assert answer.mode.value == mode
            assert "damaged passage" in str(answer.reason)
            assert "outcrop check --repair" in str(answer.reason)
        index.check(repair=True)
        answer = index.search("lions at seven", k=1)
        assert (answer.hits[0].text, answer.reason) == (first.text, None)


@pytest.mark.parametrize("number", [np.nan, np.inf, 3e38])
def test_numbers_that_no_vector_has_leave_the_words(place: Path, number: float) -> None:
    with closing(sqlite3.connect(database_of(place), isolation_level=None)) as database:
        (dim,) = database.execute("SELECT dim FROM fx_vec_state").fetchone()
        broken = np.full(dim, number, "<f4").tobytes()
        one = "WHERE chunk_id = (SELECT max(id) FROM fx_vec_chunk)"
        database.execute(f"UPDATE fx_vec_embedding SET v = ? {one}", (broken,))
    with opened(place) as index:
        for _ in range(3):
            answer = index.search("lions at seven")
            assert answer.hits
            assert "outcrop check --repair" in str(answer.reason)
            assert all(0 <= hit.score <= 1 for hit in answer.hits)
        assert index.check(repair=True).left == ()
        assert index.search("lions at seven").reason is None


@pytest.mark.parametrize("seed", range(12))
def test_no_random_mutation_goes_unnoticed(tmp_path: Path, seed: int) -> None:
    write(tmp_path, FILES)
    with opened(tmp_path) as index:
        index.build()
    path, chance = database_of(tmp_path), random.Random(seed)
    before, expected = path.read_bytes(), rows(tmp_path)
    data = bytearray(before)
    for text in chance.sample([b"whetstone", b"simmer", b"boil"], 2):
        at = data.find(text)
        data[at + chance.randrange(len(text))] ^= 1 << chance.randrange(7)
    vector: bytes = chance.choice(expected)[-1]  # type: ignore[assignment]
    data[data.find(vector) + chance.randrange(len(vector))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    with opened(tmp_path) as index:
        report = index.check(repair=True)
        assert {"vector"} <= {each.sort.value for each in report.damage}
        assert report.left == ()
    assert rows(tmp_path) == expected


def test_of_a_broken_database_every_vector_that_can_be_read_is_kept(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}.md": f"# Chapter {number}\n\n{'word ' * 200}{number}\n" for number in range(60)})
    embedder = Counting()
    with opened(tmp_path, embedder) as index:
        index.build()
        index.upsert([Record("mine", "a text of the caller")])
    made, expected = len(embedder.texts), rows(tmp_path)
    path = database_of(tmp_path)
    data = bytearray(path.read_bytes())
    vector: bytes = expected[30][-1]  # type: ignore[assignment]
    page = data.find(vector) // 8192 * 8192
    data[page : page + 64] = bytes(64)
    path.write_bytes(data)
    embedder = Counting()
    with opened(tmp_path, embedder) as index:
        report = index.check(repair=True)
        assert {each.sort.value for each in report.damage} == {"database"}
        assert report.left == ()
        assert 0 < report.embedded == len(embedder.texts) < made / 2
    assert [row for row in rows(tmp_path) if row[3]] == [row for row in expected if row[3]]


def test_what_cannot_be_made_again_is_named(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    with opened(tmp_path) as index:
        index.build()
        index.upsert([Record("mine", "a text of the caller"), Record("other", "another one")])
    run(tmp_path, "UPDATE fx_vec_chunk SET text = 'a test of the caller' WHERE text = 'a text of the caller'")
    with opened(tmp_path) as index:
        report = index.check(repair=True)
        assert (report.lost, report.left, report.embedded) == (("mine",), (), 0)
        assert [hit.text for hit in index.search("another one", corpus="records").hits] == ["another one"]


def test_a_damaged_blob_is_found_and_written_again(tmp_path: Path, sample: SampleRepository) -> None:
    place = sample.copy(tmp_path)
    with opened(place) as index:
        index.build()
    one = "(SELECT min(uvid) FROM unversioned WHERE name GLOB 'vec/*.bin')"
    run(place, f"UPDATE unversioned SET content = x'00' WHERE uvid = {one}")
    with opened(place, Counting(refuse=True)) as index:
        looked = index.check()
        assert [each.sort.value for each in looked.damage] == ["blob"]
        assert looked.blobs > 1
        report = index.check(repair=True)
        assert (report.left, report.blobs) == ((), looked.blobs)


def test_blobs_with_other_vectors_than_the_index_are_found(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "place", FILES)
    with opened(place) as index:
        index.build()
        index.export()
    good = git(place, "rev-parse", "refs/outcrop/vectors")
    with opened(place) as index:
        state = index.store.state()
        assert state is not None
        pending = [digest for (digest,) in _digests(index.store)]
        index.store.clear(space=state.space)
        wrong = np.zeros((len(pending), state.space.dim), np.float32)
        wrong[:, 0] = 1
        index.store.set_space(state.space)
        index.store.add_vectors(state.space, pending, wrong)
        report = index.check()
        assert {each.sort.value for each in report.damage} == {"blob"}
        assert len(report.damage) == report.blobs == 3
        assert index.check(repair=True).left == ()
    assert git(place, "rev-parse", "refs/outcrop/vectors") != good


def _digests(store: SqliteStore) -> Sequence[tuple[bytes]]:
    with store.file.reading() as database:
        return database.execute("SELECT DISTINCT digest FROM fx_vec_chunk").fetchall()


def test_there_is_nothing_to_check_or_somebody_writes(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    with opened(tmp_path) as index:
        with pytest.raises(IndexMissing, match="no index to check"):
            index.check()
        index.build()
    with opened(tmp_path) as index, opened(tmp_path) as other, other.store.writing():
        with pytest.raises(StoreLocked):
            index.check()
        assert index.search("boil").hits


def test_passages_that_lost_their_vectors_are_counted_and_embedded_again(place: Path) -> None:
    with closing(sqlite3.connect(database_of(place), isolation_level=None)) as database:
        lost = "(SELECT chunk_id FROM fx_vec_embedding ORDER BY chunk_id LIMIT 2)"
        database.execute(f"DELETE FROM fx_vec_embedding WHERE chunk_id IN {lost}")
    with opened(place) as index:
        found = index.check()
        assert (found.damage, found.pending) == ((), 2)
        repaired = index.check(repair=True)
        assert (repaired.pending, repaired.embedded, repaired.left) == (0, 2, ())
        assert index.status().complete == 1.0

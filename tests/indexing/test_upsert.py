"""Records of a caller: found like any passage, out of reach of builds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repositories import write

import outcrop
from outcrop import Record
from outcrop.core.model import Kind, RecordNote
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from outcrop.errors import UnknownProject, UsageError

PLUM = Record("p1", "Plum jam keeps for two winters.", metadata={"shelf": 3, "tags": ["sweet", "ü"]})
LEEK = Record("l1", "Leeks stand in sand until March.", Kind.TECHNOTE, "cellar/leeks", "farm")


class Counting(HashEmbedder):
    def __init__(self, dim: int = 64) -> None:
        super().__init__(dim)
        self.passages: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.passages += texts
        return super().embed_passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return super().embed_passages(texts)


Opener = Callable[..., outcrop.Index]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Opener:
    write(tmp_path, {"readme.md": "# Barn\n\nThe ladder hangs on the north wall.\n"})

    def open_counting(embedder: HashEmbedder | None = None) -> outcrop.Index:
        index = outcrop.open(tmp_path, settings={"embedder": "hash"})
        index.embedder = embedder or Counting()
        return index

    return open_counting


def embedded(index: outcrop.Index) -> list[str]:
    assert isinstance(index.embedder, Counting)
    return index.embedder.passages


def hits(index: outcrop.Index, query: str, **more: Any) -> list[outcrop.Hit]:
    return list(index.search(query, mode="keyword", **more).hits)


def test_metadata_may_hold_what_is_no_unicode(opened: Opener) -> None:
    odd = Record("p1", "Plum jam keeps.", metadata={"name": "a\ud800b", "ü": "\U0001f600"})
    with opened() as index:
        assert index.upsert([odd]).added == 1
        assert index.upsert([odd]).unchanged == 1
        assert hits(index, "plum")[0].record == RecordNote("p1", odd.metadata)


@pytest.mark.parametrize("name", ["id", "text", "path", "project"])
def test_what_is_stored_as_text_has_to_be_unicode(opened: Opener, name: str) -> None:
    with opened() as index:
        with pytest.raises(UsageError, match=rf"records\[1\]\.{name} holds half a surrogate pair"):
            index.upsert([PLUM, replace(LEEK, **{name: "a\ud800b"})])
        assert index.remove(["a\ud800b"]) == 0


def test_a_record_is_found_with_everything_that_the_caller_said_of_it(opened: Opener) -> None:
    with opened() as index:
        report = index.upsert([PLUM, LEEK])
        assert (report.added, report.changed, report.unchanged, report.embedded) == (2, 0, 0, 2)
        answer = index.search("plum jam winters", k=1)
        (plum,) = answer.hits
        assert (answer.mode, answer.reason, answer.stale, answer.space) == ("hybrid", None, None, "hash-64-64")
        assert plum.record == RecordNote("p1", {"shelf": 3, "tags": ["sweet", "ü"]})
        assert (plum.text, plum.path, plum.kind, plum.project) == (PLUM.text, None, "doc", "")
        assert (plum.corpus, plum.lines, plum.score) == (("records",), (1, 1), pytest.approx(1, abs=0.4))
        (leek,) = hits(index, "leeks", project="farm", path="cellar/**")
        assert (leek.path, leek.kind, leek.project, leek.record) == (
            "cellar/leeks", "technote", "farm", RecordNote("l1", {}),
        )  # fmt: skip
        assert json.loads(json.dumps(answer.to_dict()))["hits"][0]["record"] == {
            "id": "p1",
            "metadata": {"shelf": 3, "tags": ["sweet", "ü"]},
        }
        status = index.status()
        assert (status.stale, status.complete, [line.corpus for line in status.collections]) == (
            False,
            1.0,
            ["records"],
        )
        with pytest.raises(UnknownProject):
            index.search("leeks", project="nowhere")


def test_the_same_record_again_does_nothing_and_a_changed_one_gives_way(opened: Opener) -> None:
    with opened() as index:
        index.upsert([PLUM])
        size = index.status().bytes
        again = index.upsert([PLUM])
        assert (again.added, again.changed, again.unchanged, again.embedded) == (0, 0, 1, 0)
        assert index.status().bytes == size
        noted = index.upsert([Record("p1", PLUM.text, metadata={"shelf": 4})])
        assert (noted.changed, noted.embedded) == (1, 0)
        moved = index.upsert([Record("p1", PLUM.text, Kind.WIKI, "jam", "farm")])
        assert (moved.changed, moved.embedded, moved.reused) == (1, 0, 1)
        (hit,) = hits(index, "plum jam")
        assert (hit.path, hit.kind, hit.project, hit.record) == ("jam", "wiki", "farm", RecordNote("p1", {}))
        other = index.upsert([Record("p1", "Quince jelly, six jars.")])
        assert (other.changed, other.embedded) == (1, 1)
        assert [hit.text for hit in hits(index, "plum jam quince jelly")] == ["Quince jelly, six jars."]
        assert embedded(index) == [PLUM.text, "Quince jelly, six jars."]


def test_editing_one_paragraph_of_a_long_record_embeds_its_passages(opened: Opener) -> None:
    sections = [f"# Part {number}\n\n{' '.join(f'word{number}x{at}' for at in range(90))}\n" for number in range(6)]
    with opened() as index:
        first = index.upsert([Record("long", "\n".join(sections), Kind.DOC, "long.md")])
        assert first.embedded >= 6
        sections[3] = sections[3].replace("word3x5 ", "corrected ")
        second = index.upsert([Record("long", "\n".join(sections), Kind.DOC, "long.md")])
        # Cuts inside the changed section may move; the others keep their vectors.
        assert 1 <= second.embedded <= 3
        assert second.reused >= first.embedded - 3


def test_builds_do_not_touch_records_and_records_do_not_touch_files(opened: Opener, tmp_path: Path) -> None:
    with opened() as index:
        index.upsert([PLUM])
        index.build()
        index.build(corpus="docs", paths=[])
        index.build()
        assert {hit.text for hit in hits(index, "plum jam ladder wall")} == {
            PLUM.text,
            "# Barn\n\nThe ladder hangs on the north wall.",
        }
        (tmp_path / "readme.md").unlink()
        index.build()
        assert [hit.record.id for hit in hits(index, "plum jam ladder wall") if hit.record] == ["p1"]
        assert embedded(index).count(PLUM.text) == 1


def test_records_go_by_id_or_with_their_corpus(opened: Opener) -> None:
    with opened() as index:
        index.build()
        index.upsert([PLUM, LEEK])
        index.upsert([PLUM], corpus="pantry")
        assert {corpus for hit in hits(index, "plum") for corpus in hit.corpus} == {"records", "pantry"}
        assert index.remove(["p1", "never there"]) == 1
        (hit,) = hits(index, "plum")
        assert (hit.corpus, hit.record) == (("pantry",), RecordNote("p1", {"shelf": 3, "tags": ["sweet", "ü"]}))
        index.clear(corpus="pantry")
        assert hits(index, "plum") == []
        assert len(hits(index, "leeks")) == 1
        index.clear()
        assert not index.status().collections
    with opened() as index:
        assert index.upsert([PLUM]).embedded == 1


def test_two_corpora_keep_their_own_metadata_of_one_text(opened: Opener) -> None:
    with opened() as index:
        index.upsert([PLUM], corpus="a")
        index.upsert([Record("p1", PLUM.text, metadata={"own": True})], corpus="b")
        assert len(embedded(index)) == 1
        (a,), (b,) = (hits(index, "plum", corpus=corpus) for corpus in ("a", "b"))
        assert a.record != b.record
        assert b.record == RecordNote("p1", {"own": True})
        index.remove(["p1"], corpus="a")
        (b,) = hits(index, "plum")
        assert b.record == RecordNote("p1", {"own": True})


def test_another_embedder_embeds_the_whole_corpus_again(opened: Opener) -> None:
    with opened() as index:
        index.upsert([PLUM, LEEK])
    with opened(Counting(32)) as index:
        report = index.upsert([PLUM])
        assert (report.unchanged, report.embedded) == (1, 2)
        assert index.search("plum").space == "hash-32-32"


def test_a_path_decides_how_a_text_is_cut_but_not_what_it_is(opened: Opener) -> None:
    with opened() as index:
        index.upsert(
            [Record("n", "not JSON at all", Kind.CODE, "a.ipynb"), Record("s", "# %%\nx = 1\n", Kind.CODE, "s.py")]
        )
        assert {hit.path for hit in hits(index, "json x")} == {"a.ipynb", "s.py"}


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (Record("", "text"), r"records\[1\].id"),
        (Record("a\0b", "text"), r"records\[1\].id"),
        (Record("a", " \n"), r"records\[1\].text is blank"),
        (Record("a", "text", metadata={"a": object()}), r"records\[1\].metadata is not JSON"),
        (Record("a", "text", metadata={"a": float("nan")}), r"records\[1\].metadata is not JSON"),
    ],
)
def test_what_cannot_be_a_record_stores_nothing(opened: Opener, record: Record, words: str) -> None:
    with opened() as index:
        with pytest.raises(UsageError, match=words):
            index.upsert([PLUM, record])
        assert not index.status().exists
        with pytest.raises(UsageError, match="cannot be named"):
            index.upsert([PLUM], corpus="no/name")


def test_the_hash_is_of_id_and_text(opened: Opener, tmp_path: Path) -> None:
    import hashlib

    with opened() as index:
        index.upsert([PLUM, Record("p2", PLUM.text)])
        found = {hit.record.id: hit.hash for hit in hits(index, "plum") if hit.record}
    assert found == {key: hashlib.sha3_256(f"\0{key}\0{PLUM.text}".encode()).hexdigest() for key in ("p1", "p2")}
    database = sqlite3.connect(tmp_path / ".outcrop/index.sqlite")
    assert database.execute("SELECT count(*) FROM fx_vec_member WHERE worktree = '*' AND builder = ''").fetchone() == (
        2,
    )
    database.close()


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40).filter(
    lambda text: any(char.isalnum() for char in text)
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from("abc"), texts), max_size=8))
def test_after_any_sequence_the_last_text_of_each_id_is_there(opened: Opener, steps: list[tuple[str, str]]) -> None:
    with opened() as index:
        index.clear()
        for key, text in steps:
            index.upsert([Record(key, text)])
        index.upsert([Record("anchor", "anchor")])
        found = {hit.record.id: hit.text for hit in index.search("x", mode="semantic", k=50).hits if hit.record}
        wanted = dict(steps) | {"anchor": "anchor"}
        # A chunk ends before the blanks that follow it.
        assert {key: text.split() for key, text in found.items()} == {key: text.split() for key, text in wanted.items()}
        assert index.status().complete == 1.0

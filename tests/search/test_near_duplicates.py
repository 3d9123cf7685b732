"""Near-copies share one place of an answer, which names where the others are."""

from __future__ import annotations

from pathlib import Path

import pytest

import outcrop

WORDS = (
    "the pool drains every idle socket after its deadline passes and then closes the listening port for good".split()
)


@pytest.fixture
def index(tmp_path: Path) -> outcrop.Index:
    for number in range(3):
        (tmp_path / f"copy{number}.md").write_text(f"{' '.join(WORDS)}{'.' * number}\n")
    (tmp_path / "other.md").write_text("sockets that are idle are counted by the pool, and somebody else closes them\n")
    (tmp_path / "short1.md").write_text("idle sockets\n")
    (tmp_path / "short2.md").write_text("idle  sockets\n")
    opened = outcrop.open(tmp_path, settings={"embedder": "hash"})
    opened.build()
    return opened


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_the_best_represents_all(index: outcrop.Index, mode: str) -> None:
    hits = index.search("pool drains idle sockets", mode=mode).hits
    best = next(hit for hit in hits if hit.path.startswith("copy"))
    places = [best.path, *(copy.path for copy in best.copies)]
    assert sorted(places) == ["copy0.md", "copy1.md", "copy2.md"]
    assert sum(hit.path.startswith("copy") for hit in hits) == 1
    assert all(copy.lines == (1, 1) and copy.hash != best.hash for copy in best.copies)
    assert {hit.path for hit in hits} == {best.path, "other.md", "short1.md", "short2.md"}


def test_copies_take_no_place_of_others(index: outcrop.Index) -> None:
    assert len(index.search("pool drains idle sockets", k=2).hits) == 2


def test_semantic_answers_keep_every_one_in_the_order_of_the_scores(index: outcrop.Index) -> None:
    hits = index.search("pool drains idle sockets", mode="semantic").hits
    assert len(hits) == 6
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert not any(hit.copies for hit in hits)


def test_an_answer_as_json_has_plain_copies(index: outcrop.Index) -> None:
    answer = index.search("pool drains idle sockets").to_dict()
    (copy,) = [hit["copies"][0] for hit in answer["hits"] if hit["copies"]]
    assert copy.keys() == {"kind", "project", "path", "hash", "lines", "cell"}

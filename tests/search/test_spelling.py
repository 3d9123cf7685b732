"""Mistyped words of a question find what they were meant to; English words and identifiers stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import outcrop
from outcrop.search.parse import replace_words
from outcrop.search.spelling import distance

FILES = {
    "pool.py": 'def checkout(timeout):\n    """Wait for a free connection of the database."""\n',
    "beat.py": 'class Scheduler:\n    """Sends periodic tasks in parallel."""\n',
    "notes.md": "# Logging\n\nThe rotation of log files is daily. Coordinates are kept.\n",
}


@pytest.fixture
def index(tmp_path: Path) -> outcrop.Index:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    opened = outcrop.open(tmp_path, settings={"embedder": "hash"})
    opened.build()
    return opened


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_a_mistyped_word_finds_what_it_was_meant_to(index: outcrop.Index, mode: str) -> None:
    answer = index.search("conection of the datbase", mode=mode)
    assert answer.corrected == {"conection": "connection", "datbase": "database"}
    assert answer.hits[0].path == "pool.py"
    assert answer.hits == index.search("connection of the database", mode=mode).hits


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sheduler", "scheduler"),  # one left out, in the second place
        ("taks", "tasks"),  # one left out
        ("paralel", "parallel"),
        ("rotatoin", "rotation"),  # swapped
        ("cordinatse", "coordinates"),  # two slips in a long word
        ("dayly", "daily"),  # mistaken
    ],
)
def test_each_sort_of_slip(index: outcrop.Index, typed: str, meant: str) -> None:
    assert index.search(typed).corrected == {typed: meant}


@pytest.mark.parametrize(
    "question",
    [
        "connected databases",  # other endings of words that are here
        "mouse house",  # English words that nothing here holds
        "conection_pool checkuot()",  # identifiers
        "poolConection",
        "Conection.datbase",
        "xyzzyqwertz",  # near to nothing
        "dbx",  # too short to tell
        "数据库 連接",
        "",
    ],
)
def test_what_is_not_corrected(index: outcrop.Index, question: str) -> None:
    if question:
        assert index.search(question).corrected == {}


def test_several_questions_at_once_are_corrected_alike(index: outcrop.Index) -> None:
    first, second = index.query(["conection", "daily rotation"])
    assert first.corrected == {"conection": "connection"}
    assert second.corrected == {}
    assert first.hits == index.search("connection").hits


def test_words_are_replaced_in_place() -> None:
    assert (
        replace_words("Conection of the conection_pool", {"conection": "connection"})
        == "connection of the conection_pool"
    )


@pytest.mark.parametrize(
    ("one", "other", "away"),
    [("abcd", "abcd", 0), ("abcd", "abd", 1), ("abcd", "abdc", 1), ("abcd", "xbcd", 1), ("abcd", "badc", 2)],
)
def test_distance_by_hand(one: str, other: str, away: int) -> None:
    assert distance(one, other, 2) == away


@given(one=st.text("abcd", max_size=8), other=st.text("abcd", max_size=8))
@settings(max_examples=200)
def test_distance_is_symmetric_and_bounded(one: str, other: str) -> None:
    away = distance(one, other, 3)
    assert away == distance(other, one, 3)
    assert (away == 0) == (one == other)
    assert away <= 4

"""The self-test: right verdicts, honest words, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from servers import as_endpoint, as_ollama, listening

from outcrop.app.index import probe_candidates
from outcrop.config.settings import Settings
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.errors import EmbedderUnavailable, FormatError, UsageError
from outcrop.evaluation.probe import Candidate, Task, load_task, probe
from outcrop.stores.sqlite.store import SqliteStore
from outcrop.surfaces.cli.commands.evaluate import probe_lines


def book(*cells: str) -> str:
    made = [{"cell_type": "markdown", "metadata": {}, "source": cell} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


BOOK = book("A kettle whistles.", "The cat sleeps on the stove.", "Trams stop at midnight.")
TASK = Task(BOOK, "where does the cat sleep", "cat sleeps on")


def memory() -> SqliteStore:
    return SqliteStore(None)


def test_the_default_model_finds_the_cell_that_words_do_not() -> None:
    model = Candidate("local", LocalEmbedder(), True, True)
    found = probe(load_task(), [model, Candidate("hash", HashEmbedder(), False, False)], memory)
    local, hashed = found.columns
    assert (found.passed, found.cells, found.cell) == (True, 12, 5)
    assert local.place is not None
    assert (local.place.rank, local.passed, local.verdict) == (
        1,
        True,
        "found the cell by meaning; its words alone do not",
    )
    assert local.place.score is not None
    assert local.place.other is not None
    assert local.place.score - local.place.other > 0.05
    assert found.control is not None
    assert found.control.rank is None
    assert found.control.first is not None
    assert (hashed.passed, hashed.space) == (True, "hash-768")
    assert "nothing about meaning" in hashed.verdict


def test_the_same_model_reached_two_ways_reports_the_same_number() -> None:
    model = LocalEmbedder()
    with listening(as_endpoint(model)) as endpoint:
        settings = Settings(embedder="endpoint", model="all-MiniLM-L6-v2", dim=384, endpoint_url=endpoint.url)
        reached = [each for each in probe_candidates(settings) if each.name == "endpoint"]
        found = probe(load_task(), [Candidate("local", model, False, True), *reached], memory)
        sent = list(endpoint.texts)
    local, remote = found.columns
    assert local.place is not None
    assert remote.place is not None
    assert (local.place.rank, remote.place.rank) == (1, 1)
    assert remote.place.score == pytest.approx(local.place.score, abs=1e-5)
    assert sent.count(found.question) == 1


def test_every_embedder_that_is_available_has_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(as_ollama(HashEmbedder(), "nomic-embed-text")) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        found = probe(
            TASK, [each for each in probe_candidates(Settings(embedder="hash")) if each.name != "local"], memory
        )
    assert [(each.embedder, each.chosen, each.passed) for each in found.columns] == [
        ("hash", True, True),
        ("ollama", False, True),
    ]
    monkeypatch.setenv("OLLAMA_HOST", "http://192.0.2.1:9")
    assert [each.name for each in probe_candidates(Settings(embedder="hash"))] == ["hash", "local"]


class Wrong(HashEmbedder):
    """A model that thinks everything is the same but for what is asked for."""

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed_passages(["Trams stop at midnight."] * len(texts))


class Broken(HashEmbedder):
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        raise EmbedderUnavailable("the model fell over", "Pick it up")


def test_a_real_model_that_does_not_find_the_cell_fails() -> None:
    found = probe(TASK, [Candidate("mine", Wrong(), True, True)], memory)
    (column,) = found.columns
    assert (found.passed, column.passed) == (False, False)
    assert column.verdict == "did not find the cell by meaning: cell 3 came first"
    assert "FAILED: mine" in list(probe_lines(found))


def test_a_question_in_the_answers_own_words_says_that_it_proves_little() -> None:
    found = probe(TASK, [Candidate("mine", HashEmbedder(), True, True)], memory)
    assert found.columns[0].verdict.startswith("found the cell, but so do its words alone")
    assert found.control is not None
    assert found.control.rank == 1


def test_without_a_real_model_nothing_is_claimed() -> None:
    lines = list(probe_lines(probe(TASK, [Candidate("hash", HashEmbedder(), True, False)], memory)))
    assert lines[-1] == "no real model was tested: this proves the pipeline and nothing about meaning"


@pytest.mark.parametrize(("chosen", "passed"), [(True, False), (False, None)])
def test_an_embedder_that_cannot_be_used_fails_only_where_it_was_chosen(chosen: bool, passed: bool | None) -> None:
    missing = Candidate("other", EmbedderUnavailable("not installed", ""), chosen, True)
    found = probe(TASK, [Candidate("mine", Broken(), chosen, True), missing], memory)
    assert [each.passed for each in found.columns] == [passed, passed]
    assert [each.verdict for each in found.columns] == [
        "not available: the model fell over",
        "not available: not installed",
    ]
    assert found.passed is not chosen
    assert found.control is None


def test_tasks_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(BOOK, "utf-8")
    assert load_task(tmp_path / "a.ipynb", "q", "e") == Task(BOOK, "q", "e")
    assert load_task(None, "q", "e").notebook == load_task().notebook
    for arguments in ((tmp_path / "a.ipynb", None, "e"), (None, "q", None), (tmp_path / "none.ipynb", "q", "e")):
        with pytest.raises(UsageError):
            load_task(*arguments)
    hashed = [Candidate("hash", HashEmbedder(), True, False)]
    with pytest.raises(UsageError, match="no cell holds"):
        probe(Task(BOOK, "q", "dog"), hashed, memory)
    with pytest.raises(UsageError, match="cells 1, 2, 3 hold"):
        probe(Task(book("a b", "a c", "c a"), "q", "a"), hashed, memory)
    with pytest.raises(FormatError, match="not valid JSON"):
        probe(Task("{", "q", "e"), hashed, memory)


def command(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OUTCROP_")}
    env |= {"OUTCROP_CONFIG": os.devnull, "TMPDIR": str(tmp_path / "tmp"), "OLLAMA_HOST": "http://127.0.0.1:9"}
    return subprocess.Popen(
        [sys.executable, "-m", "outcrop", "probe", *arguments],
        cwd=tmp_path / "here", env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    return tmp_path


def left_behind(tmp_path: Path) -> list[str]:
    return [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]


def test_the_command_says_what_it_found_and_leaves_nothing_behind(here: Path) -> None:
    process = command(here, "--embedder", "hash", "--json")
    out, err = process.communicate(timeout=60)
    found = json.loads(out)
    assert process.returncode == 0, err
    assert {each["embedder"] for each in found["columns"]} == {"hash", "local", "ollama"}
    assert left_behind(here) == []


def test_the_command_fails_when_a_real_model_does_not_find_the_cell(here: Path) -> None:
    (here / "book.ipynb").write_text(BOOK, "utf-8")
    words = ("--question", "when does the last tram leave", "--expect", "kettle")
    process = command(here, "--notebook", str(here / "book.ipynb"), *words)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "FAILED: local" in out


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopping_it_leaves_nothing_behind(here: Path, sign: signal.Signals) -> None:
    (here / "book.ipynb").write_text(book(*(f"Cell {number} says {number * 7}." for number in range(3000))), "utf-8")
    words = ("--question", "anything", "--expect", "says 21.")
    process = command(here, "--notebook", str(here / "book.ipynb"), *words)
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(sign)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert left_behind(here) == ["book.ipynb"]

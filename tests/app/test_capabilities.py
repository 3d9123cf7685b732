"""The vectors.* registry: in process, and as outcrop call."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repositories import write

import outcrop
from outcrop.errors import UsageError
from outcrop.surfaces.cli.program import main

NAMES = [
    "vectors.embed",
    "vectors.chunk",
    "vectors.index.build",
    "vectors.index.upsert",
    "vectors.index.status",
    "vectors.query",
    "vectors.index.clear",
    "vectors.embedder.status",
    "vectors.embedder.test",
    "vectors.probe",
]
BOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# Tides\n\nWhen the harbour dries out."},
            {"cell_type": "code", "id": "c", "metadata": {}, "outputs": [], "source": "depth(harbour, hour)"},
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    write(tmp_path, {"tides.ipynb": BOOK, "notes.md": "# Ropes\n\nA bowline does not slip.\n"})
    return tmp_path


def call(root: Path, name: str, **arguments: Any) -> Any:
    """In process, the result through JSON, which it must survive."""
    return json.loads(json.dumps(outcrop.capabilities.call(name, arguments, directory=root), allow_nan=False))


def test_the_registry_is_complete_documented_and_has_schemas() -> None:
    assert list(outcrop.capabilities.REGISTRY) == NAMES
    for name, capability in outcrop.capabilities.REGISTRY.items():
        assert capability.name == name
        assert capability.summary.endswith(".")
        assert " Returns " in capability.documentation
        schema = capability.schema
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert all(each.get("description") for each in schema["properties"].values()), name
        assert json.loads(json.dumps(schema)) == schema


def test_every_capability_stands_in_the_documentation() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "capabilities.md").read_text("utf-8")
    for name, capability in outcrop.capabilities.REGISTRY.items():
        section = page.split(f"### `{name}`")[1].split("\n### ")[0].split("\n## ")[0]
        rows = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
        assert rows == set(capability.schema["properties"]), name


def test_embed_and_chunk(root: Path) -> None:
    made = call(root, "vectors.embed", texts=["one rope", "two ropes"], role="query")
    assert (made["space"], made["dim"], made["address"]) == ("hash-768", 768, None)
    assert np.linalg.norm(np.array(made["vectors"]), axis=1) == pytest.approx([1, 1], abs=1e-6)
    documents = [{"text": BOOK, "path": "t.ipynb"}, {"text": "{", "path": "u.ipynb"}, {"text": "# A\n\nb\n"}]
    book, broken, prose = call(root, "vectors.chunk", documents=documents)["documents"]
    assert [(each["cell"], each["cell_id"], each["part"], each["text"]) for each in book["chunks"]] == [
        (0, "m", "doc", "# Tides\n\nWhen the harbour dries out."),
        (1, "c", "code", "depth(harbour, hour)"),
    ]
    assert "not valid JSON" in broken["error"]
    assert (prose["kind"], prose["error"], len(prose["chunks"])) == ("doc", None, 1)
    assert not (root / ".outcrop").exists()


def test_build_query_status_and_clear(root: Path) -> None:
    built = call(root, "vectors.index.build", corpus="notebooks", paths=["*.ipynb", "none.ipynb"])
    assert (built["added"], built["embedded"], built["complete"]) == (1, 2, True)
    assert built["skipped"] == [
        {"path": "none.ipynb", "reason": "nothing here that can be indexed", "detail": "", "hash": ""}
    ]
    call(root, "vectors.index.build", corpus="docs", paths=["notes.md"])
    answers = call(
        root, "vectors.query", texts=["harbour", "bowline"], corpus=["notebooks", "docs"], mode="keyword", k=5
    )["answers"]
    assert [sorted(hit["path"] for hit in answer["hits"]) for answer in answers] == [
        ["tides.ipynb", "tides.ipynb"],
        ["notes.md"],
    ]
    hit = answers[1]["hits"][0]
    assert (hit["kind"], hit["lines"], hit["record"], hit["mode"]) == ("doc", [1, 3], None, "keyword")
    assert hit["preview"] == "A bowline does not slip."
    assert [line["corpus"] for line in call(root, "vectors.index.status")["collections"]] == ["docs", "notebooks"]
    assert call(root, "vectors.index.clear", corpus="notebooks")["removed"] == 0
    assert [line["corpus"] for line in call(root, "vectors.index.status")["collections"]] == ["docs"]
    call(root, "vectors.index.clear", everything=True)
    assert call(root, "vectors.index.status")["collections"] == []


def test_several_questions_are_embedded_in_one_call_and_answered_as_one_by_one(root: Path) -> None:
    with outcrop.open(root) as index:
        index.build()
        given: list[list[str]] = []
        embed = index.embedder.embed_queries
        index.embedder.embed_queries = lambda texts: (given.append(list(texts)), embed(texts))[1]  # type: ignore[method-assign]
        questions = ["when is the harbour dry", "a knot that holds", "when is the harbour dry"]
        answers = index.query(questions, k=3)
        assert given == [questions[:2]]
        assert answers == [index.search(question, k=3) for question in questions]
        assert index.query([]) == []
        with pytest.raises(UsageError, match="question is empty"):
            index.query(["fine", " "])


def test_records_and_their_removal(root: Path) -> None:
    record = {"id": "7", "text": "A bosun's whistle.", "metadata": {"page": 12}}
    assert call(root, "vectors.index.upsert", records=[record], corpus="log")["added"] == 1
    assert call(root, "vectors.index.upsert", records=[record], corpus="log")["unchanged"] == 1
    (answer,) = call(root, "vectors.query", texts=["whistle"], corpus="log")["answers"]
    assert answer["hits"][0]["record"] == {"id": "7", "metadata": {"page": 12}}
    assert call(root, "vectors.index.clear", corpus="log", ids=["7", "8"]) == {"freed": 0, "removed": 1}
    assert call(root, "vectors.index.clear", ids=["7"])["removed"] == 0


def test_the_embedder(root: Path) -> None:
    assert call(root, "vectors.embedder.status")["space"] == "hash-768"
    assert call(root, "vectors.embedder.test")["norm"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("vectors.nothing", {}, "no capability 'vectors.nothing'"),
        ("vectors.query", {"text": ["a"]}, "vectors.query has no argument 'text'"),
        ("vectors.query", {}, "vectors.query needs the argument 'texts'"),
        ("vectors.query", {"texts": ["a", 3]}, r"texts\[1\] cannot be 3"),
        ("vectors.query", {"texts": ["a"], "k": 2.5}, "k cannot be 2.5"),
        ("vectors.query", {"texts": ["a"], "mode": "guess"}, "mode cannot be 'guess'"),
        ("vectors.query", {"texts": ["a"], "kind": "docs"}, "no kind 'docs'"),
        ("vectors.index.upsert", {"records": [{"id": "a"}]}, r"records\[0\] has no 'text'"),
        ("vectors.index.upsert", {"records": [{"id": "a", "text": "b", "kind": "x"}]}, r"records\[0\].kind cannot be"),
        ("vectors.index.upsert", {"records": [{"id": 1, "text": "b"}]}, r"records\[0\].id cannot be 1"),
        ("vectors.index.clear", {}, "exactly one of"),
        ("vectors.index.clear", {"corpus": "a", "everything": True}, "exactly one of"),
        ("vectors.index.clear", {"ids": ["a"], "space": "b"}, "exactly one of"),
        ("vectors.probe", {"question": "why"}, "needs the text that answers it"),
    ],
)
def test_a_wrong_call_names_what_is_wrong(root: Path, name: str, arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        call(root, name, **arguments)
    assert not (root / ".outcrop").exists()


# The command


def test_a_record_at_the_terminal_is_named_by_its_corpus_and_id(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call(root, "vectors.index.upsert", records=[{"id": "page 7\x1b[31m", "text": "A bosun's whistle."}], corpus="log")
    monkeypatch.chdir(root)
    assert main(["search", "--mode", "keyword", "whistle"]) == 0
    assert capsys.readouterr().out.startswith("log: page 7\\x1b[31m  1.00\n  1  A bosun's whistle.\n")


def test_raw_cells_from_the_command_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = {"cell_type": "raw", "metadata": {}, "source": "a lighthouse keeper's table"}
    write(root, {"raw.ipynb": json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})})
    for flags, found in (([], 0), (["--raw-cells"], 1), ([], 0)):
        assert main(["index", "-C", str(root), "--quiet", *flags]) == 0
        (answer,) = call(root, "vectors.query", texts=["lighthouse"], mode="keyword")["answers"]
        assert len(answer["hits"]) == found


def run(root: Path, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "outcrop", *arguments],
        cwd=root,
        input="" if stdin is None else stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_takes_json_as_an_argument_and_from_stdin(root: Path) -> None:
    request = json.dumps({"corpus": "notebooks", "paths": ["tides.ipynb"]})
    code, out, _ = run(root, "call", "vectors.index.build", request)
    assert (code, json.loads(out)["added"]) == (0, 1)
    code, out, _ = run(root, "call", "vectors.query", stdin='{"texts": ["harbour"], "k": 1}')
    assert (code, json.loads(out)["answers"][0]["hits"][0]["path"]) == (0, "tides.ipynb")
    code, out, _ = run(root, "call", "vectors.index.status", "-", stdin="")
    assert json.loads(out)["space"] == "hash-768"


def test_the_command_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert main(["call", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["capabilities"]
    assert [each["name"] for each in listed] == NAMES
    assert all(set(each) == {"name", "description", "arguments"} for each in listed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("call",), "needs the name"),
        (("call", "vectors.quarry", "{}"), "no capability 'vectors.quarry'"),
        (("call", "vectors.query", "{"), "not valid JSON"),
        (("call", "vectors.query", "[]"), "a JSON list, not an object"),
        (("call", "vectors.query", '{"texts": "a"}'), "texts cannot be 'a'"),
    ],
)
def test_a_wrong_command_is_exit_code_2(root: Path, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = run(root, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_a_corpus_from_the_command_line(root: Path) -> None:
    write(root, {"sub/deep/x.ipynb": BOOK.replace("harbour", "estuary")})
    assert run(root, "index", "--quiet")[0] == 0
    code, out, err = run(root / "sub", "index", "--corpus", "books", "deep", "../tides.ipynb", "--json")
    assert (code, json.loads(out)["added"]) == (0, 2), err
    code, out, _ = run(root, "index", "--corpus", "books", "**/x.ipynb", "--json")
    assert json.loads(out)["removed"] == 1
    code, out, _ = run(root, "index", "--corpus", "books", "--no-prune", "tides.ipynb", "--json")
    assert (json.loads(out)["added"], json.loads(out)["removed"]) == (1, 0)
    code, out, _ = run(root, "index", "--corpus", "books", "--dry-run", "notes.md")
    assert "notes.md" in out
    assert run(root, "index", "--corpus", "books")[0] == 2
    assert run(root, "index", "--no-prune")[0] == 2
    assert run(root, "index", "sub", "other")[0] == 2
    code, out, _ = run(
        root, "search", "--mode", "keyword", "--corpus", "books", "--corpus", "docs", "--json", "estuary"
    )
    assert {hit["cell_id"] for hit in json.loads(out)["hits"]} == {"m", "c"}

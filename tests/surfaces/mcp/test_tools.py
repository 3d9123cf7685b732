"""The tools as a client of the SDK meets them: what they answer, what they refuse, and what their answers cost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from fossil_program import SampleRepository
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp_types import CallToolResult
from repositories import commit, make_repository, write

import outcrop
from outcrop.app import warm_index
from outcrop.app.index import Index
from outcrop.app.warm_index import LOADING, WarmIndex
from outcrop.core.model import Answer, Copy, Hit, Kind, Mode, Stale
from outcrop.errors import EmbedderUnavailable
from outcrop.surfaces.mcp import tools
from outcrop.surfaces.mcp.passages import MOST_LINES
from outcrop.surfaces.mcp.server import CODE, make_server
from outcrop.surfaces.mcp.text_format import answer_text
from outcrop.surfaces.render import INVALID_PARAMS
from outcrop.text import tokenizer

HASH = {"embedder": "hash"}
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": "# Descaling\n\nUse vinegar."},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "source": "def rinse(kettle):\n    return kettle.flush()\n",
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FILES: dict[str, str | bytes] = {
    "README.md": "# Kettle\n\nBoils water.\n\n## Install from source\n\nClone it and run make.\n",
    "src/kettle.py": "def boil(water):\n    return heat(water, 100)\n\n\ndef pour(cup):\n    return cup.fill()\n",
    "src/long.py": "".join(f"LINE_{number} = {number}\n" for number in range(1, 1001)),
    "lab/descale.ipynb": json.dumps(NOTEBOOK),
    ".env": "PASSWORD=hunter2\n",
    ".gitignore": "private/\n",
    "private/diary.md": "Dear diary.\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "kettle", FILES)
    (tmp_path / "outside.md").write_text("outside\n")
    return tmp_path / "kettle"


@contextmanager
def serving(root: Path, *, build: bool = True, rev: str | None = None, **more: Any) -> Iterator[WarmIndex]:
    """A service of a folder, indexed unless told otherwise."""
    if build:
        with outcrop.open(root, settings=HASH, rev=rev) as index:
            index.build()
    service = WarmIndex(lambda: outcrop.open(root, settings=HASH, rev=rev), **more)
    try:
        yield service
    finally:
        service.close()


def calls(service: WarmIndex, *asked: tuple[str, dict[str, Any]], structured: bool = True) -> list[CallToolResult]:
    """What a real client gets, one call after the other."""

    async def run() -> list[CallToolResult]:
        async with Client(make_server(service, structured=structured)) as client:
            await client.list_tools()
            return [await client.call_tool(name, arguments) for name, arguments in asked]

    return anyio.run(run)


def call(service: WarmIndex, name: str, **arguments: Any) -> CallToolResult:
    return calls(service, (name, arguments))[0]


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


def as_json(answer: Answer) -> Any:
    return json.loads(json.dumps(answer.to_dict()))


@pytest.mark.parametrize("mode", list(Mode))
def test_hits_are_those_of_the_index(root: Path, mode: Mode) -> None:
    with serving(root) as service:
        result = call(service, "semantic_search", query="boil water", mode=mode, k=3)
        with outcrop.open(root, settings=HASH) as index:
            assert result.structured_content == as_json(index.search("boil water", mode=mode, k=3))
    assert not result.is_error
    found = len(result.structured_content["hits"])
    assert 2 <= found <= 3
    assert text(result).startswith(f"{mode}: {found} hits\n1. ")


def test_filters_reach_the_index(root: Path) -> None:
    with serving(root) as service:
        by_kind, by_path, by_corpus, by_project = calls(
            service,
            ("semantic_search", {"query": "water", "kind": "doc"}),
            ("semantic_search", {"query": "water", "path": ["src/**"]}),
            ("semantic_search", {"query": "water", "corpus": ["docs"]}),
            ("semantic_search", {"query": "water", "project": "kettle"}),
        )
    assert {hit["kind"] for hit in by_kind.structured_content["hits"]} == {"doc"}
    assert {hit["path"] for hit in by_path.structured_content["hits"]} == {"src/kettle.py", "src/long.py"}
    assert {tuple(hit["corpus"]) for hit in by_corpus.structured_content["hits"]} == {("docs",)}
    assert by_project.structured_content["hits"]


def test_every_answer_is_what_its_output_schema_says(root: Path) -> None:
    asked = [
        ("semantic_search", {"query": "water"}),
        ("read_passage", {"path": "README.md"}),
        ("index_status", {}),
    ]
    schemas = {tool["name"]: tool["outputSchema"] for tool in tools.listed(structured=True)}
    with serving(root, build=False) as service:
        without = calls(service, *asked)
    with serving(root) as service:
        fresh = calls(service, *asked)
        write(root, {"README.md": "# Kettle\n\nOther words.\n"})
        stale = calls(service, *asked)
    for results in (without, fresh, stale):
        for (name, _), result in zip(asked, results, strict=True):
            assert not result.is_error, text(result)
            jsonschema.validate(result.structured_content, schemas[name])
    assert without[0].structured_content["mode"] == "keyword"
    assert "there is no index yet" in text(without[0])
    assert stale[0].structured_content["stale"] is not None
    assert "stale" in text(stale[0]).splitlines()[0]
    assert stale[1].structured_content["state"] == "changed"
    assert [result.structured_content["stale"] for result in (fresh[2], stale[2])] == [False, True]


def test_the_input_schemas_are_valid_and_list_what_there_is() -> None:
    listed = {tool["name"]: tool for tool in tools.listed(structured=True)}
    assert list(listed) == ["semantic_search", "read_passage", "index_status"]
    for tool in listed.values():
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["annotations"]["readOnlyHint"]
    asked = listed["semantic_search"]["inputSchema"]
    assert set(asked["properties"]) >= {"query", "kind", "project", "corpus", "path", "k", "mode"}
    assert asked["required"] == ["query"]


def test_the_tools_cost_little_to_list() -> None:
    words = [tool["description"] + json.dumps(tool["inputSchema"]) for tool in tools.listed(structured=False)]
    assert tokenizer.count("".join(words)) < 1500


def test_full_text_is_whole_passages(root: Path) -> None:
    with serving(root) as service:
        short, full = calls(
            service,
            ("semantic_search", {"query": "boil water", "k": 2}),
            ("semantic_search", {"query": "boil water", "k": 2, "full": True}),
        )
    assert short.structured_content == full.structured_content
    for hit in full.structured_content["hits"]:
        assert hit["text"].strip("\n") in text(full)
    assert "return heat(water, 100)" not in text(short)


def test_answers_in_words_alone(root: Path) -> None:
    async def run(service: WarmIndex) -> tuple[Any, CallToolResult]:
        async with Client(make_server(service, structured=False)) as client:
            listed = await client.list_tools()
            return listed, await client.call_tool("semantic_search", {"query": "water"})

    with serving(root) as service:
        listed, result = anyio.run(run, service)
    assert [tool.output_schema for tool in listed.tools] == [None, None, None]
    assert result.structured_content is None
    assert text(result).startswith("hybrid: ")


LONG = st.text(st.characters(codec="utf-8"), max_size=4000)


COPIES = st.builds(
    Copy,
    kind=st.sampled_from(Kind),
    project=LONG,
    path=st.one_of(st.none(), LONG),
    hash=st.text("0123456789abcdef", min_size=40, max_size=64),
    lines=st.tuples(st.integers(1, 10**9), st.integers(1, 10**9)),
    cell=st.one_of(st.none(), st.integers(0, 10**6)),
)


@st.composite
def hits(draw: st.DrawFn) -> Hit:
    path = draw(st.one_of(st.none(), LONG))
    return Hit(
        score=draw(st.floats(0, 1)),
        kind=draw(st.sampled_from(Kind)),
        project=draw(LONG),
        path=path,
        hash=draw(st.text("0123456789abcdef", min_size=40, max_size=64)),
        text=draw(LONG),
        lines=draw(st.tuples(st.integers(1, 10**9), st.integers(1, 10**9))),
        name=draw(st.one_of(st.none(), LONG)),
        paths=(),
        corpus=("docs",),
        mode=Mode.HYBRID,
        preview=draw(st.text(st.characters(codec="utf-8"), max_size=160)),
        cell=draw(st.one_of(st.none(), st.integers(0, 10**6))),
        copies=draw(st.lists(COPIES, max_size=4).map(tuple)),
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(hits(), max_size=10), st.one_of(st.none(), LONG), st.booleans(), st.dictionaries(LONG, LONG, max_size=5)
)
def test_ten_hits_never_cost_more_than_their_budget(
    found: list[Hit], reason: str | None, stale: bool, corrected: dict[str, str]
) -> None:
    behind = Stale("a" * 40, "b" * 40) if stale else None
    answer = Answer(Mode.HYBRID, reason, behind, "space", tuple(found), corrected)
    assert tokenizer.count(answer_text(answer, full=False)) <= 1500


def test_a_usual_answer_names_everything_that_is_needed_to_go_on(root: Path) -> None:
    with serving(root) as service:
        answer = text(call(service, "semantic_search", query="how to pour into the cup", k=1, kind="code"))
        _, place, preview = answer.splitlines()
        assert place.startswith("1. src/kettle.py:")
        assert place.split()[2] == "code"
        assert "cup" in preview
        again = call(service, "read_passage", path=place.split()[1], around=0)
    assert not again.is_error
    assert "def pour(cup):" in text(again)


def test_control_characters_do_not_reach_a_terminal(root: Path) -> None:
    write(root, {"evil.md": "# Water \x1b[31mred\u202e\n\nwater water water\n"})
    with serving(root) as service:
        found, read = calls(
            service,
            ("semantic_search", {"query": "water red", "path": "evil.md", "full": True}),
            ("read_passage", {"path": "evil.md"}),
        )
    for result in (found, read):
        assert "\x1b" not in text(result)
        assert "\u202e" not in text(result)
        assert "\\x1b[31m" in text(result)


READINGS: list[tuple[dict[str, Any], list[int], str]] = [
    ({"path": "src/long.py:500-502", "around": 2}, [498, 504], "LINE_498 = 498"),
    ({"path": "src/long.py:500", "around": 0}, [500, 500], "LINE_500 = 500"),
    ({"path": "./src//long.py", "first_line": 999, "around": 5}, [994, 1000], "LINE_994 = 994"),
    ({"path": "src/long.py", "last_line": 3, "around": 0}, [1, 3], "LINE_1 = 1"),
    ({"path": "src/long.py:2-2"}, [1, 22], "LINE_1 = 1"),
    ({"path": "src/long.py"}, [1, MOST_LINES], "LINE_1 = 1"),
    ({"path": "src/long.py", "first_line": 900, "last_line": 10**6}, [880, 1000], "LINE_880 = 880"),
    ({"path": "lab/descale.ipynb cell 1:2-2", "around": 0}, [2, 2], "    return kettle.flush()"),
    ({"path": "lab/descale.ipynb", "cell": 0}, [1, 3], "# Descaling"),
    ({"path": "lab/descale.ipynb"}, [1, 8], "# cell 0"),
]


def test_lines_of_a_file_are_read(root: Path) -> None:
    with serving(root) as service:
        results = calls(service, *(("read_passage", asked) for asked, _, _ in READINGS))
    for (asked, lines, first), result in zip(READINGS, results, strict=True):
        assert not result.is_error, (asked, text(result))
        passage = result.structured_content
        assert passage["lines"] == lines, asked
        assert passage["text"].split("\n")[0] == first, asked
        assert len(passage["text"].split("\n")) == lines[1] - lines[0] + 1, asked
        assert passage["state"] == "indexed", asked
        assert text(result).split("\n")[1] == first, asked


def test_a_path_below_the_root_may_be_absolute_and_a_hash_is_enough(root: Path) -> None:
    with serving(root) as service:
        absolute = call(service, "read_passage", path=f"{root}/src/kettle.py")
        content_hash = absolute.structured_content["hash"]
        by_hash, both, outdated = calls(
            service,
            ("read_passage", {"hash": content_hash}),
            ("read_passage", {"hash": content_hash, "path": "src/kettle.py"}),
            ("read_passage", {"hash": "0" * 64, "path": "src/kettle.py"}),
        )
    assert absolute.structured_content["path"] == "src/kettle.py"
    assert by_hash.structured_content == both.structured_content == absolute.structured_content
    assert outdated.structured_content == absolute.structured_content | {"state": "changed"}


OUTSIDE = [
    "../outside.md",
    "src/../../outside.md",
    "/etc/passwd",
    "private/diary.md",
    ".env",
    ".outcrop/index.sqlite",
    ".git/config",
    "link.md",
    "linked/outside.md",
    "src/kettle.py\x00",
    "~/.ssh/id_rsa",
    "file:///etc/passwd",
    "C:\\windows\\win.ini",
    "src",
    "*",
]


def test_nothing_but_what_is_indexed_can_be_read(root: Path) -> None:
    (root / "link.md").symlink_to(root.parent / "outside.md")
    (root / "linked").symlink_to(root.parent)
    absolute = [f"{root}/{path}" for path in OUTSIDE]
    with serving(root) as service:
        results = calls(service, *(("read_passage", {"path": path}) for path in [*OUTSIDE, *absolute]))
    for path, result in zip([*OUTSIDE, *absolute], results, strict=True):
        assert result.is_error, (path, text(result))
        assert "is indexed" in text(result), path
        assert (result.meta or {})[CODE] == INVALID_PARAMS


def test_a_folder_that_became_a_link_since_it_was_indexed_leads_nowhere(root: Path) -> None:
    write(root.parent / "elsewhere", {"kettle.py": "STOLEN = 1\n"})
    with serving(root) as service:
        (root / "src").rename(root / "old")
        (root / "src").symlink_to(root.parent / "elsewhere")
        result = call(service, "read_passage", path="src/kettle.py")
    assert result.structured_content["state"] == "stored"
    assert "STOLEN" not in text(result)


def test_a_refusal_says_why_and_what_is_there(root: Path) -> None:
    with serving(root) as service:
        secret, guess, beyond, cell, neither, backwards = calls(
            service,
            ("read_passage", {"path": ".env"}),
            ("read_passage", {"path": "lib/kettle.py"}),
            ("read_passage", {"path": "src/kettle.py:900"}),
            ("read_passage", {"path": "lab/descale.ipynb", "cell": 9}),
            ("read_passage", {}),
            ("read_passage", {"path": "src/kettle.py", "first_line": 5, "last_line": 2}),
        )
    assert "may hold secrets" in text(secret)
    assert "There is: src/kettle.py" in text(guess)
    assert "Its lines are 1-6" in text(beyond)
    assert "Its cells go from 0 to 1" in text(cell)
    assert "needs a path or a hash" in text(neither)
    assert "line 2 is before line 5" in text(backwards)
    assert all(each.is_error for each in (secret, guess, beyond, cell, neither, backwards))


def test_another_revision_is_read_from_git(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.md": "# Old\n\nold words\n"})
    write(root, {"a.md": "# New\n\nnew words\n"})
    commit(root)
    with serving(root, rev="HEAD~1") as service:
        found, read = calls(service, ("semantic_search", {"query": "words"}), ("read_passage", {"path": "a.md"}))
    assert found.structured_content["hits"][0]["text"].strip() == "# Old\n\nold words"
    assert read.structured_content["text"] == "# Old\n\nold words"


def test_tickets_and_pages_of_fossil_are_read_by_what_hits_say(sample: SampleRepository, tmp_path: Path) -> None:
    repository = tmp_path / "copy.fossil"
    repository.write_bytes(sample.repository.read_bytes())
    with serving(repository) as service:
        for kind in ("ticket", "wiki", "forum", "technote"):
            (hit, *_) = call(service, "semantic_search", query="the", kind=kind, k=1).structured_content["hits"]
            named = {"path": hit["path"]} if hit["path"] else {"hash": hit["hash"]}
            read = call(service, "read_passage", **named)
            assert not read.is_error, text(read)
            assert read.structured_content["hash"] == hit["hash"]
            assert hit["text"].strip().split("\n")[0] in read.structured_content["text"]


def test_wrong_arguments_are_results_that_a_model_can_read(root: Path) -> None:
    with serving(root) as service:
        results = calls(
            service,
            ("semantic_search", {}),
            ("semantic_search", {"query": " "}),
            ("semantic_search", {"query": "x", "kind": "docs"}),
            ("semantic_search", {"query": "x", "mode": "exact"}),
            ("semantic_search", {"query": "x", "k": 0}),
            ("semantic_search", {"query": "x", "k": 101}),
            ("semantic_search", {"query": "x", "k": "5"}),
            ("semantic_search", {"query": "x", "limit": 5}),
            ("semantic_search", {"query": "x" * 10_001}),
            ("semantic_search", {"query": "x", "corpus": "nope"}),
            ("semantic_search", {"query": "x", "project": "nope"}),
        )
    for result in results:
        assert result.is_error
        assert (result.meta or {})[CODE] == INVALID_PARAMS
        assert result.structured_content is None
        assert "→" in text(result)
    assert "There is: code, docs" in text(results[-2])


def test_an_unknown_tool_is_an_error_of_the_protocol(root: Path) -> None:
    async def run(service: WarmIndex) -> MCPError:
        async with Client(make_server(service)) as client:
            with pytest.raises(MCPError, match="there is no tool 'grep'") as caught:
                await client.call_tool("grep", {"query": "x"})
        return caught.value

    with serving(root) as service:
        assert anyio.run(run, service).code == INVALID_PARAMS


def test_a_bug_is_an_answer_and_the_server_goes_on(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Answer:
        raise ZeroDivisionError("oops")

    with serving(root) as service:
        with monkeypatch.context() as patch:
            patch.setattr(Index, "search", broken)
            failed = call(service, "semantic_search", query="water")
        assert not call(service, "semantic_search", query="water").is_error
    assert failed.is_error
    assert "unexpected error: ZeroDivisionError: oops" in text(failed)
    assert "ZeroDivisionError" in caplog.text


def test_an_index_that_comes_changes_and_goes_is_noticed(root: Path) -> None:
    def state(service: WarmIndex) -> tuple[str, bool, list[str]]:
        found, status = calls(service, ("semantic_search", {"query": "teapot"}), ("index_status", {}))
        hits = found.structured_content["hits"]
        return found.structured_content["mode"], status.structured_content["exists"], [hit["path"] for hit in hits[:1]]

    with serving(root, build=False) as service:
        assert state(service)[:2] == ("keyword", False)
        with outcrop.open(root, settings=HASH) as index:
            index.build()
            assert state(service)[:2] == ("hybrid", True)
            write(root, {"teapot.md": "# Teapot\n\nA teapot.\n"})
            index.build()
            assert state(service) == ("hybrid", True, ["teapot.md"])
            index.build(rebuild=True)
            assert state(service) == ("hybrid", True, ["teapot.md"])
            index.clear()
        assert state(service)[:2] == ("keyword", False)
        with outcrop.open(root, settings=HASH) as index:
            index.build()
        assert state(service) == ("hybrid", True, ["teapot.md"])


class SlowEmbedder:
    """The index's own embedder, once it may."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.may = inner, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def embed_queries(self, texts: Any) -> Any:
        assert self.may.wait(60)
        return self.inner.embed_queries(texts)


def test_words_answer_while_the_model_loads_and_say_so(root: Path) -> None:
    embedders: list[SlowEmbedder] = []

    def open_slowly() -> Index:
        index = outcrop.open(root, settings=HASH)
        embedders.append(SlowEmbedder(index.embedder))
        index.embedder = embedders[-1]
        return index

    with outcrop.open(root, settings=HASH) as index:
        index.build()
    service = WarmIndex(open_slowly, timeout=0.05)
    service.start()
    try:
        early, words, status = calls(
            service,
            ("semantic_search", {"query": "boil water"}),
            ("semantic_search", {"query": "boil water", "mode": "keyword"}),
            ("index_status", {}),
        )
        assert (early.structured_content["mode"], early.structured_content["reason"]) == ("keyword", LOADING)
        assert early.structured_content["hits"][0]["path"] == "src/kettle.py"
        assert LOADING in text(early)
        assert words.structured_content["reason"] is None
        assert status.structured_content["ready"] is False
        embedders[0].may.set()
        assert service._ready.wait(60)
        late, status = calls(service, ("semantic_search", {"query": "boil water"}), ("index_status", {}))
        assert (late.structured_content["mode"], late.structured_content["reason"]) == ("hybrid", None)
        assert status.structured_content["ready"] is True
        assert len(embedders) == 1
    finally:
        embedders[0].may.set()
        service.close()


def test_a_model_that_cannot_be_loaded_is_named_in_the_answer(root: Path) -> None:
    class Missing(SlowEmbedder):
        def embed_queries(self, texts: Any) -> Any:
            raise EmbedderUnavailable("the weights are gone", "Install them")

    def open_without() -> Index:
        index = outcrop.open(root, settings=HASH)
        index.embedder = Missing(index.embedder)
        return index

    with outcrop.open(root, settings=HASH) as index:
        index.build()
    service = WarmIndex(open_without)
    try:
        result = call(service, "semantic_search", query="boil water")
    finally:
        service.close()
    assert result.structured_content["mode"] == "keyword"
    assert "the weights are gone" in text(result)


def test_nothing_is_sent_to_a_server_before_there_is_a_question(root: Path) -> None:
    remote = {"embedder": "ollama", "endpoint_url": "http://127.0.0.1:9"}
    service = WarmIndex(lambda: outcrop.open(root, settings=remote))
    service.start()
    try:
        assert service.index().embedder.address is not None
        assert service.is_ready
        assert service._loader is None
    finally:
        service.close()


def test_settings_that_change_are_noticed(root: Path) -> None:
    current = [dict(HASH)]
    opened: list[Index] = []

    def open_now() -> Index:
        opened.append(outcrop.open(root, settings=current[0]))
        return opened[-1]

    service = WarmIndex(open_now, is_current=lambda index: index.settings.dim == current[0].get("dim"))
    try:
        before = call(service, "index_status").structured_content["embedder"]
        current[0] = HASH | {"dim": 64}
        after = call(service, "index_status").structured_content["embedder"]
    finally:
        service.close()
    assert (before, after) == ("hash-768", "hash-64-64")
    assert len(opened) == 2


def test_a_cancelled_call_leaves_the_server_answering(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, may = threading.Event(), threading.Event()
    real = Index.search

    def slow(self: Index, query: str, **rest: Any) -> Answer:
        if query == "slow":
            started.set()
            may.wait(60)
        return real(self, query, **rest)

    monkeypatch.setattr(Index, "search", slow)

    async def run(service: WarmIndex) -> CallToolResult:
        async with Client(make_server(service), mode="legacy") as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "semantic_search", {"query": "slow"})
            await anyio.to_thread.run_sync(started.wait, 60)
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                result = await client.call_tool("semantic_search", {"query": "water"})
                may.set()
        return result

    with serving(root) as service:
        assert not anyio.run(run, service).is_error


def test_many_calls_at_once_are_all_answered(root: Path) -> None:
    questions = ["boil water", "pour a cup", "install from source", "LINE_7", "descale with vinegar"] * 8

    async def run(service: WarmIndex) -> list[Any]:
        results: list[Any] = [None] * len(questions)

        async def ask(at: int) -> None:
            results[at] = (
                await client.call_tool("semantic_search", {"query": questions[at], "k": 2})
            ).structured_content

        async with Client(make_server(service)) as client, anyio.create_task_group() as group:
            for at in range(len(questions)):
                group.start_soon(ask, at)
        return results

    with serving(root) as service, outcrop.open(root, settings=HASH) as index:
        for question, found in zip(questions, anyio.run(run, service), strict=True):
            assert found == as_json(index.search(question, k=2))


def test_the_patience_is_shorter_than_any_clients() -> None:
    assert warm_index.MODEL_TIMEOUT <= 5


def test_copies_are_named_as_read_passage_takes_them() -> None:
    copies = tuple(Copy(Kind.DOC, "", f"docs/{n}.md", "0" * 40, (n, n + 1)) for n in range(1, 5))
    hit = Hit(0.5, Kind.DOC, "", "a.md", "1" * 40, "The text.", (1, 2), None, ("a.md",), ("docs",), Mode.HYBRID, "text")
    other = Copy(Kind.CODE, "numpy", "lab/x.ipynb", "0" * 40, (1, 9), 3)
    answer = Answer(Mode.HYBRID, None, None, "s", (replace(hit, copies=copies), replace(hit, copies=(other,))))
    many = "   nearly the same at docs/1.md:1-2, docs/2.md:2-3, docs/3.md:3-4 and 1 more"
    one = "   nearly the same at lab/x.ipynb cell 3:1-9 project numpy"
    assert answer_text(answer, full=False).splitlines()[3::3] == [many, one]
    whole = answer_text(answer, full=True)
    assert f"1. a.md:1-2 doc 0.50\n{many}\nThe text.\n\n2. a.md:1-2 doc 0.50\n{one}\nThe text." in whole


def test_a_mistyped_word_is_said(root: Path) -> None:
    with serving(root) as service:
        result = call(service, "semantic_search", query="kettel", k=1)
    assert "; kettel is not in the index; the search used kettle" in text(result).splitlines()[0]
    assert result.structured_content["corrected"] == {"kettel": "kettle"}


def test_a_hit_of_another_project_is_named_with_it() -> None:
    hit = Hit(0.5, Kind.API, "numpy", "lib.py", "0" * 40, "x", (1, 2), "f", ("lib.py",), ("code",), Mode.HYBRID, "x")
    answer = Answer(Mode.HYBRID, None, None, "s", (hit, replace(hit, project="", path=None)))
    _, first, _, second, _ = answer_text(answer, full=False).splitlines()
    assert first == "1. lib.py:1-2 api project numpy f 0.50"
    assert second == f"2. {'0' * 40}:1-2 api f 0.50"

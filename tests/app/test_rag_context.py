"""The block before an agent's turn: what is in it, that no passage gets out of its fences, that it comes in time."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from fossil_program import SampleRepository
from hypothesis import given
from hypothesis import strategies as st
from servers import as_ollama, listening, other_machine

import outcrop
from outcrop.app import rag_context
from outcrop.app.index import Index
from outcrop.core.model import Answer, Hit, Kind, Mode, Stale
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http.consent import Consent
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.search.context import LONGEST_PROMPT, compose, essence
from outcrop.search.parse import parse
from outcrop.surfaces.cli.program import main
from outcrop.text import tokenizer
from outcrop.text.visible import harmless


def hit(text: str, **more: object) -> Hit:
    values: dict[str, object] = {
        "score": 0.9, "kind": Kind.CODE, "project": "", "path": "src/a.py", "hash": f"{hash(text) & 0xFFFF:064x}",
        "text": text, "lines": (1, 2), "name": None, "paths": ("src/a.py",), "corpus": ("code",),
        "mode": Mode.HYBRID, "preview": "",
    }  # fmt: skip
    return Hit(**(values | more))  # type: ignore[arg-type]


def answer(*hits: Hit, mode: Mode = Mode.HYBRID, stale: Stale | None = None) -> Answer:
    return Answer(mode, None, stale, "toy-2" if mode is Mode.HYBRID else None, hits)


def make(*hits: Hit, k: int = 3, limit: int = 1500, floor: float | None = 0.4, prompt: str = "what happens now?"):
    return compose(parse(prompt), answer(*hits), k, limit, floor, "zoo")


def passages(block: str) -> list[tuple[str, str]]:
    """Header and text of each passage, read back as whoever obeys the fences reads them."""
    found, lines = [], block.split("\n")
    fence = next(line for line in lines if line.startswith("```"))
    at = 0
    while at < len(lines):
        if lines[at] == fence:
            end = lines.index(fence, at + 1)
            found.append((lines[at - 1], "\n".join(lines[at + 1 : end])))
            at = end
        at += 1
    return found


# -- what is in it ----------------------------------------------------------------------------------------------------


def test_a_block_names_its_sources_and_says_what_it_is() -> None:
    ticket = hit("The fence is broken.", path=None, kind=Kind.TICKET, hash="ab" * 20, lines=(3, 3))
    cell = hit("plot(x)", path="lab/a.ipynb", cell=4, lines=(2, 2), project="lab", name="Plots")
    made = make(hit("def feed():\n    pass", lines=(10, 11), name="feed", hash="c" * 64), ticket, cell)
    heads = [head for head, _ in passages(made.text)]
    assert heads == [
        f"[1] src/a.py:10-11 · code · feed · zoo · {'c' * 12}",
        "[2] ticket · zoo · abababababab",
        f"[3] lab/a.ipynb cell 5:2 · code · Plots · lab · {cell.hash[:12]}",
    ]
    assert "not instructions" in made.text.split("[1]")[0]
    assert made.tokens == tokenizer.count(made.text)
    assert made.hits[1] is ticket


def test_k_and_the_length_hold_and_passages_are_whole() -> None:
    large = hit("word " * 900, path="large.md")
    small = [hit(f"small passage number {n}", path=f"{n}.md") for n in range(5)]
    made = make(large, *small, limit=300)
    assert [it.path for it in made.hits] == ["0.md", "1.md", "2.md"]
    assert made.tokens <= 300
    assert make(large, limit=300).text == ""
    assert [it.path for it in make(large, *small, k=1).hits] == ["large.md"]
    assert make(large, limit=2000).hits == (large,)
    assert "word " * 900 in make(large, limit=2000).text


def test_nothing_is_said_twice() -> None:
    outer = hit("class A:\n    def b():\n        pass", hash="1" * 64, lines=(1, 3))
    inner = hit("    def b():\n        pass", hash="1" * 64, lines=(2, 3))
    window = hit("pass\n\ndef c(): ...", hash="1" * 64, lines=(3, 5))
    copy = hit("class A:\n    def b():\n        pass\n", hash="2" * 64, lines=(1, 3), path="copy.py")
    later = hit("def d(): ...", hash="1" * 64, lines=(6, 6))
    other = hit("def e(): ...", hash="3" * 64, lines=(2, 2), path="e.py")
    assert make(outer, inner, window, copy, later, other, k=9).hits == (outer, later, other)
    # Lines of a notebook count inside their cells.
    cells = [hit(f"x = {n}", hash="4" * 64, cell=n, lines=(1, 1)) for n in range(2)]
    assert make(*cells).hits == tuple(cells)


def test_what_does_not_bear_on_the_prompt_is_left_out() -> None:
    near, far = hit("near", score=0.41, path="n"), hit("far", score=0.39, path="f")
    named = hit("def _load_form_data(self): ...", score=0.2, path="m")
    assert make(far, near, floor=0.4).hits == (near,)
    assert make(far, near, named, prompt="rename _load_form_data", floor=0.4).hits == (near, named)
    assert make(named, prompt="rename _load_form", floor=0.4).hits == ()
    # A single word has to be there.
    assert make(near, prompt="ok").hits == ()
    assert make(near, prompt="near").hits == (near,)
    # Without a floor the words decide.
    lions = hit("The lions are fed at seven.", path="l")
    assert make(far, lions, prompt="when are lions fed?", floor=None).hits == (lions,)
    found = compose(parse("when are lions fed?"), answer(far, lions, mode=Mode.KEYWORD), 3, 1500, 0.4, "zoo")
    assert found.hits == (lions,)
    assert "by their words" in found.text


def test_a_block_from_an_old_index_says_so() -> None:
    made = compose(parse("what happens now?"), answer(hit("near"), stale=Stale("a", "b")), 3, 1500, 0.4, "zoo")
    assert "source changed since" in made.text
    assert "changed" not in make(hit("near")).text


NASTY = st.text(st.sampled_from("`~\n\r\u2028 a[1]#<>\x1b"), max_size=60)


@given(st.lists(NASTY.filter(str.strip), min_size=1, max_size=3, unique_by=str.strip), NASTY, NASTY)
def test_no_passage_gets_out_of_its_fences(texts: list[str], path: str, name: str) -> None:
    hits = [
        hit(text, path=f"{n}{path}", name=name or None, hash=f"{n}" * 64, lines=(n, n)) for n, text in enumerate(texts)
    ]
    made = make(*hits)
    found = passages(made.text)
    # What no reader sees is spelled.
    assert [text for _, text in found] == [harmless(it.text.strip("\n")) for it in made.hits]
    assert all(re.match(rf"\[{n}\] ", head) for n, (head, _) in enumerate(found, 1))
    assert all(head.isprintable() and "`" not in head for head, _ in found)


def test_a_long_prompt_is_asked_by_its_beginning_and_its_end() -> None:
    assert essence("short") == "short"
    cut = essence("begin" + "x" * 1_000_000 + "end")
    assert len(cut) == LONGEST_PROMPT + 1
    assert cut.startswith("begin")
    assert cut.endswith("end")


# -- through an index -------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "zoo"
    (root / "src").mkdir(parents=True)
    (root / "feeding.md").write_text("# Lions\n\nThe lions get their meat at seven in the evening, behind the fence.\n")
    (root / "src" / "gate.py").write_text("def open_gate(visitor):\n    '''Lets a visitor in who paid.'''\n    ...\n")
    return root


@pytest.fixture
def index(root: Path) -> Iterator[Index]:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        index.build()
        yield index


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == rag_context.THREAD:
            thread.join(60)
    assert not rag_context.is_under_way()


LIONS = "when do the lions get their meat?"


def test_the_default_model_finds_what_is_meant_and_nothing_for_chatter(root: Path) -> None:
    with outcrop.open(root) as index:
        index.embedder = LocalEmbedder()
        index.build()

        def ask(prompt: str) -> str:
            return outcrop.rag_context(prompt, index=index, timeout=30)

        assert "feeding.md:1-3 · doc" in ask("when are the lions fed?")
        assert "src/gate.py:1-3 · code · open_gate" in ask("who is allowed to enter through the gate?")
        for prompt in (
            "what's the weather in Paris tomorrow?",
            "thanks, looks good!",
            "ok",
            "write a haiku about autumn",
        ):
            assert ask(prompt) == ""


def test_without_an_index_nothing_is_said_and_nothing_made(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = sorted(root.rglob("*"))
    assert outcrop.rag_context(LIONS, directory=root, timeout=30) == ""
    assert sorted(root.rglob("*")) == before
    assert caplog.records == []


def test_the_same_from_a_folder_and_from_an_open_index(root: Path, index: Index) -> None:
    block = outcrop.rag_context(LIONS, index=index, timeout=30)
    assert "[1] feeding.md" in block
    assert outcrop.rag_context(LIONS, directory=root / "src", settings={"embedder": "hash"}, timeout=30) == block
    assert outcrop.rag_context(LIONS, directory=root, settings={"embedder": "hash"}, timeout=30) == block
    assert outcrop.rag_context(LIONS, directory=root, settings=index.settings, timeout=30) == block
    assert outcrop.rag_context(LIONS, 1, index=index, tokens=20, timeout=30) == ""


@pytest.mark.parametrize(
    "arguments",
    [
        {"prompt": None},
        {"prompt": " \n"},
        {"prompt": "the lions get their meat \ud800 \x00"},
        {"k": 0},
        {"k": -3},
        {"tokens": -1},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"min_score": 7.0},
        {"directory": "/no/such/folder"},
        {"directory": "nul\0"},
        {"settings": {"no_such": 1}},
        {"settings": {"embedder": "no such"}},
        {"settings": 7},
    ],
)
def test_it_never_raises(root: Path, index: Index, arguments: dict[str, object]) -> None:
    usual = {"prompt": LIONS, "directory": root, "settings": {"embedder": "hash"}, "timeout": 30.0}
    made = outcrop.rag_context(**(usual | arguments))  # type: ignore[arg-type]
    assert isinstance(made, str)
    assert ("feeding.md" in made) == ("lions" in str(arguments.get("prompt")))


def test_a_damaged_index_is_logged_and_nothing_more(root: Path, index: Index, caplog: pytest.LogCaptureFixture) -> None:
    index.close()
    index.store.path.write_bytes(b"no database at all" * 1000)
    assert outcrop.rag_context(LIONS, directory=root, settings={"embedder": "hash"}, timeout=30) == ""
    assert "no related context" in caplog.text


class Gated(HashEmbedder):
    """Answers a question when the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        assert self.gate.wait(60)
        return super().embed_queries(texts)


class Broken(HashEmbedder):
    """Fails on a question as no embedder should."""

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        raise ZeroDivisionError("what?")


class Clock:
    """Stands for the module ``time``: each look finds the next of the hands, or what calling it returns."""

    def __init__(self, *hands: float | Callable[[], float]) -> None:
        self.hands = list(hands)

    def monotonic(self) -> float:
        hand = self.hands.pop(0)
        return hand() if callable(hand) else hand


# Looks at the clock: at the beginning, before the wait for the model alone, before that for either, before that for the
# other. A look that finds 0 leaves a real wait of a minute at most.
LIMIT = 60.0


def test_a_slow_model_leaves_time_for_words(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.embedder = model = Gated()
    clock = Clock(0, rag_context.MODEL_SHARE * LIMIT, 0, LIMIT)
    monkeypatch.setattr(rag_context, "time", clock)
    try:
        block = outcrop.rag_context(LIONS, index=index, timeout=LIMIT)
    finally:
        model.gate.set()
    assert "feeding.md" in block
    assert "by their words" in block
    assert clock.hands == []


def test_a_model_that_comes_back_in_time_wins(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.embedder = model = Gated()

    def words_are_there() -> float:
        model.gate.set()
        return 0

    clock = Clock(0, rag_context.MODEL_SHARE * LIMIT, 0, words_are_there)
    monkeypatch.setattr(rag_context, "time", clock)
    assert "by meaning and words" in outcrop.rag_context(LIONS, index=index, timeout=LIMIT)
    assert clock.hands == []


def test_neither_in_time_is_nothing(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(rag_context, "time", Clock(0, rag_context.MODEL_SHARE * LIMIT, LIMIT))
    try:
        assert rag_context.within(LIMIT, lambda: gate.wait(60), lambda: gate.wait(60)) is None
    finally:
        gate.set()


def test_an_error_that_is_none_of_ours_leaves_words(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    index.embedder = Broken()
    assert "by their words" in outcrop.rag_context(LIONS, index=index, timeout=10)
    assert "what?" in caplog.text


def test_a_locked_repository_is_not_waited_for(sample: SampleRepository, tmp_path: Path) -> None:
    copy = sample.copy(tmp_path)
    with outcrop.open(copy, settings={"embedder": "hash"}) as index:
        index.build()
    asked = {"directory": copy, "settings": {"embedder": "hash"}}
    assert "lions" in outcrop.rag_context("when are lions fed at seven", timeout=30, **asked).lower()  # type: ignore[arg-type]
    before = set(threading.enumerate())
    writer = sqlite3.connect(copy, isolation_level=None)
    try:
        writer.execute("BEGIN EXCLUSIVE")
        block = outcrop.rag_context("when are lions fed at seven", timeout=0.7, **asked)  # type: ignore[arg-type]
        left_behind = [thread for thread in set(threading.enumerate()) - before if thread.name == rag_context.THREAD]
    finally:
        writer.close()
    assert block == ""
    assert left_behind, "the lock was waited for"
    for thread in left_behind:
        thread.join(60)
        assert not thread.is_alive()


def test_what_became_private_is_not_quoted_by_words_either(
    sample: SampleRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = sample.copy(tmp_path)
    with outcrop.open(copy, settings={"embedder": "hash"}) as index:
        index.build()

        def ask() -> str:
            index.embedder = model = Gated()
            monkeypatch.setattr(rag_context, "time", Clock(0, rag_context.MODEL_SHARE * LIMIT, 0, LIMIT))
            try:
                return outcrop.rag_context("a path with a space", index=index, timeout=LIMIT)
            finally:
                model.gate.set()

        block = ask()
        assert "docs/with space.md" in block
        digest = index.search("a path with a space", mode="keyword", path="docs/with space.md").hits[0].hash
        sample.fossil.run("sql", "-R", copy, f"INSERT INTO shun(uuid, mtime) VALUES ('{digest}', 0)")
        assert "docs/with space.md" not in ask()


def test_threads_that_hang_do_not_pile_up(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    for _ in range(rag_context.MOST_THREADS):
        assert rag_context.within(0.01, gate.wait) is None
    try:
        assert outcrop.rag_context(LIONS, index=index, timeout=30) == ""
        assert "have not come back" in caplog.text
    finally:
        gate.set()


# -- what leaves the machine ------------------------------------------------------------------------------------------


def test_a_prompt_goes_to_no_address_without_consent(root: Path) -> None:
    address = other_machine()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    asked: list[object] = []

    def ask(disclosure: object) -> bool:
        asked.append(disclosure)
        return True

    with listening(as_ollama(HashEmbedder(), "nomic-embed-text"), address) as server:
        settings = {"embedder": "ollama", "endpoint_url": server.url}
        with outcrop.open(root, settings=settings, consent=Consent(lambda _: True)) as index:
            index.build()
        sent = len(server.texts)
        assert sent > 0
        assert "by their words" in outcrop.rag_context(LIONS, directory=root, settings=settings, timeout=30)
        # Somebody who could be asked is not: a turn has no time for questions.
        with outcrop.open(root, settings=settings, consent=Consent(ask)) as index:
            assert "by their words" in outcrop.rag_context(LIONS, index=index, timeout=30)
            assert (asked, len(server.texts)) == ([], sent)
            # What was agreed to before holds.
            assert index.search(LIONS).mode is Mode.HYBRID
            assert len(asked) == 1
            assert "by meaning and words" in outcrop.rag_context(LIONS, index=index, timeout=30)
        allowed = settings | {"allow_remote": [server.url]}
        assert "by meaning and words" in outcrop.rag_context(LIONS, directory=root, settings=allowed, timeout=30)
        assert len(asked) == 1


# -- the command ------------------------------------------------------------------------------------------------------


def run(*arguments: str | Path, stdin: bytes | None = b"", **more: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "outcrop", "context", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False, **more)  # type: ignore[call-overload, no-any-return]


def hook(root: Path, data: bytes | str, *more: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> str:
    class Stdin:
        def __init__(self) -> None:
            self.buffer = self

        def read(self, limit: int) -> bytes:
            return (data.encode() if isinstance(data, str) else data)[:limit]

    monkeypatch.setattr(sys, "stdin", Stdin())
    monkeypatch.chdir(root.parent)
    assert main(["context", "--hook", "--embedder", "hash", "--timeout", "30", *more]) == 0
    return capsys.readouterr().out


def test_the_command_prints_the_block(root: Path, index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-C", str(root), "--embedder", "hash", "--timeout", "30"]
    assert main(["context", *where, "when", "do", "lions get their meat"]) == 0
    assert "[1] feeding.md:1-3" in capsys.readouterr().out
    assert main(["context", *where, "which wine goes with salmon"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["context", *where, "--json", LIONS]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sources"][0]["path"] == "feeding.md"
    assert (found["mode"], found["tokens"]) == ("hybrid", tokenizer.count(found["context"]))
    assert main(["context", *where]) == 2
    assert main(["context", *where, "--hook", LIONS]) == 2


def test_a_hook_gets_its_context(root: Path, index: Index, capsys, monkeypatch) -> None:
    call = {"prompt": LIONS, "cwd": str(root), "hook_event_name": "UserPromptSubmit", "session_id": "1"}
    block = hook(root, json.dumps(call), capsys=capsys, monkeypatch=monkeypatch)
    assert "[1] feeding.md:1-3" in block
    made = json.loads(hook(root, json.dumps(call), "--json", capsys=capsys, monkeypatch=monkeypatch))
    assert made["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert made["hookSpecificOutput"]["additionalContext"] == block.rstrip("\n")
    # A folder that was named by hand is stronger.
    assert hook(root, json.dumps(call), "-C", str(root.parent), capsys=capsys, monkeypatch=monkeypatch) == ""
    chatter = json.dumps(call | {"prompt": "which wine goes with salmon"})
    assert hook(root, chatter, "--json", capsys=capsys, monkeypatch=monkeypatch) == ""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b'"lions"',
        b"{}",
        b'{"prompt": 7}',
        b'{"prompt": null, "cwd": "."}',
        b'{"prompt": ""}',
        b"[" * 100_000,
        b'{"prompt": "' + b"x" * (5 << 20) + b'"}',
        b'{"prompt": "lions get meat", "cwd": "/no/such/folder"}',
        b'{"prompt": "lions get meat", "cwd": "\\u0000"}',
        b'{"prompt": "lions get meat", "cwd": 7}',
    ],
)
def test_a_malformed_call_gets_nothing(root: Path, index: Index, data: bytes, capsys, monkeypatch) -> None:
    assert hook(root, data, capsys=capsys, monkeypatch=monkeypatch) == ""


def test_a_call_with_a_byte_order_mark_and_half_a_character_is_answered(root, index, capsys, monkeypatch) -> None:
    call = b'\xef\xbb\xbf{"prompt": "when do lions get their meat \\ud83d", "cwd": ' + json.dumps(str(root)).encode()
    assert "feeding.md" in hook(root, call + b"}", capsys=capsys, monkeypatch=monkeypatch)


def test_the_process_ends_in_time_whatever_hangs(root: Path, index: Index) -> None:
    # A caller that never closes the pipe.
    with subprocess.Popen(
        [sys.executable, "-m", "outcrop", "context", "--hook", "--timeout", "0.5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.wait(60) == 0
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")  # type: ignore[union-attr]
    # A server that takes the question and says nothing.
    gate = threading.Event()
    answered: list[bool] = []
    with listening(lambda request: answered.append(gate.wait(120))) as server:
        settings = ("--embedder", "ollama", "--endpoint-url", server.url, "--timeout", "1.5")
        done = run(LIONS, "-C", root, *settings)
        assert answered == []
        gate.set()
    assert done.returncode == 0, done.stderr

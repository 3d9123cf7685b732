"""The user's own settings file is broken: what needs none of it works, what it may forbid is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import git, make_repository, write
from servers import as_ollama, listening

import outcrop
from outcrop.core.model import Mode, Record
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http.consent import Consent
from outcrop.errors import BadConfig, EgressRefused

MODEL = HashEmbedder(64)


def unreadable(path: Path) -> None:
    # Also for root, who may read everything: a link that leads to itself.
    path.symlink_to(path.name)


BROKEN: dict[str, Callable[[Path], object]] = {
    "no TOML": lambda path: path.write_text("embedder = \n"),
    "no text": lambda path: path.write_bytes(b"model = '\xff'\n"),
    "unknown setting": lambda path: path.write_text("modle = 'x'\n"),
    "impossible value": lambda path: path.write_text("dim = 'many'\n"),
    "a folder": lambda path: path.mkdir(),
    "unreadable": unreadable,
    "too large": lambda path: path.write_bytes(b"#" * (2 << 20)),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repository(tmp_path / "works", {"a.md": "# Alpha\n\nzebra crossing\n", "b.md": "# Beta\n\nlion\n"})
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        index.build()
    return root


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    BROKEN[request.param](path)
    monkeypatch.setenv("OUTCROP_CONFIG", str(path))
    return path


@pytest.fixture
def invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    BROKEN["no TOML"](path)
    monkeypatch.setenv("OUTCROP_CONFIG", str(path))
    return path


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "outcrop", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=120)


def test_searching_goes_on_and_says_whose_fault_it_is(root: Path, broken: Path, caplog) -> None:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        assert caplog.text.count(str(broken)) == 1
        assert "nothing is built, changed or sent" in caplog.text
        answer = index.search("zebra")
        assert (answer.mode, answer.reason, answer.hits[0].path) == (Mode.HYBRID, None, "a.md")
        assert index.status().exists
    with outcrop.open(root) as index:
        answer = index.search("zebra")
        assert (answer.mode, answer.hits[0].path) == (Mode.KEYWORD, "a.md")
        assert answer.reason is not None
        assert answer.reason.startswith(str(broken)) or str(broken) in answer.reason
        assert "so that its settings do not count; the index holds vectors of hash-768" in answer.reason


@pytest.mark.parametrize(
    "act",
    [
        lambda index: index.build(),
        lambda index: index.build(rebuild=True),
        lambda index: index.check(repair=True),
        lambda index: index.plan(),
        lambda index: index.upsert([Record("a", "text")]),
        lambda index: index.remove(["a"]),
        lambda index: index.clear(),
        lambda index: index.normalize(),
        lambda index: index.export(),
        lambda index: index.import_blobs(),
        lambda index: index.push(),
        lambda index: index.pull(),
    ],
)
def test_what_builds_changes_or_sends_is_refused(root: Path, invalid: Path, act: Callable) -> None:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        before = index.store.path.read_bytes(), git(root, "for-each-ref")
        with pytest.raises(BadConfig, match=r"config\.toml is not valid TOML"):
            act(index)
        assert (index.store.path.read_bytes(), git(root, "for-each-ref")) == before


def test_files_that_the_user_may_exclude_are_not_read_without_an_index(tmp_path: Path, invalid: Path) -> None:
    write(tmp_path / "notes", {"a.md": "zebra"})
    with (
        outcrop.open(tmp_path / "notes", settings={"embedder": "hash"}) as index,
        pytest.raises(BadConfig, match="not valid TOML"),
    ):
        index.search("zebra")


def test_nothing_is_sent_even_to_this_machine_and_with_consent(root: Path, invalid: Path) -> None:
    with listening(as_ollama(MODEL, "m")) as server:
        settings = {"embedder": "ollama", "model": "m", "dim": 64, "endpoint_url": server.url}
        with outcrop.open(
            root, settings=settings | {"allow_remote": (server.url,)}, consent=Consent(lambda _: True)
        ) as index:
            with pytest.raises(EgressRefused, match=r"nothing is sent to .* is not valid TOML"):
                index.embedder.embed_queries(["zebra"])
            with pytest.raises(EgressRefused):
                index.match(["a"], ["b"])
            assert index.search("zebra").mode is Mode.KEYWORD
        # Set right, it is sent.
        invalid.write_text("")
        with outcrop.open(root, settings=settings) as index:
            assert index.embedder.embed_queries(["zebra"]).shape == (1, 64)
        assert [request.texts for request in server.requests] == [["zebra"]]


def test_a_repository_does_not_profit_from_it(root: Path, invalid: Path) -> None:
    """Its file names an embedder, which the user's file would have replaced."""
    with listening(as_ollama(MODEL, "m")) as server:
        write(root, {"outcrop.toml": f"embedder = 'ollama'\nmodel = 'm'\ndim = 64\nendpoint_url = '{server.url}'\n"})
        found = run(root, "search", "zebra")
        assert (found.returncode, "a.md" in found.stdout, server.requests) == (0, True, [])
        assert run(root, "index").returncode == 2
        assert server.requests == []


def test_a_repositorys_own_broken_file_is_an_error_as_before(root: Path, invalid: Path) -> None:
    write(root, {"outcrop.toml": "dim = 'many'\n"})
    with pytest.raises(BadConfig, match=r"outcrop\.toml|not valid TOML"):
        outcrop.open(root)


def test_commands(root: Path, invalid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    for arguments in (["search", "zebra"], ["status"], ["config"], ["embedder", "status"]):
        done = run(root, *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
        assert str(invalid) in done.stderr
    for arguments in (["index"], ["rebuild"], ["clear", "--all", "--yes"], ["push"]):
        done = run(root, *arguments)
        assert done.returncode != 0, arguments
        assert str(invalid) in done.stderr
    assert run(root, "search", "--help").stderr == ""
    assert json.loads(run(root, "status", "--json").stdout)["exists"]

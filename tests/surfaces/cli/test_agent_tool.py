"""``agent-tool`` and the commands by which vectors travel, as a person types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fossil_program import SampleRepository, query, serving

from outcrop.surfaces.cli import agent_tool
from outcrop.surfaces.cli.program import main as outcrop_main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(
    tmp_path: Path, sample: SampleRepository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a program in the folder of a repository's copy."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    for name, value in sample.fossil.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def run(program: str, *arguments: str) -> Result:
        capsys.readouterr()
        code = (agent_tool.main if program == "agent-tool" else outcrop_main)(list(arguments))
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return run


@pytest.fixture
def zoo(tmp_path: Path, sample: SampleRepository) -> str:
    return sample.copy(tmp_path).name


def chunks_of(repository: Path) -> int:
    ((count,),) = query(repository, "SELECT count(*) FROM fx_vec_chunk")
    assert count > 50
    return int(count)


def test_the_five_commands(run: Run, zoo: str) -> None:
    assert "indexed 16 artifacts" in run("agent-tool", "vec-index", zoo).out
    found = run("agent-tool", "vec-search", "-C", zoo, "--kind=wiki", "-k", "1", "lions", "at", "seven")
    first, *text = found.out.splitlines()
    score, kind, project, path, digest = first.split("  ")
    assert (kind, project, path) == ("wiki", "-", "Feeding times")
    assert 0.4 < float(score) <= 1
    assert query(Path(zoo), "SELECT count(*) FROM blob WHERE uuid = ?", digest) == [(1,)]
    assert text == ["    # Lions", "", "    At seven.", ""]
    assert "semantic · hash-768" in found.err
    assert "rewrote 0 vectors and 0 blobs, 14 were fine" in run("agent-tool", "vec-normalize", zoo).out
    chunks = chunks_of(Path(zoo))
    run("outcrop", "clear", "-C", zoo, "--all", "--yes")
    imported = run("agent-tool", "vec-import", zoo).out
    assert f"imported {chunks} vectors of hash-768: 16 artifacts, {chunks} chunks" in imported
    assert f"{chunks} embedded" in run("agent-tool", "vec-rebuild", zoo).out


def test_scores_descend_and_a_ticket_has_no_path(run: Run, zoo: str) -> None:
    run("agent-tool", "vec-index", "-q", zoo)
    answer = json.loads(run("agent-tool", "vec-search", "-C", zoo, "--json", "-k", "30", "wood was ordered").out)
    scores = [hit["score"] for hit in answer["hits"]]
    assert answer["mode"] == "semantic"
    assert scores == sorted(scores, reverse=True)
    assert {"score", "kind", "project", "path", "hash", "text"} <= answer["hits"][0].keys()
    assert (answer["hits"][0]["kind"], answer["hits"][0]["path"]) == ("ticket", None)
    line = run("agent-tool", "vec-search", "-C", zoo, "-k", "1", "wood was ordered").out.splitlines()[0]
    assert line.split("  ")[1:4] == ["ticket", "-", "-"]


def test_help_names_its_own_commands(run: Run) -> None:
    listed = run("agent-tool", "--help").out
    for name in ("vec-index", "vec-import", "vec-normalize", "vec-rebuild", "vec-search"):
        assert name in listed
        examples = run("agent-tool", name, "--help").out.split("Examples:")[1]
        assert f"agent-tool {name}" in examples
        assert "outcrop " not in examples
    wrong = run("agent-tool", "vec-nothing")
    assert wrong.code == 2
    assert "agent-tool --help" in wrong.err


def test_the_program_is_installed_under_its_name() -> None:
    scripts = Path(__file__).parent.parent.parent.parent / "pyproject.toml"
    assert 'agent-tool = "outcrop.surfaces.cli.entry:agent_tool"' in scripts.read_text("utf-8")


def test_push_and_pull(run: Run, zoo: str, sample: SampleRepository, tmp_path: Path) -> None:
    clone = tmp_path / "clone.fossil"
    for name, letters in (("dan", "gio"), ("eve", "gioy")):
        sample.fossil.run("user", "new", name, "", "secret", "-R", zoo, cwd=tmp_path)
        sample.fossil.run("user", "capabilities", name, letters, "-R", zoo, cwd=tmp_path)
    with serving(sample.fossil, tmp_path / zoo) as url:
        sample.fossil.run("clone", url, clone)
        run("outcrop", "index", "-q", "clone.fossil")
        dan, eve = (url.replace("//", f"//{name}:secret@") for name in ("dan", "eve"))
        refused = run("outcrop", "push", "-C", "clone.fossil", dan)
        assert (refused.code, refused.out) == (1, "sent 0 blobs, received 0 blobs\n")
        assert "capability y" in refused.err
        assert run("outcrop", "push", "-C", "clone.fossil", eve).out == "sent 15 blobs, received 0 blobs\n"
        # What was served has the vectors now, and needs no model for its index.
        assert f"imported {chunks_of(clone)} vectors" in run("outcrop", "import", zoo).out
        second = tmp_path / "second.fossil"
        sample.fossil.run("clone", url, second)
        pulled = run("outcrop", "pull", "-C", "second.fossil", url)
        assert pulled.out.splitlines()[0] == "sent 0 blobs, received 15 blobs"
        assert f"imported {chunks_of(clone)} vectors" in pulled.out
        away = run("outcrop", "push", "-C", "second.fossil", "http://x:hidden@127.0.0.1:1/")
    assert away.code == 1
    assert "could not reach" in away.err
    assert "hidden" not in away.err


def test_what_only_fossil_repositories_have(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for command in ("import", "push", "pull"):
        result = run("outcrop", command, "-C", "plain")
        assert (result.code, result.out) == (2, "")
        assert "travel with a Fossil or git repository" in result.err
    result = run("outcrop", "index", "--branch", "side", "plain")
    assert result.code == 2
    assert "no --branch" in result.err


def test_another_branch_is_asked_for_by_its_name(
    run: Run, zoo: str, sample: SampleRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("outcrop", "index", "-q", "--branch", "side", zoo)
    status = json.loads(run("outcrop", "status", "-C", zoo, "--branch", "side", "--json").out)
    assert (status["stale"], status["revision"].partition("+")[0]) == (False, sample.branch_tip)
    assert json.loads(run("outcrop", "status", "-C", zoo, "--json").out)["stale"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    shown = run(
        "outcrop", "search", "-C", f"../{zoo}", "--branch", "side", "--kind", "code", "-k", "1", "old_name renamed"
    )
    assert shown.out.startswith("src/old_name.py:1")
    assert "behind" not in shown.out

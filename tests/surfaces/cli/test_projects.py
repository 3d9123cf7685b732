"""``outcrop import-project`` and ``outcrop projects`` as people and programs type them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from python_packages import environment
from repositories import KETTLE, make_repository, write
from travel import Counting, built

from outcrop.surfaces.cli.program import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the program in a repository that has its own index."""
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    hub = make_repository(tmp_path / "hub", {"notes.md": "# Notes\n\nOur own words.\n"})
    built(hub)
    monkeypatch.chdir(hub)

    def call(*arguments: str) -> Result:
        capfd.readouterr()
        code = main(arguments)
        said = capfd.readouterr()
        return Result(code, said.out, said.err)

    return call


@pytest.fixture
def kettle(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "kettle", KETTLE)


def test_a_peer_comes_in_is_listed_refreshed_and_removed(run: Run, kettle: Path) -> None:
    refused = run("import-project", "../kettle")
    assert (refused.code, refused.out) == (1, "")
    assert "../kettle has no index" in refused.err
    assert "outcrop index -C ../kettle --embedder hash" in refused.err
    done = run("import-project", "../kettle", "--build")
    assert done.code == 0
    assert f"project kettle, from git {kettle}\n3 artifacts, 3 chunks of hash-768, no model was used" in done.out
    assert done.out.endswith("→ outcrop search --project kettle …\n")
    listed = run("projects").out
    assert f"git {kettle}" in listed
    assert "current" in listed
    found = run("search", "--project", "kettle", "--project", "", "boils water").out
    assert "kettle: README.md:1" in found
    assert "notes.md:1" in found
    assert "kettle" not in run("search", "--project", "", "boils water").out
    assert "of these, project kettle: 3 artifacts, 3 chunks → outcrop projects" in run("status").out
    assert run("projects", "refresh").out.startswith("kettle: up to date, 3 artifacts (")
    write(kettle, {"new.md": "New.\n"})
    behind = f"kettle: its peer changed and was not indexed since. Run: outcrop index -C {kettle} --embedder hash"
    assert behind in run("projects").out
    assert behind in run("projects", "refresh").out
    assert behind in run("import-project", "../kettle").out
    assert list(json.loads(run("projects", "refresh", "--json").out)["behind"]) == ["kettle"]
    built(kettle)
    assert run("projects", "refresh", "kettle").out.startswith("kettle: 1 new or changed, 3 unchanged, 0 removed (")
    gone = run("projects", "remove", "kettle")
    assert gone.code == 0
    assert gone.out.startswith("removed project kettle, ")
    assert run("projects").out == "no projects → outcrop import-project PEER\n"
    assert run("projects", "refresh").out == "no projects → outcrop import-project PEER\n"


def test_programs_get_json(run: Run, kettle: Path) -> None:
    built(kettle)
    done = json.loads(
        run("import-project", "../kettle", "--as", "tea", "--kind", "api", "--path", "src/**", "--json").out
    )
    (report,) = done["projects"]
    assert (report["name"], report["artifacts"], report["embedded"]) == ("tea", 1, 0)
    (status,) = json.loads(run("projects", "--json").out)["projects"]
    assert (status["name"], status["kind"], status["paths"], status["current"]) == ("tea", "api", ["src/**"], True)
    assert status["reason"] is None
    hits = json.loads(run("search", "--json", "boil", "--kind", "api").out)["hits"]
    assert [(hit["project"], hit["path"], hit["kind"]) for hit in hits] == [("tea", "src/boil.py", "api")]
    assert [each["name"] for each in json.loads(run("status", "--json").out)["projects"]] == ["tea"]
    kettle.rename(kettle.with_name("moved"))
    failed = run("projects", "refresh", "--json")
    assert failed.code == 1
    assert json.loads(failed.out)["projects"] == []
    assert "the peer of tea is gone" in json.loads(failed.out)["failed"]["tea"]
    assert "freed" in json.loads(run("clear", "--project", "tea", "--yes", "--json").out)
    assert json.loads(run("projects", "--json").out) == {"projects": []}


def test_one_peer_that_fails_keeps_no_other_from_its_refresh(run: Run, kettle: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "toaster", {"a.md": "Toast.\n"})
    for peer in (kettle, other):
        built(peer)
        assert run("import-project", str(peer)).code == 0
    kettle.rename(tmp_path / "moved")
    write(other, {"b.md": "More toast.\n"})
    built(other)
    done = run("projects", "refresh")
    assert done.code == 1
    assert "outcrop: the peer of kettle is gone" in done.err
    assert done.out.startswith("toaster: 1 new or changed")


def test_building_a_peer_never_moves_it_to_another_space(run: Run, kettle: Path) -> None:
    built(kettle, Counting(dim=64))
    refused = run("import-project", "../kettle", "--build")
    assert refused.code == 1
    assert "its index holds vectors of hash-64-64, and this one searches hash-768" in refused.err
    assert "hash-64-64" in run("status", "-C", "../kettle", "--dim", "64").out
    assert "hash-768" not in run("status", "-C", "../kettle", "--dim", "64").out


def test_what_has_to_be_run_in_a_peer_says_where(run: Run, kettle: Path) -> None:
    built(kettle)
    (kettle / ".git" / "outcrop" / "index.sqlite").write_bytes(b"rubbish" * 1000)
    refused = run("import-project", "../kettle")
    assert refused.code == 1
    assert "is damaged" in refused.err
    assert "outcrop rebuild -C ../kettle" in refused.err
    assert run("rebuild", "-C", "../kettle").code == 0
    assert run("import-project", "../kettle").code == 0


def test_packages(run: Run, tmp_path: Path) -> None:
    environment(tmp_path / "env", tmp_path / "python")
    python = ("--python-executable", str(tmp_path / "env"))
    done = run("import-project", "--python", "kettle", "--python", "stdlib", *python)
    assert done.code == 0
    assert f"project kettle-tools-2.4, from Kettle.Tools of {tmp_path / 'env'}\n3 artifacts, 10 chunks" in done.out
    assert "project python-3.11, from stdlib of" in done.out
    assert "kettle-tools-2.4: kettle/_boil.py:4" in run("search", "heat water until it boils").out
    assert run("projects", "refresh").out.count("up to date") == 2
    missing = run("import-project", "--python", "ketle-tools", *python)
    assert missing.code == 2
    assert "Did you mean: kettle-tools?" in missing.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "takes either PEER or --python"),
        (("../kettle", "--python", "numpy"), "takes either PEER or --python"),
        (("--python", "numpy", "--kind", "api"), "for a PEER, not for a package"),
        (("../kettle", "--python-executable", "x"), "--python-executable needs a package"),
        (("--python", "a", "--python", "b", "--as", "c"), "several packages cannot have one name"),
        (("../kettle", "--kind", "apis"), "there is no kind 'apis'"),
        (("../kettle", "--as", "My Kettle"), "cannot be named 'My Kettle'"),
    ],
)
def test_what_cannot_be_meant_is_said(run: Run, kettle: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run("import-project", *arguments)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("remove",), "takes the names of projects"),
        (("remove", "nothing"), "no project 'nothing' was imported here"),
        (("refresh", "nothing"), "no project 'nothing' was imported here"),
        (("list", "nothing"), "list takes no names"),
        (("drop",), "drop"),
    ],
)
def test_projects_that_are_not_there(run: Run, arguments: tuple[str, ...], words: str) -> None:
    result = run("projects", *arguments)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_clear_takes_one_thing(run: Run) -> None:
    result = run("clear", "--project", "a", "--corpus", "docs", "--yes")
    assert result.code == 2
    assert "exactly one of --corpus, --project, --space and --all" in result.err
    assert "no project 'a'" in run("clear", "--project", "a", "--yes").err

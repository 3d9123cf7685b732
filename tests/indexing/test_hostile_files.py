"""Files that stop their parser are indexed by lines, named, and not tried again; nothing else changes for the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from repositories import make_repository, write

import outcrop
from outcrop import Progress, chunking
from outcrop.chunking.workers import pool
from outcrop.chunking.workers.messages import Job
from outcrop.chunking.workers.process import WorkerProcess
from outcrop.core.model import Kind, Record
from outcrop.core.reports import CutByLines
from outcrop.indexing import ingest
from outcrop.surfaces.cli.program import main

# A YAML file that ends the process of tree-sitter-yaml 0.7, with words to find.
DEEP = "# the stork nests on the chimney\n" + "".join(" " * level + "a:\n" for level in range(300))
FILES: dict[str, str | bytes] = {
    "deep.yaml": DEEP,
    "boil.py": "def boil(water):\n    return heat(water, 100)\n",
    "readme.md": "# Kettle\n\nBoils water.\n",
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_pool", pool._Pool())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "kettle", FILES)
    return tmp_path / "kettle"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the texts that went to a worker process."""
    paths: list[str] = []
    send = WorkerProcess.send

    def recorded(self: WorkerProcess, jobs: Sequence[Job]) -> None:
        paths.extend(str(job[2]) for job in jobs)
        send(self, jobs)

    monkeypatch.setattr(WorkerProcess, "send", recorded)
    return paths


def opened(folder: Path) -> outcrop.Index:
    return outcrop.open(folder, settings={"embedder": "hash"})


def named(cut: Sequence[CutByLines]) -> list[str]:
    assert all("crashed or ran out of memory" in each.reason for each in cut)
    return [each.path for each in cut]


def test_it_is_found_named_and_not_tried_again(folder: Path, sent: list[str]) -> None:
    with opened(folder) as index:
        report = index.build()
        assert (report.added, report.complete, report.skipped) == (3, True, ())
        assert named(report.cut_by_lines) == ["deep.yaml"]
        hits = index.search("stork chimney", mode="keyword").hits
        assert (hits[0].path, hits[0].name, hits[0].lines[0]) == ("deep.yaml", None, 1)
        assert [hit.name for hit in index.search("boil heat", mode="keyword").hits][:1] == ["boil"]
        assert named(index.status().cut_by_lines) == ["deep.yaml"]
        sent.clear()
        (folder / "new.py").write_text("def new():\n    pass\n")
        again = index.build()
        assert (again.added, named(again.cut_by_lines)) == (1, ["deep.yaml"])
        assert sent == ["new.py"]
        (folder / "deep.yaml").write_text("a: 1\n")
        assert index.build().cut_by_lines == ()
        assert index.status().cut_by_lines == ()


def test_another_version_tries_again(folder: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as index:
        index.build()
        sent.clear()
        monkeypatch.setattr(chunking, "VERSION", chunking.VERSION + 1)
        assert named(index.build().cut_by_lines) == ["deep.yaml"]
        assert "deep.yaml" in sent


def test_a_build_of_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, {f"{n}.yaml": f"{DEEP}# {n}\n" for n in range(12)})
    with opened(tmp_path) as index:
        report = index.build()
        assert (report.added, report.complete) == (12, True)
        assert sorted(named(report.cut_by_lines)) == sorted(f"{n}.yaml" for n in range(12))
        assert index.build().added == 0


def test_a_dry_run_says_it(folder: Path) -> None:
    with opened(folder) as index:
        plan = index.plan()
        assert (plan.new, named(plan.cut_by_lines)) == (3, ["deep.yaml"])
        index.build()
        assert named(index.plan().cut_by_lines) == ["deep.yaml"]


def test_a_search_without_an_index(folder: Path) -> None:
    with opened(folder) as index:
        assert index.search("stork chimney").hits[0].path == "deep.yaml"


def test_several_paths_of_one_text_are_all_named(folder: Path) -> None:
    write(folder, {"copy/of.yaml": DEEP})
    with opened(folder) as index:
        assert named(index.build().cut_by_lines) == ["copy/of.yaml", "deep.yaml"]
        assert named(index.status().cut_by_lines) == ["copy/of.yaml", "deep.yaml"]


def test_records_and_documents_of_a_caller(folder: Path) -> None:
    record = Record("r", DEEP, kind=Kind.CODE, path="deep.yaml")
    with opened(folder) as index:
        assert index.upsert([record]).added == 1
        assert index.search("stork chimney", corpus="records").hits[0].record is not None
        documents = [{"text": DEEP, "path": "deep.yaml"}, {"text": "{", "path": "a.ipynb"}]
        deep, broken = outcrop.capabilities.call("vectors.chunk", {"documents": documents}, index=index)["documents"]
        assert deep["chunks"]
        assert deep["error"] is None
        assert "crashed" in deep["cut_by_lines"]
        assert "not valid JSON" in broken["error"]
        assert broken["cut_by_lines"] is None


def test_a_build_that_was_stopped_remembers_it(folder: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "WRITE_SECONDS", 0.0)
    write(folder, {f"z{n}.py": f"def f{n}():\n    pass\n" for n in range(20)})

    def stop(progress: Progress) -> None:
        if progress.phase == "chunking" and progress.done == progress.total:
            raise KeyboardInterrupt

    with opened(folder) as index:
        with pytest.raises(KeyboardInterrupt):
            index.build(progress=stop)
        sent.clear()
        report = index.build()
        assert report.complete
        assert named(report.cut_by_lines) == ["deep.yaml"]
        assert "deep.yaml" not in sent


def test_a_build_that_is_stopped_while_a_worker_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as index:
        with monkeypatch.context() as patch:
            patch.setattr(pool._Client, "wait", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                index.build()
        report = index.build()
        assert (report.added, named(report.cut_by_lines)) == (3, ["deep.yaml"])


def test_the_commands_name_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "cut by lines, without their structure: 1 file\n  deep.yaml: its parser crashed or ran out of memory (SIG"
    for command in ("index", "status"):
        assert main([command, "-C", str(folder), "--embedder", "hash"]) == 0
        assert said in capsys.readouterr().out
    assert main(["index", "-C", str(folder), "--embedder", "hash", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["cut_by_lines"]
    assert entry["path"] == "deep.yaml"


def test_a_repository(tmp_path: Path) -> None:
    make_repository(tmp_path / "r", FILES)
    with opened(tmp_path / "r") as index:
        assert named(index.build().cut_by_lines) == ["deep.yaml"]
        assert index.search("stork chimney", mode="keyword").hits[0].path == "deep.yaml"

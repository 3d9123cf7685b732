"""Vectors in a folder: whole files only, nobody else's folder, and an index from it with or without the source."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fossil_program import SampleRepository
from repositories import git, make_repository, write
from travel import Counting, ask, built, frozen, opened, scores

import outcrop
from outcrop.core.model import Kind, Mode, Skipped, SkipReason
from outcrop.core.rows import TransferCounts
from outcrop.errors import BlobError, StoreFull, UsageError
from outcrop.transfer import blob, members
from outcrop.transfer.directory import DirectoryTransfer, is_export

ONE, TWO = f"vec/{'1' * 64}.bin", f"vec/{'2' * 64}.bin"

FILES: dict[str, str | bytes] = {
    "README.md": "# Zoo\n\nAll animals live here.\n",
    "copy.md": "# Zoo\n\nAll animals live here.\n",
    "src/app.py": "".join(f"def step_{number}():\n    return {number}\n\n\n" for number in range(80)),
    "lab/roof.ipynb": json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {},
            "cells": [
                {"cell_type": "markdown", "id": "prose", "metadata": {}, "source": "# Roof\n\nThe sensor drips."},
                {
                    "cell_type": "code",
                    "id": "code",
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                    "source": "def clean(sensor):\n    return sensor",
                },
            ],
        }
    ),
}
QUESTIONS = ("all animals live", "def step_7", "sensor drips", "clean sensor")


@pytest.fixture(params=["folder", "git", "fossil"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A source of each type with an index."""
    if request.param == "fossil":
        sample: SampleRepository = request.getfixturevalue("sample")
        source = sample.copy(tmp_path)
    elif request.param == "git":
        source = make_repository(tmp_path / "zoo", FILES)
    else:
        source = tmp_path / "zoo"
        write(source, FILES)
    built(source)
    return source


class TestAnExport:
    def test_it_is_searched_without_its_source_as_with_it(self, place: Path, tmp_path: Path) -> None:
        export, empty = tmp_path / "export", tmp_path / "empty"
        empty.mkdir()
        with opened(place) as index:
            done = index.export(export)
            first = ask(index, *QUESTIONS)
        assert done.artifacts == done.written == len(list((export / "vec").glob("*.bin"))) > 2
        refusing = Counting(refuse=True)
        with opened(empty, refusing) as index:
            report = index.import_blobs(export)
            assert (report.missing, report.stale, report.refused) == (0, 0, ())
            second = ask(index, *QUESTIONS)
            assert index.search("animals", mode="keyword").mode is Mode.KEYWORD
        assert refusing.texts == []
        assert frozen(second) == frozen(first)
        assert scores(second) == pytest.approx(scores(first), abs=1e-6)
        assert {hit.kind for hit in second} == {hit.kind for hit in first}

    def test_it_is_imported_where_the_files_are(self, tmp_path: Path) -> None:
        zoo = make_repository(tmp_path / "zoo", FILES)
        git(tmp_path, "clone", "-q", str(zoo), "other")
        write(tmp_path / "other", {"README.md": "# Other\n"})
        built(zoo)
        with opened(zoo) as index:
            index.export(tmp_path / "export")
        with opened(tmp_path / "other", Counting(refuse=True)) as index:
            report = index.import_blobs(tmp_path / "export")
        assert (report.missing, report.refused) == (1, ())
        embedder = Counting()
        built(tmp_path / "other", embedder)
        assert embedder.texts == ["# Other"]

    def test_a_notebook_keeps_its_halves(self, tmp_path: Path) -> None:
        write(tmp_path / "zoo", FILES)
        built(tmp_path / "zoo")
        with opened(tmp_path / "zoo") as index:
            index.export(tmp_path / "export")
        (tmp_path / "empty").mkdir()
        with opened(tmp_path / "empty", Counting(refuse=True)) as index:
            index.import_blobs(tmp_path / "export")
            prose = index.search("sensor drips", corpus="docs", k=1).hits[0]
            code = index.search("clean sensor", corpus="code", k=1).hits[0]
        assert (prose.kind, prose.cell, prose.cell_id) == (Kind.DOC, 0, "prose")
        assert (code.kind, code.cell, code.name) == (Kind.CODE, 1, "Roof")

    def test_again_writes_only_what_changed(self, tmp_path: Path) -> None:
        zoo = make_repository(tmp_path / "zoo", FILES)
        built(zoo)
        export = tmp_path / "export"
        with opened(zoo) as index:
            index.export(export)
            before = {path: path.stat().st_mtime_ns for path in (export / "vec").iterdir()}
            again = index.export(export)
            assert (again.artifacts, again.written, again.withdrawn) == (3, 0, 0)
            assert {path: path.stat().st_mtime_ns for path in (export / "vec").iterdir()} == before
            git(zoo, "rm", "-q", "README.md", "copy.md")
            write(zoo, {"new.md": "# New\n"})
            git(zoo, "add", "-A")
            git(zoo, "commit", "-q", "-m", "x")
            index.build()
            again = index.export(export)
        assert (again.artifacts, again.written, again.withdrawn) == (3, 1, 1)

    def test_with_another_model_holds_nothing_of_the_first(self, tmp_path: Path) -> None:
        write(tmp_path / "zoo", FILES)
        built(tmp_path / "zoo")
        export = tmp_path / "export"
        with opened(tmp_path / "zoo") as index:
            index.export(export)
        narrow = Counting(dim=64)
        built(tmp_path / "zoo", narrow)
        with opened(tmp_path / "zoo", narrow) as index:
            assert index.export(export).written == 3
        (tmp_path / "empty").mkdir()
        with opened(tmp_path / "empty") as index, pytest.raises(outcrop.SpaceMismatch, match=r"hash-64.*hash-768"):
            index.import_blobs(export)
        with opened(tmp_path / "empty", Counting(refuse=True, dim=64)) as index:
            assert index.import_blobs(export).refused == ()

    def test_of_a_folder_leaves_out_what_is_gone_or_may_hold_secrets(self, tmp_path: Path) -> None:
        write(tmp_path / "zoo", {**FILES, "gone.md": "# SECRET and gone\n", ".env": "TOKEN=SECRET\n"})
        built(tmp_path / "zoo")
        (tmp_path / "zoo" / "gone.md").unlink()
        with opened(tmp_path / "zoo") as index:
            index.export(tmp_path / "export")
        assert not any(b"SECRET" in path.read_bytes() for path in (tmp_path / "export" / "vec").iterdir())

    def test_inside_the_folder_itself_is_not_indexed(self, tmp_path: Path) -> None:
        for name in ("folder", "repository"):
            write(tmp_path / name, {"a.md": "# A\n"})
        git(tmp_path / "repository", "init", "-q")
        git(tmp_path / "repository", "add", "-A")
        git(tmp_path / "repository", "commit", "-q", "-m", "x")
        for name in ("folder", "repository"):
            built(tmp_path / name)
            with opened(tmp_path / name) as index:
                index.export(tmp_path / name / "out")
                embedder = Counting()
                built(tmp_path / name, embedder)
                assert embedder.texts == []

    def test_what_became_private_in_fossil_is_not_in_it(self, sample: SampleRepository, tmp_path: Path) -> None:
        from fossil_program import query

        copy = sample.copy(tmp_path)
        built(copy)
        with opened(copy) as index:
            wiki = index.search("lions at seven", kind="wiki", k=1).hits[0]
            query(copy, "INSERT INTO shun VALUES (?, 0, '')", wiki.hash)
            index.export(tmp_path / "export")
        names = DirectoryTransfer(tmp_path / "export").names()
        assert blob.name_of(wiki.hash) not in names
        assert wiki.hash.encode() not in (tmp_path / "export" / members.NAME).read_bytes()


class TestAForeignFolder:
    @pytest.mark.parametrize(
        "files", [{"a.txt": "mine"}, {"vec/a.txt": "mine"}, {"vec/x.bin": "mine", "vec/space.json": "{}"}]
    )
    def test_it_is_left_alone(self, tmp_path: Path, files: dict[str, str | bytes]) -> None:
        write(tmp_path / "mine", files)
        with pytest.raises(UsageError, match="was left alone"):
            DirectoryTransfer(tmp_path / "mine").replace({ONE: b"VE01"}, [])
        assert {
            str(path.relative_to(tmp_path / "mine")): path.read_text()
            for path in (tmp_path / "mine").rglob("*")
            if path.is_file()
        } == files

    def test_a_file_a_link_and_one_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(UsageError, match="is not a folder"):
            DirectoryTransfer(tmp_path / "file").replace({ONE: b"VE01"}, [])
        (tmp_path / "linked").mkdir()
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "linked" / "vec").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(UsageError, match="was left alone"):
            DirectoryTransfer(tmp_path / "linked").replace({ONE: b"VE01"}, [])
        assert list((tmp_path / "elsewhere").iterdir()) == []
        with pytest.raises(StoreFull, match="cannot be written"):
            DirectoryTransfer(Path("/proc/nothing")).replace({ONE: b"VE01"}, [])

    def test_what_is_no_ordinary_file_is_passed_over(self, tmp_path: Path) -> None:
        vec = tmp_path / "vec"
        vec.mkdir()
        secret = tmp_path / "secret"
        secret.write_bytes(b"VE01 of somebody else")
        (vec / f"{'3' * 64}.bin").symlink_to(secret)
        (vec / f"{'4' * 64}.bin").mkdir()
        os.mkfifo(vec / f"{'5' * 64}.bin")
        (tmp_path / ONE).write_bytes(b"VE01")
        transfer = DirectoryTransfer(tmp_path)
        assert list(transfer.read_all()) == [(ONE, b"VE01")]
        # One that is swapped for something else after it was listed.
        (tmp_path / TWO).symlink_to(secret)
        assert isinstance(transfer.read(TWO), Skipped)
        fifo = transfer.read(f"vec/{'5' * 64}.bin")
        assert isinstance(fifo, Skipped)
        assert fifo.reason is SkipReason.NOT_A_FILE
        assert transfer.read("vec/../secret") is None

    def test_a_file_that_is_too_large_is_refused_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        DirectoryTransfer(tmp_path).replace({ONE: b"V" * 101, TWO: b"VE01"}, [])
        monkeypatch.setattr(blob, "MOST_BYTES", 100)
        read = dict(DirectoryTransfer(tmp_path).read_all())
        assert read[TWO] == b"VE01"
        assert isinstance(read[ONE], Skipped)

    def test_what_is_not_ours_is_no_export(self, tmp_path: Path) -> None:
        assert not is_export(tmp_path)
        write(tmp_path, {"vec/notes.bin": "x"})
        assert not is_export(tmp_path)
        write(tmp_path, {blob.NOTE: "{}"})
        assert is_export(tmp_path)

    def test_an_import_of_something_else_is_refused(self, tmp_path: Path) -> None:
        write(tmp_path / "zoo", FILES)
        built(tmp_path / "zoo")
        with opened(tmp_path / "zoo") as index:
            index.export(tmp_path / "export")
        write(tmp_path / "ship", {"sail.md": "# Sails\n"})
        built(tmp_path / "ship")
        with opened(tmp_path / "ship") as index:
            with pytest.raises(UsageError, match=r"nothing of what .*export holds.*import-project"):
                index.import_blobs(tmp_path / "export")
            assert index.search("sails", k=1).hits[0].path == "sail.md"

    def test_bad_files_are_refused_one_by_one(self, tmp_path: Path) -> None:
        write(tmp_path / "zoo", FILES)
        built(tmp_path / "zoo")
        with opened(tmp_path / "zoo") as index:
            index.export(tmp_path / "export")
        names = sorted((tmp_path / "export" / "vec").glob("*.bin"))
        names[0].write_bytes(names[0].read_bytes()[:-7])
        names[1].write_bytes(names[2].read_bytes() + names[2].read_bytes()[4:])
        (tmp_path / "empty").mkdir()
        with opened(tmp_path / "empty", Counting(refuse=True)) as index:
            report = index.import_blobs(tmp_path / "export")
            assert sorted(item.path for item in report.refused) == [f"vec/{path.name}" for path in names[:2]]
            assert report.artifacts == 1

    @pytest.mark.parametrize("missing", [members.NAME, blob.NOTE])
    def test_an_export_that_does_not_say_enough(self, tmp_path: Path, missing: str) -> None:
        write(tmp_path / "zoo", FILES)
        built(tmp_path / "zoo")
        with opened(tmp_path / "zoo") as index:
            index.export(tmp_path / "export")
            (tmp_path / "export" / missing).unlink()
            (tmp_path / "empty").mkdir()
            # Where the files are, the blobs are enough.
            assert index.import_blobs(tmp_path / "export").missing == 0
        if missing == members.NAME:
            with opened(tmp_path / "empty") as index, pytest.raises(BlobError, match=r"no vec/members\.json"):
                index.import_blobs(tmp_path / "export")


def test_half_a_file_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer = DirectoryTransfer(tmp_path)
    transfer.replace({ONE: b"VE01 old"}, [])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StoreFull, match="No space left"):
        transfer.replace({ONE: b"VE01 new", TWO: b"VE01"}, [])
    assert dict(transfer.read_all()) == {ONE: b"VE01 old"}
    assert [path.name for path in (tmp_path / "vec").iterdir() if "partial" in path.name] == []


def test_a_process_that_is_killed_leaves_whole_files_and_no_members(tmp_path: Path) -> None:
    """Killed while it writes: what is there is whole, is not taken for an export, and the next one finishes it."""
    many: dict[str, str | bytes] = {
        f"note{number}.md": f"# Note {number}\n\n{'words ' * 40}\n" for number in range(300)
    }
    write(tmp_path / "zoo", many)
    built(tmp_path / "zoo")
    script = (
        "import sys, time, outcrop\n"
        "from pathlib import Path\n"
        "replaced = Path.replace\n"
        "def slowly(self, target):\n"
        "    time.sleep(0.005)\n"
        "    return replaced(self, target)\n"
        "Path.replace = slowly\n"
        "with outcrop.open(sys.argv[1], settings={'embedder': 'hash'}) as index:\n"
        "    index.export(sys.argv[2])\n"
    )
    export = tmp_path / "export"
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "zoo"), str(export)])
    deadline = time.monotonic() + 60
    while len(list(export.glob("vec/[0-9a-f]*.bin"))) < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    transfer = DirectoryTransfer(export)
    assert 20 <= len([name for name in transfer.names() if blob.hash_of(name)]) < 300
    assert transfer.read(members.NAME) is None
    for name, data in transfer.read_all():
        if blob.hash_of(name):
            assert isinstance(data, bytes)
            assert blob.decode(data, 768)
    (tmp_path / "empty").mkdir()
    with opened(tmp_path / "empty") as index, pytest.raises(BlobError, match="It was not finished"):
        index.import_blobs(export)
    with opened(tmp_path / "zoo") as index:
        assert index.export(export).artifacts == 300
    with opened(tmp_path / "empty", Counting(refuse=True)) as index:
        assert index.import_blobs(export).artifacts == 300


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    transfer = DirectoryTransfer(tmp_path)
    transfer.replace({ONE: b"VE01"}, [])
    old, young = (tmp_path / "vec" / f".partial-{number}-x" for number in (1, 2))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    assert transfer.replace({TWO: b"VE01"}, []) == TransferCounts(1, 0)
    assert (old.exists(), young.exists()) == (False, True)
    assert transfer.names() == {ONE, TWO}

"""File systems that cannot share memory between processes, as network drives: shown by bindfs with direct I/O."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from repositories import write
from travel import opened

import outcrop
from outcrop.errors import NoLocks
from outcrop.surfaces.watch.daemon import watch


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("bindfs") is None or not os.access("/dev/fuse", os.W_OK):
        pytest.skip("bindfs, or FUSE, is not there")
    behind, mounted = tmp_path / "behind", tmp_path / "drive"
    behind.mkdir()
    mounted.mkdir()
    done = subprocess.run(["bindfs", "-o", "direct_io", behind, mounted], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"bindfs cannot mount here: {done.stderr}")
    try:
        yield mounted
    finally:
        subprocess.run(["fusermount", "-u", "-z", mounted], check=True)


def journal(path: Path) -> str:
    with closing(sqlite3.connect(path)) as database:
        return str(database.execute("PRAGMA journal_mode").fetchone()[0])


def test_an_index_there_has_a_rollback_journal(drive: Path) -> None:
    write(drive, {"zoo.md": "# Zoo\n\nThe lions eat at seven.\n"})
    with opened(drive) as index, opened(drive) as other:
        assert index.build().complete
        assert other.search("lions").hits[0].path == "zoo.md"
        (drive / "zoo.md").write_text("# Zoo\n\nThe bears eat at nine.\n")
        assert index.build().embedded == 1
        assert "bears" in other.search("bears").hits[0].text
        assert index.build(rebuild=True).complete
        assert index.check().damage == ()
        path = index.store.path
    assert journal(path) == "delete"
    assert sorted(each.name for each in path.parent.iterdir()) == [".gitignore", "index.sqlite", "index.sqlite.lock"]


def test_an_index_that_was_made_elsewhere_is_read_there(drive: Path, tmp_path: Path) -> None:
    write(tmp_path / "local", {"zoo.md": "# Zoo\n\nThe lions eat at seven.\n"})
    with opened(tmp_path / "local") as index:
        index.build()
        assert journal(index.store.path) == "wal"
    shutil.copytree(tmp_path / "local", drive / "copy")
    with opened(drive / "copy") as index:
        answer = index.search("lions")
        assert (answer.mode.value, answer.reason, answer.hits[0].path) == ("hybrid", None, "zoo.md")
        assert journal(index.store.path) == "delete"


def test_without_locks_the_message_names_the_way_out_and_a_watch_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"zoo.md": "# Zoo\n\nThe lions eat at seven.\n"})

    def refuse(*_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_LOCK
        raise error

    # No file system here refuses locks: this is what SQLite says on one that does.
    monkeypatch.setattr("outcrop.stores.sqlite.connection.open_file", refuse)
    with opened(tmp_path) as index, pytest.raises(NoLocks, match="file system that cannot lock it") as error:
        index.build()
    assert "--store FILE" in error.value.fix
    settings = {"embedder": "hash"}
    with pytest.raises(NoLocks):
        watch(lambda: outcrop.open(tmp_path, settings=settings), lambda _: None, lambda: nullcontext(lambda _: None))

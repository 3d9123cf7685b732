"""The SQLite file itself: what is in it for others to read, and what happens when it is not as it should be."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from outcrop.core.model import Chunk, Filter, Kind, Part, Ref, Space
from outcrop.core.rows import Digested, Entry, Member, View
from outcrop.errors import IndexMissing, SchemaTooNew, StoreDamaged, StoreError, StoreFull, StoreLocked
from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.store import SqliteStore

SPACE = Space("toy", 2)


def fill(path: Path, count: int = 3) -> None:
    store = SqliteStore(path)
    with store.writing():
        store.set_space(SPACE)
        entries = []
        for number in range(count):
            text = f"text number {number}"
            digested = Digested(Chunk(0, text, 0, len(text), 1, 1), text.encode())
            entries.append(Entry(Ref(f"h{number}", Kind.CODE, f"{number}.py", f"h{number}"), "1/toy", [digested]))
        store.write(entries)
        members = [Member("code", "code", f"h{n}", Part.WHOLE, f"{n}.py", Kind.CODE) for n in range(count)]
        store.replace(View(("code", "docs"), members, {}, (), frozenset({""})))
        pending = store.pending(SPACE)
        store.add_vectors(SPACE, [item.digest for item in pending], np.tile(np.float32([0.6, 0.8]), (len(pending), 1)))
        store.finish("r1")
    store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def test_other_tools_can_read_the_fixed_tables(path: Path) -> None:
    fill(path)
    database = sqlite3.connect(path)
    try:
        row = database.execute(
            "SELECT c.hash, c.kind, c.path, c.seq, c.text, c.project, e.model, e.dim, hex(e.v) FROM fx_vec_chunk c"
            " JOIN fx_vec_embedding e ON e.chunk_id = c.id WHERE c.hash = 'h1'"
        ).fetchone()
        assert row == ("h1", "code", "1.py", 0, "text number 1", "", "toy", 2, "9A99193FCDCC4C3F")
        assert database.execute("SELECT model, dim, last_ckout FROM fx_vec_state").fetchall() == [("toy", 2, "r1")]
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        database.close()


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    fill(path)
    database = sqlite3.connect(path)
    database.execute("UPDATE fx_vec_meta SET value = '999' WHERE key = 'schema'")
    database.commit()
    database.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="newer Outcrop"):
        SqliteStore(path).state()
    assert path.read_bytes() == before


def make_older(database: sqlite3.Connection, version: int) -> None:
    """Take away what this version of the schema did not have."""
    database.execute("DROP TABLE fx_vec_commit_terms")
    database.execute("UPDATE fx_vec_meta SET value = ? WHERE key = 'schema'", (str(version),))
    if version == 3:
        return
    database.executescript(
        "ALTER TABLE fx_vec_chunk DROP COLUMN checksum; ALTER TABLE fx_vec_embedding RENAME TO newer;"
        "CREATE TABLE fx_vec_embedding(chunk_id INTEGER NOT NULL REFERENCES fx_vec_chunk(id), model TEXT NOT NULL,"
        " dim INTEGER NOT NULL, v BLOB NOT NULL, PRIMARY KEY(chunk_id, model)); DROP TABLE fx_vec_refused;"
        "INSERT INTO fx_vec_embedding SELECT chunk_id, model, dim, v FROM newer; DROP TABLE newer;"
    )
    if version == 1:
        database.execute("DROP TABLE fx_vec_project")
        for column in ("start_s", "end_s", "uri", "transcript"):
            database.execute(f"ALTER TABLE fx_vec_chunk DROP COLUMN {column}")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_index_of_an_older_schema_is_brought_up_and_a_peers_is_left_alone(path: Path, version: int) -> None:
    fill(path)
    database = sqlite3.connect(path, isolation_level=None)
    fresh = columns_of(database)
    make_older(database, version)
    older = columns_of(database)
    with pytest.raises(StoreError, match="older Outcrop"):
        SqliteStore(path, read_only=True).state()
    assert columns_of(database) == older
    store = SqliteStore(path)
    assert [item.score for item in store.nearest(np.float32([0.6, 0.8]), 3, Filter())] == pytest.approx([1, 1, 1])
    assert store.projects() == []
    store.close()
    assert columns_of(database) == fresh
    database.close()


def test_of_processes_that_open_an_older_schema_at_once_one_upgrades_it(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        fresh = columns_of(database)
        make_older(database, 1)
        # All of them read the old version, and wait for the lock.
        database.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(SqliteStore(path).projects) for _ in range(8)]
            time.sleep(0.3)
            database.execute("COMMIT")
            assert [each.result() for each in waiting] == [[]] * 8
        assert columns_of(database) == fresh


@pytest.mark.parametrize("schema", ["abc", "0", "-1", None])
def test_a_schema_that_does_not_exist_is_damage(path: Path, schema: str | None) -> None:
    fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM fx_vec_meta WHERE key = 'schema'")
        if schema is not None:
            database.execute("INSERT INTO fx_vec_meta VALUES ('schema', ?)", (schema,))
    with pytest.raises(StoreDamaged, match="outcrop rebuild"):
        SqliteStore(path).state()


def test_from_a_shared_database_only_our_tables_are_removed(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE other(fx_vec_name TEXT)")
        database.execute("UPDATE fx_vec_meta SET value = 'abc' WHERE key = 'schema'")
        store = SqliteStore(path, shared=True)
        with pytest.raises(StoreDamaged, match="outcrop rebuild"):
            store.state()
        store.file.remove()
        assert not store.exists
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("other",)]


def columns_of(database: sqlite3.Connection) -> dict[str, set[tuple[str, str]]]:
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE name GLOB 'fx_vec_*'")]
    return {name: {row[1:3] for row in database.execute(f"PRAGMA table_info({name})")} for name in names}


@pytest.mark.parametrize("damage", ["text", "truncated", "zeroed"])
def test_a_damaged_file_says_how_to_make_it_again(path: Path, damage: str) -> None:
    fill(path, 400)
    content = path.read_bytes()
    if damage == "text":
        path.write_bytes(b"this is no database, " * 100)
    elif damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes(content[:4096] + b"\0" * (len(content) - 4096))
    store = SqliteStore(path)
    with pytest.raises(StoreDamaged, match="outcrop rebuild"):
        store.nearest(np.float32([0.6, 0.8]), 3, Filter())
    store.file.remove()
    assert not path.exists()
    fill(path)


def test_a_database_of_something_else_has_no_index(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE other(x)")
    database.close()
    with pytest.raises(IndexMissing):
        SqliteStore(path).state()
    fill(path)
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM other").fetchone() == (0,)
    database.close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreFull, match="cannot be written"), SqliteStore(tmp_path / "file" / "index.sqlite").writing():
        pass


def test_a_full_disk_loses_nothing_that_was_there(path: Path) -> None:
    fill(path)
    store = SqliteStore(path)
    text = "x" * 500_000
    entry = Entry(Ref("big", Kind.CODE, "big", "big"), "r", [Digested(Chunk(0, text, 0, len(text), 1, 1), b"big")])

    with store.writing():
        with store.file.reading() as database:
            (pages,) = database.execute("PRAGMA page_count").fetchone()
            database.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreFull, match="could not be written"):
            store.write([entry])
    assert len(store.nearest(np.float32([0.6, 0.8]), 9, Filter())) == 3
    store.close()


def test_search_in_a_folder_that_nobody_may_write(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    fill(folder / "index.sqlite")
    (folder / "index.sqlite").chmod(0o444)
    folder.chmod(0o555)
    script = (
        "import os, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from outcrop.stores import scan\n"
        "from outcrop.core.model import Filter\n"
        "from outcrop.stores.sqlite.store import SqliteStore\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "print(len(SqliteStore(Path(sys.argv[1])).nearest(np.float32([0.6, 0.8]), 9, Filter())))\n"
    )
    # As root nothing is forbidden, so the reader becomes nobody, who must be able to get to the folder at all.
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and len(parent.parts) > 2:
            parent.chmod(parent.stat().st_mode | 0o055)
    try:
        run = subprocess.run([sys.executable, "-c", script, folder / "index.sqlite"], capture_output=True, text=True)
        assert (run.stdout.strip(), run.stderr) == ("3", "")
    finally:
        folder.chmod(0o755)


def _hold(path: str, ready: object) -> None:
    store = SqliteStore(Path(path))
    with store.writing():
        ready.set()  # type: ignore[attr-defined]
        time.sleep(60)


def test_a_killed_writer_blocks_no_other(path: Path) -> None:
    fill(path)
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_hold, args=(str(path), ready))
    process.start()
    try:
        assert ready.wait(30)
        store = SqliteStore(path)
        assert store.file.is_being_written()
        with pytest.raises(StoreLocked), store.writing():
            pass
        assert len(store.nearest(np.float32([0.6, 0.8]), 9, Filter())) == 3
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    assert not store.file.is_being_written()
    with store.writing():
        pass
    store.close()


def test_other_terms_make_the_keyword_index_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several transactions, beside the old one; what a killed process left of that is no obstacle."""
    monkeypatch.setattr(keywords, "REBUILD_BATCH", 2)
    fill(path)
    database = sqlite3.connect(path)
    database.execute("UPDATE fx_vec_meta SET value = '0' WHERE key = 'terms'")
    database.execute("DELETE FROM fx_vec_terms")
    keywords.create_next(database)
    database.commit()
    database.close()
    store = SqliteStore(path)
    assert store.keyword(["number"], 9, Filter()) == []
    assert store.stems("number") == {}
    with store.writing():
        pass
    assert len(store.keyword(["number"], 9, Filter())) == 3
    assert len(store.keyword(["py"], 9, Filter())) == 3
    assert store.stems("number") == {"number": 3}
    with store.file.reading() as database:
        assert not database.execute("SELECT 1 FROM sqlite_master WHERE name GLOB '*_next*'").fetchone()
    store.close()

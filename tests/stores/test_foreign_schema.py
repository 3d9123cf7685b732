"""Views, triggers and computed columns in the place of tables: refused before they run, and rebuilt over."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fossil_program import SampleRepository
from repositories import write
from travel import opened

from outcrop.errors import OutcropError, SourceError, StoreDamaged
from outcrop.stores.sqlite.connection import KEYWORD_INDEXES, KEYWORD_TABLES, TABLES

ENDLESS = "WITH RECURSIVE endless(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM endless)"


def put_view(path: Path, table: str) -> None:
    """Put a view that never ends in the place of a table."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        database.execute("PRAGMA writable_schema = ON")
        view = f"CREATE VIEW {table} AS {ENDLESS} SELECT {', '.join(f'x AS {name}' for name in columns)} FROM endless"
        database.execute("DELETE FROM sqlite_master WHERE type = 'index' AND tbl_name = ?", (table,))
        changed = "UPDATE sqlite_master SET type = 'view', rootpage = 0, sql = ? WHERE name = ?"
        assert database.execute(changed, (view, table)).rowcount == 1


@pytest.mark.parametrize("table", [*TABLES, *KEYWORD_INDEXES, *KEYWORD_TABLES])
def test_a_view_in_the_place_of_a_table_of_ours(tmp_path: Path, table: str) -> None:
    write(tmp_path, {"zoo.md": "# Zoo\n\nThe lions eat at seven.\n"})
    with opened(tmp_path) as index:
        index.build()
        path = index.store.path
    put_view(path, table)
    with opened(tmp_path) as index:
        for use in (index.status, index.build):
            with pytest.raises(StoreDamaged, match=f"a view {table}, which Outcrop did not make"):
                use()
        answer = index.search("lions")
        assert answer.hits[0].path == "zoo.md"
        assert "outcrop rebuild" in str(answer.reason)
        assert index.build(rebuild=True).complete
        assert index.search("lions").reason is None


PLANTED = {
    "a trigger": f"CREATE TRIGGER planted AFTER INSERT ON fx_vec_meta BEGIN {ENDLESS} SELECT max(x) FROM endless; END",
    "an index of expressions": "CREATE INDEX planted ON fx_vec_chunk(hex(zeroblob(length(text))))",
    "computed columns": "ALTER TABLE fx_vec_chunk ADD COLUMN planted TEXT GENERATED ALWAYS AS (hex(zeroblob(9)))",
}


@pytest.mark.parametrize("sort", PLANTED)
def test_what_would_compute_when_a_table_is_written(tmp_path: Path, sample: SampleRepository, sort: str) -> None:
    write(tmp_path / "files", {"zoo.md": "# Zoo\n\nThe lions eat at seven.\n"})
    for place in (tmp_path / "files", sample.copy(tmp_path)):
        with opened(place) as index:
            index.build()
            path = index.store.path
        with closing(sqlite3.connect(path)) as database:
            statement = PLANTED[sort]
            # SQLite has no WITH inside of a trigger.
            database.execute(statement.replace(f"{ENDLESS} SELECT max(x) FROM endless", "SELECT 1"))
            database.commit()
        with opened(place) as index:
            with pytest.raises(StoreDamaged, match="which Outcrop did not make"):
                index.build()
            assert index.build(rebuild=True).complete
            assert index.check().damage == ()


def test_other_tables_of_the_database_are_left_alone(tmp_path: Path, sample: SampleRepository) -> None:
    place = sample.copy(tmp_path)
    with opened(place) as index:
        index.build()
    with closing(sqlite3.connect(place)) as database:
        database.execute("CREATE TABLE fx_other(x INTEGER, y AS (x + 1))")
        database.execute("CREATE VIEW fx_view AS SELECT count(*) FROM fx_vec_chunk")
        database.commit()
    with opened(place) as index:
        assert index.build(rebuild=True).complete
        assert index.search("lions at seven").hits
    with closing(sqlite3.connect(place)) as database:
        assert database.execute("SELECT * FROM fx_view").fetchone()[0] > 0
        assert database.execute("SELECT count(*) FROM fx_other").fetchone() == (0,)


@pytest.mark.parametrize("table", ["event", "blob", "tagxref", "config", "unversioned", "plink", "mlink", "filename"])
def test_a_view_in_the_place_of_a_table_of_fossils(tmp_path: Path, sample: SampleRepository, table: str) -> None:
    place = sample.copy(tmp_path)
    with opened(place) as index:
        index.build()
    put_view(place, table)
    with pytest.raises((SourceError, OutcropError), match=f"a view {table}"), opened(place) as index:
        index.build()

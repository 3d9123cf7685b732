"""A copy of an index in memory, to be embedded otherwise and thrown away; the index itself is only read."""

from __future__ import annotations

import sqlite3

from outcrop.model import Space
from outcrop.stores.sqlite import SqliteStore


def twin(store: SqliteStore, space: Space) -> SqliteStore:
    """The same passages, in the same view, with the vectors that they have in one space; gone when it is closed.

    Args:
        store: The index.
        space: What the copy is for.

    Raises:
        IndexMissing: There is no index.
    """
    copy = SqliteStore(None, store.worktree)
    try:
        with store.file.snapshot() as database, copy.file.reading(create=True) as empty:
            _copy(database, empty, space)
    except BaseException:
        copy.close()
        raise
    return copy


def _copy(database: sqlite3.Connection, empty: sqlite3.Connection, space: Space) -> None:
    """Copy our tables, row by row: the database may be a Fossil repository, and hold much more.

    The keyword index is copied as the tables that it is made of. They are filled in a database aside and taken over as
    a whole, since FTS5 does not notice what its own connection writes into them.
    """
    aside = sqlite3.connect(":memory:", isolation_level=None)
    try:
        empty.backup(aside)
        tables = aside.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        aside.execute("BEGIN")
        for (name,) in tables:
            columns = [row[1] for row in aside.execute(f"PRAGMA table_info({name})")]
            listed, marks = ", ".join(columns), ", ".join("?" * len(columns))
            where, values = ("WHERE model = ?", (space.model,)) if name == "fx_vec_embedding" else ("", ())
            aside.execute(f"DELETE FROM {name}")
            rows = database.execute(f"SELECT {listed} FROM {name} {where}", values)
            aside.executemany(f"INSERT INTO {name}({listed}) VALUES ({marks})", rows)
        aside.execute("COMMIT")
        aside.backup(empty)
    finally:
        aside.close()

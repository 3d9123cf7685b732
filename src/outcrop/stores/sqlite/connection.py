"""Opening the database: journal, time-outs, schema version, and SQLite's errors in our words."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from outcrop.core.model import Space
from outcrop.errors import IndexMissing, SchemaTooNew, StoreDamaged, StoreError, StoreFull, StoreLocked
from outcrop.text import terms
from outcrop.vcs.fossil_lock import begin_when_idle

# Version of schema.sql. An older database is brought up by the scripts in ``MIGRATIONS``.
SCHEMA_VERSION = 2

# From version N to N + 1: the SQL that does it.
MIGRATIONS: dict[int, str] = {
    1: """
ALTER TABLE fx_vec_chunk ADD COLUMN start_s REAL;
ALTER TABLE fx_vec_chunk ADD COLUMN end_s REAL;
ALTER TABLE fx_vec_chunk ADD COLUMN uri TEXT;
ALTER TABLE fx_vec_chunk ADD COLUMN transcript TEXT;
CREATE TABLE fx_vec_project(
  project TEXT PRIMARY KEY, type TEXT NOT NULL, peer TEXT NOT NULL, item TEXT NOT NULL DEFAULT '', kind TEXT,
  paths TEXT NOT NULL DEFAULT '', revision TEXT NOT NULL, model TEXT NOT NULL, dim INTEGER NOT NULL,
  imported REAL NOT NULL
) WITHOUT ROWID;
""",
}

# How long a statement waits for another process's transaction; ours take well under a second.
BUSY_SECONDS = 20.0

READING_CACHE = 4096
# Memory for pages in KiB. A search passes over the vectors once, and a cache that they fill only makes it slower; a
# build comes back to the pages of its indexes.
WRITING_CACHE = 65536

# KiB for a write into another program's database: a cache that spills locks its readers out until the commit.
GUEST_CACHE = 262144


def connect(path: Path, create: bool, guest: bool = False, read_only: bool = False) -> sqlite3.Connection:
    """Open the database that the index lives in.

    Args:
        path: The database file.
        create: Make it, and its folder, when it is not there.
        guest: It belongs to another program, which decides on its journal and its pages; only our tables are made.
        read_only: It is another repository's: nothing in it is changed, so that an older one cannot be brought up.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database file", "Name a file")
    if not create and not path.exists():
        raise IndexMissing(f"there is no index at {path}", "Run: outcrop index")
    with explained(path, guest):
        if create and not guest:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.name == ".outcrop" and not (path.parent / ".gitignore").exists():
                # A folder that is later put under version control must not carry its index along.
                (path.parent / ".gitignore").write_text("*\n", "utf-8")
        database = _open(path, create, guest)
        try:
            if read_only:
                database.execute("PRAGMA query_only = ON")
            _ensure_schema(database, path, create, guest, read_only)
        except BaseException:
            database.close()
            raise
        return database


def connect_in_memory() -> sqlite3.Connection:
    """An empty database that lives as long as its connection."""
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create_schema(database)
    return database


def _open(path: Path, create: bool, guest: bool) -> sqlite3.Connection:
    try:
        database = _connection(path, "mode=rwc" if create and not guest else "mode=rw")
        if create and not guest and not database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            # 8 KiB pages waste least with 1.5 KiB vectors; WAL lets readers go on while a build writes.
            database.execute("PRAGMA page_size = 8192")
            database.execute("PRAGMA journal_mode = WAL")
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        if create:
            raise
        # A folder that cannot be written: read what is there. Without a journal nobody can be writing either.
        quiet = not any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal"))
        database = _connection(path, "mode=ro&immutable=1" if quiet else "mode=ro")
    if not guest:
        _refuse_truncated(database, path)
    # A power cut may then damage a database with a rollback journal, as Fossil's is; one with a WAL loses a commit.
    database.execute(f"PRAGMA synchronous = {'FULL' if guest else 'NORMAL'}")
    database.execute("PRAGMA temp_store = MEMORY")
    database.execute(f"PRAGMA cache_size = -{READING_CACHE}")
    return database


def _refuse_truncated(database: sqlite3.Connection, path: Path) -> None:
    """SQLite notices a missing end only when it needs it; until then passages would be missing without a word."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        return
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    if pages * size > path.stat().st_size:
        database.close()
        raise sqlite3.DatabaseError("the end of the file is missing")


def enlarge_cache(database: sqlite3.Connection, guest: bool) -> None:
    """Make ready for a build."""
    database.execute(f"PRAGMA cache_size = -{GUEST_CACHE if guest else WRITING_CACHE}")
    if guest:
        database.execute("PRAGMA cache_spill = OFF")
    else:
        # Text that was taken out, perhaps because it was secret, must not linger in free pages.
        database.execute("PRAGMA secure_delete = ON")


def _connection(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _ensure_schema(database: sqlite3.Connection, path: Path, create: bool, guest: bool, read_only: bool) -> None:
    version = _schema_version(database)
    if version is None:
        if not create:
            raise IndexMissing(f"there is no index in {path}", "Run: outcrop index")
        with transaction(database, guest):
            if _schema_version(database) is None:
                _create_schema(database)
        return
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"the index at {path} was written by a newer Outcrop (schema {version}, this one knows {SCHEMA_VERSION})",
            "Update Outcrop, or drop the index with: outcrop clear --all",
        )
    if read_only and version < SCHEMA_VERSION:
        raise StoreError(
            f"the index at {path} was written by an older Outcrop (schema {version}, this one has {SCHEMA_VERSION})",
            "Bring it up to date there: outcrop index",
        )
    while version < SCHEMA_VERSION:
        with transaction(database, guest):
            for statement in _statements(MIGRATIONS[version]):
                database.execute(statement)
            version += 1
            set_meta(database, "schema", str(version))


def _create_schema(database: sqlite3.Connection) -> None:
    for statement in _statements(_schema()):
        database.execute(statement)
    set_meta(database, "schema", str(SCHEMA_VERSION))
    set_meta(database, "terms", str(terms.VERSION))
    # A file that takes the place of a removed one must not look like it to who remembers that one.
    set_meta(database, "changes", str(time.time_ns()))


def _schema_version(database: sqlite3.Connection) -> int | None:
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'fx_vec_meta'").fetchone():
        return None
    value = meta(database, "schema")
    return int(value) if value else None


def create_statement(table: str) -> str:
    """What makes one of our tables."""
    return next(
        statement for statement in _statements(_schema()) if f" {table} " in statement or f" {table}(" in statement
    )


def _schema() -> str:
    return files("outcrop.stores.sqlite").joinpath("schema.sql").read_text("utf-8")


def _statements(script: str) -> Iterator[str]:
    """One by one, to be run inside the open transaction (``executescript`` would commit it first)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def meta(database: sqlite3.Connection, key: str) -> str | None:
    """A value of the key-value table, or None."""
    row = database.execute("SELECT value FROM fx_vec_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(database: sqlite3.Connection, key: str, value: str) -> None:
    """Set a value of the key-value table."""
    database.execute("INSERT OR REPLACE INTO fx_vec_meta VALUES (?, ?)", (key, value))


def moment(database: sqlite3.Connection) -> str:
    """Equal as long as our tables do not change.

    SQLite's own counter would move with every page view that a Fossil repository logs.
    """
    return meta(database, "changes") or ""


@contextmanager
def transaction(database: sqlite3.Connection, guest: bool = False) -> Iterator[None]:
    """One write transaction: everything inside, or nothing. A guest begins when nobody else is there."""
    if guest:
        begin_when_idle(database)
    else:
        database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def count_change(database: sqlite3.Connection) -> None:
    """Tell whoever keeps something in memory that the tables are about to change."""
    set_meta(database, "changes", str(int(meta(database, "changes") or 0) + 1))


@contextmanager
def explained(path: Path, guest: bool = False) -> Iterator[None]:
    """Turn SQLite's and the file system's errors into ours, naming the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _explain(error, path, guest) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(f"the index at {path} is damaged ({error})", guest) from error
    except OSError as error:
        raise StoreFull(
            f"the index at {path} cannot be written ({error.strerror or error})", "Check the disk and the permissions"
        ) from error


def _damaged(what: str, guest: bool) -> StoreDamaged:
    return StoreDamaged(
        what,
        "Look at: fossil test-integrity, and restore a copy"
        if guest
        else "Make it again from the source: outcrop rebuild",
    )


def _explain(error: sqlite3.OperationalError, path: Path, guest: bool) -> StoreError:
    words = str(error)
    if "no such table: fx_vec" in words:
        return IndexMissing(f"there is no index in {path}", "Run: outcrop index")
    if "locked" in words or "busy" in words:
        return StoreLocked(f"the index at {path} is in use by another process", "Try again in a moment")
    if "full" in words or "disk I/O" in words:
        return StoreFull(
            f"the index at {path} could not be written ({words})", "Free some disk space and run the same command again"
        )
    if "readonly" in words or "unable to open" in words:
        return StoreFull(
            f"the index at {path} cannot be opened for writing ({words})", "Check the permissions of that folder"
        )
    if "malformed" in words:
        return _damaged(f"the index at {path} is damaged ({words})", guest)
    return StoreError(f"the index at {path} could not be used ({words})", "If it persists: outcrop rebuild")


def copy_tables(database: sqlite3.Connection, empty: sqlite3.Connection, space: Space) -> None:
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

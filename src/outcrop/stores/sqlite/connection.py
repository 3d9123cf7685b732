"""Opening the database: journal, time-outs, schema version, transactions."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path

from outcrop.core.model import Space
from outcrop.core.sqlite_errors import ErrorClasses, is_damaged, lacks_shared_memory, translated
from outcrop.core.sqlite_tables import distrust_schema, find_foreign
from outcrop.errors import IndexMissing, NoLocks, SchemaTooNew, StoreDamaged, StoreError, StoreFull, StoreLocked
from outcrop.stores.sqlite.integrity import checksums
from outcrop.text import terms
from outcrop.vcs.fossil_lock import begin_when_idle

# Version of schema.sql. An older database is upgraded by the scripts in ``MIGRATIONS``.
SCHEMA_VERSION = 4

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
    2: f"""
ALTER TABLE fx_vec_chunk ADD COLUMN checksum INTEGER;
UPDATE fx_vec_chunk SET checksum = chunk_checksum({checksums.CHUNK_COLUMNS});
ALTER TABLE fx_vec_embedding RENAME TO fx_vec_embedding_2;
CREATE TABLE fx_vec_embedding(
  chunk_id INTEGER NOT NULL REFERENCES fx_vec_chunk(id), model TEXT NOT NULL, dim INTEGER NOT NULL, v BLOB NOT NULL,
  checksum INTEGER, PRIMARY KEY(chunk_id, model, dim)
);
INSERT INTO fx_vec_embedding
  SELECT e.chunk_id, e.model, e.dim, e.v, vector_checksum(e.model, e.dim, c.digest, e.v)
  FROM fx_vec_embedding_2 e JOIN fx_vec_chunk c ON c.id = e.chunk_id ORDER BY e.rowid;
DROP TABLE fx_vec_embedding_2;
CREATE TABLE fx_vec_refused(
  digest BLOB NOT NULL, model TEXT NOT NULL, dim INTEGER NOT NULL, reason TEXT NOT NULL, tried REAL NOT NULL,
  PRIMARY KEY(digest, model, dim)
) WITHOUT ROWID;
""",
    3: """
CREATE VIRTUAL TABLE fx_vec_commit_terms USING fts5(
  name, path, body, tokenize = 'porter unicode61 remove_diacritics 0'
);
""",
}

# The tables of the schema, its keyword indexes, and the tables that FTS5 keeps these in. A search does not read the
# schema itself.
TABLES = tuple(
    f"fx_vec_{name}"
    for name in "meta chunk embedding refused state artifact member file skip built record project".split()
)
KEYWORD_INDEXES = ("fx_vec_terms", "fx_vec_commit_terms")
KEYWORD_TABLES = tuple(
    f"{index}_{part}" for index in KEYWORD_INDEXES for part in ("data", "idx", "content", "docsize", "config")
)

# Our tables in another program's database, and those that a rebuild writes before they take the place of these.
OURS = "fx_vec_*"
STAGED = "fx_vec_*_next*"

# Rows of one transaction while a rebuild is copied into a shared database.
COPIED_ROWS = 1000

# A database file and what SQLite keeps beside it.
SUFFIXES = ("", "-wal", "-shm", "-journal")

# How long a statement waits for another process's transaction; ours take well under a second, Fossil's end within 15.
BUSY_SECONDS = 20.0

# Memory for pages in KiB. A search reads the vectors once, and a cache that they fill only makes it slower; a build
# comes back to the pages of its indexes.
READING_CACHE = 4096
WRITING_CACHE = 65536
# For a write into a shared database: a cache that spills locks its readers out until the commit.
SHARED_CACHE = 262144

_REBUILD = "Make it again from the source: outcrop rebuild"
_REPAIR = "Run: outcrop check --repair, or embed everything again: outcrop rebuild"
ERRORS = ErrorClasses(locked=StoreLocked, denied=StoreFull, damaged=StoreDamaged, no_locks=NoLocks, other=StoreError)


def connect(path: Path, create: bool, shared: bool = False, read_only: bool = False) -> sqlite3.Connection:
    """Open the database that the index is in; ``shared`` and ``read_only`` as of ``DatabaseFile``.

    Args:
        create: Make it, and its folder, when it is not there; of a shared one, our tables.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database file", "Name a file")
    if not create and not path.exists():
        raise IndexMissing(f"there is no index at {path}", "Run: outcrop index")
    with explained(path, shared):
        if create and not shared:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.name == ".outcrop" and not (path.parent / ".gitignore").exists():
                # A folder that is later put under version control must not carry its index along.
                (path.parent / ".gitignore").write_text("*\n", "utf-8")
        database = _open(path, create, shared)
        try:
            if read_only:
                database.execute("PRAGMA query_only = ON")
            _ensure_schema(database, path, create, shared, read_only)
        except BaseException:
            database.close()
            raise
        return database


def connect_in_memory() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create_schema(database)
    return database


def _open(path: Path, create: bool, shared: bool) -> sqlite3.Connection:
    try:
        database = open_file(path, "mode=rwc" if create and not shared else "mode=rw")
        if create and not shared and not database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            # 8 KiB pages waste least with 1.5 KiB vectors; WAL lets readers go on while a build writes.
            database.execute("PRAGMA page_size = 8192")
            database.execute("PRAGMA journal_mode = WAL")
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError as error:
        if lacks_shared_memory(error) and not shared:
            database.close()
            database = _open_without_log(path)
        elif create:
            raise
        else:
            database = _open_unchanging(path)
    distrust_schema(database)
    if not shared:
        _refuse_truncated(database, path)
    # A power cut may then damage a database with a rollback journal, as Fossil's is; one with a WAL loses a commit.
    (journal,) = database.execute("PRAGMA journal_mode").fetchone()
    database.execute(f"PRAGMA synchronous = {'NORMAL' if journal == 'wal' else 'FULL'}")
    database.execute("PRAGMA temp_store = MEMORY")
    database.execute(f"PRAGMA cache_size = -{READING_CACHE}")
    return database


def _open_without_log(path: Path) -> sqlite3.Connection:
    """Open our own file on a file system without shared memory, and give it a rollback journal for good."""
    database = open_file(path, "mode=rw")
    try:
        # Alone with the file, SQLite needs no shared memory to read the log.
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA locking_mode = NORMAL")
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        path.with_name(path.name + "-shm").unlink(missing_ok=True)
    except BaseException:
        database.close()
        raise
    return database


def _open_unchanging(path: Path) -> sqlite3.Connection:
    """Read what is in a folder that cannot be written. Without a journal no process can be writing either."""
    unchanging = not any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal"))
    return open_file(path, "mode=ro&immutable=1" if unchanging else "mode=ro")


def _refuse_truncated(database: sqlite3.Connection, path: Path) -> None:
    """SQLite notices a missing end only when it needs it; until then passages would silently be missing."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        return
    if _pragma(database, "page_count") * _pragma(database, "page_size") > path.stat().st_size:
        database.close()
        raise sqlite3.DatabaseError("the end of the file is missing")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def drop_tables(path: Path, pattern: str = OURS) -> None:
    """Drop our tables, whatever is in them and in their place, from another program's database."""
    with closing(open_file(path, "mode=rw")) as database:
        found = _find_tables(database, pattern)
        if found:
            with transaction(database, shared=True):
                _drop(database, found)


def _find_tables(database: sqlite3.Connection, pattern: str) -> Sequence[tuple[str, str]]:
    # The keyword indexes first: they take their own tables along, as each table does with its triggers.
    return database.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND lower(name) GLOB ?"
        " ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC",
        (pattern,),
    ).fetchall()


def refuse_damaged_tables(path: Path) -> None:
    """In another program's database damage is that program's to repair: nothing more is written into it."""
    with closing(open_file(path, "mode=rw")) as database:
        for sort, name in _find_tables(database, OURS):
            if sort == "table" and name not in KEYWORD_INDEXES:
                (line,) = database.execute(f"PRAGMA integrity_check({_quoted(name)})").fetchone()
                if line != "ok":
                    raise sqlite3.DatabaseError(line)


def _drop(database: sqlite3.Connection, found: Sequence[tuple[str, str]]) -> None:
    for sort, name in found:
        database.execute(f"DROP {sort} IF EXISTS {_quoted(name)}")


def remove_file(path: Path) -> None:
    for suffix in SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def replace_database(path: Path, source: sqlite3.Connection) -> None:
    """Make a file of ours hold what another database holds, in one transaction: readers see the one or the other."""
    try:
        _copy_pages(source, path)
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise
        # What no process can read has no readers.
        remove_file(path)
        _copy_pages(source, path)


def _copy_pages(source: sqlite3.Connection, path: Path) -> None:
    with closing(open_file(path, "mode=rwc")) as database:
        if _pragma(database, "page_count") and _pragma(database, "page_size") != _pragma(source, "page_size"):
            raise sqlite3.DatabaseError("its pages have another size")
        source.backup(database)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def replace_tables(path: Path, source: sqlite3.Connection) -> None:
    """Make our tables in another program's database hold what another database holds, in short transactions.

    The rows are written into tables beside ours, which take their places in the last transaction.
    """
    with closing(open_file(path, "mode=rw")) as database:
        prepare_for_build(database, shared=True)
        with transaction(database, shared=True):
            _drop(database, _find_tables(database, STAGED))
            for name in (*TABLES, *KEYWORD_INDEXES):
                database.execute(create_statement(name).replace(name, f"{name}_next", 1))
        for name in (*TABLES, *KEYWORD_INDEXES):
            columns = ", ".join(row[1] for row in source.execute(f"PRAGMA table_info({name})"))
            number = "rowid, " if name in KEYWORD_INDEXES else ""
            rows = source.execute(f"SELECT {number}{columns} FROM {name} ORDER BY 1")
            marks = ", ".join("?" * len(rows.description))
            while batch := rows.fetchmany(COPIED_ROWS):
                with transaction(database, shared=True):
                    database.executemany(f"INSERT INTO {name}_next({number}{columns}) VALUES ({marks})", batch)
        with transaction(database, shared=True):
            _drop(database, [each for each in _find_tables(database, OURS) if "_next" not in each[1]])
            for name in (*TABLES, *KEYWORD_INDEXES):
                database.execute(f"ALTER TABLE {name}_next RENAME TO {name}")
            for statement in _statements(_schema()):
                if statement.startswith("CREATE INDEX"):
                    database.execute(statement)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def prepare_for_build(database: sqlite3.Connection, shared: bool) -> None:
    database.execute(f"PRAGMA cache_size = -{SHARED_CACHE if shared else WRITING_CACHE}")
    # A view of somebody else over our tables does not keep one from taking another's place.
    database.execute("PRAGMA legacy_alter_table = ON")
    if shared:
        database.execute("PRAGMA cache_spill = OFF")
    else:
        # Text that was removed, perhaps because it was secret, must not remain in free pages.
        database.execute("PRAGMA secure_delete = ON")


def open_file(path: Path, options: str) -> sqlite3.Connection:
    """Connect for every thread of the process; ``options`` are those of SQLite's URI."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _ensure_schema(database: sqlite3.Connection, path: Path, create: bool, shared: bool, read_only: bool) -> None:
    foreign = find_foreign(database, (*TABLES, *KEYWORD_INDEXES, *KEYWORD_TABLES), KEYWORD_INDEXES)
    if foreign is not None:
        raise StoreDamaged(f"the index at {path} holds {foreign}, which Outcrop did not make", _REBUILD)
    version = _schema_version(database, path)
    if version is None:
        if not create:
            raise IndexMissing(f"there is no index in {path}", "Run: outcrop index")
        with transaction(database, shared):
            if _schema_version(database, path) is None:
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
            "Update the index there: outcrop index",
        )
    if version < SCHEMA_VERSION:
        checksums.add_functions(database)
        with transaction(database, shared):
            # Read again: another process may have been faster.
            for outdated in range(_schema_version(database, path) or version, SCHEMA_VERSION):
                for statement in _statements(MIGRATIONS[outdated]):
                    database.execute(statement)
            set_meta(database, "schema", str(SCHEMA_VERSION))


def _create_schema(database: sqlite3.Connection) -> None:
    for statement in _statements(_schema()):
        database.execute(statement)
    set_meta(database, "schema", str(SCHEMA_VERSION))
    set_meta(database, "terms", str(terms.VERSION))
    # A file that takes the place of a removed one must not look like it to a process that remembers that one.
    set_meta(database, "changes", str(time.time_ns()))


def _schema_version(database: sqlite3.Connection, path: Path) -> int | None:
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'fx_vec_meta'").fetchone():
        return None
    value = meta(database, "schema")
    if value is None or not re.fullmatch(r"[1-9]\d{0,8}", value, re.ASCII):
        raise StoreDamaged(f"the index at {path} has no schema {value!r}", _REBUILD)
    return int(value)


def create_statement(table: str) -> str:
    return next(each for each in _statements(_schema()) if re.match(rf"CREATE (VIRTUAL )?TABLE {table}\b", each))


def _schema() -> str:
    return files("outcrop.stores.sqlite").joinpath("schema.sql").read_text("utf-8")


def _statements(script: str) -> Iterator[str]:
    """One by one, to be run inside the open transaction (``executescript`` would commit it first)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        if statement or not line.startswith(("--", "\n")):
            statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def meta(database: sqlite3.Connection, key: str) -> str | None:
    row = database.execute("SELECT value FROM fx_vec_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(database: sqlite3.Connection, key: str, value: str) -> None:
    database.execute("INSERT OR REPLACE INTO fx_vec_meta VALUES (?, ?)", (key, value))


def moment(database: sqlite3.Connection) -> str:
    """Equal as long as our tables do not change.

    SQLite's own counter would move with every page view that a Fossil repository logs.
    """
    return meta(database, "changes") or ""


@contextmanager
def transaction(database: sqlite3.Connection, shared: bool = False) -> Iterator[None]:
    """One write transaction: everything inside, or nothing. In a shared database it begins when no process uses it."""
    if shared:
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


@contextmanager
def lenient(database: sqlite3.Connection) -> Iterator[None]:
    """Text that is no UTF-8 any more is read as other text; elsewhere it is an error."""
    database.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        database.text_factory = str


def count_change(database: sqlite3.Connection) -> None:
    """Make :func:`moment` differ for every process that caches something."""
    set_meta(database, "changes", str(int(meta(database, "changes") or 0) + 1))


@contextmanager
def explained(path: Path, shared: bool = False) -> Iterator[None]:
    """Turn SQLite's and the file system's errors into ours, naming the file."""
    repair = "Look at: fossil test-integrity, and restore a copy" if shared else _REPAIR
    try:
        with translated(f"the index at {path}", ERRORS, repair):
            yield
    except StoreError as error:
        if "no such table: fx_vec" in str(error.__cause__):
            raise IndexMissing(f"there is no index in {path}", "Run: outcrop index") from error.__cause__
        raise
    except OSError as error:
        raise StoreFull(
            f"the index at {path} cannot be written ({error.strerror or error})", "Check the disk and the permissions"
        ) from error


def copy_tables(database: sqlite3.Connection, empty: sqlite3.Connection, space: Space) -> None:
    """Copy our tables, row by row: the database may be a Fossil repository, and hold much more.

    The keyword index is copied as the tables that it is made of. They are filled in a staging database and copied as a
    whole, since FTS5 does not notice what its own connection writes into them.
    """
    staging = sqlite3.connect(":memory:", isolation_level=None)
    try:
        empty.backup(staging)
        tables = staging.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        staging.execute("BEGIN")
        for (name,) in tables:
            columns = [row[1] for row in staging.execute(f"PRAGMA table_info({name})")]
            listed, marks = ", ".join(columns), ", ".join("?" * len(columns))
            where = f"WHERE model = ? AND dim = {space.dim}" if name == "fx_vec_embedding" else ""
            staging.execute(f"DELETE FROM {name}")
            rows = database.execute(f"SELECT {listed} FROM {name} {where}", (space.model,) if where else ())
            staging.executemany(f"INSERT INTO {name}({listed}) VALUES ({marks})", rows)
        staging.execute("COMMIT")
        staging.backup(empty)
    finally:
        staging.close()

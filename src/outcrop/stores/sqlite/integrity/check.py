"""Looking for damage: what the tables hold against their checksums, and against each other; and removing it.

Rows are read a few hundred at a time and nothing stays open, so that a Fossil repository is not kept from committing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outcrop import chunking
from outcrop.core.model import Kind, Part, Space
from outcrop.core.reports import Damage, DamageSort
from outcrop.core.rows import ArtifactKey
from outcrop.core.vectors import ON_DISK
from outcrop.stores.sqlite import connection, keywords, membership, upserts, writer
from outcrop.stores.sqlite.filters import EVERYWHERE
from outcrop.stores.sqlite.integrity import checksums
from outcrop.stores.sqlite.passages import CHUNK_COLUMNS, pending, stored_chunk
from outcrop.text import terms

# Rows that are read at a time.
BATCH = 500

MAX_ID = 2**63 - 1

# Digits of a commit that are shown.
SHORT_HASH = 12

_PARTS = frozenset(Part)

# Rows that are read at a time from a table that is damaged: one page of it costs the others of its range.
SALVAGED_ROWS = 16
MAX_ROWS_A_PAGE = 1000

# Faults that SQLite's own check lists at most.
MAX_FAULTS = 20

# How far the length of a vector may be from 1: as in a blob.
TOLERANCE = 1e-3

_COVERED = ", ".join(f"c.{name}" for name in checksums.CHUNK_COLUMNS.split(", "))


@dataclass(slots=True)
class Findings:
    """What was looked at, and what of it is damaged."""

    passages: int = 0
    vectors: int = 0
    pending: int = 0  # Passages that a build has still to embed, or that lost their vector
    damage: list[Damage] = field(default_factory=list)
    artifacts: set[ArtifactKey] = field(default_factory=set)  # Those that have to be cut again
    chunks: set[int] = field(default_factory=set)  # Those that nothing names
    embeddings: list[int] = field(default_factory=list)  # Row ids of vectors that have to be made again
    misplaced: set[ArtifactKey] = field(default_factory=set)  # Those whose passages have another path or kind
    is_broken: bool = False  # Whether the database itself is, so that its rows say nothing
    bad_keywords: bool = False

    def add(self, sort: DamageSort, where: str, detail: str) -> None:
        self.damage.append(Damage(sort, where, detail))


def check(database: sqlite3.Connection, shared: bool) -> Findings:
    found = Findings()
    with connection.lenient(database):
        try:
            _check_database(database, shared, found)
            if not found.is_broken:
                paths = _check_membership(database, found)
                _check_passages(database, paths, found)
                _check_vectors(database, found)
                found.pending = _count_pending(database)
                _check_keywords(database, found)
        except (sqlite3.DatabaseError, UnicodeError) as error:
            found.is_broken = True
            found.add(DamageSort.DATABASE, "", str(error))
    return found


def _check_database(database: sqlite3.Connection, shared: bool, found: Findings) -> None:
    # Of a shared database our own tables alone: the rest belongs to another program, and may be large.
    tables = (*connection.TABLES, *connection.KEYWORD_TABLES) if shared else ("",)
    for table in tables:
        argument = f"({table})" if table else f"({MAX_FAULTS})"
        for (line,) in database.execute(f"PRAGMA integrity_check{argument}").fetchall():
            if line != "ok":
                found.is_broken = True
                found.add(DamageSort.DATABASE, table, line.replace("\n", "; "))


def _check_membership(database: sqlite3.Connection, found: Findings) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Every member is an artifact; returns the path and kind that each part of an artifact should have."""
    for project, artifact in database.execute(
        "SELECT DISTINCT m.project, m.hash FROM fx_vec_member m LEFT JOIN fx_vec_artifact a"
        " ON a.project = m.project AND a.hash = m.hash WHERE a.hash IS NULL"
    ).fetchall():
        found.artifacts.add((project, artifact))
        found.add(DamageSort.MEMBERSHIP, artifact, "a corpus names it, and nothing of it is stored")
    if connection.meta(database, "interrupted") != "yes":
        # A build that was stopped has stored artifacts that are placed by the next one.
        for project, artifact, path in database.execute(
            "SELECT c.project, c.hash, max(c.path) FROM fx_vec_chunk c WHERE NOT EXISTS"
            " (SELECT 1 FROM fx_vec_member m WHERE m.project = c.project AND m.hash = c.hash) GROUP BY 1, 2"
        ).fetchall():
            found.artifacts.add((project, artifact))
            found.add(DamageSort.MEMBERSHIP, path or artifact, "it is stored, and no corpus names it")
    for project, artifact, parts in database.execute("SELECT project, hash, parts FROM fx_vec_artifact").fetchall():
        if not _PARTS.issuperset(str(parts).split(",")):
            found.artifacts.add((project, artifact))
            found.add(DamageSort.MEMBERSHIP, artifact, "which parts it has is not what was stored")
    for project, artifact, path, count, first, last in database.execute(
        "SELECT c.project, c.hash, max(c.path), count(*), min(c.seq), max(c.seq)"
        " FROM fx_vec_chunk c JOIN fx_vec_artifact a"
        " ON a.project = c.project AND a.hash = c.hash WHERE a.recipe NOT LIKE 'blob/%' GROUP BY c.project, c.hash"
    ).fetchall():
        if (first, last) != (0, count - 1):
            found.artifacts.add((project, artifact))
            found.add(DamageSort.MEMBERSHIP, path or artifact, f"{count} of its passages are stored, and not all")
    paths: dict[tuple[str, str, str], tuple[str, str]] = {}
    for project, artifact, part, path, kind in database.execute(
        "SELECT project, hash, part, path, kind FROM fx_vec_member WHERE worktree <> ?"
        " ORDER BY project, hash, worktree, path, corpus",
        (EVERYWHERE,),
    ).fetchall():
        paths.setdefault((project, artifact, part), (path, kind))
    return paths


def _check_passages(
    database: sqlite3.Connection, paths: dict[tuple[str, str, str], tuple[str, str]], found: Findings
) -> None:
    current = f"{chunking.VERSION}/"
    for chunk_id, path, kind, recipe, checksum, *rest in _rows(
        database,
        f"SELECT c.id, c.path, c.kind, a.recipe, c.checksum, {_COVERED}, {CHUNK_COLUMNS} FROM fx_vec_chunk c"
        " LEFT JOIN fx_vec_artifact a ON a.project = c.project AND a.hash = c.hash"
        " WHERE c.id > ? ORDER BY c.id LIMIT ?",
    ):
        found.passages += 1
        covered, columns = rest[: _COVERED.count(",") + 1], rest[_COVERED.count(",") + 1 :]
        values = dict(zip(checksums.CHUNK_COLUMNS.split(", "), covered, strict=True))
        key = (values["project"], values["hash"])
        where = _where(kind, path, values["hash"], values["first_line"])
        if recipe is None:
            if key not in found.artifacts:
                found.chunks.add(chunk_id)
            found.add(DamageSort.MEMBERSHIP, where, "it belongs to no artifact")
        elif checksum != checksums.of_chunk(*covered) or (
            recipe.startswith(current) and values["digest"] != chunking.digest(stored_chunk(columns))
        ):
            found.artifacts.add(key)
            found.add(DamageSort.TEXT, where, "the passage is not what was stored")
        elif paths.get((*key, values["part"]), (path or "", kind)) != (path or "", kind):
            found.misplaced.add(key)
            found.add(DamageSort.MEMBERSHIP, where, "its path or kind is not that of its corpus")


def _check_vectors(database: sqlite3.Connection, found: Findings) -> None:
    for row_id, model, dim, vector, checksum, digest, kind, path, artifact, line in _rows(
        database,
        "SELECT e.rowid, e.model, e.dim, e.v, e.checksum, c.digest, c.kind, c.path, c.hash, c.first_line"
        " FROM fx_vec_embedding e LEFT JOIN fx_vec_chunk c ON c.id = e.chunk_id"
        " WHERE e.rowid > ? ORDER BY e.rowid LIMIT ?",
    ):
        found.vectors += 1
        fault = _fault(model, dim, vector, checksum, digest)
        if artifact is None:
            fault = "it belongs to no passage"
        if fault:
            found.embeddings.append(row_id)
            found.add(DamageSort.VECTOR, _where(kind, path, artifact, line) if artifact else f"row {row_id}", fault)


def _where(kind: Any, path: Any, artifact: str, line: int) -> str:
    return f"commit {artifact[:SHORT_HASH]}" if kind == Kind.COMMIT else f"{path or artifact}:{line}"


def _count_pending(database: sqlite3.Connection) -> int:
    state = database.execute("SELECT model, dim FROM fx_vec_state").fetchone()
    return 0 if state is None else len(pending(database, Space(*state), None))


def _fault(model: Any, dim: Any, vector: Any, checksum: int | None, digest: bytes | None) -> str:
    if not isinstance(vector, bytes) or len(vector) != 4 * dim:
        return f"the vector has another length than {dim}"
    if checksum != checksums.of_vector(model, dim, digest, vector):
        return "the vector is not what was stored"
    numbers = np.frombuffer(vector, ON_DISK).astype(np.float64)
    if not np.isfinite(numbers).all():
        return "the vector holds NaN or infinity"
    length = float(np.sqrt(numbers @ numbers))
    return "" if abs(length - 1) <= TOLERANCE else f"the vector has length {length:.4g}, not 1"


def _check_keywords(database: sqlite3.Connection, found: Findings) -> None:
    if connection.meta(database, "terms") == str(terms.VERSION):
        stored = "SELECT rowid, name, path, body FROM {} WHERE rowid > ? AND rowid <= ?"
        different = last = 0
        for batch in keywords.batches_of_chunks(database):
            before, last = last, max(rows[-1][0] for rows in batch.values() if rows)
            for table, rows in batch.items():
                different += len(set(rows) ^ set(database.execute(stored.format(table), (before, last)).fetchall()))
        for table in keywords.TABLES:
            different += len(database.execute(stored.format(table), (last, MAX_ID)).fetchall())
        if different:
            found.bad_keywords = True
            found.add(DamageSort.KEYWORDS, "", "rows are not the words of their passages")
    try:
        _check_postings(database)
    except (sqlite3.DatabaseError, UnicodeError) as error:
        found.bad_keywords = True
        found.add(DamageSort.KEYWORDS, "", str(error))


def _check_postings(database: sqlite3.Connection) -> None:
    """Let FTS5 compare its index with its rows: in a copy, since it locks the database as a writer does."""
    with closing(connection.connect_in_memory()) as copy, closing(sqlite3.connect(":memory:")) as fresh:
        for table in connection.KEYWORD_TABLES:
            copy.execute(f"DELETE FROM {table}")
            rows = database.execute(f"SELECT * FROM {table}")
            marks = ", ".join("?" * len(rows.description))
            copy.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        # FTS5 does not notice what its own connection writes into its tables.
        copy.backup(fresh)
        for table in keywords.TABLES:
            fresh.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")


def _rows(database: sqlite3.Connection, question: str) -> Iterator[Sequence[Any]]:
    """Rows by their first column, which the question has over its first parameter; its second is their number."""
    last = 0
    while batch := database.execute(question, (last, BATCH)).fetchall():
        last = batch[-1][0]
        yield from batch


def remove_damage(database: sqlite3.Connection, found: Findings) -> list[str]:
    """Remove what is damaged, inside the open transaction, so that the next builds make it again.

    Passages stay until their artifact is cut again: the vectors of those that are intact are reused then.

    Returns:
        Records that are removed, by their ids: only the caller has their texts.
    """
    database.executemany("DELETE FROM fx_vec_embedding WHERE rowid = ?", ((row_id,) for row_id in found.embeddings))
    writer.delete_chunks(database, sorted(found.chunks))
    lost: list[str] = []
    for project, artifact in sorted(found.artifacts):
        records = database.execute(
            "SELECT corpus, id FROM fx_vec_record WHERE project = ? AND hash = ?", (project, artifact)
        ).fetchall()
        for corpus, record in records:
            lost += [record] * upserts.remove(database, corpus, [record])
        database.execute(
            "UPDATE fx_vec_artifact SET version = '', parts = '' WHERE project = ? AND hash = ?", (project, artifact)
        )
        database.execute("UPDATE fx_vec_project SET revision = '' WHERE project = ?", (project,))
        database.execute(
            "DELETE FROM fx_vec_built WHERE worktree IN"
            " (SELECT worktree FROM fx_vec_member WHERE project = ?1 AND hash = ?2)"
            " OR NOT EXISTS(SELECT 1 FROM fx_vec_member WHERE project = ?1 AND hash = ?2)",
            (project, artifact),
        )
    for project, artifact in found.misplaced:
        membership.update_paths(database, project, {artifact})
    return lost


def read_intact_vectors(database: sqlite3.Connection, space: Space) -> dict[bytes, bytes]:
    """Vectors of a space that can still be read and are what was stored, by the digest of their text."""
    found: dict[bytes, bytes] = {}
    question = (
        "SELECT c.digest, e.v, e.checksum FROM fx_vec_embedding e JOIN fx_vec_chunk c ON c.id = e.chunk_id"
        " WHERE e.model = ? AND e.dim = ? AND e.rowid BETWEEN ? AND ?"
    )
    with suppress(sqlite3.DatabaseError):
        (last,) = database.execute("SELECT coalesce(max(rowid), 0) FROM fx_vec_embedding").fetchone()
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        # A row number may be damaged, and then be any.
        for first in range(1, min(last, MAX_ROWS_A_PAGE * pages) + 1, SALVAGED_ROWS):
            with suppress(sqlite3.DatabaseError):
                for digest, vector, checksum in database.execute(
                    question, (space.model, space.dim, first, first + SALVAGED_ROWS - 1)
                ):
                    if not _fault(space.model, space.dim, vector, checksum, digest):
                        found[digest] = vector
    return found

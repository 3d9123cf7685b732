"""What puts artifacts and vectors into the tables, in transactions that hold the database for as short as they can.

Everything that needs no lock is done before: splitting texts into terms, laying rows out, indexing their words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from outcrop.core.model import Part, Space
from outcrop.core.protocols import Matrix
from outcrop.core.rows import DEFAULT_BUILDERS, Entry, Written
from outcrop.core.vectors import from_bytes, normalise, to_bytes
from outcrop.errors import BadEmbedding, FormatError
from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.connection import meta, set_meta

# Passages from which on it pays to index their words aside: fewer take some 30 ms in place.
STAGED_FROM = 1000

# How far a vector's length may be from 1 before it is written anew.
UNIT_TOLERANCE = 1e-6

_ASIDE = "aside"
_COLUMNS = (
    "id, project, hash, kind, path, seq, text, part, name, first_line, last_line, cell, cell_id, digest"
    ", start_s, end_s, uri, transcript"
)
_MARKS = ", ".join("?" * 18)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Artifacts as rows.

    Attributes:
        project: Whose they are; empty for this source.
        entries: The artifacts.
        chunks: The columns of each chunk but its id.
        terms: The terms of each chunk's name, paths and text.
    """

    project: str
    entries: Sequence[Entry]
    chunks: Sequence[tuple[object, ...]]
    terms: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows that wait in an attached database: the id of the first, or None where nothing was attached."""

    first: int | None


@dataclass(frozen=True, slots=True)
class Placed:
    """Vectors with the chunks they belong to, as of one state of the tables."""

    changes: str
    rows: Sequence[tuple[int, str, int, bytes]]


def prepare(entries: Sequence[Entry], project: str = "") -> Prepared:
    """Turn artifacts into rows; this is where most of the time goes."""
    chunks: list[tuple[object, ...]] = []
    words: list[tuple[str, str, str]] = []
    for entry in entries:
        ref = entry.ref
        path_terms = keywords.terms_of(ref.path or "")
        asset = (entry.media.uri, entry.media.transcript) if entry.media else (None, None)
        for item in entry.chunks:
            chunk = item.chunk
            chunks.append(
                (
                    *(project, ref.hash, ref.kind, ref.path, chunk.seq, chunk.text, chunk.part, chunk.name),
                    *(chunk.first_line, chunk.last_line, chunk.cell, chunk.cell_id, item.digest),
                    *(chunk.seconds or (None, None)),
                    *asset,
                )
            )
            words.append((keywords.terms_of(chunk.name or ""), path_terms, keywords.terms_of(chunk.text)))
    return Prepared(project, entries, chunks, words)


def lay_out(database: sqlite3.Connection, prepared: Prepared) -> Layout:
    """Have large batches ready in memory, attached to a connection that nothing else uses."""
    if len(prepared.chunks) < STAGED_FROM:
        return Layout(None)
    first = next_id(database)
    database.execute(f"ATTACH ':memory:' AS {_ASIDE}")
    keywords.stage(database, [(id, *row) for id, row in enumerate(prepared.terms, first)], _ASIDE)
    database.execute(f"CREATE TABLE {_ASIDE}.chunk({_COLUMNS})")
    database.execute("BEGIN")
    database.executemany(
        f"INSERT INTO {_ASIDE}.chunk VALUES ({_MARKS})", ((id, *row) for id, row in enumerate(prepared.chunks, first))
    )
    database.execute("COMMIT")
    return Layout(first)


def put_in(database: sqlite3.Connection, prepared: Prepared, layout: Layout) -> Written:
    """Store artifacts inside the open transaction; see ``VectorStore.write``."""
    if not prepared.entries:
        return Written(0, 0)
    set_meta(database, "unplaced", "new")
    if not prepared.project:
        set_meta(database, "interrupted", "yes")
    first = next_id(database)
    set_meta(database, "last_id", str(first + len(prepared.chunks) - 1))
    aside = _set_aside(database, prepared.project, prepared.entries)
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_artifact VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((prepared.project, *_artifact(entry)) for entry in prepared.entries),
    )
    # Another user's build may have taken the ids that the rows were laid out for.
    if layout.first != first or not keywords.append(database, _ASIDE):
        keywords.insert(database, ((id, *row) for id, row in enumerate(prepared.terms, first)))
    if layout.first == first:
        database.execute(f"INSERT INTO main.fx_vec_chunk({_COLUMNS}) SELECT * FROM {_ASIDE}.chunk")
    else:
        database.executemany(
            f"INSERT INTO fx_vec_chunk({_COLUMNS}) VALUES ({_MARKS})",
            ((id, *row) for id, row in enumerate(prepared.chunks, first)),
        )
    reused = take_over_vectors(database, first - 1)
    delete_chunks(database, aside)
    return Written(len(prepared.chunks), reused)


def _artifact(entry: Entry) -> tuple[object, ...]:
    ref = entry.ref
    parts = {item.chunk.part for item in entry.chunks} - {Part.WHOLE}
    return (ref.hash, ref.version, entry.recipe, entry.skip, entry.detail, ",".join(sorted(parts)), ref.path or "")


def next_id(database: sqlite3.Connection) -> int:
    """No id is ever given twice: the keyword index would take a new passage for a deleted one."""
    (highest,) = database.execute("SELECT coalesce(max(id), 0) FROM fx_vec_chunk").fetchone()
    return max(int(highest), int(meta(database, "last_id") or 0)) + 1


def _set_aside(database: sqlite3.Connection, project: str, entries: Sequence[Entry]) -> list[int]:
    """Chunks of artifacts that are cut again: out of the way, and kept until their vectors were taken over."""
    known = {row[0] for row in database.execute("SELECT hash FROM fx_vec_artifact WHERE project = ?", (project,))}
    again = [(project, entry.ref.hash) for entry in entries if entry.ref.hash in known]
    ids = [
        row[0]
        for artifact in again
        for row in database.execute("SELECT id FROM fx_vec_chunk WHERE project = ? AND hash = ?", artifact).fetchall()
    ]
    database.executemany("UPDATE fx_vec_chunk SET seq = -1 - seq WHERE project = ? AND hash = ?", again)
    return ids


def take_over_vectors(database: sqlite3.Connection, before: int) -> int:
    """Give new chunks (id over ``before``) the vectors of older ones with the same digest, in every space."""
    database.execute(
        "INSERT OR IGNORE INTO fx_vec_embedding"
        " SELECT n.id, e.model, e.dim, e.v FROM fx_vec_chunk n"
        " JOIN fx_vec_chunk o ON o.digest = n.digest AND o.id <= :before"
        " JOIN fx_vec_embedding e ON e.chunk_id = o.id WHERE n.id > :before",
        {"before": before},
    )
    (reused,) = database.execute(
        "SELECT count(*) FROM fx_vec_embedding e, fx_vec_state s WHERE e.model = s.model AND e.chunk_id > ?", (before,)
    ).fetchone()
    return int(reused)


def delete_chunks(database: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Take passages out, with their vectors and words."""
    keywords.delete(database, ids)
    database.executemany("DELETE FROM fx_vec_embedding WHERE chunk_id = ?", ((id,) for id in ids))
    database.executemany("DELETE FROM fx_vec_chunk WHERE id = ?", ((id,) for id in ids))


def set_space(database: sqlite3.Connection, space: Space) -> None:
    """From now on another space is scanned."""
    database.execute("DELETE FROM fx_vec_state")
    database.execute("INSERT INTO fx_vec_state VALUES (?, ?, NULL)", (space.model, space.dim))
    database.execute("DELETE FROM fx_vec_built")


def place_vectors(database: sqlite3.Connection, space: Space, digests: Sequence[bytes], vectors: Matrix) -> Placed:
    """Find the chunks that have these digests; nothing is locked for longer than a look."""
    little_endian = vectors.astype("<f4", copy=False)
    changes = meta(database, "changes") or ""
    rows = [
        (id, space.model, space.dim, row.tobytes())
        for digest, row in zip(digests, little_endian, strict=True)
        for (id,) in database.execute("SELECT id FROM fx_vec_chunk WHERE digest = ?", (digest,)).fetchall()
    ]
    return Placed(changes, sorted(rows, key=lambda row: row[0]))


def add_vectors(database: sqlite3.Connection, placed: Placed) -> None:
    """Store vectors that the chunks do not have yet."""
    database.executemany("INSERT OR IGNORE INTO fx_vec_embedding VALUES (?, ?, ?, ?)", placed.rows)


def uneven(database: sqlite3.Connection) -> tuple[list[tuple[bytes, int]], list[tuple[int]]]:
    """Stored vectors that are not of unit length.

    Returns:
        Those that can be brought to it, as they should be, with their row ids; and row ids of those that cannot: zeros,
        NaN, infinity, or another number of components than they say.
    """
    changed: list[tuple[bytes, int]] = []
    bad: list[tuple[int]] = []
    cursor = database.execute("SELECT rowid, dim, v FROM fx_vec_embedding")
    while rows := cursor.fetchmany(512):
        for id, dim, data in rows:
            try:
                vector = from_bytes(data, dim)
                unit = normalise(vector[None])[0]
            except (FormatError, BadEmbedding):
                bad.append((id,))
                continue
            if abs(float(vector @ unit) - 1) > UNIT_TOLERANCE:
                changed.append((to_bytes(unit), id))
    return changed, bad


def rewrite_vectors(
    database: sqlite3.Connection, changed: Sequence[tuple[bytes, int]], bad: Sequence[tuple[int]]
) -> None:
    """Put vectors in the place of others, and take bad ones out."""
    database.executemany("UPDATE fx_vec_embedding SET v = ? WHERE rowid = ?", changed)
    database.executemany("DELETE FROM fx_vec_embedding WHERE rowid = ?", bad)
    if bad:
        database.execute("DELETE FROM fx_vec_built")


def finish(database: sqlite3.Connection, worktree: str, revision: str, builders: Sequence[str]) -> None:
    """Declare corpora's builds complete at a revision, whose check-in is what stands before the ``+``."""
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_built VALUES (?, ?, ?)", ((worktree, builder, revision) for builder in builders)
    )
    database.execute("UPDATE fx_vec_state SET last_ckout = ?", (revision.partition("+")[0],))
    if tuple(builders) == DEFAULT_BUILDERS:
        set_meta(database, "interrupted", "no")

"""Writing artifacts and vectors. What needs no lock (splitting texts into terms) is done before the transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from outcrop.core.model import Part, Space
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.core.protocols import Matrix
from outcrop.core.rows import ArtifactKey, Entry, Written
from outcrop.core.vectors import ON_DISK, from_bytes, normalise, to_bytes
from outcrop.errors import BadEmbedding, FormatError
from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.connection import meta, set_meta
from outcrop.stores.sqlite.integrity import checksums

# Chunks of one transaction in a shared database, roughly: its other programs wait for about a fifth of a second.
SHARED_BATCH = 1000

# How far a vector's length may be from 1 before it is written anew.
UNIT_TOLERANCE = 1e-6

_CHUNK_COLUMNS = f"id, kind, path, {checksums.CHUNK_COLUMNS}, checksum"

# Chunk id, model, dimension, vector, checksum.
VectorRow = tuple[int, str, int, bytes, int]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Artifacts as rows.

    Attributes:
        project: Whose they are; empty for this source.
        terms: By keyword table, the places in ``chunks`` and the terms of each name, paths and text.
    """

    project: str
    entries: Sequence[Entry]
    chunks: Sequence[tuple[object, ...]]
    terms: Mapping[str, Sequence[tuple[int, tuple[str, str, str]]]]


def batches(entries: Sequence[Entry], most: int | None) -> Iterator[Sequence[Entry]]:
    """Artifacts in groups of about so many chunks (None: all in one); one empty group where there are none."""
    group: list[Entry] = []
    chunks = 0
    for entry in entries:
        if group and most is not None and chunks + len(entry.chunks) > most:
            yield group
            group, chunks = [], 0
        group.append(entry)
        chunks += len(entry.chunks)
    yield group


def prepare(entries: Sequence[Entry], project: str = "") -> Prepared:
    """Turn artifacts into rows; this is where most of the time goes."""
    chunks: list[tuple[object, ...]] = []
    words: dict[str, list[tuple[int, tuple[str, str, str]]]] = {table: [] for table in keywords.TABLES}
    for entry in entries:
        ref = entry.ref
        path_terms = keywords.terms_of(ref.path or "")
        uri, transcript = (entry.media.uri, entry.media.transcript) if entry.media else (None, None)
        for item in entry.chunks:
            chunk = item.chunk
            # SQLite gives them back as floating-point numbers.
            start_s, end_s = map(float, chunk.seconds) if chunk.seconds else (None, None)
            # In the order of checksums.CHUNK_COLUMNS.
            covered = (
                project,
                ref.hash,
                chunk.seq,
                chunk.text,
                chunk.part,
                chunk.name,
                chunk.first_line,
                chunk.last_line,
                chunk.cell,
                chunk.cell_id,
                item.digest,
                start_s,
                end_s,
                uri,
                transcript,
            )
            terms = (keywords.terms_of(chunk.name or ""), path_terms, keywords.terms_of(chunk.text))
            words[keywords.table_of(ref.kind)].append((len(chunks), terms))
            chunks.append((ref.kind, ref.path, *covered, checksums.of_chunk(*covered)))
    return Prepared(project, entries, chunks, words)


def insert(database: sqlite3.Connection, prepared: Prepared) -> Written:
    """Store artifacts inside the open transaction; those that are there already are replaced."""
    if not prepared.entries:
        return Written(0, 0)
    first = next_id(database)
    set_meta(database, "last_id", str(first + len(prepared.chunks) - 1))
    # The ordinals of what is stored of these artifacts are freed; its chunks stay until their vectors are reused.
    move = "UPDATE fx_vec_chunk SET seq = -1 - seq WHERE project = ? AND hash = ? RETURNING id"
    artifacts = [(prepared.project, entry.ref.hash) for entry in prepared.entries]
    replaced = [row[0] for artifact in artifacts for row in database.execute(move, artifact).fetchall()]
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_artifact(project, hash, version, recipe, skip, detail, parts, paths)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((prepared.project, *_artifact(entry)) for entry in prepared.entries),
    )
    for table, rows in prepared.terms.items():
        keywords.insert(database, ((first + place, *row) for place, row in rows), table)
    database.executemany(
        f"INSERT INTO fx_vec_chunk({_CHUNK_COLUMNS}) VALUES ({', '.join('?' * 19)})",
        ((chunk_id, *row) for chunk_id, row in enumerate(prepared.chunks, first)),
    )
    reused = _reuse_vectors(database, first - 1)
    delete_chunks(database, replaced)
    return Written(len(prepared.chunks), reused)


def mark_unplaced(database: sqlite3.Connection, prepared: Prepared) -> None:
    """Note that artifacts are stored that no view names yet."""
    if prepared.entries:
        set_meta(database, "unplaced", "new")
        if not prepared.project:
            set_meta(database, "interrupted", "yes")


def _artifact(entry: Entry) -> tuple[object, ...]:
    ref = entry.ref
    parts = {item.chunk.part for item in entry.chunks} - {Part.WHOLE}
    return (ref.hash, ref.version, entry.recipe, entry.skip, entry.detail, ",".join(sorted(parts)), ref.path or "")


def next_id(database: sqlite3.Connection) -> int:
    """A chunk id that was never used: the keyword index would take a new chunk for a deleted one."""
    (highest,) = database.execute("SELECT coalesce(max(id), 0) FROM fx_vec_chunk").fetchone()
    return max(int(highest), int(meta(database, "last_id") or 0)) + 1


def _reuse_vectors(database: sqlite3.Connection, before: int) -> int:
    """Give new chunks (id over ``before``) the vectors of older ones with the same digest, in every space."""
    database.execute(
        "INSERT OR IGNORE INTO fx_vec_embedding"
        " SELECT n.id, e.model, e.dim, e.v, e.checksum FROM fx_vec_chunk n"
        " JOIN fx_vec_chunk o ON o.digest = n.digest AND o.id <= :before"
        " JOIN fx_vec_embedding e ON e.chunk_id = o.id WHERE n.id > :before",
        {"before": before},
    )
    (reused,) = database.execute(
        "SELECT count(*) FROM fx_vec_embedding e, fx_vec_state s"
        " WHERE e.model = s.model AND e.dim = s.dim AND e.chunk_id > ?",
        (before,),
    ).fetchone()
    return int(reused)


def chunk_ids(database: sqlite3.Connection, artifact: ArtifactKey) -> list[int]:
    rows = database.execute("SELECT id FROM fx_vec_chunk WHERE project = ? AND hash = ?", artifact)
    return [row[0] for row in rows]


def delete_chunks(database: sqlite3.Connection, ids: Sequence[int]) -> None:
    keywords.delete(database, ids)
    database.executemany("DELETE FROM fx_vec_embedding WHERE chunk_id = ?", ((chunk_id,) for chunk_id in ids))
    database.executemany("DELETE FROM fx_vec_chunk WHERE id = ?", ((chunk_id,) for chunk_id in ids))
    database.execute(
        "DELETE FROM fx_vec_refused AS r WHERE NOT EXISTS(SELECT 1 FROM fx_vec_chunk c WHERE c.digest = r.digest)"
    )


def set_space(database: sqlite3.Connection, space: Space) -> None:
    database.execute("DELETE FROM fx_vec_state")
    database.execute("INSERT INTO fx_vec_state VALUES (?, ?, NULL)", (space.model, space.dim))
    database.execute("DELETE FROM fx_vec_built")


def place_vectors(
    database: sqlite3.Connection, space: Space, digests: Sequence[bytes], vectors: Matrix
) -> list[VectorRow]:
    rows = [
        vector_row(chunk_id, space, digest, row.tobytes())
        for digest, row in zip(digests, vectors.astype(ON_DISK, copy=False), strict=True)
        for (chunk_id,) in database.execute("SELECT id FROM fx_vec_chunk WHERE digest = ?", (digest,)).fetchall()
    ]
    return sorted(rows, key=lambda row: row[0])


def vector_row(chunk_id: int, space: Space, digest: bytes, vector: bytes) -> VectorRow:
    checksum = checksums.of_vector(space.model, space.dim, digest, vector)
    return chunk_id, space.model, space.dim, vector, checksum


def add_vectors(database: sqlite3.Connection, rows: Sequence[VectorRow]) -> None:
    database.executemany("INSERT OR IGNORE INTO fx_vec_embedding VALUES (?, ?, ?, ?, ?)", rows)
    database.execute(
        "DELETE FROM fx_vec_refused AS r WHERE EXISTS(SELECT 1 FROM fx_vec_chunk c JOIN fx_vec_embedding e"
        " ON e.chunk_id = c.id AND e.model = r.model AND e.dim = r.dim WHERE c.digest = r.digest)"
    )


def refuse(database: sqlite3.Connection, space: Space, reasons: Mapping[bytes, str]) -> None:
    now = time.time()
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_refused VALUES (?, ?, ?, ?, ?)",
        ((digest, space.model, space.dim, reason, now) for digest, reason in reasons.items()),
    )


def find_denormalised(database: sqlite3.Connection) -> tuple[list[tuple[bytes, int, int]], list[tuple[int]]]:
    """Stored vectors that are not of unit length.

    Returns:
        Those that can be scaled to it, scaled, with their checksums and row ids; and row ids of those that cannot:
        zeros, NaN, infinity, or another number of components than they say.
    """
    scaled: list[tuple[bytes, int, int]] = []
    bad: list[tuple[int]] = []
    cursor = database.execute(
        "SELECT e.rowid, e.model, e.dim, e.v, c.digest FROM fx_vec_embedding e JOIN fx_vec_chunk c ON c.id = e.chunk_id"
    )
    while rows := cursor.fetchmany(512):
        for row_id, model, dim, data, digest in rows:
            try:
                vector = from_bytes(data, dim)
                unit = normalise(vector[None])[0]
            except (FormatError, BadEmbedding):
                bad.append((row_id,))
                continue
            if abs(float(vector @ unit) - 1) > UNIT_TOLERANCE:
                even = to_bytes(unit)
                scaled.append((even, checksums.of_vector(model, dim, digest, even), row_id))
    return scaled, bad


def finish(database: sqlite3.Connection, worktree: str, revision: str, builders: Sequence[str]) -> None:
    """Declare corpora's builds complete at a revision, whose check-in is the part before the ``+``."""
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_built VALUES (?, ?, ?)", ((worktree, builder, revision) for builder in builders)
    )
    database.execute("UPDATE fx_vec_state SET last_ckout = ?", (revision.partition("+")[0],))
    if tuple(builders) == DEFAULT_BUILDERS:
        set_meta(database, "interrupted", "no")

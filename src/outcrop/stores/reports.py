"""Counting what is stored."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from outcrop.model import Collection, Kind, Part, Space
from outcrop.records import Holding
from outcrop.reports import CollectionStatus, SpaceStatus
from outcrop.stores.selection import EVERYWHERE

NUMBER_BYTES = 4
"""A stored vector is float32."""


def collections(database: sqlite3.Connection, worktree: str, space: Space) -> Sequence[CollectionStatus]:
    """One line a corpus of a view."""
    rows = database.execute(
        "SELECT m.corpus, m.kind, c.id, c.hash, length(c.text), length(CAST(c.text AS BLOB)), e.dim"
        " FROM fx_vec_member m JOIN fx_vec_chunk c ON c.project = m.project AND c.hash = m.hash AND c.part = m.part"
        " LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = ?"
        " WHERE m.worktree IN (?, ?) GROUP BY m.corpus, c.id ORDER BY m.corpus",
        (space.model, worktree, EVERYWHERE),
    )
    found: dict[str, list[tuple[str, str, int, int, bool]]] = {}
    for corpus, kind, _, hash, characters, size, dim in rows:
        found.setdefault(corpus, []).append((kind, hash, characters, size, dim is not None))
    return [
        CollectionStatus(
            name=Collection(corpus, space).name,
            corpus=corpus,
            artifacts=len({chunk[1] for chunk in chunks}),
            chunks=len(chunks),
            embedded=sum(chunk[4] for chunk in chunks),
            characters=sum(chunk[2] for chunk in chunks),
            bytes=sum(chunk[3] + (space.dim * NUMBER_BYTES if chunk[4] else 0) for chunk in chunks),
            kinds=dict(sorted(Counter(chunk[0] for chunk in chunks).items())),
        )
        for corpus, chunks in found.items()
    ]


def holdings(database: sqlite3.Connection, worktree: str, space: Space) -> Sequence[Holding]:
    """Every artifact of a view at each of its places, with how much is stored of it."""
    (vectors,) = database.execute("SELECT count(*) FROM fx_vec_embedding WHERE model = ?", (space.model,)).fetchone()
    (chunks,) = database.execute("SELECT count(*) FROM fx_vec_chunk").fetchone()
    # Almost always every chunk has its vector, and then there is nothing to join.
    whole = vectors == chunks
    join = "" if whole else "LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = ?"
    # One pass over the chunks in the order in which they lie in the file: their index would jump about in it.
    stored = {
        (project, hash, part): numbers
        for project, hash, part, *numbers in database.execute(
            "SELECT project, hash, part, count(*), sum(embedded), sum(characters), sum(bytes) FROM"
            f" (SELECT c.project, c.hash, c.part, {'1' if whole else 'e.chunk_id IS NOT NULL'} AS embedded,"
            " length(c.text) AS characters, length(CAST(c.text AS BLOB)) AS bytes"
            # With a limit the lengths are taken first; otherwise the texts themselves would be sorted.
            f" FROM fx_vec_chunk c NOT INDEXED {join} LIMIT -1) GROUP BY project, hash, part",
            () if whole else (space.model,),
        )
    }
    rows = database.execute(
        "SELECT m.corpus, m.builder, m.project, m.kind, m.path, m.hash, m.part,"
        " CASE m.worktree WHEN ? THEN a.version END"
        " FROM fx_vec_member m LEFT JOIN fx_vec_artifact a ON a.project = m.project AND a.hash = m.hash"
        " WHERE m.worktree IN (?, ?)",
        (worktree, worktree, EVERYWHERE),
    )
    return [
        Holding(corpus, builder, project, Kind(kind), path or None, hash, Part(part), version, *there)
        for corpus, builder, project, kind, path, hash, part, version in rows
        if (there := stored.get((project, hash, part))) is not None
    ]


def spaces(database: sqlite3.Connection) -> Sequence[SpaceStatus]:
    """Every space that has vectors."""
    # The key's own index has the models; the table has the vectors between them, which take ten times as long to pass.
    counts = database.execute(
        "SELECT model, count(*), min(chunk_id) FROM fx_vec_embedding GROUP BY model ORDER BY model"
    ).fetchall()
    found = []
    for model, count, chunk in counts:
        one = "SELECT dim FROM fx_vec_embedding WHERE chunk_id = ? AND model = ?"
        (dim,) = database.execute(one, (chunk, model)).fetchone()
        found.append(SpaceStatus(Space(model, dim).id, count, count * dim * NUMBER_BYTES))
    return found


def payload(database: sqlite3.Connection) -> int:
    """Bytes of text, vectors and keyword index, without what SQLite needs to find them."""
    (text,) = database.execute("SELECT total(length(CAST(text AS BLOB))) FROM fx_vec_chunk").fetchone()
    (vectors,) = database.execute("SELECT total(length(v)) FROM fx_vec_embedding").fetchone()
    (words,) = database.execute(
        "SELECT (SELECT total(length(block)) FROM fx_vec_terms_data)"
        " + (SELECT total(length(c0) + length(c1) + length(c2)) FROM fx_vec_terms_content)"
    ).fetchone()
    return int(text + vectors + words)

"""Counting what is stored."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from outcrop.model import Collection, Space
from outcrop.reports import CollectionStatus, SpaceStatus
from outcrop.stores.selection import EVERYWHERE


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
            bytes=sum(chunk[3] + (space.dim * 4 if chunk[4] else 0) for chunk in chunks),
            kinds=dict(sorted(Counter(chunk[0] for chunk in chunks).items())),
        )
        for corpus, chunks in found.items()
    ]


def spaces(database: sqlite3.Connection) -> Sequence[SpaceStatus]:
    """Every space that has vectors."""
    rows = database.execute(
        "SELECT model, dim, count(*), sum(length(v)) FROM fx_vec_embedding GROUP BY model, dim ORDER BY model"
    )
    return [SpaceStatus(Space(model, dim).id, count, size) for model, dim, count, size in rows]


def payload(database: sqlite3.Connection) -> int:
    """Bytes of text, vectors and keyword index, without what SQLite needs to find them."""
    (text,) = database.execute("SELECT total(length(CAST(text AS BLOB))) FROM fx_vec_chunk").fetchone()
    (vectors,) = database.execute("SELECT total(length(v)) FROM fx_vec_embedding").fetchone()
    (words,) = database.execute(
        "SELECT (SELECT total(length(block)) FROM fx_vec_terms_data)"
        " + (SELECT total(length(c0) + length(c1) + length(c2)) FROM fx_vec_terms_content)"
    ).fetchone()
    return int(text + vectors + words)

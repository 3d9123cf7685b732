"""Records of a caller: texts that belong to no file, so that no build knows of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from outcrop.core.model import Part, RecordNote
from outcrop.core.rows import RecordEntry, Upserted
from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.connection import set_meta
from outcrop.stores.sqlite.filters import EVERYWHERE
from outcrop.stores.sqlite.writer import delete_chunks, next_id, take_over_vectors

# In the place of a version that a listing could name.
VERSION = "record"

# Builder of records: no build's pruning takes them out.
NOBODY = ""


def outdated(database: sqlite3.Connection, corpus: str, records: Sequence[RecordEntry]) -> list[RecordEntry]:
    """Those that do not stand there word for word."""
    return [
        record
        for record in records
        if _stored(database, corpus, record.id) != (record.project, record.entry.ref.hash, record.metadata)
        or not _is_cut(database, record)
    ]


def put_in(database: sqlite3.Connection, corpus: str, records: Sequence[RecordEntry]) -> Upserted:
    """Write records that are new or changed inside the open transaction; one of the same id gives way."""
    added = changed = 0
    given_up: set[tuple[str, str]] = set()
    fresh: list[RecordEntry] = []
    for record in records:
        ref = record.entry.ref
        before = _stored(database, corpus, record.id)
        if before is None:
            added += 1
        else:
            changed += 1
            _end_membership(database, corpus, before[0], before[1])
            given_up.add((before[0], before[1]))
        database.execute(
            "INSERT OR REPLACE INTO fx_vec_record VALUES (?, ?, ?, ?, ?)",
            (corpus, record.id, record.project, ref.hash, record.metadata),
        )
        database.execute(
            "INSERT OR REPLACE INTO fx_vec_member VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (EVERYWHERE, corpus, NOBODY, record.project, ref.hash, Part.WHOLE, ref.path or "", ref.kind),
        )
        if not _is_cut(database, record):
            fresh.append(record)
    reused = _insert(database, fresh)
    _drop_unnamed(database, given_up)
    return Upserted(added, changed, 0, reused)


def remove(database: sqlite3.Connection, corpus: str, ids: Iterable[str]) -> int:
    """Take records out; returns how many of them were there."""
    gone: set[tuple[str, str]] = set()
    removed = 0
    for id in ids:
        row = database.execute(
            "DELETE FROM fx_vec_record WHERE corpus = ? AND id = ? RETURNING project, hash", (corpus, id)
        ).fetchone()
        if row is not None:
            removed += 1
            _end_membership(database, corpus, *row)
            gone.add(row)
    _drop_unnamed(database, gone)
    return removed


def remove_corpus(database: sqlite3.Connection, corpus: str) -> int:
    """Take all records of a corpus out."""
    ids = [row[0] for row in database.execute("SELECT id FROM fx_vec_record WHERE corpus = ?", (corpus,)).fetchall()]
    return remove(database, corpus, ids)


def note(database: sqlite3.Connection, project: str, hash: str, corpora: Sequence[str]) -> RecordNote | None:
    """What the caller said of a record; of several of one content, that in a corpus that was asked for."""
    rows = database.execute(
        "SELECT corpus, id, metadata FROM fx_vec_record WHERE project = ? AND hash = ? ORDER BY corpus", (project, hash)
    ).fetchall()
    rows.sort(key=lambda row: row[0] not in corpora)
    return RecordNote(rows[0][1], json.loads(rows[0][2])) if rows else None


def _stored(database: sqlite3.Connection, corpus: str, id: str) -> tuple[str, str, str] | None:
    """Project, hash and metadata of a record."""
    row: tuple[str, str, str] | None = database.execute(
        "SELECT project, hash, metadata FROM fx_vec_record WHERE corpus = ? AND id = ?", (corpus, id)
    ).fetchone()
    return row


def _is_cut(database: sqlite3.Connection, record: RecordEntry) -> bool:
    """Whether its chunks are there, as they would be cut now."""
    row = database.execute(
        "SELECT recipe FROM fx_vec_artifact WHERE project = ? AND hash = ?", (record.project, record.entry.ref.hash)
    ).fetchone()
    return row is not None and row[0] == record.entry.recipe


def _insert(database: sqlite3.Connection, records: Sequence[RecordEntry]) -> int:
    """Store chunks; returns how many of them took over a vector."""
    first = next_id(database)
    chunks: list[tuple[object, ...]] = []
    words: list[keywords.TermRow] = []
    aside: list[int] = []
    for record in {(record.project, record.entry.ref.hash): record for record in records}.values():
        ref = record.entry.ref
        aside += [
            row[0]
            for row in database.execute(
                "UPDATE fx_vec_chunk SET seq = -1 - seq WHERE project = ? AND hash = ? RETURNING id",
                (record.project, ref.hash),
            ).fetchall()
        ]
        database.execute(
            "INSERT OR REPLACE INTO fx_vec_artifact(project, hash, version, recipe, paths) VALUES (?, ?, ?, ?, ?)",
            (record.project, ref.hash, VERSION, record.entry.recipe, ref.path or ""),
        )
        for item in record.entry.chunks:
            id, chunk = first + len(chunks), item.chunk
            chunks.append(
                (
                    *(id, record.project, ref.hash, ref.kind, ref.path, chunk.seq, chunk.text, chunk.name),
                    *(chunk.first_line, chunk.last_line, item.digest),
                )
            )
            terms = (chunk.name or "", ref.path or "", chunk.text)
            words.append((id, *(keywords.terms_of(text) for text in terms)))  # type: ignore[arg-type]
    if not chunks:
        return 0
    set_meta(database, "last_id", str(first + len(chunks) - 1))
    database.executemany(
        "INSERT INTO fx_vec_chunk(id, project, hash, kind, path, seq, text, name, first_line, last_line, digest)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        chunks,
    )
    keywords.insert(database, words)
    reused = take_over_vectors(database, first - 1)
    delete_chunks(database, aside)
    return reused


def _end_membership(database: sqlite3.Connection, corpus: str, project: str, hash: str) -> None:
    database.execute(
        "DELETE FROM fx_vec_member WHERE project = ? AND hash = ? AND worktree = ? AND corpus = ? AND builder = ?",
        (project, hash, EVERYWHERE, corpus, NOBODY),
    )


def _drop_unnamed(database: sqlite3.Connection, artifacts: Iterable[tuple[str, str]]) -> None:
    """Delete what no corpus names any more."""
    for artifact in artifacts:
        if database.execute("SELECT 1 FROM fx_vec_member WHERE project = ? AND hash = ?", artifact).fetchone():
            continue
        ids = database.execute("SELECT id FROM fx_vec_chunk WHERE project = ? AND hash = ?", artifact).fetchall()
        delete_chunks(database, [row[0] for row in ids])
        database.execute("DELETE FROM fx_vec_artifact WHERE project = ? AND hash = ?", artifact)

"""Records of a caller: texts that belong to no file, so that no build knows of them."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from outcrop.core.model import Part, RecordNote
from outcrop.core.rows import ArtifactKey, Entry, RecordEntry, Upserted
from outcrop.stores.sqlite import writer
from outcrop.stores.sqlite.filters import EVERYWHERE

# In the place of a version that a listing could name.
VERSION = "record"

# Builder of records: no build's pruning removes them.
NO_BUILDER = ""


def outdated(database: sqlite3.Connection, corpus: str, records: Sequence[RecordEntry]) -> list[RecordEntry]:
    """Those that are not stored word for word."""
    return [
        record
        for record in records
        if _stored(database, corpus, record.id) != (record.project, record.entry.ref.hash, record.metadata)
        or not _is_cut(database, record)
    ]


def write(database: sqlite3.Connection, corpus: str, records: Sequence[RecordEntry]) -> Upserted:
    changed = reused = 0
    replaced: set[ArtifactKey] = set()
    new: dict[str, dict[str, Entry]] = defaultdict(dict)
    for record in records:
        entry, ref = record.entry, record.entry.ref
        before = _stored(database, corpus, record.id)
        if before is not None:
            changed += 1
            _end_membership(database, corpus, before[:2])
            replaced.add(before[:2])
        database.execute(
            "INSERT OR REPLACE INTO fx_vec_record VALUES (?, ?, ?, ?, ?)",
            (corpus, record.id, record.project, ref.hash, record.metadata),
        )
        database.execute(
            "INSERT OR REPLACE INTO fx_vec_member VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (EVERYWHERE, corpus, NO_BUILDER, record.project, ref.hash, Part.WHOLE, ref.path or "", ref.kind),
        )
        if not _is_cut(database, record):
            new[record.project][ref.hash] = replace(entry, ref=replace(ref, version=VERSION))
    for project, entries in new.items():
        reused += writer.insert(database, writer.prepare(list(entries.values()), project)).reused
    _drop_unnamed(database, replaced)
    return Upserted(len(records) - changed, changed, 0, reused)


def remove(database: sqlite3.Connection, corpus: str, ids: Iterable[str]) -> int:
    """Remove records; returns how many of them were there."""
    gone: list[ArtifactKey] = []
    for record_id in ids:
        question = "DELETE FROM fx_vec_record WHERE corpus = ? AND id = ? RETURNING project, hash"
        row = database.execute(question, (corpus, record_id)).fetchone()
        if row is not None:
            _end_membership(database, corpus, row)
            gone.append(row)
    _drop_unnamed(database, set(gone))
    return len(gone)


def note(database: sqlite3.Connection, artifact: ArtifactKey, corpora: Sequence[str]) -> RecordNote | None:
    """What the caller said of a record; of several of one content, that in a corpus that was asked for."""
    rows = database.execute(
        "SELECT corpus, id, metadata FROM fx_vec_record WHERE project = ? AND hash = ? ORDER BY corpus", artifact
    ).fetchall()
    rows.sort(key=lambda row: row[0] not in corpora)
    return RecordNote(rows[0][1], json.loads(rows[0][2])) if rows else None


def _stored(database: sqlite3.Connection, corpus: str, record_id: str) -> tuple[str, str, str] | None:
    row: tuple[str, str, str] | None = database.execute(
        "SELECT project, hash, metadata FROM fx_vec_record WHERE corpus = ? AND id = ?", (corpus, record_id)
    ).fetchone()
    return row


def _is_cut(database: sqlite3.Connection, record: RecordEntry) -> bool:
    """Whether its chunks are there, as they would be cut now."""
    row = database.execute(
        "SELECT recipe FROM fx_vec_artifact WHERE project = ? AND hash = ?", (record.project, record.entry.ref.hash)
    ).fetchone()
    return row is not None and row[0] == record.entry.recipe


def _end_membership(database: sqlite3.Connection, corpus: str, artifact: ArtifactKey) -> None:
    database.execute(
        "DELETE FROM fx_vec_member WHERE project = ? AND hash = ? AND worktree = ? AND corpus = ? AND builder = ?",
        (*artifact, EVERYWHERE, corpus, NO_BUILDER),
    )


def _drop_unnamed(database: sqlite3.Connection, artifacts: Iterable[ArtifactKey]) -> None:
    for artifact in artifacts:
        if not database.execute("SELECT 1 FROM fx_vec_member WHERE project = ? AND hash = ?", artifact).fetchone():
            writer.delete_chunks(database, writer.chunk_ids(database, artifact))
            database.execute("DELETE FROM fx_vec_artifact WHERE project = ? AND hash = ?", artifact)

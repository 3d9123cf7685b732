"""Stored rows back to chunks and passages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from outcrop.errors import FormatError, StoreDamaged
from outcrop.model import Chunk, Filter, Kind, MediaNote, Part, Space
from outcrop.records import Embedded, Passage
from outcrop.stores import selection, upserts
from outcrop.vectors import from_bytes

CHUNK_COLUMNS = "c.seq, c.text, c.first_line, c.last_line, c.name, c.part, c.cell, c.cell_id, c.start_s, c.end_s"
"""What :func:`stored_chunk` takes, in order; ``c`` is ``fx_vec_chunk``."""


def stored_chunk(row: Sequence[Any]) -> Chunk:
    """A chunk from ``CHUNK_COLUMNS``; its offsets are not stored and come back as 0."""
    seq, text, first_line, last_line, name, part, cell, cell_id, start_s, end_s = row
    return Chunk(
        seq=seq,
        text=text,
        start=0,
        end=0,
        first_line=first_line,
        last_line=last_line,
        name=name,
        part=Part(part),
        cell=cell,
        cell_id=cell_id,
        seconds=None if start_s is None else (start_s, end_s),
    )


def passage(database: sqlite3.Connection, worktree: str, id: int, wanted: Filter) -> Passage | None:
    """One chunk with where it stands in a view, or None when it is gone."""
    row = database.execute(
        f"SELECT c.hash, c.project, c.kind, a.version, c.uri, c.transcript, {CHUNK_COLUMNS} FROM fx_vec_chunk c"
        " LEFT JOIN fx_vec_artifact a ON a.project = c.project AND a.hash = c.hash WHERE c.id = ?",
        (id,),
    ).fetchone()
    if row is None:
        return None
    hash, project, kind, version, uri, transcript = row[:6]
    chunk = stored_chunk(row[6:])
    matches = selection.path_matcher(wanted.paths)
    rows = database.execute(
        "SELECT corpus, project, path, kind, worktree FROM fx_vec_member WHERE project = ? AND hash = ? AND part = ?"
        " AND worktree IN (?, ?) ORDER BY path, corpus",
        (project, hash, chunk.part, worktree, selection.EVERYWHERE),
    ).fetchall()
    members = [selection.MemberRow(*values[:4]) for values in rows]
    (siblings,) = database.execute(
        "SELECT count(*) FROM fx_vec_chunk WHERE project = ? AND hash = ?", (project, hash)
    ).fetchone()
    members.sort(key=lambda member: not selection.passes(member, wanted, matches))
    return Passage(
        id=id,
        hash=hash,
        project=project,
        kind=Kind(members[0].kind if members else kind),
        paths=tuple(dict.fromkeys(member.path for member in members if member.path)),
        corpora=tuple(dict.fromkeys(member.corpus for member in members)),
        chunk=chunk,
        siblings=siblings,
        version=version if any(values[4] == worktree for values in rows) else None,
        record=upserts.note(database, project, hash, wanted.corpora) if version == upserts.VERSION else None,
        media=None if uri is None else MediaNote(uri, transcript),
    )


def embedded(database: sqlite3.Connection, worktree: str, space: Space, hash: str) -> Sequence[Embedded]:
    """The chunks of one of this source's artifacts that a view shows, by ``seq``, each with its vector if there is one.

    Raises:
        StoreDamaged: A vector has another length than the space says.
    """
    found = database.execute(
        f"SELECT c.digest, e.v, c.uri, c.transcript, {CHUNK_COLUMNS} FROM fx_vec_chunk c"
        " LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = ?"
        " WHERE c.project = '' AND c.hash = ? AND EXISTS(SELECT 1 FROM fx_vec_member m"
        " WHERE m.project = '' AND m.hash = c.hash AND m.part = c.part AND m.worktree = ?) ORDER BY c.seq",
        (space.model, hash, worktree),
    ).fetchall()
    try:
        return [
            Embedded(
                stored_chunk(columns),
                digest,
                None if data is None else from_bytes(data, space.dim),
                None if uri is None else MediaNote(uri, transcript),
            )
            for digest, data, uri, transcript, *columns in found
        ]
    except FormatError as error:
        raise StoreDamaged(
            f"a stored vector of {space.id} has the wrong length", "Make the index again: outcrop rebuild"
        ) from error

"""Stored rows back to chunks and passages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from outcrop.model import Chunk, Filter, Kind, Part
from outcrop.records import Passage
from outcrop.stores import selection

CHUNK_COLUMNS = "seq, text, first_line, last_line, name, part, cell"
"""What :func:`stored_chunk` takes, in order."""


def stored_chunk(row: Sequence[Any]) -> Chunk:
    """A chunk from ``CHUNK_COLUMNS``; its offsets are not stored and come back as 0."""
    seq, text, first_line, last_line, name, part, cell = row
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
    )


def passage(database: sqlite3.Connection, worktree: str, id: int, wanted: Filter) -> Passage | None:
    """One chunk with where it stands in a view, or None when it is gone."""
    row = database.execute(
        f"SELECT hash, project, kind, {CHUNK_COLUMNS} FROM fx_vec_chunk WHERE id = ?", (id,)
    ).fetchone()
    if row is None:
        return None
    hash, project, kind = row[:3]
    chunk = stored_chunk(row[3:])
    matches = selection.path_matcher(wanted.paths)
    members = [
        selection.MemberRow(*values)
        for values in database.execute(
            "SELECT corpus, project, path, kind FROM fx_vec_member WHERE project = ? AND hash = ? AND part = ?"
            " AND worktree IN (?, ?) ORDER BY path, corpus",
            (project, hash, chunk.part, worktree, selection.EVERYWHERE),
        )
    ]
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
    )

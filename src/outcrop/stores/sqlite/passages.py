"""Stored rows back to chunks and passages."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from outcrop import chunking
from outcrop.core.batches import slices
from outcrop.core.model import Chunk, Filter, Kind, MediaNote, Part, Space
from outcrop.core.rows import ArtifactKey, Digested, Embedded, Passage, PassageRef, RefusedChunk
from outcrop.core.vectors import from_bytes
from outcrop.stores.sqlite import upserts
from outcrop.stores.sqlite.filters import EVERYWHERE
from outcrop.stores.sqlite.matrix import checked_lengths
from outcrop.text.globs import path_matcher

# Things that one statement asks for; SQLite may be built to take no more than 999 parameters.
MAX_ROWS = 300

# The arguments of :func:`stored_chunk`, in order; ``c`` is ``fx_vec_chunk``.
CHUNK_COLUMNS = "c.seq, c.text, c.first_line, c.last_line, c.name, c.part, c.cell, c.cell_id, c.start_s, c.end_s"


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


def passages(database: sqlite3.Connection, worktree: str, ids: Sequence[int], wanted: Filter) -> dict[int, Passage]:
    """Chunks with their places in a view, by id in the order asked for; those that are gone are missing."""
    rows: dict[int, Sequence[Any]] = {}
    for some in slices(list(dict.fromkeys(ids)), MAX_ROWS):
        marks = ", ".join("?" * len(some))
        for row in database.execute(
            f"SELECT c.id, c.hash, c.project, c.kind, a.version, c.uri, c.transcript, {CHUNK_COLUMNS}"
            " FROM fx_vec_chunk c LEFT JOIN fx_vec_artifact a ON a.project = c.project AND a.hash = c.hash"
            f" WHERE c.id IN ({marks})",
            some,
        ):
            rows[row[0]] = row[1:]
    artifacts = list(dict.fromkeys((row[1], row[0]) for row in rows.values()))
    members = _members(database, worktree, artifacts)
    siblings = _siblings(database, artifacts)
    matches = path_matcher(wanted.paths)
    found: dict[int, Passage] = {}
    for chunk_id in ids:
        if chunk_id in rows:
            artifact, project, kind, version, uri, transcript, *columns = rows[chunk_id]
            chunk = stored_chunk(columns)
            placed = members.get((project, artifact, chunk.part), [])
            if len(placed) > 1:
                placed = sorted(placed, key=lambda member: not _passes(member, wanted, matches))
            found[chunk_id] = Passage(
                id=chunk_id,
                hash=artifact,
                project=project,
                kind=Kind(placed[0].kind if placed else kind),
                paths=tuple(dict.fromkeys(member.path for member in placed if member.path)),
                corpora=tuple(dict.fromkeys(member.corpus for member in placed)),
                chunk=chunk,
                siblings=siblings[project, artifact],
                version=version if any(member.worktree == worktree for member in placed) else None,
                record=upserts.note(database, (project, artifact), wanted.corpora)
                if version == upserts.VERSION
                else None,
                media=None if uri is None else MediaNote(uri, transcript),
            )
    return found


class _Membership(NamedTuple):
    """One membership of a chunk; its path is empty for what has none."""

    corpus: str
    project: str
    path: str
    kind: str
    worktree: str


def _passes(member: _Membership, wanted: Filter, matches: Callable[[str], bool]) -> bool:
    return (
        (not wanted.corpora or member.corpus in wanted.corpora)
        and (not wanted.kinds or member.kind in wanted.kinds)
        and (not wanted.projects or member.project in wanted.projects)
        and (not wanted.paths or (member.path != "" and matches(member.path)))
    )


def _members(
    database: sqlite3.Connection, worktree: str, artifacts: Sequence[ArtifactKey]
) -> dict[tuple[str, str, str], list[_Membership]]:
    """Memberships by project, hash and part, each by path and corpus."""
    found: dict[tuple[str, str, str], list[_Membership]] = defaultdict(list)
    for some in slices(artifacts, MAX_ROWS):
        for artifact, part, *values in database.execute(
            f"{_wanted(some)} SELECT m.hash, m.part, m.corpus, m.project, m.path, m.kind, m.worktree FROM wanted w"
            " CROSS JOIN fx_vec_member m ON m.project = w.project AND m.hash = w.hash"
            " WHERE m.worktree IN (?, ?) ORDER BY m.path, m.corpus",
            (*chain.from_iterable(some), worktree, EVERYWHERE),
        ):
            member = _Membership(*values)
            found[member.project, artifact, part].append(member)
    return found


def _siblings(database: sqlite3.Connection, artifacts: Sequence[ArtifactKey]) -> dict[ArtifactKey, int]:
    return {
        (project, artifact): count
        for some in slices(artifacts, MAX_ROWS)
        for project, artifact, count in database.execute(
            f"{_wanted(some)} SELECT w.project, w.hash, (SELECT count(*) FROM fx_vec_chunk c"
            " WHERE c.project = w.project AND c.hash = w.hash) FROM wanted w",
            tuple(chain.from_iterable(some)),
        )
    }


def _wanted(artifacts: Sequence[ArtifactKey]) -> str:
    return f"WITH wanted(project, hash) AS (VALUES {', '.join(['(?, ?)'] * len(artifacts))})"


def pending(database: sqlite3.Connection, space: Space, chosen: frozenset[int] | None) -> Sequence[Digested]:
    """Distinct chunks that a space is not done with, in index order; of these ids only where some are chosen."""
    rows = database.execute(
        f"SELECT id, digest, kind = :commit, {CHUNK_COLUMNS} FROM fx_vec_chunk c"
        " WHERE NOT EXISTS(SELECT 1 FROM fx_vec_embedding e"
        " WHERE e.chunk_id = c.id AND e.model = :model AND e.dim = :dim)"
        " AND NOT EXISTS(SELECT 1 FROM fx_vec_refused r"
        " WHERE r.digest = c.digest AND r.model = :model AND r.dim = :dim)"
        " ORDER BY id",
        {"commit": Kind.COMMIT, "model": space.model, "dim": space.dim},
    )
    found: dict[bytes, Digested] = {}
    for chunk_id, digest, is_commit, *columns in rows:
        if digest not in found and (chosen is None or chunk_id in chosen):
            found[digest] = Digested(stored_chunk(columns), digest, is_commit=bool(is_commit))
    return list(found.values())


def refused(database: sqlite3.Connection, space: Space, chosen: frozenset[int] | None) -> Sequence[RefusedChunk]:
    """Chunks that the embedder of a space refused, by when it was last tried; of these ids where some are chosen."""
    rows = database.execute(
        f"SELECT c.id, c.digest, c.kind = ?, coalesce(c.path, c.hash), r.reason, {CHUNK_COLUMNS}"
        " FROM fx_vec_refused r CROSS JOIN fx_vec_chunk c ON c.digest = r.digest WHERE r.model = ? AND r.dim = ?"
        " AND NOT EXISTS(SELECT 1 FROM fx_vec_embedding e"
        " WHERE e.chunk_id = c.id AND e.model = r.model AND e.dim = r.dim)"
        " ORDER BY r.tried, c.id",
        (Kind.COMMIT, space.model, space.dim),
    )
    return [
        RefusedChunk(stored_chunk(columns), digest, path, reason, is_commit=bool(is_commit))
        for chunk_id, digest, is_commit, path, reason, *columns in rows
        if chosen is None or chunk_id in chosen
    ]


def embedded(database: sqlite3.Connection, worktree: str, space: Space, artifact: str) -> Sequence[Embedded]:
    """The chunks of one of this source's artifacts that a view shows, by ``seq``, with vectors where there are some."""
    found = database.execute(
        f"SELECT c.digest, e.v, c.uri, c.transcript, {CHUNK_COLUMNS} FROM fx_vec_chunk c"
        " LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = ? AND e.dim = ?"
        " WHERE c.project = '' AND c.hash = ? AND EXISTS(SELECT 1 FROM fx_vec_member m"
        " WHERE m.project = '' AND m.hash = c.hash AND m.part = c.part AND m.worktree = ?) ORDER BY c.seq",
        (space.model, space.dim, artifact, worktree),
    ).fetchall()
    with checked_lengths(space):
        return [
            Embedded(
                stored_chunk(columns),
                digest,
                None if data is None else from_bytes(data, space.dim),
                None if uri is None else MediaNote(uri, transcript),
            )
            for digest, data, uri, transcript, *columns in found
        ]


def refs(database: sqlite3.Connection, worktree: str, chosen: frozenset[int] | None) -> Sequence[PassageRef]:
    """Every passage of a view, in index order; of these ids only where some are chosen."""
    members = database.execute(
        "SELECT project, hash, part, path FROM fx_vec_member WHERE worktree IN (?, ?) AND path <> '' ORDER BY path",
        (worktree, EVERYWHERE),
    )
    paths: dict[tuple[str, str, str], dict[str, None]] = {}
    for *key, path in members:
        paths.setdefault(tuple(key), {})[path] = None
    rows = database.execute(
        "SELECT id, project, hash, part, first_line, last_line, name, cell FROM fx_vec_chunk ORDER BY id"
    )
    return [
        PassageRef(project, artifact, tuple(paths.get((project, artifact, part), ())), (first, last), name, cell)
        for chunk_id, project, artifact, part, first, last, name, cell in rows
        if chosen is None or chunk_id in chosen
    ]


def text_of(database: sqlite3.Connection, artifact: ArtifactKey) -> tuple[str, str]:
    lines: list[str] = []
    form = "windows"
    rows = database.execute(
        "SELECT text, first_line, path, kind FROM fx_vec_chunk WHERE project = ? AND hash = ? ORDER BY seq", artifact
    )
    for text, first, path, kind in rows:
        form = chunking.format_of(path, Kind(kind))
        beginning, *rest = text.split("\n")
        lines += [""] * (first - len(lines))
        # A passage may begin where its predecessor's last line ends.
        lines[first - 1] += beginning
        lines[first:] = rest
    return "\n".join(lines), form

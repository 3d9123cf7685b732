"""What the store remembers of artifacts, files and corpora beside the passages themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from outcrop.model import Kind, Part, Seen, Skipped, SkipReason
from outcrop.records import Known, Member, Names
from outcrop.stores.selection import EVERYWHERE


def known(database: sqlite3.Connection, project: str) -> Mapping[str, Known]:
    """Per hash, what is stored of a project's artifacts; the empty project is this source's."""
    rows = database.execute(
        "SELECT hash, version, recipe, skip, detail, parts FROM fx_vec_artifact WHERE project = ?", (project,)
    )
    return {
        hash: Known(
            version,
            recipe,
            None if skip is None else SkipReason(skip),
            detail,
            frozenset(Part(part) for part in parts.split(",")) if parts else frozenset({Part.WHOLE}),
        )
        for hash, version, recipe, skip, detail, parts in rows
    }


def seen(database: sqlite3.Connection, worktree: str) -> Mapping[str, Seen]:
    """File states of a view's last build."""
    rows = database.execute("SELECT path, size, mtime_ns, inode, hash FROM fx_vec_file WHERE worktree = ?", (worktree,))
    return {path: Seen(size, mtime, inode, hash) for path, size, mtime, inode, hash in rows}


def skipped(database: sqlite3.Connection, worktree: str) -> Sequence[Skipped]:
    """What a view's last build left out, by path."""
    rows = database.execute(
        "SELECT path, reason, detail, hash FROM fx_vec_skip WHERE worktree = ? ORDER BY path, reason", (worktree,)
    )
    return [Skipped(path, SkipReason(reason), detail, hash) for path, reason, detail, hash in rows]


def names(database: sqlite3.Connection, worktree: str) -> Names:
    """What filters may name in a view."""
    question = "SELECT DISTINCT {} FROM fx_vec_member WHERE worktree IN (?, ?)"
    columns = (
        frozenset(row[0] for row in database.execute(question.format(column), (worktree, EVERYWHERE)))
        for column in ("corpus", "kind", "project")
    )
    return Names(*columns)


def members(database: sqlite3.Connection, worktree: str, builder: str | None) -> Sequence[Member]:
    """What the last build of a corpus, or of each of them, put into a view."""
    rows = database.execute(
        "SELECT corpus, builder, hash, part, path, kind FROM fx_vec_member"
        " WHERE project = '' AND worktree = ? AND (builder = ? OR ? IS NULL)",
        (worktree, builder, builder),
    )
    return [
        Member(corpus, builder, hash, Part(part), path or None, Kind(kind))
        for corpus, builder, hash, part, path, kind in rows
    ]


def revisions(database: sqlite3.Connection, worktree: str) -> Mapping[str, str]:
    """Per corpus, the revision of its last complete build."""
    return dict(database.execute("SELECT builder, revision FROM fx_vec_built WHERE worktree = ?", (worktree,)))


def artifacts(database: sqlite3.Connection, worktree: str) -> int:
    """How many artifacts belong to a view."""
    (count,) = database.execute(
        "SELECT count(DISTINCT project || '/' || hash) FROM fx_vec_member WHERE worktree IN (?, ?)",
        (worktree, EVERYWHERE),
    ).fetchone()
    return int(count)

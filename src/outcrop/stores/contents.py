"""What is indexed, one artifact or one count at a time: for whoever shows the index instead of searching it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from outcrop.model import Kind
from outcrop.stores.selection import EVERYWHERE

_CARRIED = frozenset({Kind.WIKI, Kind.TECHNOTE, Kind.TICKET, Kind.FORUM})
"""Kinds whose text stands inside a structured artifact, so that no size is known of them."""


@dataclass(frozen=True, slots=True)
class Row:
    """An artifact that a view names.

    Attributes:
        hash: Content address.
        kind: Its kind at that path.
        path: Where it stands, or None.
        paths: Every other path at which this view has it.
        project: Slug of its repository; empty for this one.
        version: ``Ref.version`` when it was read.
        size: Not None where its source is asked for plain bytes.
        readable: Whether its source knows it; false for records.
    """

    hash: str
    kind: Kind
    path: str | None
    paths: tuple[str, ...]
    project: str
    version: str | None
    size: int | None
    readable: bool = True


@dataclass(frozen=True, slots=True)
class StoredText:
    """One passage as it is stored."""

    text: str
    first_line: int
    cell: int | None


@dataclass(frozen=True, slots=True)
class Facet:
    """How many passages of a view have a corpus (empty: any), a kind and a project (empty: this one)."""

    corpus: str
    kind: Kind
    project: str
    chunks: int


def find(
    database: sqlite3.Connection,
    worktree: str,
    *,
    path: str | None,
    hash: str | None,
    project: str,
    kinds: Collection[Kind] | None,
) -> Row | None:
    """The artifact at a path, or with a hash, or both; None where the view has none of a kind that may be seen."""
    conditions, values = ["m.project = ?", "m.worktree IN (?, ?)"], [project, worktree, EVERYWHERE]
    for column, wanted in (("path", path), ("hash", hash)):
        if wanted is not None:
            conditions.append(f"m.{column} = ?")
            values.append(wanted)
    found = database.execute(
        "SELECT m.hash, m.kind, m.path, a.version, m.worktree FROM fx_vec_member m"
        " LEFT JOIN fx_vec_artifact a ON a.project = m.project AND a.hash = m.hash"
        f" WHERE {' AND '.join(conditions)} ORDER BY m.worktree = ? , m.path, m.corpus",
        (*values, EVERYWHERE),
    ).fetchall()
    rows = [row for row in found if kinds is None or row[1] in kinds]
    if not rows:
        return None
    first, kind, where, version, view = rows[0]
    others = database.execute(
        "SELECT DISTINCT path FROM fx_vec_member WHERE project = ? AND hash = ? AND worktree IN (?, ?) AND path <> ''"
        " ORDER BY path",
        (project, first, worktree, EVERYWHERE),
    )
    return Row(
        hash=first,
        kind=Kind(kind),
        path=where or None,
        paths=tuple(row[0] for row in others),
        project=project,
        version=version,
        size=None if kind in _CARRIED else 0,
        readable=view != EVERYWHERE,
    )


def chunks(database: sqlite3.Connection, project: str, hash: str) -> Sequence[StoredText]:
    """The passages of one artifact, in order."""
    rows = database.execute(
        "SELECT text, first_line, cell FROM fx_vec_chunk WHERE project = ? AND hash = ? ORDER BY seq", (project, hash)
    )
    return [StoredText(*row) for row in rows]


def facets(database: sqlite3.Connection, worktree: str) -> Sequence[Facet]:
    """Passages of a view per corpus, kind and project, and, with an empty corpus, per kind and project alone.

    A passage that is in two corpora counts in both, and once in the second sort of row.
    """
    # Both statements are answered by an index; joining them here passes no text.
    whole: dict[tuple[str, str], int] = {
        (project, hash): count
        for project, hash, count in database.execute(
            "SELECT project, hash, count(*) FROM fx_vec_chunk GROUP BY project, hash"
        )
    }
    rows = database.execute(
        "SELECT DISTINCT corpus, kind, project, hash, part FROM fx_vec_member WHERE worktree IN (?, ?)",
        (worktree, EVERYWHERE),
    ).fetchall()
    in_part = "SELECT count(*) FROM fx_vec_chunk WHERE project = ? AND hash = ? AND part = ?"
    parts = {key: database.execute(in_part, key).fetchone()[0] for key in {row[2:] for row in rows if row[4]}}
    sums: dict[tuple[str, str, str], int] = {}
    counted: set[tuple[str, str, str, str]] = set()
    for corpus, kind, project, hash, part in rows:
        count = parts[project, hash, part] if part else whole.get((project, hash), 0)
        names = [corpus] if (kind, project, hash, part) in counted else [corpus, ""]
        counted.add((kind, project, hash, part))
        for name in names:
            sums[name, kind, project] = sums.get((name, kind, project), 0) + count
    return [
        Facet(corpus, Kind(kind), project, count) for (corpus, kind, project), count in sorted(sums.items()) if count
    ]

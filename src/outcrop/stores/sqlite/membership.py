"""What belongs to a view: comparing what a build says with what is stored, and writing the change."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from outcrop.core.batches import slices
from outcrop.core.model import FileState, Skipped, SkipReason
from outcrop.core.names import COMMITS, DEFAULT_BUILDERS
from outcrop.core.reports import CutByLines
from outcrop.core.rows import Member, Replaced, View
from outcrop.stores.sqlite import filters, keywords
from outcrop.stores.sqlite.connection import meta, set_meta
from outcrop.stores.sqlite.writer import chunk_ids, delete_chunks

# Corpus, builder, hash, part, path ('' for none), kind.
MemberKey = tuple[str, str, str, str, str, str]

# Parameters of one statement; SQLite may be built to take no more than 999.
_MAX_PARAMETERS = 500


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """How a view has to change.

    Attributes:
        skipped: None where that is as before.
        unplaced: Whether artifacts are stored that no view names yet.
    """

    gone: frozenset[MemberKey]
    new: frozenset[MemberKey]
    seen: tuple[Mapping[str, FileState], Mapping[str, FileState]]
    skipped: Sequence[Skipped] | None
    dead: Sequence[str]
    unplaced: bool
    builders: Sequence[str]

    def __bool__(self) -> bool:
        moved = self.seen[0] != self.seen[1]
        return bool(self.gone or self.new or moved or self.skipped is not None or self.dead or self.unplaced)


def compare(database: sqlite3.Connection, worktree: str, view: View) -> MembershipChange:
    """What has to be written for a view; reads only."""
    there = stored_keys(database, "", worktree, view.builders)
    wanted = frozenset(map(key_of, view.members))
    by_key = {(item.path, item.reason): item for item in view.skipped}
    skipped = [by_key[key] for key in sorted(by_key)]
    return MembershipChange(
        gone=there - wanted,
        new=wanted - there,
        seen=(view.seen, file_states(database, worktree)),
        skipped=None if skipped == list(skipped_artifacts(database, worktree)) else skipped,
        dead=_dead_worktrees(database, view.worktrees),
        unplaced=meta(database, "unplaced") == "new",
        builders=view.builders,
    )


def apply(database: sqlite3.Connection, worktree: str, change: MembershipChange) -> Replaced:
    """Write a change, drop artifacts that no view names any more, and update paths and kinds."""
    moved = {key[2] for key in (*change.gone, *change.new)}
    for name in change.dead:
        gone = "DELETE FROM fx_vec_member WHERE worktree = ? AND project = '' RETURNING hash"
        moved.update(row[0] for row in database.execute(gone, (name,)).fetchall())
        for table in ("file", "skip", "built"):
            database.execute(f"DELETE FROM fx_vec_{table} WHERE worktree = ?", (name,))
    _replace_files(database, worktree, *change.seen)
    if change.skipped is not None:
        database.execute("DELETE FROM fx_vec_skip WHERE worktree = ?", (worktree,))
        database.executemany(
            "INSERT OR REPLACE INTO fx_vec_skip VALUES (?, ?, ?, ?, ?)",
            ((worktree, item.path, item.reason, item.detail, item.hash) for item in change.skipped),
        )
    change_members(database, "", worktree, change.gone, change.new)
    if change.gone or change.new:
        # Until the build is complete this is no known revision: its source may go back to the one before.
        database.executemany(
            "DELETE FROM fx_vec_built WHERE worktree = ? AND builder = ?",
            ((worktree, builder) for builder in change.builders),
        )
    dropped = drop_unplaced(database)
    update_paths(database, "", moved)
    return dropped


def stored_keys(
    database: sqlite3.Connection, project: str, worktree: str, builders: Sequence[str]
) -> frozenset[MemberKey]:
    marks = ", ".join("?" * len(builders))
    return frozenset(
        database.execute(
            "SELECT corpus, builder, hash, part, path, kind FROM fx_vec_member"
            f" WHERE project = ? AND worktree = ? AND builder IN ({marks})",
            (project, worktree, *builders),
        )
    )


def change_members(
    database: sqlite3.Connection, project: str, worktree: str, gone: Collection[MemberKey], new: Collection[MemberKey]
) -> None:
    database.executemany(
        "DELETE FROM fx_vec_member WHERE project = ? AND worktree = ? AND corpus = ? AND builder = ? AND hash = ?"
        " AND part = ? AND path = ? AND kind = ?",
        ((project, worktree, *key) for key in gone),
    )
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_member(project, worktree, corpus, builder, hash, part, path, kind)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((project, worktree, *key) for key in sorted(new, key=lambda key: key[2])),
    )


def drop_unplaced(database: sqlite3.Connection, project: str = "") -> Replaced:
    """Delete artifacts that no view names: this source's, and what an import that was stopped left of a peer's.

    Returns:
        How much of this project is gone.
    """
    artifacts = database.execute(
        "SELECT project, hash FROM fx_vec_artifact a"
        " WHERE NOT EXISTS(SELECT 1 FROM fx_vec_member m WHERE m.project = a.project AND m.hash = a.hash)"
        # What is known of a skipped artifact is kept as long as a file that was skipped still has this hash; a notebook
        # of raw cells alone is skipped without a verdict, since another build may ask for them.
        " AND NOT (project = '' AND (skip IS NOT NULL OR parts = 'raw') AND hash IN (SELECT hash FROM fx_vec_skip))"
    ).fetchall()
    ids = [(artifact[0], chunk_id) for artifact in artifacts for chunk_id in chunk_ids(database, artifact)]
    delete_chunks(database, [chunk_id for _, chunk_id in ids])
    database.executemany("DELETE FROM fx_vec_artifact WHERE project = ? AND hash = ?", artifacts)
    # A part that no corpus has (a notebook's raw cells) stays stored and is found by no search.
    (unplaced_parts,) = database.execute(
        "SELECT EXISTS(SELECT 1 FROM fx_vec_artifact a JOIN fx_vec_chunk c ON c.project = a.project AND c.hash = a.hash"
        " WHERE a.parts <> '' AND NOT EXISTS(SELECT 1 FROM fx_vec_member m"
        " WHERE m.project = c.project AND m.hash = c.hash AND m.part = c.part))"
    ).fetchone()
    set_meta(database, "unplaced", "parts" if unplaced_parts else "none")
    return Replaced(sum(name == project for name, _ in artifacts), sum(name == project for name, _ in ids))


def drop_corpus(database: sqlite3.Connection, worktree: str, corpus: str) -> None:
    """Remove a corpus from a view, with what its builds put into others."""
    gone = database.execute(
        "DELETE FROM fx_vec_member WHERE worktree = ? AND (corpus = ? OR builder = ?) RETURNING builder, hash",
        (worktree, corpus, corpus),
    ).fetchall()
    # A build whose artifacts are not all there any more is not complete; that of commits is part of the others.
    incomplete = {corpus, *(row[0] for row in gone), *((COMMITS,) if corpus in DEFAULT_BUILDERS else ())}
    database.executemany(
        "DELETE FROM fx_vec_built WHERE worktree = ? AND builder = ?",
        ((worktree, builder) for builder in incomplete),
    )
    drop_unplaced(database)
    update_paths(database, "", {row[1] for row in gone})


def copy_others(database: sqlite3.Connection, empty: sqlite3.Connection) -> None:
    """Copy what does not come from this source, with its vectors: records of callers, imported projects."""
    chunks = f"(project, hash) IN (SELECT project, hash FROM fx_vec_member WHERE worktree = '{filters.EVERYWHERE}')"
    for table, condition in (
        ("chunk", chunks),
        ("embedding", f"chunk_id IN (SELECT id FROM fx_vec_chunk WHERE {chunks})"),
        ("artifact", chunks),
        ("member", f"worktree = '{filters.EVERYWHERE}'"),
        ("record", "true"),
        ("project", "true"),
    ):
        columns = ", ".join(row[1] for row in empty.execute(f"PRAGMA table_info(fx_vec_{table})"))
        rows = database.execute(f"SELECT {columns} FROM fx_vec_{table} WHERE {condition} ORDER BY 1")
        marks = ", ".join("?" * len(rows.description))
        empty.executemany(f"INSERT INTO fx_vec_{table}({columns}) VALUES ({marks})", rows)
    for batch in keywords.batches_of_chunks(empty):
        for table, terms in batch.items():
            keywords.insert(empty, terms, table)


def drop_everything(database: sqlite3.Connection) -> None:
    keywords.clear(database)
    for table in ("chunk", "embedding", "refused", "artifact", "member", "file", "skip", "built", "record", "project"):
        database.execute(f"DELETE FROM fx_vec_{table}")
    database.execute("DELETE FROM fx_vec_state")


def key_of(member: Member) -> MemberKey:
    return (member.corpus, member.builder, member.hash, str(member.part), member.path or "", str(member.kind))


def _dead_worktrees(database: sqlite3.Connection, live: frozenset[str]) -> list[str]:
    stored = (row[0] for row in database.execute("SELECT DISTINCT worktree FROM fx_vec_member"))
    # A commit that was indexed by name (rev:…) is no worktree and stays until it is cleared.
    return [name for name in stored if name not in live and name != filters.EVERYWHERE and not name.startswith("rev:")]


def update_paths(database: sqlite3.Connection, project: str, hashes: Collection[str]) -> None:
    """Copy the first member's path and kind to the chunks, and every path's words to the keyword index."""
    for batch in slices(sorted(hashes), _MAX_PARAMETERS):
        some = (project, *batch)
        where = f"project = ? AND hash IN ({', '.join('?' * (len(some) - 1))})"
        first: dict[tuple[str, str], tuple[str, str]] = {}
        paths: dict[str, set[str]] = {}
        for artifact, part, path, kind in database.execute(
            f"SELECT hash, part, path, kind FROM fx_vec_member WHERE {where} ORDER BY hash, worktree, path, corpus",
            some,
        ).fetchall():
            first.setdefault((artifact, part), (path, kind))
            paths.setdefault(artifact, set()).add(path)
        stored = database.execute(f"SELECT DISTINCT hash, part, path, kind FROM fx_vec_chunk WHERE {where}", some)
        for artifact, part, path, kind in stored.fetchall():
            wanted = first.get((artifact, part))
            if wanted is not None and wanted != (path or "", kind):
                database.execute(
                    "UPDATE fx_vec_chunk SET path = ?, kind = ? WHERE project = ? AND hash = ? AND part = ?",
                    (wanted[0] or None, wanted[1], project, artifact, part),
                )
        known = dict(database.execute(f"SELECT hash, paths FROM fx_vec_artifact WHERE {where}", some).fetchall())
        for artifact, of_artifact in paths.items():
            joined = "\n".join(sorted(of_artifact))
            if artifact in known and known[artifact] != joined:
                database.execute(
                    "UPDATE fx_vec_artifact SET paths = ? WHERE project = ? AND hash = ?", (joined, project, artifact)
                )
                keywords.set_paths(database, project, artifact, joined)


def _replace_files(
    database: sqlite3.Connection, worktree: str, seen: Mapping[str, FileState], before: Mapping[str, FileState]
) -> None:
    database.executemany(
        "DELETE FROM fx_vec_file WHERE worktree = ? AND path = ?",
        ((worktree, path) for path in before.keys() - seen.keys()),
    )
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_file VALUES (?, ?, ?, ?, ?, ?)",
        (
            (worktree, path, state.size, state.mtime_ns, state.inode, state.hash)
            for path, state in seen.items()
            if before.get(path) != state
        ),
    )


def file_states(database: sqlite3.Connection, worktree: str) -> Mapping[str, FileState]:
    rows = database.execute("SELECT path, size, mtime_ns, inode, hash FROM fx_vec_file WHERE worktree = ?", (worktree,))
    return {path: FileState(*state) for path, *state in rows}


def cut_by_lines(database: sqlite3.Connection, worktree: str) -> Sequence[CutByLines]:
    rows = database.execute(
        "SELECT DISTINCT CASE m.path WHEN '' THEN m.hash ELSE m.path END, a.detail FROM fx_vec_artifact a"
        " JOIN fx_vec_member m ON m.project = a.project AND m.hash = a.hash"
        " WHERE a.project = '' AND a.skip IS NULL AND a.detail <> '' AND m.worktree = ? ORDER BY 1",
        (worktree,),
    )
    return [CutByLines(*row) for row in rows]


def skipped_artifacts(database: sqlite3.Connection, worktree: str) -> Sequence[Skipped]:
    rows = database.execute(
        "SELECT path, reason, detail, hash FROM fx_vec_skip WHERE worktree = ? ORDER BY path, reason", (worktree,)
    )
    return [Skipped(path, SkipReason(reason), *more) for path, reason, *more in rows]

"""What changes the tables. Every function runs inside a transaction that its caller opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from outcrop import terms
from outcrop.model import Part, Seen, Skipped, Space
from outcrop.ports import Matrix
from outcrop.records import Entry, Member, Replaced, Written
from outcrop.stores.database import set_meta

MemberKey = tuple[str, str, str, str, str, str]
"""corpus, builder, hash, part, path ('' for none), kind."""


def write_entries(database: sqlite3.Connection, entries: Sequence[Entry]) -> Written:
    """Store artifacts of this source; see ``VectorStore.write``."""
    set_meta(database, "unplaced", "new")
    (before,) = database.execute("SELECT coalesce(max(id), 0) FROM fx_vec_chunk").fetchone()
    aside: list[str] = []
    for entry in entries:
        # An artifact that is cut again keeps its old chunks, out of the way, until their vectors were taken over.
        moved = database.execute(
            "UPDATE fx_vec_chunk SET seq = -1 - seq WHERE project = '' AND hash = ? AND seq >= 0", (entry.ref.hash,)
        )
        if moved.rowcount:
            aside.append(entry.ref.hash)
        _insert(database, entry)
    reused = _take_over_vectors(database, before)
    for hash in aside:
        _delete_chunks(database, "project = '' AND hash = ? AND seq < 0", (hash,))
    return Written(sum(len(entry.chunks) for entry in entries), reused)


def _insert(database: sqlite3.Connection, entry: Entry) -> None:
    ref = entry.ref
    parts = {item.chunk.part for item in entry.chunks} - {Part.WHOLE}
    database.execute(
        "INSERT OR REPLACE INTO fx_vec_artifact VALUES ('', ?, ?, ?, ?, ?, ?, ?)",
        (ref.hash, ref.version, entry.recipe, entry.skip, entry.detail, ",".join(sorted(parts)), ref.path or ""),
    )
    path_terms = " ".join(terms.words(ref.path or ""))
    for item in entry.chunks:
        chunk = item.chunk
        row = database.execute(
            "INSERT INTO fx_vec_chunk(hash, kind, path, seq, text, part, name, first_line, last_line, cell, digest)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(ref.hash, ref.kind, ref.path, chunk.seq, chunk.text, chunk.part, chunk.name),
                *(chunk.first_line, chunk.last_line, chunk.cell, item.digest),
            ),
        )
        index_terms(database, row.lastrowid or 0, chunk.name, path_terms, chunk.text)


def index_terms(database: sqlite3.Connection, id: int, name: str | None, path_terms: str, text: str) -> None:
    """Put one chunk into the keyword index."""
    database.execute(
        "INSERT INTO fx_vec_terms(rowid, name, path, body) VALUES (?, ?, ?, ?)",
        (id, " ".join(terms.words(name or "")), path_terms, " ".join(terms.words(text))),
    )


def reindex_terms(database: sqlite3.Connection) -> None:
    """Make the keyword index again, after ``terms.VERSION`` moved."""
    database.execute("DELETE FROM fx_vec_terms")
    rows = database.execute(
        "SELECT c.id, c.name, coalesce(a.paths, c.path, ''), c.text FROM fx_vec_chunk c"
        " LEFT JOIN fx_vec_artifact a ON a.project = c.project AND a.hash = c.hash"
    )
    for id, name, paths, text in rows.fetchall():
        index_terms(database, id, name, " ".join(terms.words(paths)), text)
    set_meta(database, "terms", str(terms.VERSION))


def _take_over_vectors(database: sqlite3.Connection, before: int) -> int:
    """Give new chunks (id over ``before``) the vectors of older ones with the same digest, in every space."""
    database.execute(
        "INSERT OR IGNORE INTO fx_vec_embedding"
        " SELECT n.id, e.model, e.dim, e.v FROM fx_vec_chunk n"
        " JOIN fx_vec_chunk o ON o.digest = n.digest AND o.id <= :before"
        " JOIN fx_vec_embedding e ON e.chunk_id = o.id WHERE n.id > :before",
        {"before": before},
    )
    (reused,) = database.execute(
        "SELECT count(*) FROM fx_vec_embedding e, fx_vec_state s WHERE e.model = s.model AND e.chunk_id > ?", (before,)
    ).fetchone()
    return int(reused)


def _delete_chunks(database: sqlite3.Connection, condition: str, values: Sequence[object]) -> int:
    which = f"SELECT id FROM fx_vec_chunk WHERE {condition}"
    database.execute(f"DELETE FROM fx_vec_embedding WHERE chunk_id IN ({which})", values)
    database.execute(f"DELETE FROM fx_vec_terms WHERE rowid IN ({which})", values)
    return database.execute(f"DELETE FROM fx_vec_chunk WHERE {condition}", values).rowcount


def member_key(member: Member) -> MemberKey:
    """The columns of a membership, in table order."""
    return (member.corpus, member.builder, member.hash, str(member.part), member.path or "", str(member.kind))


def replace_members(
    database: sqlite3.Connection, worktree: str, gone: Iterable[MemberKey], new: Iterable[MemberKey]
) -> Replaced:
    """Change membership, drop artifacts that nothing names any more, and bring paths and kinds up to date."""
    gone, new = list(gone), list(new)
    database.executemany(
        "DELETE FROM fx_vec_member WHERE project = '' AND worktree = ? AND corpus = ? AND builder = ? AND hash = ?"
        " AND part = ? AND path = ? AND kind = ?",
        ((worktree, *key) for key in gone),
    )
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_member(worktree, corpus, builder, hash, part, path, kind)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((worktree, *key) for key in new),
    )
    dropped = drop_unplaced(database)
    for hash in {key[2] for key in (*gone, *new)}:
        _mirror(database, hash)
    return dropped


def drop_unplaced(database: sqlite3.Connection) -> Replaced:
    """Delete this source's artifacts that no view names."""
    unplaced = (
        "project = '' AND NOT EXISTS(SELECT 1 FROM fx_vec_member m WHERE m.project = {0}.project AND m.hash = {0}.hash)"
    )
    chunks = _delete_chunks(database, unplaced.format("fx_vec_chunk"), ())
    # The verdict on a skipped artifact is kept as long as a file that was skipped still has this hash.
    artifacts = database.execute(
        f"DELETE FROM fx_vec_artifact WHERE {unplaced.format('fx_vec_artifact')}"
        " AND NOT (skip IS NOT NULL AND hash IN (SELECT hash FROM fx_vec_skip))"
    )
    # A part that no corpus takes (a notebook's raw cells) stays stored and stays out of sight.
    (unplaced_parts,) = database.execute(
        "SELECT EXISTS(SELECT 1 FROM fx_vec_artifact a JOIN fx_vec_chunk c ON c.project = a.project AND c.hash = a.hash"
        " WHERE a.parts <> '' AND NOT EXISTS(SELECT 1 FROM fx_vec_member m"
        " WHERE m.project = c.project AND m.hash = c.hash AND m.part = c.part))"
    ).fetchone()
    set_meta(database, "unplaced", "parts" if unplaced_parts else "none")
    return Replaced(artifacts.rowcount, chunks)


def _mirror(database: sqlite3.Connection, hash: str) -> None:
    """Copy the first member's path and kind to the chunks, and every path's words to the keyword index."""
    members = database.execute(
        "SELECT part, path, kind FROM fx_vec_member WHERE project = '' AND hash = ? ORDER BY worktree, path, corpus",
        (hash,),
    ).fetchall()
    if not members:
        return
    first: dict[str, tuple[str, str]] = {}
    for part, path, kind in members:
        first.setdefault(part, (path, kind))
    for part, (path, kind) in first.items():
        database.execute(
            "UPDATE fx_vec_chunk SET path = ?, kind = ? WHERE project = '' AND hash = ? AND part = ?"
            " AND (path IS NOT ? OR kind IS NOT ?)",
            (path or None, kind, hash, part, path or None, kind),
        )
    paths = "\n".join(sorted({path for _, path, _ in members}))
    if database.execute(
        "UPDATE fx_vec_artifact SET paths = ? WHERE project = '' AND hash = ? AND paths IS NOT ?", (paths, hash, paths)
    ).rowcount:
        database.execute(
            "UPDATE fx_vec_terms SET path = ?"
            " WHERE rowid IN (SELECT id FROM fx_vec_chunk WHERE project = '' AND hash = ?)",
            (" ".join(terms.words(paths)), hash),
        )


def replace_files(
    database: sqlite3.Connection, worktree: str, seen: Mapping[str, Seen], before: Mapping[str, Seen]
) -> None:
    """Bring the file states of a view up to date, touching only rows that differ."""
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


def replace_skipped(database: sqlite3.Connection, worktree: str, skipped: Iterable[Skipped]) -> None:
    """Remember what the last build of a view left out."""
    database.execute("DELETE FROM fx_vec_skip WHERE worktree = ?", (worktree,))
    database.executemany(
        "INSERT OR REPLACE INTO fx_vec_skip VALUES (?, ?, ?, ?, ?)",
        ((worktree, item.path, item.reason, item.detail, item.hash) for item in skipped),
    )


def add_vectors(database: sqlite3.Connection, space: Space, digests: Sequence[bytes], vectors: Matrix) -> None:
    """Store one vector for every chunk that has its digest."""
    little_endian = vectors.astype("<f4", copy=False)
    database.executemany(
        "INSERT OR IGNORE INTO fx_vec_embedding SELECT id, ?, ?, ? FROM fx_vec_chunk WHERE digest = ?",
        ((space.model, space.dim, row.tobytes(), digest) for digest, row in zip(digests, little_endian, strict=True)),
    )

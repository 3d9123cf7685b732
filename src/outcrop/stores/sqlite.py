"""The store that lives in one SQLite file (or, for Fossil, inside the repository's own)."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from outcrop import terms
from outcrop.errors import IndexMissing, StoreLocked
from outcrop.model import Filter, Seen, Skipped, Space
from outcrop.ports import Matrix, Vector
from outcrop.records import Entry, Found, Known, Names, Passage, Pending, Replaced, State, View, Written
from outcrop.reports import CollectionStatus, SpaceStatus
from outcrop.stores import ledger, passages, reports, selection, writes
from outcrop.stores.database import WRITING_CACHE, connect, connect_in_memory, explained, meta, transaction
from outcrop.stores.matrix import Shelf

COLUMN_WEIGHTS = (2.0, 3.0, 1.0)
"""What a term counts for in a chunk's name, its paths and its text (BM25 column weights)."""

LONGEST_QUERY = 64
"""Terms of a question that the keyword index is asked for; the rarest are kept."""


class SqliteStore:
    """Implements :class:`outcrop.ports.VectorStore`.

    Args:
        path: The database file. Reading never creates it. None keeps everything in memory, for this process only.
        worktree: The view of the source that this store object reads and writes.
        lock: Lock file of the one writer; beside the database unless given.
    """

    def __init__(self, path: Path | None, worktree: str = "", lock: Path | None = None) -> None:
        self.path = path or Path(":memory:")
        self.worktree = worktree
        self._in_memory = path is None
        self._lock_path = lock or self.path.with_name(self.path.name + ".lock")
        self._database: sqlite3.Connection | None = None
        # One connection serves every thread of the process; statements take turns.
        self._turn = threading.RLock()
        self._shelf = Shelf()
        self._chooser = selection.Chooser(worktree)

    # -- opening ------------------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether anything was ever stored."""
        try:
            with self._reading():
                return True
        except IndexMissing:
            return False

    @contextmanager
    def _reading(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        with self._turn, explained(self.path):
            if self._database is None:
                self._database = connect_in_memory() if self._in_memory else connect(self.path, create)
            yield self._database

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._reading(create=True) as database, transaction(database):
            yield database

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one moment of the store."""
        with self._reading() as database:
            if database.in_transaction:
                yield
                return
            database.execute("BEGIN")
            try:
                yield
            finally:
                database.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one writer, across processes."""
        if self._in_memory:
            yield
            return
        # Imported here: a search never writes.
        from filelock import FileLock, Timeout

        if self.path.exists():
            # A file that is no index is refused before a lock is left beside it.
            with suppress(IndexMissing), self._reading():
                pass
        with explained(self._lock_path):
            self._lock_path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._lock_path, timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise StoreLocked(
                    f"another process is building the index at {self.path}", "Wait for it, or search meanwhile"
                ) from None
        try:
            with self._reading(create=True) as database:
                database.execute(f"PRAGMA cache_size = -{WRITING_CACHE}")
                if meta(database, "terms") != str(terms.VERSION):
                    with transaction(database):
                        writes.reindex_terms(database)
            yield
        finally:
            lock.release()

    def close(self) -> None:
        """Let go of the database."""
        with self._turn:
            if self._database is not None:
                self._database.close()
            self._database = None
            self._shelf, self._chooser = Shelf(), selection.Chooser(self.worktree)

    def is_being_written(self) -> bool:
        """Whether another process is building right now."""
        if not self._lock_path.exists():
            return False
        from filelock import FileLock, Timeout

        try:
            with FileLock(self._lock_path, timeout=0):
                return False
        except (Timeout, OSError):
            return True

    def remove(self) -> None:
        """Delete a database file that cannot be read any more, with everything that belongs to it."""
        self.close()
        with explained(self.path):
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    # -- writing ------------------------------------------------------------------------------------------------------

    def set_space(self, space: Space) -> None:
        """From now on scan this space."""
        state = self.state() if self.exists else None
        if state is not None and state.space == space:
            return
        with self._changing() as database:
            database.execute("DELETE FROM fx_vec_state")
            database.execute("INSERT INTO fx_vec_state VALUES (?, ?, NULL)", (space.model, space.dim))
            database.execute("DELETE FROM fx_vec_built")

    def write(self, entries: Sequence[Entry]) -> Written:
        """Store artifacts with their chunks."""
        with self._changing() as database:
            return writes.write_entries(database, entries)

    def replace(self, view: View) -> Replaced:
        """Say what belongs to this view; nothing is written when nothing changed."""
        wanted = {writes.member_key(member) for member in view.members}
        seen, skipped = self.seen(), self.skipped()
        with self._reading(create=True) as database:
            dead = self._dead_worktrees(database, view.worktrees)
            marks = ", ".join("?" * len(view.builders))
            there: set[writes.MemberKey] = set(
                database.execute(
                    "SELECT corpus, builder, hash, part, path, kind FROM fx_vec_member"
                    f" WHERE project = '' AND worktree = ? AND builder IN ({marks})",
                    (self.worktree, *view.builders),
                )
            )
            unplaced = meta(database, "unplaced") == "new"
        if (
            there == wanted
            and seen == view.seen
            and list(skipped) == _in_order(view.skipped)
            and not dead
            and not unplaced
        ):
            return Replaced(0, 0)
        with self._changing() as database:
            for worktree in dead:
                for table in ("fx_vec_member", "fx_vec_file", "fx_vec_skip", "fx_vec_built"):
                    database.execute(f"DELETE FROM {table} WHERE worktree = ?", (worktree,))
            writes.replace_files(database, self.worktree, view.seen, seen)
            writes.replace_skipped(database, self.worktree, view.skipped)
            return writes.replace_members(database, self.worktree, there - wanted, wanted - there)

    @staticmethod
    def _dead_worktrees(database: sqlite3.Connection, live: frozenset[str]) -> list[str]:
        stored = (row[0] for row in database.execute("SELECT DISTINCT worktree FROM fx_vec_member"))
        # A commit that was indexed by name (rev:…) is no worktree and stays until it is cleared.
        return [
            name for name in stored if name not in live and name != selection.EVERYWHERE and not name.startswith("rev:")
        ]

    def add_vectors(self, space: Space, digests: Sequence[bytes], vectors: Matrix) -> None:
        """Store a vector for every chunk that has one of these digests."""
        with self._changing() as database:
            writes.add_vectors(database, space, digests, vectors)

    def finish(self, revision: str) -> None:
        """Declare the view complete at this revision."""
        if self.built() == revision:
            return
        with self._changing() as database:
            database.execute("INSERT OR REPLACE INTO fx_vec_built VALUES (?, ?)", (self.worktree, revision))
            database.execute("UPDATE fx_vec_state SET last_ckout = ?", (revision,))

    def clear(self, corpus: str | None = None, space: Space | None = None) -> None:
        """Drop a corpus of this view, a space of all views, or everything, and give the room back."""
        with self._changing() as database:
            if space is not None:
                database.execute("DELETE FROM fx_vec_embedding WHERE model = ?", (space.model,))
                database.execute("DELETE FROM fx_vec_built WHERE (SELECT model FROM fx_vec_state) = ?", (space.model,))
            elif corpus is not None:
                database.execute("DELETE FROM fx_vec_member WHERE worktree = ? AND corpus = ?", (self.worktree, corpus))
                database.execute("DELETE FROM fx_vec_built WHERE worktree = ?", (self.worktree,))
                writes.drop_unplaced(database)
            else:
                for table in ("chunk", "embedding", "terms", "artifact", "member", "file", "skip", "built", "state"):
                    database.execute(f"DELETE FROM fx_vec_{table}")
        with self._reading() as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # -- reading ------------------------------------------------------------------------------------------------------

    def state(self) -> State | None:
        """The space that is scanned."""
        with self._reading() as database:
            row = database.execute("SELECT model, dim, last_ckout FROM fx_vec_state").fetchone()
            return None if row is None else State(Space(row[0], row[1]), row[2])

    def known(self) -> Mapping[str, Known]:
        """Per hash, what is stored of this source's artifacts."""
        with self._reading() as database:
            return ledger.known(database)

    def seen(self) -> Mapping[str, Seen]:
        """File states of this view's last build."""
        with self._reading() as database:
            return ledger.seen(database, self.worktree)

    def skipped(self) -> Sequence[Skipped]:
        """What this view's last build left out, by path."""
        with self._reading() as database:
            return ledger.skipped(database, self.worktree)

    def built(self) -> str | None:
        """The revision of this view's last complete build."""
        with self._reading() as database:
            row = database.execute("SELECT revision FROM fx_vec_built WHERE worktree = ?", (self.worktree,)).fetchone()
            return None if row is None else str(row[0])

    def pending(self, space: Space) -> Sequence[Pending]:
        """Distinct passages of this view that have no vector in that space, in index order."""
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, Filter())
            mine = None if visible is None else set(visible.tolist())
            rows = database.execute(
                f"SELECT id, digest, {passages.CHUNK_COLUMNS} FROM fx_vec_chunk c"
                " WHERE NOT EXISTS(SELECT 1 FROM fx_vec_embedding e WHERE e.chunk_id = c.id AND e.model = ?)"
                " ORDER BY id",
                (space.model,),
            )
            found: dict[bytes, Pending] = {}
            for id, digest, *columns in rows:
                if digest not in found and (mine is None or id in mine):
                    found[digest] = Pending(digest, passages.stored_chunk(columns))
            return list(found.values())

    def embedded(self, space: Space, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Which of these digests have a vector in that space already."""
        with self._reading() as database:
            question = (
                "SELECT 1 FROM fx_vec_chunk c JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = ?"
                " WHERE c.digest = ? LIMIT 1"
            )
            return frozenset(
                digest for digest in digests if database.execute(question, (space.model, digest)).fetchone() is not None
            )

    def progress(self, space: Space) -> tuple[int, int]:
        """Chunks of this view with a vector in that space, and all chunks of this view."""
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, Filter())
            embedded = self._shelf.count(database, space, visible)
            if visible is not None:
                return embedded, len(visible)
            (chunks,) = database.execute("SELECT count(*) FROM fx_vec_chunk").fetchone()
            return embedded, chunks

    def names(self) -> Names:
        """What filters may name."""
        with self._reading() as database:
            return ledger.names(database, self.worktree)

    def nearest(self, query: Vector, k: int, filter: Filter) -> Sequence[Found]:
        """The chunks of the scanned space nearest to the query, best first, exact."""
        with self.snapshot(), self._reading() as database:
            state = self.state()
            if state is None:
                return []
            visible = self._chooser.allowed(database, filter)
            ids, scores = self._shelf.nearest(database, state.space, query, k, visible)
        return [Found(id, score) for id, score in zip(ids.tolist(), scores.tolist(), strict=True)]

    def keyword(self, terms: Sequence[str], k: int, filter: Filter) -> Sequence[Found]:
        """The chunks that hold any of the terms, best first, by BM25."""
        if not terms:
            return []
        match = " OR ".join(f'"{term}"' for term in terms[:LONGEST_QUERY])
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, filter)
            mine = None if visible is None else set(visible.tolist())
            rows = database.execute(
                "SELECT rowid, -bm25(fx_vec_terms, ?, ?, ?) AS score FROM fx_vec_terms WHERE fx_vec_terms MATCH ?"
                " ORDER BY score DESC, rowid" + (" LIMIT ?" if mine is None else ""),
                (*COLUMN_WEIGHTS, match, *([k] if mine is None else [])),
            )
            found: list[Found] = []
            for id, score in rows:
                if mine is None or id in mine:
                    found.append(Found(id, score))
                    if len(found) == k:
                        break
            rows.close()
            return found

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Vectors of chunks in the scanned space, where there are any."""
        with self.snapshot(), self._reading() as database:
            state = self.state()
            return {} if state is None else self._shelf.vectors(database, state.space, ids)

    def passages(self, ids: Sequence[int], filter: Filter) -> Mapping[int, Passage]:
        """Chunks by id, with where they stand in this view."""
        with self.snapshot(), self._reading() as database:
            found = (passages.passage(database, self.worktree, id, filter) for id in ids)
            return {passage.id: passage for passage in found if passage is not None}

    def collections(self) -> Sequence[CollectionStatus]:
        """One line a corpus of this view."""
        with self.snapshot(), self._reading() as database:
            state = self.state()
            return [] if state is None else reports.collections(database, self.worktree, state.space)

    def spaces(self) -> Sequence[SpaceStatus]:
        """Every space that has vectors, of all views."""
        with self._reading() as database:
            return reports.spaces(database)

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        files = (self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())


def _in_order(skipped: Sequence[Skipped]) -> list[Skipped]:
    return sorted(
        {(item.path, item.reason): item for item in skipped}.values(), key=lambda item: (item.path, item.reason)
    )

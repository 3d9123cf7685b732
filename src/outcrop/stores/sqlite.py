"""The store that lives in one SQLite file (or, for Fossil, inside the repository's own)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from outcrop.errors import IndexMissing
from outcrop.model import EVERYTHING, Filter, Seen, Skipped, Space
from outcrop.ports import Matrix, Vector
from outcrop.records import (
    DEFAULT_BUILDERS,
    Embedded,
    Entry,
    Found,
    Holding,
    Known,
    Member,
    Names,
    Passage,
    Pending,
    RecordEntry,
    Replaced,
    State,
    Upserted,
    View,
    Written,
)
from outcrop.reports import CollectionStatus, SpaceStatus
from outcrop.stores import ledger, passages, reports, selection, upserts, views, writes
from outcrop.stores.database import count_change, meta, transaction
from outcrop.stores.file import DatabaseFile
from outcrop.stores.matrix import Shelf
from outcrop.stores.projects import ProjectTables
from outcrop.stores.words import WordTables

COLUMN_WEIGHTS = (2.0, 3.0, 1.0)
"""What a term counts for in a chunk's name, its paths and its text (BM25 column weights)."""

LONGEST_QUERY = 64
"""Terms of a question that the keyword index is asked for; the rarest are kept."""


class SqliteStore(ProjectTables, WordTables):
    """Implements :class:`outcrop.ports.VectorStore`.

    Args:
        path: The database file. Reading never creates it. None keeps everything in memory, for this process only.
        worktree: The view of the source that this store object reads and writes.
        guest: The file belongs to another program, as a Fossil repository does.
        read_only: The file is another repository's, and nothing in it is changed.
    """

    def __init__(self, path: Path | None, worktree: str = "", guest: bool = False, *, read_only: bool = False) -> None:
        super().__init__(DatabaseFile(path, guest, read_only))
        self.path = self.file.path
        self.worktree = worktree
        self._reading = self.file.reading
        self._shelf, self._chooser = Shelf(), selection.Chooser(worktree)

    # -- opening ------------------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether anything was ever stored."""
        try:
            with self._reading():
                return True
        except IndexMissing:
            return False

    @property
    def is_shared(self) -> bool:
        """Whether every write keeps another program waiting."""
        return self.file.guest

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one moment of the store."""
        with self.file.snapshot():
            yield

    def writing(self) -> AbstractContextManager[None]:
        """Be the one writer, across processes."""
        return self.file.alone()

    def is_being_written(self) -> bool:
        """Whether another process is building right now."""
        return self.file.is_being_written()

    def close(self) -> None:
        """Let go of the database."""
        self.file.close()
        self._shelf, self._chooser = Shelf(), selection.Chooser(self.worktree)

    def remove(self) -> None:
        """Delete a database file of our own that cannot be read any more, with everything that belongs to it."""
        self.file.remove()

    # -- writing ------------------------------------------------------------------------------------------------------

    def set_space(self, space: Space) -> None:
        """From now on scan this space."""
        self.write((), space)

    def replace(self, view: View) -> Replaced:
        """Say what belongs to this view; nothing is written when nothing changed."""
        return self.write((), view=view).dropped

    def write(self, entries: Sequence[Entry], space: Space | None = None, view: View | None = None) -> Written:
        """Store artifacts with their chunks, which space is scanned, and what belongs to this view."""
        prepared = writes.prepare(entries)
        with self._reading(create=True) as database:
            difference = None if view is None else views.compare(database, self.worktree, view)
            state = self.state()
        if state is not None and state.space == space:
            space = None
        if not (entries or space or difference):
            return Written(0, 0)
        with self.file.apart() as database:
            layout = writes.lay_out(database, prepared)
            with self.file.transaction(database):
                if space is not None:
                    writes.set_space(database, space)
                written = writes.put_in(database, prepared, layout)
                if difference is not None:
                    written = replace(written, dropped=views.change(database, self.worktree, difference))
        return written

    def upsert(self, corpus: str, records: Sequence[RecordEntry], space: Space) -> Upserted:
        """Write records of a caller; one of the same id gives way."""
        with self._reading(create=True) as database:
            outdated = upserts.outdated(database, corpus, records)
            state = self.state()
        done = Upserted(0, 0, 0, 0)
        if outdated or state is None or state.space != space:
            with self.file.changing() as database:
                if state is None or state.space != space:
                    writes.set_space(database, space)
                done = upserts.put_in(database, corpus, outdated)
        return replace(done, unchanged=len(records) - len(outdated))

    def remove_records(self, corpus: str, ids: Sequence[str]) -> int:
        """Take records out; returns how many of them were there."""
        with self.file.changing() as database:
            return upserts.remove(database, corpus, ids)

    def add_vectors(
        self,
        space: Space,
        digests: Sequence[bytes],
        vectors: Matrix,
        revision: str | None = None,
        builders: Sequence[str] = DEFAULT_BUILDERS,
    ) -> None:
        """Store a vector for every chunk that has one of these digests; with a revision, declare the view complete."""
        with self._reading(create=True) as database:
            placed = writes.place_vectors(database, space, digests, vectors)
            with transaction(database, self.file.guest):
                if meta(database, "changes") != placed.changes:
                    placed = writes.place_vectors(database, space, digests, vectors)
                count_change(database)
                writes.add_vectors(database, placed)
                if revision is not None:
                    writes.finish(database, self.worktree, revision, builders)

    def finish(self, revision: str, builders: Sequence[str] = DEFAULT_BUILDERS) -> None:
        """Declare what these corpora's builds say complete at this revision."""
        done = self.revisions()
        if all(done.get(builder) == revision for builder in builders) and not self.interrupted():
            return
        with self.file.changing() as database:
            writes.finish(database, self.worktree, revision, builders)

    def normalise(self) -> tuple[int, int]:
        """Bring every stored vector to length 1; those that cannot be are dropped, to be made again."""
        with self._reading() as database:
            changed, bad = writes.uneven(database)
        if changed or bad:
            with self.file.changing() as database:
                writes.rewrite_vectors(database, changed, bad)
        return len(changed), len(bad)

    def holds_others(self) -> bool:
        """Whether there is anything that does not come from this source: a caller's records, or imported projects."""
        question = "SELECT EXISTS(SELECT 1 FROM fx_vec_record) OR EXISTS(SELECT 1 FROM fx_vec_project)"
        try:
            with self._reading() as database:
                return bool(database.execute(question).fetchone()[0])
        except IndexMissing:
            return False

    def forget(self) -> None:
        """Drop everything that was made from sources, in all views; records of callers stay, with their vectors."""
        with self.file.changing() as database:
            views.drop_sources(database)

    def clear(self, corpus: str | None = None, space: Space | None = None) -> None:
        """Drop a corpus of this view, a space of all views, or everything, and give the room back."""
        with self.file.changing() as database:
            if space is not None:
                database.execute("DELETE FROM fx_vec_embedding WHERE model = ?", (space.model,))
                database.execute("DELETE FROM fx_vec_built WHERE (SELECT model FROM fx_vec_state) = ?", (space.model,))
            elif corpus is not None:
                upserts.remove_corpus(database, corpus)
                views.drop_corpus(database, self.worktree, corpus)
            else:
                views.drop_everything(database)
        self.file.shrink()

    # -- reading ------------------------------------------------------------------------------------------------------

    def state(self) -> State | None:
        """The space that is scanned."""
        with self._reading() as database:
            row = database.execute("SELECT model, dim, last_ckout FROM fx_vec_state").fetchone()
            return None if row is None else State(Space(row[0], row[1]), row[2])

    def known(self, project: str = "") -> Mapping[str, Known]:
        """Per hash, what is stored of the artifacts of this source, or of an imported project."""
        with self._reading() as database:
            return ledger.known(database, project)

    def seen(self) -> Mapping[str, Seen]:
        """File states of this view's last build."""
        with self._reading() as database:
            return ledger.seen(database, self.worktree)

    def skipped(self) -> Sequence[Skipped]:
        """What this view's last build left out, by path."""
        with self._reading() as database:
            return ledger.skipped(database, self.worktree)

    def built(self) -> str | None:
        """The revision of this view's last complete build of the two corpora that every index has."""
        done = self.revisions()
        found = {done.get(builder) for builder in DEFAULT_BUILDERS}
        return found.pop() if len(found) == 1 else None

    def revisions(self) -> Mapping[str, str]:
        """Per corpus of this view, the revision of its last complete build."""
        with self._reading() as database:
            return ledger.revisions(database, self.worktree)

    def has_members(self) -> bool:
        """Whether any build put anything into this view."""
        with self._reading() as database:
            question = "SELECT 1 FROM fx_vec_member WHERE worktree = ? LIMIT 1"
            return database.execute(question, (self.worktree,)).fetchone() is not None

    def members(self, builder: str | None = None) -> Sequence[Member]:
        """What the last build of a corpus, or of each of them, put into this view."""
        with self._reading() as database:
            return ledger.members(database, self.worktree, builder)

    def artifacts(self) -> int:
        """How many artifacts belong to this view."""
        with self._reading() as database:
            return ledger.artifacts(database, self.worktree)

    def embedded_chunks(self, space: Space, hashes: Sequence[str]) -> Mapping[str, Sequence[Embedded]]:
        """What this view holds of each of this source's artifacts, with vectors of a space."""
        with self.snapshot(), self._reading() as database:
            return {hash: passages.embedded(database, self.worktree, space, hash) for hash in hashes}

    def interrupted(self) -> bool:
        """Whether artifacts were stored since a build was last complete."""
        with self._reading() as database:
            return meta(database, "interrupted") == "yes"

    def pending(self, space: Space, filter: Filter = EVERYTHING) -> Sequence[Pending]:
        """Distinct passages of this view that have no vector in that space, in index order."""
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, filter)
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

    def progress(self, space: Space, filter: Filter = EVERYTHING) -> tuple[int, int]:
        """Chunks of this view with a vector in that space, and all chunks of this view."""
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, filter)
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
            return passages.passages(database, self.worktree, ids, filter)

    def collections(self) -> Sequence[CollectionStatus]:
        """One line a corpus of this view."""
        with self.snapshot(), self._reading() as database:
            state = self.state()
            return [] if state is None else reports.collections(database, self.worktree, state.space)

    def holdings(self) -> Sequence[Holding]:
        """Every artifact of this view at each of its places, with how much is stored of it."""
        with self.snapshot(), self._reading() as database:
            state = self.state()
            return [] if state is None else reports.holdings(database, self.worktree, state.space)

    def spaces(self) -> Sequence[SpaceStatus]:
        """Every space that has vectors, of all views."""
        with self._reading() as database:
            return reports.spaces(database)

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included; of another program's database only what is ours in it."""
        if self.file.guest:
            if not self.exists:
                return 0
            with self._reading() as database:
                return reports.payload(database)
        files = (self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

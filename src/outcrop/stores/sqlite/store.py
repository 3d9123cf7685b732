"""The store that lives in one SQLite file (or, for Fossil, inside the repository's own)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from outcrop.core.model import EVERYTHING, FileState, Filter, Kind, Skipped, Space
from outcrop.core.protocols import Matrix, Vector, VectorStore, override
from outcrop.core.reports import CollectionStatus, SpaceStatus
from outcrop.core.rows import (
    DEFAULT_BUILDERS,
    ArtifactKey,
    Embedded,
    Entry,
    InventoryRow,
    Member,
    Names,
    Passage,
    PassageRef,
    Pending,
    RecordEntry,
    Replaced,
    ScoredChunk,
    State,
    StoredArtifact,
    Upserted,
    View,
    Written,
)
from outcrop.errors import IndexMissing
from outcrop.stores.sqlite import filters, inventory, keywords, membership, passages, upserts, writer
from outcrop.stores.sqlite.connection import copy_tables, count_change, meta, transaction
from outcrop.stores.sqlite.file import DatabaseFile
from outcrop.stores.sqlite.matrix import VectorCache
from outcrop.stores.sqlite.projects import ProjectTables

# What a term counts for in a chunk's name, its paths and its text (BM25 column weights).
COLUMN_WEIGHTS = (2.0, 3.0, 1.0)

# Terms of a question that the keyword index is asked for; the rarest are kept.
LONGEST_QUERY = 64


class SqliteStore(ProjectTables, VectorStore):
    """Implements :class:`outcrop.core.protocols.VectorStore`.

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
        self._shelf, self._chooser = VectorCache(), filters.FilterCache(worktree)

    # -- opening ------------------------------------------------------------------------------------------------------

    @property
    @override
    def exists(self) -> bool:
        try:
            with self._reading():
                return True
        except IndexMissing:
            return False

    @property
    @override
    def is_shared(self) -> bool:
        return self.file.guest

    @override
    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self.file.snapshot():
            yield

    @override
    def writing(self) -> AbstractContextManager[None]:
        return self.file.alone()

    def is_being_written(self) -> bool:
        """Whether another process is building right now."""
        return self.file.is_being_written()

    @override
    def close(self) -> None:
        self.file.close()
        self._shelf, self._chooser = VectorCache(), filters.FilterCache(self.worktree)

    def remove(self) -> None:
        """Delete a database file of our own that cannot be read any more, with everything that belongs to it."""
        self.file.remove()

    # -- writing ------------------------------------------------------------------------------------------------------

    @override
    def set_space(self, space: Space) -> None:
        self.write((), space)

    @override
    def replace(self, view: View) -> Replaced:
        return self.write((), view=view).dropped

    @override
    def write(self, entries: Sequence[Entry], space: Space | None = None, view: View | None = None) -> Written:
        prepared = writer.prepare(entries)
        with self._reading(create=True) as database:
            difference = None if view is None else membership.compare(database, self.worktree, view)
            state = self.state()
        if state is not None and state.space == space:
            space = None
        if not (entries or space or difference):
            return Written(0, 0)
        with self.file.apart() as database:
            layout = writer.lay_out(database, prepared)
            with self.file.transaction(database):
                if space is not None:
                    writer.set_space(database, space)
                written = writer.put_in(database, prepared, layout)
                if difference is not None:
                    written = replace(written, dropped=membership.change(database, self.worktree, difference))
        return written

    @override
    def upsert(self, corpus: str, records: Sequence[RecordEntry], space: Space) -> Upserted:
        with self._reading(create=True) as database:
            outdated = upserts.outdated(database, corpus, records)
            state = self.state()
        done = Upserted(0, 0, 0, 0)
        if outdated or state is None or state.space != space:
            with self.file.changing() as database:
                if state is None or state.space != space:
                    writer.set_space(database, space)
                done = upserts.put_in(database, corpus, outdated)
        return replace(done, unchanged=len(records) - len(outdated))

    @override
    def remove_records(self, corpus: str, ids: Sequence[str]) -> int:
        with self.file.changing() as database:
            return upserts.remove(database, corpus, ids)

    @override
    def add_vectors(
        self,
        space: Space,
        digests: Sequence[bytes],
        vectors: Matrix,
        revision: str | None = None,
        builders: Sequence[str] = DEFAULT_BUILDERS,
    ) -> None:
        with self._reading(create=True) as database:
            placed = writer.place_vectors(database, space, digests, vectors)
            with transaction(database, self.file.guest):
                if meta(database, "changes") != placed.changes:
                    placed = writer.place_vectors(database, space, digests, vectors)
                count_change(database)
                writer.add_vectors(database, placed)
                if revision is not None:
                    writer.finish(database, self.worktree, revision, builders)

    @override
    def finish(self, revision: str, builders: Sequence[str] = DEFAULT_BUILDERS) -> None:
        done = self.revisions()
        if all(done.get(builder) == revision for builder in builders) and not self.interrupted():
            return
        with self.file.changing() as database:
            writer.finish(database, self.worktree, revision, builders)

    @override
    def normalise(self) -> tuple[int, int]:
        with self._reading() as database:
            changed, bad = writer.uneven(database)
        if changed or bad:
            with self.file.changing() as database:
                writer.rewrite_vectors(database, changed, bad)
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
            membership.drop_sources(database)

    @override
    def clear(self, corpus: str | None = None, space: Space | None = None) -> None:
        with self.file.changing() as database:
            if space is not None:
                database.execute("DELETE FROM fx_vec_embedding WHERE model = ?", (space.model,))
                database.execute("DELETE FROM fx_vec_built WHERE (SELECT model FROM fx_vec_state) = ?", (space.model,))
            elif corpus is not None:
                upserts.remove_corpus(database, corpus)
                membership.drop_corpus(database, self.worktree, corpus)
            else:
                membership.drop_everything(database)
        self.file.shrink()

    # -- reading ------------------------------------------------------------------------------------------------------

    @override
    def state(self) -> State | None:
        with self._reading() as database:
            row = database.execute("SELECT model, dim, last_ckout FROM fx_vec_state").fetchone()
            return None if row is None else State(Space(row[0], row[1]), row[2])

    @override
    def known(self, project: str = "") -> Mapping[str, StoredArtifact]:
        with self._reading() as database:
            return membership.known(database, project)

    @override
    def seen(self) -> Mapping[str, FileState]:
        with self._reading() as database:
            return membership.file_states(database, self.worktree)

    @override
    def skipped(self) -> Sequence[Skipped]:
        with self._reading() as database:
            return membership.skipped_artifacts(database, self.worktree)

    @override
    def built(self) -> str | None:
        done = self.revisions()
        found = {done.get(builder) for builder in DEFAULT_BUILDERS}
        return found.pop() if len(found) == 1 else None

    @override
    def revisions(self) -> Mapping[str, str]:
        with self._reading() as database:
            return membership.revisions(database, self.worktree)

    @override
    def has_members(self) -> bool:
        with self._reading() as database:
            question = "SELECT 1 FROM fx_vec_member WHERE worktree = ? LIMIT 1"
            return database.execute(question, (self.worktree,)).fetchone() is not None

    @override
    def members(self, builder: str | None = None) -> Sequence[Member]:
        with self._reading() as database:
            return membership.members(database, self.worktree, builder)

    @override
    def artifacts(self) -> int:
        with self._reading() as database:
            return membership.artifacts(database, self.worktree)

    @override
    def embedded_chunks(self, space: Space, hashes: Sequence[str]) -> Mapping[str, Sequence[Embedded]]:
        with self.snapshot(), self._reading() as database:
            return {hash: passages.embedded(database, self.worktree, space, hash) for hash in hashes}

    @override
    def interrupted(self) -> bool:
        with self._reading() as database:
            return meta(database, "interrupted") == "yes"

    @override
    def pending(self, space: Space, filter: Filter = EVERYTHING) -> Sequence[Pending]:
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

    @override
    def embedded(self, space: Space, digests: Sequence[bytes]) -> frozenset[bytes]:
        with self._reading() as database:
            question = (
                "SELECT 1 FROM fx_vec_chunk c JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = ?"
                " WHERE c.digest = ? LIMIT 1"
            )
            return frozenset(
                digest for digest in digests if database.execute(question, (space.model, digest)).fetchone() is not None
            )

    @override
    def progress(self, space: Space, filter: Filter = EVERYTHING) -> tuple[int, int]:
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, filter)
            embedded = self._shelf.count(database, space, visible)
            if visible is not None:
                return embedded, len(visible)
            (chunks,) = database.execute("SELECT count(*) FROM fx_vec_chunk").fetchone()
            return embedded, chunks

    @override
    def names(self) -> Names:
        with self._reading() as database:
            return membership.names(database, self.worktree)

    @override
    def nearest(self, query: Vector, k: int, filter: Filter) -> Sequence[ScoredChunk]:
        with self.snapshot(), self._reading() as database:
            state = self.state()
            if state is None:
                return []
            visible = self._chooser.allowed(database, filter)
            ids, scores = self._shelf.nearest(database, state.space, query, k, visible)
        return [ScoredChunk(id, score) for id, score in zip(ids.tolist(), scores.tolist(), strict=True)]

    @override
    def keyword(self, terms: Sequence[str], k: int, filter: Filter) -> Sequence[ScoredChunk]:
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
            found: list[ScoredChunk] = []
            for id, score in rows:
                if mine is None or id in mine:
                    found.append(ScoredChunk(id, score))
                    if len(found) == k:
                        break
            rows.close()
            return found

    @override
    def defining(self, name: str, k: int, filter: Filter) -> Sequence[int]:
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, filter)
            mine = None if visible is None else set(visible.tolist())
            found = keywords.defining(database, name)
            return [id for id in found if mine is None or id in mine][:k]

    @override
    def unknown(self, words: Sequence[str], kinds: Sequence[Kind] = ()) -> frozenset[str]:
        with self._reading() as database:
            return keywords.unknown(database, self.worktree, words, kinds)

    @override
    def stems(self, beginning: str) -> Mapping[str, int]:
        with self._reading() as database:
            return keywords.stems(database, beginning)

    @override
    def forms(self, stem: str, kinds: Sequence[Kind] = ()) -> frozenset[str]:
        with self._reading() as database:
            return keywords.forms(database, self.worktree, stem, kinds)

    @override
    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        with self.snapshot(), self._reading() as database:
            state = self.state()
            return {} if state is None else self._shelf.vectors(database, state.space, ids)

    @override
    def passages(self, ids: Sequence[int], filter: Filter) -> Mapping[int, Passage]:
        with self.snapshot(), self._reading() as database:
            return passages.passages(database, self.worktree, ids, filter)

    def passage_refs(self, filter: Filter) -> Sequence[PassageRef]:
        """Every passage of this view that a filter lets through, in index order."""
        with self.snapshot(), self._reading() as database:
            visible = self._chooser.allowed(database, filter)
            return passages.refs(database, self.worktree, None if visible is None else frozenset(visible.tolist()))

    def text_of(self, artifact: ArtifactKey) -> tuple[str, str]:
        """The text of an artifact as far as its passages hold it, every line in its place, and its format."""
        with self.snapshot(), self._reading() as database:
            return passages.text_of(database, artifact)

    def clone(self, space: Space) -> SqliteStore:
        """The same passages in the same view in memory, with the vectors that they have in one space."""
        copy = SqliteStore(None, self.worktree)
        try:
            with self.file.snapshot() as database, copy.file.reading(create=True) as empty:
                copy_tables(database, empty, space)
        except BaseException:
            copy.close()
            raise
        return copy

    @override
    def collections(self) -> Sequence[CollectionStatus]:
        with self.snapshot(), self._reading() as database:
            state = self.state()
            return [] if state is None else inventory.collections(database, self.worktree, state.space)

    @override
    def holdings(self) -> Sequence[InventoryRow]:
        with self.snapshot(), self._reading() as database:
            state = self.state()
            return [] if state is None else inventory.holdings(database, self.worktree, state.space)

    @override
    def spaces(self) -> Sequence[SpaceStatus]:
        with self._reading() as database:
            return inventory.spaces(database)

    @override
    def size(self) -> int:
        if self.file.guest:
            if not self.exists:
                return 0
            with self._reading() as database:
                return inventory.payload(database)
        files = (self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

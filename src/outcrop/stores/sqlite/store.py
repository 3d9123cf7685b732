"""The store in one SQLite file (or, for Fossil, inside the repository's own)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from outcrop.core import rows
from outcrop.core.model import EVERYTHING, FileState, Filter, Kind, Part, Skipped, SkipReason, Space
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.core.protocols import Matrix, Vector, override
from outcrop.core.reports import CollectionStatus, CutByLines, SpaceStatus
from outcrop.errors import IndexMissing, StoreError, StoreFull, StoreLocked
from outcrop.stores.sqlite import filters, inventory, keywords, membership, passages, upserts, writer
from outcrop.stores.sqlite.connection import copy_tables, count_change, meta, moment, transaction
from outcrop.stores.sqlite.file import DatabaseFile
from outcrop.stores.sqlite.filters import EVERYWHERE
from outcrop.stores.sqlite.integrity import checksums
from outcrop.stores.sqlite.matrix import VectorCache
from outcrop.stores.sqlite.projects import ProjectTables

if TYPE_CHECKING:
    from outcrop.stores.sqlite.integrity.check import Findings

# Thousands of commits are alike in these.
_WHOLE = frozenset({Part.WHOLE})
_PARTS = {part.value: part for part in Part}
_KINDS = {kind.value: kind for kind in Kind}


class SqliteStore(ProjectTables):
    """Implements :class:`outcrop.core.protocols.VectorStore`.

    Args:
        path: As for ``DatabaseFile``, like ``shared`` and ``read_only``.
        worktree: The view of the source that this store object reads and writes.
    """

    def __init__(
        self, path: Path | DatabaseFile | None, worktree: str = "", shared: bool = False, *, read_only: bool = False
    ) -> None:
        super().__init__(path if isinstance(path, DatabaseFile) else DatabaseFile(path, shared, read_only))
        self.path = self.file.path
        self.worktree = worktree
        self._reading = self.file.reading
        self._vectors, self._filters = VectorCache(), filters.FilterCache(worktree)
        self._lengths = [keywords.LengthCache(table) for table in keywords.TABLES]

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
        return self.file.shared

    @override
    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self.file.snapshot():
            yield

    @override
    def writing(self) -> AbstractContextManager[None]:
        return self.file.write_lock()

    @override
    def close(self) -> None:
        self.file.close()
        self._vectors, self._filters = VectorCache(), filters.FilterCache(self.worktree)
        self._lengths = [keywords.LengthCache(table) for table in keywords.TABLES]

    # -- writing ------------------------------------------------------------------------------------------------------

    @override
    def set_space(self, space: Space) -> None:
        self.write((), space)

    @override
    def replace(self, view: rows.View) -> rows.Replaced:
        return self.write((), view=view).dropped

    @override
    def write(
        self, entries: Sequence[rows.Entry], space: Space | None = None, view: rows.View | None = None
    ) -> rows.Written:
        with self._reading(create=True) as database:
            change = None if view is None else membership.compare(database, self.worktree, view)
            state = self.state()
        if state is not None and state.space == space:
            space = None
        done = rows.Written(0, 0)
        if not (entries or space or change):
            return done
        *earlier, last = self._batches(entries)
        for batch in earlier:
            done = self._write_batch(batch, space, None, done)
            space = None
        return self._write_batch(last, space, change, done)

    def _write_batch(
        self,
        entries: Sequence[rows.Entry],
        space: Space | None,
        change: membership.MembershipChange | None,
        before: rows.Written,
    ) -> rows.Written:
        prepared = writer.prepare(entries)
        with self.file.changing() as database:
            if space is not None:
                writer.set_space(database, space)
            done = writer.insert(database, prepared)
            # What is cut again is at more places than the one that it was read at.
            membership.update_paths(database, "", {entry.ref.hash for entry in entries})
            writer.mark_unplaced(database, prepared)
            dropped = rows.Replaced(0, 0) if change is None else membership.apply(database, self.worktree, change)
        return rows.Written(before.chunks + done.chunks, before.reused + done.reused, dropped)

    @override
    def upsert(self, corpus: str, records: Sequence[rows.RecordEntry], space: Space) -> rows.Upserted:
        with self._reading(create=True) as database:
            outdated = upserts.outdated(database, corpus, records)
            state = self.state()
        done = rows.Upserted(0, 0, 0, 0)
        if outdated or state is None or state.space != space:
            with self.file.changing() as database:
                if state is None or state.space != space:
                    writer.set_space(database, space)
                done = upserts.write(database, corpus, outdated)
        return replace(done, unchanged=len(records) - len(outdated))

    @override
    def remove_records(self, corpus: str, ids: Sequence[str]) -> int:
        with self.file.changing() as database:
            return upserts.remove(database, corpus, ids)

    @override
    def add_vectors(
        self, space: Space, digests: Sequence[bytes], vectors: Matrix, completion: rows.Completion | None = None
    ) -> None:
        with self._reading(create=True) as database:
            # Outside of the transaction, which is then short; and again where the tables changed meanwhile.
            before = moment(database)
            placed = writer.place_vectors(database, space, digests, vectors)
            with transaction(database, self.is_shared):
                if moment(database) != before:
                    placed = writer.place_vectors(database, space, digests, vectors)
                count_change(database)
                writer.add_vectors(database, placed)
                if completion is not None:
                    writer.finish(database, self.worktree, completion.revision, completion.builders)

    @override
    def refuse(self, space: Space, reasons: Mapping[bytes, str]) -> None:
        with self.file.changing() as database:
            writer.refuse(database, space, reasons)

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
            scaled, bad = writer.find_denormalised(database)
        if scaled or bad:
            with self.file.changing() as database:
                database.executemany("UPDATE fx_vec_embedding SET v = ?, checksum = ? WHERE rowid = ?", scaled)
                database.executemany("DELETE FROM fx_vec_embedding WHERE rowid = ?", bad)
                if bad:
                    database.execute("DELETE FROM fx_vec_built")
        return len(scaled), len(bad)

    @contextmanager
    def replacement(self) -> Iterator[SqliteStore]:
        """A new store that takes this one's place when the block ends without an error; until then this one answers.

        It holds what does not come from this source, where that can be read: records of callers, imported projects.
        """
        with self.file.replacement() as file:
            new = SqliteStore(file, self.worktree)
            with file.changing() as empty:
                try:
                    with self.file.snapshot() as database:
                        membership.copy_others(database, empty)
                except (StoreLocked, StoreFull):
                    raise
                except StoreError:
                    # A rebuild is the way out of every damage.
                    membership.drop_everything(empty)
            yield new

    def check(self) -> Findings:
        """What is damaged of it; ``StoreLocked`` while another process writes."""
        from outcrop.stores.sqlite.integrity.check import check

        with self.file.locked(), self._reading() as database:
            return check(database, self.is_shared)

    def remove_damage(self, found: Findings) -> list[str]:
        """Remove what a check found, so that builds make it again. Returns ids of records that are removed."""
        from outcrop.stores.sqlite.integrity.check import remove_damage

        lost: list[str] = []
        if found.damage:
            with self.file.changing() as database:
                lost = remove_damage(database, found)
        if found.bad_keywords:
            self.file.rebuild_keywords()
        return lost

    def intact_vectors(self, space: Space) -> Mapping[bytes, bytes]:
        """Vectors that can still be read and are what was stored, by the digest of their text."""
        from outcrop.stores.sqlite.integrity.check import read_intact_vectors

        with self._reading() as database:
            return read_intact_vectors(database, space)

    @override
    def clear(self, corpus: str | None = None, space: Space | None = None) -> None:
        with self.file.changing() as database:
            if space is not None:
                key = (space.model, space.dim)
                for table in ("embedding", "refused"):
                    database.execute(f"DELETE FROM fx_vec_{table} WHERE model = ? AND dim = ?", key)
                database.execute("DELETE FROM fx_vec_built WHERE (SELECT (model, dim) = (?, ?) FROM fx_vec_state)", key)
            elif corpus is not None:
                records = database.execute("SELECT id FROM fx_vec_record WHERE corpus = ?", (corpus,)).fetchall()
                upserts.remove(database, corpus, [row[0] for row in records])
                membership.drop_corpus(database, self.worktree, corpus)
            else:
                membership.drop_everything(database)
        self.file.shrink()

    # -- reading ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _view(self, where: Filter) -> Iterator[tuple[sqlite3.Connection, filters.Ids | None]]:
        """One moment of the database, and the ids of the chunks that a filter selects; None for all."""
        with self.file.snapshot() as database:
            visible = self._filters.select(database, where)
            groups = filters.of_groups(where)
            if visible is None and len(groups) == 1:
                visible = keywords.ids(database, keywords.TABLES[True in groups])
            yield database, visible

    @override
    def state(self) -> rows.State | None:
        with self._reading() as database:
            row = database.execute("SELECT model, dim, last_ckout FROM fx_vec_state").fetchone()
            return None if row is None else rows.State(Space(row[0], row[1]), row[2])

    @override
    def known(self, project: str = "") -> Mapping[str, rows.StoredArtifact]:
        with self._reading() as database:
            found = database.execute(
                "SELECT hash, version, recipe, skip, detail, parts FROM fx_vec_artifact WHERE project = ?", (project,)
            )
            return {
                key: rows.StoredArtifact(
                    version,
                    recipe,
                    None if skip is None else SkipReason(skip),
                    detail,
                    frozenset(map(Part, parts.split(","))) if parts else _WHOLE,
                )
                for key, version, recipe, skip, detail, parts in found
            }

    @override
    def seen(self) -> Mapping[str, FileState]:
        with self._reading() as database:
            return membership.file_states(database, self.worktree)

    @override
    def skipped(self) -> Sequence[Skipped]:
        with self._reading() as database:
            return membership.skipped_artifacts(database, self.worktree)

    @override
    def cut_by_lines(self) -> Sequence[CutByLines]:
        with self._reading() as database:
            return membership.cut_by_lines(database, self.worktree)

    @override
    def built(self) -> str | None:
        done = self.revisions()
        found = {done.get(builder) for builder in DEFAULT_BUILDERS}
        return found.pop() if len(found) == 1 else None

    @override
    def revisions(self) -> Mapping[str, str]:
        with self._reading() as database:
            question = "SELECT builder, revision FROM fx_vec_built WHERE worktree = ?"
            return dict(database.execute(question, (self.worktree,)))

    @override
    def has_members(self) -> bool:
        with self._reading() as database:
            question = "SELECT 1 FROM fx_vec_member WHERE worktree = ? LIMIT 1"
            return database.execute(question, (self.worktree,)).fetchone() is not None

    @override
    def holds_others(self) -> bool:
        question = "SELECT EXISTS(SELECT 1 FROM fx_vec_record) OR EXISTS(SELECT 1 FROM fx_vec_project)"
        with self._reading() as database:
            return bool(database.execute(question).fetchone()[0])

    @override
    def members(self, builder: str | None = None) -> Sequence[rows.Member]:
        with self._reading() as database:
            found = database.execute(
                "SELECT corpus, builder, hash, part, path, kind FROM fx_vec_member"
                " WHERE project = '' AND worktree = ? AND (builder = ? OR ? IS NULL)",
                (self.worktree, builder, builder),
            )
            return [
                rows.Member(corpus, own_builder, key, _PARTS[part], path or None, _KINDS[kind])
                for corpus, own_builder, key, part, path, kind in found
            ]

    @override
    def artifacts(self) -> int:
        with self._reading() as database:
            (count,) = database.execute(
                "SELECT count(DISTINCT project || '/' || hash) FROM fx_vec_member WHERE worktree IN (?, ?)",
                (self.worktree, EVERYWHERE),
            ).fetchone()
            return int(count)

    @override
    def embedded_chunks(self, space: Space, hashes: Sequence[str]) -> Mapping[str, Sequence[rows.Embedded]]:
        with self.file.snapshot() as database:
            return {key: passages.embedded(database, self.worktree, space, key) for key in hashes}

    @override
    def interrupted(self) -> bool:
        with self._reading() as database:
            return meta(database, "interrupted") == "yes"

    @override
    def pending(self, space: Space, where: Filter = EVERYTHING) -> Sequence[rows.Digested]:
        with self._view(where) as (database, visible):
            return passages.pending(database, space, _as_set(visible))

    @override
    def refused(self, space: Space, where: Filter = EVERYTHING) -> Sequence[rows.RefusedChunk]:
        with self._view(where) as (database, visible):
            return passages.refused(database, space, _as_set(visible))

    @override
    def embedded(self, space: Space, digests: Sequence[bytes]) -> frozenset[bytes]:
        question = (
            "SELECT 1 FROM fx_vec_chunk c JOIN fx_vec_embedding e ON e.chunk_id = c.id"
            " WHERE e.model = ? AND e.dim = ? AND c.digest = ? LIMIT 1"
        )
        with self._reading() as database:
            key = (space.model, space.dim)
            return frozenset(
                digest for digest in digests if database.execute(question, (*key, digest)).fetchone() is not None
            )

    @override
    def progress(self, space: Space, where: Filter = EVERYTHING) -> tuple[int, int]:
        with self._view(where) as (database, visible):
            refused = passages.refused(database, space, _as_set(visible))
            embedded = self._vectors.count(database, space, visible) + len(refused)
            if visible is not None:
                return embedded, len(visible)
            (chunks,) = database.execute("SELECT count(*) FROM fx_vec_chunk").fetchone()
            return embedded, chunks

    def _groups(self, where: Filter) -> Iterator[tuple[bool, sqlite3.Connection, filters.Ids | None]]:
        """Whether it is that of the commits, and the ids that a filter selects in each group; None for all of it."""
        with self.file.snapshot() as database:
            for of_commits, wanted in filters.of_groups(where).items():
                yield of_commits, database, self._filters.select(database, wanted)

    @override
    def names(self) -> rows.Names:
        with self._reading() as database:
            # One pass: every commit is a row.
            question = "SELECT DISTINCT corpus, kind, project FROM fx_vec_member WHERE worktree IN (?, ?)"
            found = database.execute(question, (self.worktree, EVERYWHERE)).fetchall()
        return rows.Names(*(frozenset(row[column] for row in found) for column in range(3)))

    @override
    def nearest(self, query: Vector, k: int, where: Filter) -> Sequence[rows.ScoredChunk]:
        found: list[rows.ScoredChunk] = []
        for of_commits, database, visible in self._groups(where):
            state = self.state()
            if state is not None:
                ids, scores = self._vectors.nearest(database, state.space, query, k, visible, of_commits)
                found += map(rows.ScoredChunk, ids.tolist(), scores.tolist())
        return _best(found, k)

    @override
    def keyword(self, terms: Sequence[str], k: int, where: Filter) -> Sequence[rows.ScoredChunk]:
        found: list[rows.ScoredChunk] = []
        for of_commits, database, visible in self._groups(where) if terms else ():
            cache = self._lengths[of_commits]
            if where.kinds and visible is not None:
                # A reader of some kinds learns nothing of the others, not even from the order.
                scored = keywords.matches_among(database, terms, k, visible, cache)
            else:
                scored = keywords.matches(database, terms, k, _as_set(visible), cache.table)
            found += (rows.ScoredChunk(*row) for row in scored)
        return _best(found, k)

    @override
    def defining(self, name: str, k: int, where: Filter) -> Sequence[int]:
        for of_commits, database, visible in self._groups(where):
            if not of_commits:
                chosen = _as_set(visible)
                found = keywords.defining(database, name)
                return [chunk_id for chunk_id in found if chosen is None or chunk_id in chosen][:k]
        return []

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
        with self.file.snapshot() as database:
            state = self.state()
            return {} if state is None else self._vectors.vectors(database, state.space, ids)

    @override
    def passages(self, ids: Sequence[int], where: Filter) -> Mapping[int, rows.Passage]:
        with self.file.snapshot() as database:
            return passages.passages(database, self.worktree, ids, where)

    @override
    def damaged(self, ids: Sequence[int], with_vectors: bool) -> frozenset[int]:
        with self.file.snapshot() as database:
            state = self.state() if with_vectors else None
            return checksums.damaged(database, ids, None if state is None else state.space)

    def passage_refs(self, where: Filter) -> Sequence[rows.PassageRef]:
        """Every passage of this view that a filter selects, in index order."""
        with self._view(where) as (database, visible):
            return passages.refs(database, self.worktree, _as_set(visible))

    def text_of(self, artifact: rows.ArtifactKey) -> tuple[str, str]:
        with self.file.snapshot() as database:
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
        with self.file.snapshot() as database:
            state = self.state()
            return [] if state is None else inventory.collections(database, self.worktree, state.space)

    @override
    def holdings(self) -> Sequence[rows.InventoryRow]:
        with self.file.snapshot() as database:
            state = self.state()
            return [] if state is None else inventory.holdings(database, self.worktree, state.space)

    @override
    def spaces(self) -> Sequence[SpaceStatus]:
        with self._reading() as database:
            return inventory.spaces(database)

    @override
    def size(self) -> int:
        if self.is_shared:
            if not self.exists:
                return 0
            with self._reading() as database:
                return inventory.payload(database)
        files = (self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())


def _as_set(visible: filters.Ids | None) -> frozenset[int] | None:
    return None if visible is None else frozenset(visible.tolist())


def _best(found: list[rows.ScoredChunk], k: int) -> Sequence[rows.ScoredChunk]:
    return sorted(found, key=lambda item: (-item.score, item.id))[:k]

"""Imported projects: other repositories' passages with their vectors, under the names of their projects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from outcrop.core.model import Kind, Space
from outcrop.core.protocols import Matrix, VectorStore, override
from outcrop.core.reports import ProjectStatus
from outcrop.core.rows import IMPORTED, Entry, Member, Project, Replaced, Written
from outcrop.core.vectors import ON_DISK
from outcrop.errors import IndexMissing
from outcrop.stores.sqlite import membership, writer
from outcrop.stores.sqlite.connection import moment
from outcrop.stores.sqlite.file import DatabaseFile
from outcrop.stores.sqlite.filters import EVERYWHERE

_COLUMNS = "project, type, peer, item, kind, paths, revision, model, dim, imported"
_IMPORTED = f"worktree = '{EVERYWHERE}' AND builder = '{IMPORTED}'"


class ProjectTables(VectorStore):
    """The part of a store that keeps imported projects. Every view sees them, and no build touches them."""

    def __init__(self, file: DatabaseFile) -> None:
        self.file = file

    def _batches(self, entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
        return writer.batches(entries, writer.SHARED_BATCH if self.file.shared else None)

    @override
    def projects(self) -> Sequence[Project]:
        try:
            with self.file.reading() as database:
                rows = database.execute(f"SELECT {_COLUMNS} FROM fx_vec_project ORDER BY project").fetchall()
        except IndexMissing:
            return []
        return [
            Project(
                name=name,
                type=source_type,
                peer=peer,
                item=item,
                kind=None if kind is None else Kind(kind),
                paths=tuple(paths.split("\n")) if paths else (),
                revision=revision,
                space=Space(model, dim),
                imported=imported,
            )
            for name, source_type, peer, item, kind, paths, revision, model, dim, imported in rows
        ]

    @override
    def project_statuses(self) -> Sequence[ProjectStatus]:
        projects = self.projects()
        if not projects:
            return []
        with self.file.reading() as database:
            artifacts = dict(
                database.execute(
                    f"SELECT project, count(DISTINCT hash) FROM fx_vec_member WHERE {_IMPORTED} GROUP BY project"
                ).fetchall()
            )
            rows = database.execute(
                "SELECT c.project, count(*), count(e.chunk_id) FROM fx_vec_chunk c"
                " LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id"
                " AND (e.model, e.dim) = (SELECT model, dim FROM fx_vec_state)"
                " WHERE c.project IN (SELECT project FROM fx_vec_project)"
                " AND EXISTS(SELECT 1 FROM fx_vec_member m WHERE m.project = c.project AND m.hash = c.hash"
                f" AND m.part = c.part AND {_IMPORTED})"
                " GROUP BY c.project"
            )
            sizes = {name: (chunks, embedded) for name, chunks, embedded in rows}
        return [
            ProjectStatus(
                each.name,
                each.type,
                each.peer,
                each.item,
                each.kind,
                each.paths,
                artifacts.get(each.name, 0),
                *sizes.get(each.name, (0, 0)),
                space=each.space.id,
                imported=each.imported,
            )
            for each in projects
        ]

    @override
    def moment(self) -> str:
        with self.file.reading() as database:
            return moment(database)

    @override
    def copy_in(
        self, project: str, entries: Sequence[Entry], space: Space, digests: Sequence[bytes], vectors: Matrix
    ) -> Written:
        by_digest = dict(zip(digests, vectors.astype(ON_DISK, copy=False), strict=True))
        chunks = reused = 0
        for batch in self._batches(entries):
            prepared = writer.prepare(batch, project)
            with self.file.changing() as database:
                if database.execute("SELECT 1 FROM fx_vec_state").fetchone() is None:
                    writer.set_space(database, space)
                first = writer.next_id(database)
                written = writer.insert(database, prepared)
                writer.mark_unplaced(database, prepared)
                items = (item for entry in batch for item in entry.chunks)
                writer.add_vectors(
                    database,
                    [
                        writer.vector_row(chunk_id, space, item.digest, by_digest[item.digest].tobytes())
                        for chunk_id, item in enumerate(items, first)
                        if item.digest in by_digest
                    ],
                )
            chunks += written.chunks
            reused += written.reused
        return Written(chunks, reused)

    @override
    def place_project(self, project: Project, members: Sequence[Member]) -> Replaced:
        wanted = frozenset(map(membership.key_of, members))
        name = project.name
        before = next((each for each in self.projects() if each.name == name), None)
        with self.file.reading(create=True) as database:
            there = membership.stored_keys(database, name, EVERYWHERE, (IMPORTED,))
        if before is not None and wanted == there and replace(before, imported=project.imported) == project:
            return Replaced(0, 0)
        with self.file.changing() as database:
            membership.change_members(database, name, EVERYWHERE, there - wanted, wanted - there)
            source = (name, project.type, project.peer, project.item, project.kind, "\n".join(project.paths))
            database.execute(
                f"INSERT OR REPLACE INTO fx_vec_project({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*source, project.revision, project.space.model, project.space.dim, project.imported),
            )
            dropped = membership.drop_unplaced(database, name)
            membership.update_paths(database, name, {key[2] for key in there ^ wanted})
        return dropped

    @override
    def remove_project(self, name: str) -> Replaced:
        with self.file.changing() as database:
            database.execute(f"DELETE FROM fx_vec_member WHERE project = ? AND {_IMPORTED}", (name,))
            database.execute("DELETE FROM fx_vec_project WHERE project = ?", (name,))
            return membership.drop_unplaced(database, name)

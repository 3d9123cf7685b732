"""What came from peers: other repositories' passages with their vectors, under the names of their projects."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from outcrop.core.model import Kind, Space
from outcrop.core.protocols import Matrix
from outcrop.core.reports import ProjectStatus
from outcrop.core.rows import IMPORTED, Entry, Member, Project, Replaced, Written
from outcrop.core.vectors import ON_DISK
from outcrop.errors import IndexMissing
from outcrop.stores.sqlite import membership, writer
from outcrop.stores.sqlite.connection import moment
from outcrop.stores.sqlite.file import DatabaseFile
from outcrop.stores.sqlite.filters import EVERYWHERE

_COLUMNS = "project, type, peer, item, kind, paths, revision, model, dim, imported"
_OURS = f"worktree = '{EVERYWHERE}' AND builder = '{IMPORTED}'"


class ProjectTables:
    """The part of a store that keeps imported projects. Every view sees them, and no build touches them.

    Args:
        file: The database.
    """

    def __init__(self, file: DatabaseFile) -> None:
        self.file = file

    def projects(self) -> Sequence[Project]:
        """What was imported from peers, by name."""
        try:
            with self.file.reading() as database:
                rows = database.execute(f"SELECT {_COLUMNS} FROM fx_vec_project ORDER BY project").fetchall()
        except IndexMissing:
            return []
        return [
            Project(
                *(name, type, peer, item),
                kind=None if kind is None else Kind(kind),
                paths=tuple(paths.split("\n")) if paths else (),
                revision=revision,
                space=Space(model, dim),
                imported=imported,
            )
            for name, type, peer, item, kind, paths, revision, model, dim, imported in rows
        ]

    def project_statuses(self) -> Sequence[ProjectStatus]:
        """The imported projects with their sizes; no peer is asked."""
        projects = self.projects()
        if not projects:
            return []
        with self.file.reading() as database:
            artifacts = dict(
                database.execute(
                    f"SELECT project, count(DISTINCT hash) FROM fx_vec_member WHERE {_OURS} GROUP BY project"
                ).fetchall()
            )
            rows = database.execute(
                "SELECT c.project, count(*), count(e.chunk_id) FROM fx_vec_chunk c"
                " LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = (SELECT model FROM fx_vec_state)"
                " WHERE c.project IN (SELECT project FROM fx_vec_project)"
                " AND EXISTS(SELECT 1 FROM fx_vec_member m WHERE m.project = c.project AND m.hash = c.hash"
                f" AND m.part = c.part AND {_OURS})"
                " GROUP BY c.project"
            )
            sizes = {name: (chunks, embedded) for name, chunks, embedded in rows}
        return [
            ProjectStatus(
                *(each.name, each.type, each.peer, each.item, each.kind, each.paths),
                artifacts.get(each.name, 0),
                *sizes.get(each.name, (0, 0)),
                space=each.space.id,
                imported=each.imported,
            )
            for each in projects
        ]

    def moment(self) -> str:
        """Equal as long as nothing in the store changes."""
        with self.file.reading() as database:
            return moment(database)

    def copy_in(
        self, project: str, entries: Sequence[Entry], space: Space, digests: Sequence[bytes], vectors: Matrix
    ) -> Written:
        """Store artifacts of an imported project with their vectors; nobody sees them before they are placed."""
        prepared = writer.prepare(entries, project)
        there = dict(zip(digests, vectors.astype(ON_DISK, copy=False), strict=True))
        with self.file.apart() as database:
            layout = writer.lay_out(database, prepared)
            with self.file.transaction(database):
                if database.execute("SELECT 1 FROM fx_vec_state").fetchone() is None:
                    writer.set_space(database, space)
                first = writer.next_id(database)
                written = writer.put_in(database, prepared, layout)
                database.executemany(
                    "INSERT OR IGNORE INTO fx_vec_embedding VALUES (?, ?, ?, ?)",
                    _vector_rows(first, entries, space, there),
                )
        return written

    def place_project(self, project: Project, members: Sequence[Member]) -> Replaced:
        """Say what a project is and what belongs to it, for every view; drop what nothing names any more."""
        wanted = frozenset(map(membership.key_of, members))
        name = project.name
        before = next((each for each in self.projects() if each.name == name), None)
        with self.file.reading(create=True) as database:
            there = _members(database, name)
        if before is not None and wanted == there and replace(before, imported=project.imported) == project:
            return Replaced(0, 0)
        with self.file.changing() as database:
            database.executemany(
                f"DELETE FROM fx_vec_member WHERE project = ? AND {_OURS}"
                " AND corpus = ? AND builder = ? AND hash = ? AND part = ? AND path = ? AND kind = ?",
                ((name, *key) for key in there - wanted),
            )
            database.executemany(
                "INSERT OR REPLACE INTO fx_vec_member(project, worktree, corpus, builder, hash, part, path, kind)"
                f" VALUES (?, '{EVERYWHERE}', ?, ?, ?, ?, ?, ?)",
                ((name, *key) for key in sorted(wanted - there, key=lambda key: key[2])),
            )
            database.execute(
                f"INSERT OR REPLACE INTO fx_vec_project({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(name, project.type, project.peer, project.item, project.kind, "\n".join(project.paths)),
                    *(project.revision, project.space.model, project.space.dim, project.imported),
                ),
            )
            dropped = membership.drop_unplaced(database, name)
            membership.mirror(database, name, {key[2] for key in there ^ wanted})
        return dropped

    def remove_project(self, name: str) -> Replaced:
        """Take an imported project out of every view. Records that name the same project stay."""
        with self.file.changing() as database:
            database.execute(f"DELETE FROM fx_vec_member WHERE project = ? AND {_OURS}", (name,))
            database.execute("DELETE FROM fx_vec_project WHERE project = ?", (name,))
            return membership.drop_unplaced(database, name)


def _members(database: sqlite3.Connection, name: str) -> frozenset[membership.MemberKey]:
    return frozenset(
        database.execute(
            f"SELECT corpus, builder, hash, part, path, kind FROM fx_vec_member WHERE project = ? AND {_OURS}", (name,)
        )
    )


def _vector_rows(
    first: int, entries: Sequence[Entry], space: Space, vectors: Mapping[bytes, Matrix]
) -> Iterator[tuple[int, str, int, bytes]]:
    """Rows for the chunks that have a vector; chunks were stored in order, from this id on."""
    chunks = (item for entry in entries for item in entry.chunks)
    for id, item in enumerate(chunks, first):
        vector = vectors.get(item.digest)
        if vector is not None:
            yield id, space.model, space.dim, vector.tobytes()

"""What is indexed, one artifact or one count at a time: for pages and commands that show the index."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

from outcrop.core.model import WITHOUT_FILES, Collection, Kind, Part, Space
from outcrop.core.reports import CollectionStatus, SpaceStatus
from outcrop.core.rows import ArtifactKey, InventoryRow
from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.filters import EVERYWHERE

# A stored vector is float32.
NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True)
class IndexedArtifact:
    """An artifact that a view names.

    Attributes:
        project: Slug of its repository; empty for this one.
        version: ``Ref.version`` when it was read.
        size: Not None where its source is asked for plain bytes.
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
    """A passage's text with its place."""

    text: str
    first_line: int
    cell: int | None


@dataclass(frozen=True, slots=True)
class FacetCount:
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
    artifact: str | None,
    project: str,
    kinds: Container[str] | None,
) -> IndexedArtifact | None:
    conditions, values = ["m.project = ?", "m.worktree IN (?, ?)"], [project, worktree, EVERYWHERE]
    for column, wanted in (("path", path), ("hash", artifact)):
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
    return IndexedArtifact(
        hash=first,
        kind=Kind(kind),
        path=where or None,
        paths=tuple(row[0] for row in others),
        project=project,
        version=version,
        size=None if kind in WITHOUT_FILES else 0,
        readable=view != EVERYWHERE,
    )


def chunks(database: sqlite3.Connection, artifact: ArtifactKey) -> Sequence[StoredText]:
    rows = database.execute(
        "SELECT text, first_line, cell FROM fx_vec_chunk WHERE project = ? AND hash = ? ORDER BY seq", artifact
    )
    return [StoredText(*row) for row in rows]


def facets(database: sqlite3.Connection, worktree: str) -> Sequence[FacetCount]:
    """Passages of a view per corpus, kind and project, and, with an empty corpus, per kind and project alone.

    A passage that is in two corpora counts in both, and once in the second sort of row.
    """
    # Both statements are answered by an index; joining them here passes no text.
    counts = database.execute("SELECT project, hash, count(*) FROM fx_vec_chunk GROUP BY project, hash")
    whole: dict[tuple[str, str], int] = {(project, artifact): count for project, artifact, count in counts}
    rows = database.execute(
        "SELECT DISTINCT corpus, kind, project, hash, part FROM fx_vec_member WHERE worktree IN (?, ?)",
        (worktree, EVERYWHERE),
    ).fetchall()
    in_part = "SELECT count(*) FROM fx_vec_chunk WHERE project = ? AND hash = ? AND part = ?"
    parts = {key: database.execute(in_part, key).fetchone()[0] for key in {row[2:] for row in rows if row[4]}}
    sums: dict[tuple[str, str, str], int] = {}
    counted: set[tuple[str, str, str, str]] = set()
    for corpus, kind, project, artifact, part in rows:
        count = parts[project, artifact, part] if part else whole.get((project, artifact), 0)
        names = [corpus] if (kind, project, artifact, part) in counted else [corpus, ""]
        counted.add((kind, project, artifact, part))
        for name in names:
            sums[name, kind, project] = sums.get((name, kind, project), 0) + count
    return [
        FacetCount(corpus, Kind(kind), project, count)
        for (corpus, kind, project), count in sorted(sums.items())
        if count
    ]


def collections(database: sqlite3.Connection, worktree: str, space: Space) -> Sequence[CollectionStatus]:
    """One line a corpus of a view; what is at several paths of it counts once."""
    parts: dict[str, dict[tuple[str, str, Part], InventoryRow]] = defaultdict(dict)
    for row in holdings(database, worktree, space):
        parts[row.corpus].setdefault((row.project, row.hash, row.part), row)
    found = []
    for corpus, by_part in sorted(parts.items()):
        rows, kinds = by_part.values(), Counter[str]()
        for row in rows:
            kinds[str(row.kind)] += row.chunks
        found.append(
            CollectionStatus(
                name=Collection(corpus, space).name,
                corpus=corpus,
                artifacts=len({row.hash for row in rows}),
                chunks=sum(row.chunks for row in rows),
                embedded=sum(row.embedded for row in rows),
                characters=sum(row.characters for row in rows),
                bytes=sum(row.bytes + row.embedded * space.dim * NUMBER_BYTES for row in rows),
                kinds=dict(sorted(kinds.items())),
            )
        )
    return found


def holdings(database: sqlite3.Connection, worktree: str, space: Space) -> Sequence[InventoryRow]:
    (vectors,) = database.execute(
        "SELECT count(*) FROM fx_vec_embedding WHERE model = ? AND dim = ?", (space.model, space.dim)
    ).fetchone()
    (chunks,) = database.execute("SELECT count(*) FROM fx_vec_chunk").fetchone()
    # Almost always every chunk has its vector, and then there is nothing to join.
    whole = vectors == chunks
    join = "" if whole else "LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id AND e.model = ? AND e.dim = ?"
    # One pass over the chunks in the order in which they lie in the file: their index would jump about in it.
    stored = {
        (project, artifact, part): numbers
        for project, artifact, part, *numbers in database.execute(
            "SELECT project, hash, part, count(*), sum(embedded), sum(characters), sum(bytes) FROM"
            f" (SELECT c.project, c.hash, c.part, {'1' if whole else 'e.chunk_id IS NOT NULL'} AS embedded,"
            " length(c.text) AS characters, length(CAST(c.text AS BLOB)) AS bytes"
            # With a limit the lengths are taken first; otherwise the texts themselves would be sorted.
            f" FROM fx_vec_chunk c NOT INDEXED {join} LIMIT -1) GROUP BY project, hash, part",
            () if whole else (space.model, space.dim),
        )
    }
    rows = database.execute(
        "SELECT m.corpus, m.builder, m.project, m.kind, m.path, m.hash, m.part,"
        " CASE m.worktree WHEN ? THEN a.version END"
        " FROM fx_vec_member m LEFT JOIN fx_vec_artifact a ON a.project = m.project AND a.hash = m.hash"
        " WHERE m.worktree IN (?, ?)",
        (worktree, worktree, EVERYWHERE),
    )
    return [
        InventoryRow(corpus, builder, project, Kind(kind), path or None, artifact, Part(part), version, *there)
        for corpus, builder, project, kind, path, artifact, part, version in rows
        if (there := stored.get((project, artifact, part))) is not None
    ]


def spaces(database: sqlite3.Connection) -> Sequence[SpaceStatus]:
    # Answered by the key's own index; the table has the vectors between, which take ten times as long to pass.
    counts = database.execute("SELECT model, dim, count(*) FROM fx_vec_embedding GROUP BY 1, 2 ORDER BY 1, 2")
    return [SpaceStatus(Space(model, dim).id, count, count * dim * NUMBER_BYTES) for model, dim, count in counts]


def payload(database: sqlite3.Connection) -> int:
    """Bytes of text, vectors and keyword index, without what SQLite needs to find them."""
    (stored,) = database.execute(
        "SELECT (SELECT total(length(CAST(text AS BLOB))) FROM fx_vec_chunk)"
        " + (SELECT total(length(v)) FROM fx_vec_embedding)"
        + "".join(
            f" + (SELECT total(length(block)) FROM {table}_data)"
            f" + (SELECT total(length(c0) + length(c1) + length(c2)) FROM {table}_content)"
            for table in keywords.TABLES
        )
    ).fetchone()
    return int(stored)

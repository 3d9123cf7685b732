"""Copies a project into a store: reads only what is new or changed, and shows it when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outcrop.core.batches import WRITE_CHUNKS, in_batches, slices
from outcrop.core.model import Filter, Kind, Part, Ref, Space
from outcrop.core.protocols import Vector, VectorStore
from outcrop.core.reports import Progress
from outcrop.core.rows import IMPORTED, Digested, Entry, Member, Project, StoredArtifact
from outcrop.errors import StoreDamaged
from outcrop.indexing.ingest import Report
from outcrop.indexing.scope import corpus_of

# Artifacts read from a peer at a time.
ARTIFACTS_AT_ONCE = 200

# How far a peer's vector may be from length 1; ours are within a millionth.
UNIT_TOLERANCE = 1e-3


# An artifact, and the vectors that it has, by digest.
Read = tuple[Entry, Mapping[bytes, Vector]]


@dataclass(frozen=True, slots=True)
class Material:
    """What a peer has."""

    members: Sequence[Member]  # What is wanted of it, and where it belongs here
    known: Mapping[str, StoredArtifact]  # Version, recipe and parts of each of its artifacts, by hash
    # Gives artifacts by their hashes, each with the vectors that it has, by digest
    read: Callable[[Sequence[str]], Iterable[Read]]


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What came in."""

    added: int  # Artifacts that were read, because they are new or changed
    unchanged: int
    removed: int
    reused: int  # New passages whose vector was in the store already


def as_members(members: Iterable[Member], kind: Kind | None, matches: Callable[[str], bool] | None) -> list[Member]:
    """Where a peer's artifacts that match belong here: in its own corpora, or all but its commits as one kind."""
    wanted = (
        item
        for item in members
        if (matches is None or (item.path is not None and matches(item.path)))
        and (kind is None or item.kind is not Kind.COMMIT)
    )
    return [
        replace(
            item,
            builder=IMPORTED,
            corpus=item.corpus if kind is None else corpus_of(kind),
            kind=item.kind if kind is None else kind,
        )
        for item in wanted
    ]


def copy_project(store: VectorStore, project: Project, material: Material, report: Report) -> ImportCounts:
    """Make a project of the store hold what its peer has. The caller is the store's writer.

    Everything is copied before any of it is placed, so that an import that fails leaves what was there.
    """
    name = project.name
    mine = store.known(name)
    embedded, chunks = store.progress(project.space, Filter(projects=(name,)))
    parts: dict[str, set[Part]] = {}
    for member in material.members:
        parts.setdefault(member.hash, set()).add(member.part)
    fresh = sorted(
        key
        for key, wanted in parts.items()
        if embedded < chunks or not _has(mine.get(key), material.known[key], wanted)
    )
    reused = 0
    sized = ((item, len(item[0].chunks)) for item in _read(material, fresh, report))
    for batch in in_batches(sized, WRITE_CHUNKS, len(fresh)):
        vectors = {key: vector for _, some in batch for key, vector in some.items()}
        matrix = np.stack(list(vectors.values())) if vectors else np.empty((0, project.space.dim), np.float32)
        reused += store.copy_in(name, [entry for entry, _ in batch], project.space, list(vectors), matrix).reused
    store.place_project(project, material.members)
    report(Progress("writing", len(fresh), len(fresh)))
    return ImportCounts(len(fresh), len(parts) - len(fresh), len(mine.keys() - parts.keys()), reused)


def _read(material: Material, hashes: Sequence[str], report: Report) -> Iterator[Read]:
    for place, some in enumerate(slices(hashes, ARTIFACTS_AT_ONCE)):
        report(Progress("writing", place * ARTIFACTS_AT_ONCE, len(hashes)))
        yield from material.read(some)


def _has(mine: StoredArtifact | None, theirs: StoredArtifact, parts: set[Part]) -> bool:
    """Whether the store has an artifact as its peer has it, with all parts that are wanted."""
    return (
        mine is not None and (mine.version, mine.recipe) == (theirs.version, theirs.recipe) and parts <= set(mine.parts)
    )


def entries_of(
    store: VectorStore,
    hashes: Sequence[str],
    members: Mapping[str, Member],
    known: Mapping[str, StoredArtifact],
    space: Space,
) -> Iterator[Read]:
    """Artifacts of a peer's store, as ``Material.read`` gives them; ``members`` has the first of each, by hash."""
    for key, chunks in store.embedded_chunks(space, hashes).items():
        member, about = members[key], known[key]
        entry = Entry(
            Ref(key, member.kind, member.path, about.version),
            about.recipe,
            [Digested(item.chunk, item.digest) for item in chunks],
            media=chunks[0].media if chunks else None,
        )
        vectors = {item.digest: item.vector for item in chunks if item.vector is not None}
        _check(list(vectors.values()))
        yield entry, vectors


def _check(vectors: Sequence[Vector]) -> None:
    if vectors and not np.all(np.abs(np.linalg.norm(np.stack(vectors), axis=1) - 1) <= UNIT_TOLERANCE):
        raise StoreDamaged("it holds vectors that are not of length 1", "Mend them there: outcrop normalize")

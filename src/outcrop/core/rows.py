"""What crosses the ports of a store: rows, batches and what was found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outcrop.core.model import Chunk, FileState, Kind, MediaNote, Part, RecordNote, Ref, Skipped, SkipReason, Space

# The two corpora that every index has; they are built together.
DEFAULT_BUILDERS = ("code", "docs")

# Builder of what came from peers: no build prunes it, and no corpus can have this name.
IMPORTED = "@"


@dataclass(frozen=True, slots=True)
class Member:
    """One artifact (or one part of it) belonging to a corpus at one path.

    ``builder`` is the corpus whose build put it there; only that build prunes it. ``kind`` is what it counts as there.
    """

    corpus: str
    builder: str
    hash: str
    part: Part
    path: str | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """What the store keeps of one artifact.

    Attributes:
        version: ``Ref.version`` when it was read.
        recipe: Chunker version and format that cut it; under another recipe it is cut again.
        skip: Why nothing of it is indexed, or None; ``detail`` says more.
        parts: The parts its chunks have.
    """

    version: str
    recipe: str
    skip: SkipReason | None
    detail: str
    parts: frozenset[Part]


@dataclass(frozen=True, slots=True)
class Digested:
    """A chunk with the SHA-256 of the exact string that gets embedded for it."""

    chunk: Chunk
    digest: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One artifact to write: its chunks, or why it has none."""

    ref: Ref
    recipe: str
    chunks: Sequence[Digested]
    skip: SkipReason | None = None
    detail: str = ""
    media: MediaNote | None = None


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """A caller's record to write; ``entry.ref`` has its hash, kind and path, ``metadata`` is a JSON object as text."""

    id: str
    project: str
    metadata: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Upserted:
    """What writing records did: how many are new, had another content, or were equal; and new chunks that took over a
    vector.
    """

    added: int
    changed: int
    unchanged: int
    reused: int


@dataclass(frozen=True, slots=True)
class View:
    """Everything one build says about what belongs where; replaces what these ``builders`` said before.

    ``seen`` is for the next listing; ``worktrees`` are all views that still exist, the members of others are dropped.
    """

    builders: Sequence[str]
    members: Sequence[Member]
    seen: Mapping[str, FileState]
    skipped: Sequence[Skipped]
    worktrees: frozenset[str]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build made, for others to get.

    Attributes:
        hashes: Artifacts that it indexed.
        changed: Those that it cut anew.
        revision: What the index is complete at now, and ``before`` the build; None when that is not known.
    """

    space: Space
    hashes: Collection[str]
    changed: Collection[str]
    revision: str
    before: str | None
    has_new_vectors: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """A distinct passage without a vector: its digest, and one chunk that has it."""

    digest: bytes
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class State:
    """The space that search scans, and what the index is current to."""

    space: Space
    last_ckout: str | None


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A chunk id with its score: a dot product, or a keyword score (higher is better)."""

    id: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored chunk as an answer needs it.

    Attributes:
        kind: Kind at the first path that the filter lets through.
        paths: Paths that it has in this view, the ones that pass the filter first.
        chunk: The chunk itself; ``start`` and ``end`` are 0, since the store does not keep them.
        siblings: How many chunks the artifact has, this one included.
        version: ``Ref.version`` when its artifact was read; None where no listing of this source named it.
    """

    id: int
    hash: str
    project: str
    kind: Kind
    paths: tuple[str, ...]
    corpora: tuple[str, ...]
    chunk: Chunk
    siblings: int
    version: str | None = None
    record: RecordNote | None = None
    media: MediaNote | None = None


@dataclass(frozen=True, slots=True)
class InventoryRow:
    """What is stored of one artifact (or one part of it) at one of its paths in a view.

    Attributes:
        version: ``Ref.version`` when it was read; None where no listing of this source named it.
        embedded: How many of its chunks have a vector in the scanned space.
        characters: Length of their texts; ``bytes`` the same in UTF-8, vectors not counted.
    """

    corpus: str
    builder: str
    project: str
    kind: Kind
    path: str | None
    hash: str
    part: Part
    version: str | None
    chunks: int
    embedded: int
    characters: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Names:
    """What a filter may name in this view."""

    corpora: frozenset[str]
    kinds: frozenset[str]
    projects: frozenset[str]


@dataclass(frozen=True, slots=True)
class Replaced:
    """What replacing a view did: artifacts that no view names any more, now deleted."""

    artifacts: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did: chunks added, how many of them took over a vector, and what no view names any more."""

    chunks: int
    reused: int
    dropped: Replaced = Replaced(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """A stored chunk as the transfer store takes it; ``vector`` is float32 ``[dim]``, L2-normalised, or None."""

    chunk: Chunk
    digest: bytes
    vector: npt.NDArray[np.float32] | None
    media: MediaNote | None = None

    @property
    def seq(self) -> int:
        return self.chunk.seq

    @property
    def text(self) -> str:
        return self.chunk.text


@dataclass(frozen=True, slots=True)
class Project:
    """Where an imported project came from, and how.

    Attributes:
        type: What the peer is: ``fossil``, ``git``, ``folder``, ``blobs``, or ``python`` for an installed package.
        peer: Absolute path of the peer; for a package, that of the interpreter, and ``item`` is its name.
        kind: What all of it counts as here; None for what it counts as there.
        paths: Patterns of the paths that were wanted; empty for all.
        imported: When it was last read, in seconds since the epoch.
    """

    name: str
    type: str
    peer: str
    item: str
    kind: Kind | None
    paths: tuple[str, ...]
    revision: str
    space: Space
    imported: float


@dataclass(frozen=True, slots=True)
class TransferCounts:
    """Files written to the transfer store, and files withdrawn from it."""

    added: int
    removed: int


# Project and hash.
ArtifactKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PassageRef:
    """Where a passage is. Lines are 1-based and inclusive, in a notebook inside the cell, which counts from 0."""

    project: str
    hash: str
    paths: tuple[str, ...]
    lines: tuple[int, int]
    name: str | None = None
    cell: int | None = None

    @property
    def artifact(self) -> ArtifactKey:
        return self.project, self.hash

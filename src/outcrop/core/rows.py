"""What crosses the ports of a store: rows, batches and what was found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from outcrop.core.model import Chunk, FileState, Kind, MediaNote, Part, RecordNote, Ref, Skipped, SkipReason, Space
from outcrop.core.names import DEFAULT_BUILDERS

# Builder of what came from peers: no build prunes it, and no corpus can have this name.
IMPORTED = "@"


@dataclass(frozen=True, slots=True)
class Member:
    """One artifact (or one part of it) belonging to a corpus at one path."""

    corpus: str
    builder: str  # The corpus whose build put it there; only that build prunes it
    hash: str
    part: Part
    path: str | None
    kind: Kind  # What it counts as there


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """What the store keeps of one artifact."""

    version: str  # ``Ref.version`` when it was read
    recipe: str  # Chunker version and format that cut it; under another recipe it is cut again
    skip: SkipReason | None  # Why nothing of it is indexed, or None; ``detail`` says more
    detail: str
    parts: frozenset[Part]  # The parts its chunks have


@dataclass(frozen=True, slots=True)
class Digested:
    """A chunk with the SHA-256 of the exact string that gets embedded for it."""

    chunk: Chunk
    digest: bytes
    is_commit: bool = field(default=False, kw_only=True)  # Only its beginning, the message, is meant to be embedded


@dataclass(frozen=True, slots=True)
class RefusedChunk(Digested):
    """A chunk that the embedder cannot embed, so that only its words are found."""

    path: str  # Where it has none, the artifact's hash
    reason: str


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
    """How many records are new, had another content, or were equal; and new chunks that took over a vector."""

    added: int
    changed: int
    unchanged: int
    reused: int


@dataclass(frozen=True, slots=True)
class View:
    """Everything one build says about what belongs where; replaces what these ``builders`` said before."""

    builders: Sequence[str]
    members: Sequence[Member]
    seen: Mapping[str, FileState]  # For the next listing
    skipped: Sequence[Skipped]
    worktrees: frozenset[str]  # All views that still exist; the members of others are dropped


@dataclass(frozen=True, slots=True)
class Completion:
    """What these builders' corpora are complete at in this view."""

    revision: str
    builders: Sequence[str] = DEFAULT_BUILDERS


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """What a build of everything did, for those who share it."""

    hashes: Collection[str]
    changed: Collection[str]  # Those of them that it cut anew
    space: Space
    revision: str
    before: str | None  # What the index was complete at before the build; None when that is not known
    has_new_vectors: bool


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
    """A stored chunk as an answer needs it."""

    id: int
    hash: str
    project: str
    kind: Kind  # Kind at the first path that the filter lets through
    paths: tuple[str, ...]  # Paths that it has in this view, the ones that pass the filter first
    corpora: tuple[str, ...]
    chunk: Chunk
    siblings: int  # How many chunks the artifact has, this one included
    # ``Ref.version`` when its artifact was read; None where no listing of this source named it
    version: str | None = None
    record: RecordNote | None = None
    media: MediaNote | None = None


@dataclass(frozen=True, slots=True)
class InventoryRow:
    """What is stored of one artifact (or one part of it) at one of its paths in a view."""

    corpus: str
    builder: str
    project: str
    kind: Kind
    path: str | None
    hash: str
    part: Part
    version: str | None  # ``Ref.version`` when it was read; None where no listing of this source named it
    chunks: int
    embedded: int  # How many of its chunks have a vector in the scanned space
    characters: int  # Length of their texts; ``bytes`` the same in UTF-8, vectors not counted
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
class Embedded(Digested):
    """A stored chunk as the transfer store takes it; ``vector`` is float32 ``[dim]``, L2-normalised, or None."""

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
    """Where an imported project came from, and how."""

    name: str
    type: str  # What the peer is: ``fossil``, ``git``, ``folder``, ``blobs``, or ``python`` for an installed package
    peer: str  # Absolute path of the peer; for a package, that of the interpreter, and ``item`` is its name
    item: str
    kind: Kind | None  # What all of it counts as here; None for what it counts as there
    paths: tuple[str, ...]  # Patterns of the paths that were wanted; empty for all
    revision: str
    space: Space
    imported: float  # When it was last read, in seconds since the epoch


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

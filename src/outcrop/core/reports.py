"""Reports of builds, transfers and imports, and the status of an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outcrop.core.model import Hit, Mode, Ref, Skipped


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One line of ``status``.

    ``embedded`` counts chunks with a vector in this space, ``bytes`` text and vectors, ``kinds`` chunks per kind.
    """

    name: str
    corpus: str
    artifacts: int
    chunks: int
    embedded: int
    characters: int
    bytes: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. ``chunks`` is how many the corpus now has, ``complete`` False if the build stopped early.

    Attributes:
        embedded: Chunks that went through the model in this build, with ``characters``.
        reused: New chunks whose vector was already there.
        cut: Passages that were longer than the embedder reads, so that it read their beginning only.
        shared: Transfer blobs that were written for other copies of the repository.
    """

    revision: str
    added: int
    unchanged: int
    removed: int
    chunks: int
    embedded: int
    reused: int
    characters: int
    cut: int
    skipped: tuple[Skipped, ...]
    seconds: float
    complete: bool
    shared: int = 0
    withdrawn: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did.

    Attributes:
        artifacts: Artifacts that are in the index now, with ``chunks``.
        imported: Vectors that came from blobs.
        missing: Chunks that no blob has a vector for; the next build embeds them.
        stale: Blobs of artifacts that are not in the source.
        refused: Blobs that cannot be used, and why.
    """

    revision: str
    space: str
    artifacts: int
    chunks: int
    imported: int
    missing: int
    stale: int
    refused: tuple[Skipped, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class SyncReport:
    """An exchange of blobs with another copy of the repository.

    Attributes:
        refused: Whether it has other blobs than ours, and takes none from this user.
        withdrawn: Blobs that it deleted, because what they belong to is gone.
        withheld: Artifacts that were not sent, because it has not got the commits that they are in.
    """

    sent: int
    received: int
    refused: bool
    withdrawn: int = 0
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export did; ``where`` is the folder, repository file or git ref that holds the vectors."""

    where: str
    artifacts: int
    written: int
    withdrawn: int
    seconds: float


@dataclass(frozen=True, slots=True)
class NormaliseReport:
    """What rewriting vectors and blobs in their present form did.

    Attributes:
        vectors: Stored vectors that had another length than 1.
        dropped: Stored vectors that had no direction at all; the next build makes them again.
        blobs: Blobs that were rewritten; those in ``refused`` cannot be read and are left as they are.
    """

    vectors: int
    dropped: int
    blobs: int
    unchanged: int
    refused: tuple[Skipped, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class UpsertReport:
    """What storing a caller's records did; the last five fields as in :class:`BuildReport`."""

    added: int
    changed: int
    unchanged: int
    embedded: int
    reused: int
    characters: int
    cut: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is; sent a few times a second at most.

    Attributes:
        phase: ``listing``, ``chunking``, ``embedding`` or ``writing``.
        total: 0 while unknown.
        characters: Characters that went through this phase so far.
    """

    phase: str
    done: int
    total: int
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build would do: ``index --dry-run``.

    Attributes:
        artifacts: Everything that would be in the index; ``new`` of them are not yet, or changed.
        texts: Passages that would go through the embedder, with ``characters``; known texts are not counted.
        address: Where the text would go; None when it stays on this machine.
    """

    artifacts: tuple[Ref, ...]
    new: int
    texts: int
    characters: int
    space: str
    address: str | None
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """Vectors of one space in the store, whether or not it is the one that is searched."""

    space: str
    vectors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Watcher:
    """A running ``outcrop watch``, as it last described itself. Times are seconds since the epoch.

    Attributes:
        how: How it learns of changes.
        state: ``watching``, ``updating``, or ``waiting`` after something failed.
        reason: What failed, or why it does not learn of changes by events; None when all is well.
        updated: When it last updated the index; None when it has not yet.
    """

    process: int
    since: float
    how: str
    state: str
    reason: str | None = None
    retry: float | None = None
    updated: float | None = None


@dataclass(frozen=True, slots=True)
class ProjectReport:
    """What importing a project, or reading its peer again, did.

    Attributes:
        type: ``fossil``, ``git``, ``folder``, ``blobs`` or ``python``.
        item: The package, of ``python``.
        artifacts: Artifacts that it has now, with ``chunks``; ``added`` of them are new or changed.
        embedded: Passages that went through the model; always 0 for a peer with an index of its own.
        replaced: The project that it replaced, an older version of the same package; empty for none.
    """

    name: str
    type: str
    peer: str
    item: str
    artifacts: int
    chunks: int
    added: int
    unchanged: int
    removed: int
    embedded: int
    reused: int
    replaced: str
    skipped: tuple[Skipped, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """One imported project. The first fields are those of :class:`outcrop.core.rows.Project`.

    Attributes:
        embedded: How many of its chunks have a vector in the space that is searched.
        current: Whether it has all that its peer has now; None where the peer was not asked.
        reason: Why it is not current, or cannot be updated; None when all is well.
    """

    name: str
    type: str
    peer: str
    item: str
    kind: str | None
    paths: tuple[str, ...]
    artifacts: int
    chunks: int
    embedded: int
    space: str
    imported: float
    current: bool | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """What is indexed, where, and how current it is.

    Attributes:
        revision: What the index is current to, None when it was never completed.
        current: What the source is at now.
        complete: Share of chunks that have a vector in the space that is searched, 0 to 1.
        writer: Whether another process is building right now.
        space: The space that search scans, None without an index; ``embedder`` is the configured one.
        address: Where the configured embedder sends text, None when it sends none.
        projects: What was imported from peers, which were not asked.
    """

    source: str
    root: str
    project: str
    store: str
    exists: bool
    bytes: int
    revision: str | None
    current: str
    stale: bool
    complete: float
    writer: bool
    space: str | None
    embedder: str
    address: str | None
    collections: tuple[CollectionStatus, ...]
    spaces: tuple[SpaceStatus, ...]
    skipped: tuple[Skipped, ...]
    watcher: Watcher | None = None
    projects: tuple[ProjectStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What goes before an agent's turn.

    Attributes:
        text: The block; empty where no passage bears on the prompt.
        tokens: Its length as the bundled tokenizer counts.
        reason: Why ``mode`` is not ``hybrid``.
        hits: The passages, in the order of the block.
    """

    text: str
    tokens: int
    mode: Mode | None
    reason: str | None
    hits: tuple[Hit, ...]


NO_CONTEXT = Context("", 0, None, None, ())

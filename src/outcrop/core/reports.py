"""What a build and an index tell about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outcrop.core.model import Hit, Mode, Ref, Skipped


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One line of ``status``.

    Attributes:
        name: Collection name.
        corpus: Corpus name.
        artifacts: Number of artifacts.
        chunks: Number of chunks.
        embedded: How many of them have a vector in this space.
        characters: Characters of text.
        bytes: Bytes of text and vectors of this collection.
        kinds: Chunks per kind.
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
    """What a build did.

    Attributes:
        revision: What the index is now current to.
        added: Artifacts that were not in the index, or changed.
        unchanged: Artifacts that were there already.
        removed: Artifacts that are gone.
        chunks: Chunks the corpus now has.
        embedded: Chunks that went through the model in this build.
        reused: New chunks whose vector was already there.
        characters: Characters that went through the model.
        cut: Passages that were longer than the embedder reads, so that it saw their beginning only.
        skipped: What was left out and why.
        seconds: Wall time.
        complete: False if the build stopped early; what was done is kept.
        shared: Transfer blobs that were laid out for other copies of the repository.
        withdrawn: Transfer blobs that were taken back.
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
        revision: What the source is at.
        space: Id of the space that was imported, which is the one that is searched now.
        artifacts: Artifacts that are in the index now.
        chunks: Chunks of them.
        imported: Vectors that came from blobs.
        missing: Chunks that no blob has a vector for; the next build embeds them.
        stale: Blobs that were passed over, because what they belong to is not in the source.
        refused: Blobs that cannot be used, and why.
        seconds: Wall time.
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
    """An exchange with another copy of the repository.

    Attributes:
        sent: Blobs that it took.
        received: Blobs that came from it.
        refused: Whether it has other blobs than ours, and takes none from this user.
        withdrawn: Blobs that it had and has no more, because what they belong to is gone.
        withheld: Artifacts that were not sent, because it has not got the commits that they stand in.
    """

    sent: int
    received: int
    refused: bool
    withdrawn: int = 0
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export did.

    Attributes:
        where: Folder, repository file or git ref that holds the vectors.
        artifacts: Artifacts whose vectors are there now.
        written: Blobs that were written, because they were not there or not the same.
        withdrawn: Blobs that were taken out.
        seconds: Wall time.
    """

    where: str
    artifacts: int
    written: int
    withdrawn: int
    seconds: float


@dataclass(frozen=True, slots=True)
class NormaliseReport:
    """What bringing vectors and blobs into their present form did.

    Attributes:
        vectors: Stored vectors that had another length than 1.
        dropped: Stored vectors that had no direction at all; the next build makes them again.
        blobs: Blobs that were written anew.
        unchanged: Blobs that were fine.
        refused: Blobs that cannot be read, and why; they are left as they are.
        seconds: Wall time.
    """

    vectors: int
    dropped: int
    blobs: int
    unchanged: int
    refused: tuple[Skipped, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class UpsertReport:
    """What storing a caller's records did.

    Attributes:
        added: Records that were not there.
        changed: Records that had another text, kind, path, project or metadata.
        unchanged: Records that stood there word for word.
        embedded: Chunks that went through the model.
        reused: New chunks whose vector was already there.
        characters: Characters that went through the model.
        cut: Passages that were longer than the embedder reads, so that it saw their beginning only.
        seconds: Wall time.
    """

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
    """How far a build is; sent to whoever asked for it, a few times a second at most.

    Attributes:
        phase: ``listing``, ``chunking``, ``embedding`` or ``writing``.
        done: Units done.
        total: Units to do, 0 while unknown.
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
        artifacts: Everything that would be in the index.
        new: How many of them are not in it yet, or changed.
        texts: Passages that would go through the embedder (those known already by their text are not counted).
        characters: Characters of these passages.
        space: The embedder's space id.
        address: Where the text would go; None when it stays on this machine.
        skipped: What would be left out and why.
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
    """A running ``outcrop watch``, as it last described itself.

    Attributes:
        process: Its process id.
        since: When it began, seconds since the epoch.
        how: How it learns of changes.
        state: ``watching``, ``updating``, or ``waiting`` after something failed.
        reason: What failed, or why it does not learn of changes by events; None when all is well.
        retry: When it tries again, seconds since the epoch; None unless it waits.
        updated: When it last brought the index up to date, seconds since the epoch; None when it has not yet.
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
        name: What it is called here.
        type: ``fossil``, ``git``, ``folder``, ``blobs`` or ``python``.
        peer: Where it came from.
        item: The package, of ``python``.
        artifacts: Artifacts that it has now.
        chunks: Passages of them.
        added: Artifacts that were read, because they are new or changed.
        unchanged: Artifacts that were left alone.
        removed: Artifacts that are gone.
        embedded: Passages that went through the model; always 0 for what has an index of its own.
        reused: New passages whose vector was here already.
        replaced: The project whose place it took, an older version of the same package; empty for none.
        skipped: What could not be read, and why.
        seconds: Wall time.
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
    """One imported project.

    Attributes:
        name: What it is called here.
        type: ``fossil``, ``git``, ``folder``, ``blobs`` or ``python``.
        peer: Where it came from.
        item: The package, of ``python``.
        kind: What all of it counts as here; None for what it counts as there.
        paths: Patterns of the paths that were wanted.
        artifacts: How many it has.
        chunks: Passages of them.
        embedded: How many of those have a vector in the space that is searched.
        space: The space of its vectors.
        imported: When it was last read, in seconds since the epoch.
        current: Whether it has all that its peer has now; None where nobody asked the peer.
        reason: Why it is not current, or cannot be brought up to date; None when all is well.
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
        source: ``folder``, ``git`` or ``fossil``.
        root: The folder that paths are relative to.
        project: Slug of the repository.
        store: Path of the database.
        exists: Whether there is an index at all.
        bytes: Size of the database on disk.
        revision: What the index is current to, None when it was never completed.
        current: What the source is at now.
        stale: Whether the two differ.
        complete: Share of chunks that have a vector in the space that is searched, 0 to 1.
        writer: Whether another process is building right now.
        space: The space that search scans, None without an index.
        embedder: The configured embedder's space id.
        address: Where the configured embedder sends text, None when nowhere.
        collections: One line a corpus.
        spaces: Every space with vectors in the store.
        skipped: What the last build left out and why.
        watcher: The ``outcrop watch`` that keeps it current, None without one.
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
        text: The block; empty where there is nothing to say.
        tokens: Its length as the bundled tokenizer counts.
        mode: How the passages were found; None for none.
        reason: Why ``mode`` is not ``hybrid``.
        hits: The passages, in the order of the block.
    """

    text: str
    tokens: int
    mode: Mode | None
    reason: str | None
    hits: tuple[Hit, ...]


NO_CONTEXT = Context("", 0, None, None, ())

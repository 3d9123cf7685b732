"""Reports of builds, transfers and imports, and the status of an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from outcrop.core.model import Hit, Mode, Ref, Skipped


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One line of ``status``."""

    name: str
    corpus: str
    artifacts: int
    chunks: int
    embedded: int  # Chunks with a vector in this space
    characters: int
    bytes: int  # Text and vectors
    kinds: Mapping[str, int]  # Chunks per kind


@dataclass(frozen=True, slots=True)
class CutByLines:
    """An artifact that is indexed without its structure, and why that could not be read."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class WordsOnly:
    """A passage that the embedder cannot embed: it is found by its words, not by its meaning."""

    path: str  # Where it has none, the artifact's hash
    lines: tuple[int, int]
    reason: str


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. ``chunks`` is how many the corpus now has, ``complete`` False if the build stopped early."""

    revision: str
    added: int
    unchanged: int
    removed: int
    chunks: int
    embedded: int  # Chunks that went through the model in this build, with ``characters``
    reused: int  # New chunks whose vector was already there
    characters: int
    cut: int  # Passages that were longer than the embedder reads, so that it read their beginning only
    skipped: tuple[Skipped, ...]
    seconds: float
    complete: bool
    shared: int = 0  # Transfer blobs that were written for other copies of the repository
    withdrawn: int = 0
    cut_by_lines: tuple[CutByLines, ...] = ()
    words_only: tuple[WordsOnly, ...] = ()  # Of all that the build covers, also what was refused before
    commits: int = 0  # How many of the artifacts are commits
    history_note: str = ""  # Why these are fewer than were asked for; empty where they are not


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did."""

    revision: str
    space: str
    artifacts: int  # Artifacts that are in the index now, with ``chunks``
    chunks: int
    imported: int  # Vectors that came from blobs
    missing: int  # Chunks that no blob has a vector for; the next build embeds them
    stale: int  # Blobs of artifacts that are not in the source
    refused: tuple[Skipped, ...]  # Blobs that cannot be used, and why
    seconds: float


class DamageSort(StrEnum):
    """What of an index is damaged."""

    DATABASE = "database"
    TEXT = "text"
    VECTOR = "vector"
    MEMBERSHIP = "membership"
    KEYWORDS = "keywords"
    BLOB = "blob"


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it was stored."""

    sort: DamageSort
    where: str  # A path with a line, a hash, the name of a table or a blob; empty for the whole
    detail: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check of an index found. Its first fields say how much it looked at."""

    store: str
    passages: int
    vectors: int
    blobs: int
    damage: tuple[Damage, ...]  # What was found
    left: tuple[Damage, ...]  # What of it is still there after the repair; all of it without one
    repaired: bool  # Whether a repair was asked for and made
    embedded: int  # Passages that the repair embedded again
    pending: int  # Passages that the next build embeds: a build did not finish, or their vectors were lost
    lost: tuple[str, ...]  # Records of callers that the repair removed, since only the caller has their text
    seconds: float


@dataclass(frozen=True, slots=True)
class SyncReport:
    """An exchange of blobs with another copy of the repository."""

    sent: int
    received: int
    refused: bool  # Whether it has other blobs than ours, and takes none from this user
    withdrawn: int = 0  # Blobs that it deleted, because what they belong to is gone
    withheld: int = 0  # Artifacts that were not sent, because it has not got the commits that they are in


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
    """What rewriting vectors and blobs in their present form did."""

    vectors: int  # Stored vectors that had another length than 1
    dropped: int  # Stored vectors that had no direction at all; the next build makes them again
    blobs: int  # Blobs that were rewritten; those in ``refused`` cannot be read and are left as they are
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
    words_only: tuple[WordsOnly, ...] = ()  # Of all records of the corpus


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is; sent a few times a second at most."""

    phase: str  # ``listing``, ``chunking``, ``embedding`` or ``writing``
    done: int
    total: int  # 0 while unknown
    characters: int = 0  # Characters that went through this phase so far


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build would do: ``index --dry-run``."""

    artifacts: tuple[Ref, ...]  # Everything that would be in the index; ``new`` of them are not yet, or changed
    new: int
    texts: int  # Passages that would go through the embedder, with ``characters``; known texts are not counted
    characters: int
    space: str
    address: str | None  # Where the text would go; None when it stays on this machine
    skipped: tuple[Skipped, ...]
    cut_by_lines: tuple[CutByLines, ...] = ()
    commits: int = 0  # How many of the artifacts are commits
    history_note: str = ""  # Why these are fewer than were asked for; empty where they are not


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """Vectors of one space in the store, whether or not it is the one that is searched."""

    space: str
    vectors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Watcher:
    """A running ``outcrop watch``, as it last described itself. Times are seconds since the epoch."""

    process: int
    since: float
    how: str  # How it learns of changes
    state: str  # ``watching``, ``updating``, or ``waiting`` after something failed
    reason: str | None = None  # What failed, or why it does not learn of changes by events; None when all is well
    retry: float | None = None
    updated: float | None = None  # When it last updated the index; None when it has not yet


@dataclass(frozen=True, slots=True)
class ProjectReport:
    """What importing a project, or reading its peer again, did."""

    name: str
    type: str
    peer: str
    item: str
    artifacts: int  # Artifacts that it has now, with ``chunks``; ``added`` of them are new or changed
    chunks: int
    added: int
    unchanged: int
    removed: int
    embedded: int  # Passages that went through the model; always 0 for a peer with an index of its own
    reused: int
    replaced: str  # The project that it replaced, an older version of the same package; empty for none
    skipped: tuple[Skipped, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """One imported project. The first fields are those of :class:`outcrop.core.rows.Project`."""

    name: str
    type: str
    peer: str
    item: str
    kind: str | None
    paths: tuple[str, ...]
    artifacts: int
    chunks: int
    embedded: int  # How many of its chunks have a vector in the space that is searched
    space: str
    imported: float
    current: bool | None = None  # Whether it has all that its peer has now; None where the peer was not asked
    reason: str | None = None  # Why it is not current, or cannot be updated; None when all is well


@dataclass(frozen=True, slots=True)
class Status:
    """What is indexed, where, and how current it is."""

    source: str
    root: str
    project: str
    store: str
    exists: bool
    bytes: int
    revision: str | None  # What the index is current to, None when it was never completed
    current: str  # What the source is at now
    stale: bool
    complete: float  # Share of chunks that the space that is searched is done with, 0 to 1
    writer: bool  # Whether another process is building right now
    space: str | None  # The space that search scans, None without an index; ``embedder`` is the configured one
    embedder: str
    address: str | None  # Where the configured embedder sends text, None when it sends none
    collections: tuple[CollectionStatus, ...]
    spaces: tuple[SpaceStatus, ...]
    skipped: tuple[Skipped, ...]
    watcher: Watcher | None = None
    projects: tuple[ProjectStatus, ...] = ()  # What was imported from peers, which were not asked
    cut_by_lines: tuple[CutByLines, ...] = ()
    words_only: tuple[WordsOnly, ...] = ()
    behind: tuple[str, ...] = ()  # The corpora that are not up to date, where that is known
    update: str = "outcrop index"  # The commands that bring them up to date
    missing: tuple[str, ...] = ()  # Corpora that are expected here and have no complete build


@dataclass(frozen=True, slots=True)
class Context:
    """What goes before an agent's turn."""

    text: str  # The block; empty where no passage bears on the prompt
    tokens: int  # Its length as the bundled tokenizer counts
    mode: Mode | None
    reason: str | None  # Why ``mode`` is not ``hybrid``
    hits: tuple[Hit, ...]


NO_CONTEXT = Context("", 0, None, None, ())

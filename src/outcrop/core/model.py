"""The nouns of the product, as frozen dataclasses. Nothing here reads, writes or computes more than a property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal


class Kind(StrEnum):
    """What sort of material an artifact is. Queries filter by it."""

    DOC = "doc"
    WIKI = "wiki"
    TECHNOTE = "technote"
    TICKET = "ticket"
    FORUM = "forum"
    CODE = "code"
    INSTRUCTION = "instruction"
    MEDIA = "media"
    API = "api"
    COMMIT = "commit"


# Kinds whose path, if any, names a page and not a file in a folder.
WITHOUT_FILES = frozenset({Kind.WIKI, Kind.TECHNOTE, Kind.TICKET, Kind.FORUM, Kind.COMMIT})


class Mode(StrEnum):
    """How an answer, or one hit of it, was found."""

    SEMANTIC = "semantic"
    HYBRID = "hybrid"
    KEYWORD = "keyword"


class Part(StrEnum):
    """Which half of a notebook a chunk belongs to, since they go to different corpora; else ``WHOLE``."""

    WHOLE = ""
    CODE = "code"
    DOC = "doc"
    RAW = "raw"


class SkipReason(StrEnum):
    """Why an artifact of the source is not indexed."""

    BINARY = "binary"
    OVERSIZE = "larger than the size limit"
    MINIFIED = "minified or generated"
    ENCODING = "unreadable encoding"
    SECRET = "may hold secrets"
    UNREADABLE = "cannot be read"
    VANISHED = "vanished during the build"
    BROKEN = "not valid for its format"
    POINTER = "stands for a large file kept elsewhere (git LFS, git-annex)"
    SYMLINK = "symbolic link"
    SUBMODULE = "submodule that is not checked out"
    NOT_A_FILE = "not a regular file"
    EXCLUDED = "excluded by settings"
    UNLISTED = "nothing here that can be indexed"


@dataclass(frozen=True, slots=True)
class Skipped:
    """One thing that a listing or a build left out, and why; ``hash`` where it was read before."""

    path: str
    reason: SkipReason
    detail: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """One entry of a source's listing: an artifact that can be read."""

    hash: str  # Content address, lower-case hex: the git blob id, SHA3-256 of the bytes, or a ticket's uuid
    kind: Kind
    path: str | None  # With ``/``; None for what has no path (tickets)
    version: str  # Digest of every input read for it; equals ``hash`` unless it depends on more than its own bytes
    size: int | None = None
    # Of a media manifest: the file with the asset's text. ``version`` is then ``manifest+text``.
    transcript: Ref | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A small checked-in record of an asset (video, audio, imagery) that is kept somewhere else."""

    uri: str
    sha3: str  # SHA3-256 of the asset's bytes, lower-case hex
    mime: str
    bytes: int
    transcript: str  # Path of the checked-in text, as the manifest has it


@dataclass(frozen=True, slots=True)
class MediaNote:
    """What a hit says of the asset that it is a passage of: its location, and the path of the text that was read."""

    uri: str
    transcript: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """A document that was read, newlines as ``\\n``. Of a media manifest the text is that of its transcript."""

    ref: Ref
    text: str
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class FileState:
    """A file when it was last hashed. ``mtime_ns`` is -1 when too recent to be trusted, ``inode`` 0 without inodes."""

    size: int
    mtime_ns: int
    inode: int
    hash: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything a source holds at one moment."""

    revision: str  # What the listing is current to; equal strings mean nothing changed
    refs: Sequence[Ref]  # The artifacts, in path order. One hash may have several paths.
    skipped: Sequence[Skipped]
    # Per path, the file state behind each hash that was computed from bytes; input of the next listing
    seen: Mapping[str, FileState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitListing:
    """The commits that are indexed, newest first; ``note`` says why there are fewer than were asked for, if so."""

    refs: Sequence[Ref] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A contiguous slice of one artifact: the unit that is embedded, found and cited.

    Offsets and lines count inside the cell for a notebook, inside what is said for a timed transcript.
    """

    seq: int  # Ordinal within the artifact, from 0, without gaps
    text: str  # Exactly ``artifact.text[start:end]``
    start: int
    end: int
    first_line: int  # 1-based line of ``start``; ``last_line`` is that of the last character that is not a newline
    last_line: int
    # Qualified name of the definition (``Flask.run``) or heading trail (``Install > From source``), or None
    name: str | None = None
    part: Part = Part.WHOLE
    # 0-based cell number in a notebook, else None; ``cell_id`` where the notebook has one (since nbformat 4.5)
    cell: int | None = None
    cell_id: str | None = None
    seconds: tuple[float, float] | None = None  # When it is said, from and to; None for all but timed transcripts


@dataclass(frozen=True, slots=True)
class Space:
    """Where vectors are comparable: one model at one length."""

    model: str  # With a suffix where prefix, pooling or added context change the vectors
    dim: int  # float32 components

    @property
    def id(self) -> str:
        return f"{self.model}-{self.dim}"


@dataclass(frozen=True, slots=True)
class Collection:
    """A corpus in one space."""

    corpus: str
    space: Space

    @property
    def name(self) -> str:
        return f"{self.corpus}-{self.space.id}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which chunks a query may return. Empty tuples mean no restriction."""

    corpora: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    projects: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    builders: tuple[str, ...] = ()  # The corpora whose builds put a chunk where it is; questions never set it
    imported: bool = True  # With what came from a peer, which builds leave alone
    commits: bool = True  # With commits where no kind is named; a kind that is named decides alone


EVERYTHING = Filter()

# How many of the newest commits are indexed, or all of them.
History = int | Literal["all"]

DEFAULT_HISTORY = 2000


@dataclass(frozen=True, slots=True)
class Record:
    """A text of the caller, which belongs to no file. Hits return its ``id``, unique in a corpus, and ``metadata``."""

    id: str
    text: str
    kind: Kind = Kind.DOC
    path: str | None = None
    project: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordNote:
    """What a hit says of the record that it is a passage of: the caller's id and metadata."""

    id: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stale:
    """The index is behind its source: both revisions, as the source names them."""

    indexed: str | None
    current: str
    corpora: tuple[str, ...] = ()  # Those that are behind; empty for a reader who may not know
    update: str = "outcrop index"  # The commands that bring them up to date


@dataclass(frozen=True, slots=True)
class Copy:
    """Where nearly the same text as a hit's is, folded into it; each field as in :class:`Hit`."""

    kind: Kind
    project: str
    path: str | None
    hash: str
    lines: tuple[int, int]
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One passage of an answer. docs/hit.md is the contract of every field; ``score`` to ``text`` are frozen.

    Lines are 1-based and inclusive, inside the cell of a notebook (``cell`` counts from 0) or the transcript of media.
    """

    score: float
    kind: Kind
    project: str
    path: str | None
    hash: str
    text: str
    lines: tuple[int, int]
    name: str | None
    paths: tuple[str, ...]
    corpus: tuple[str, ...]
    mode: Mode
    preview: str
    cell: int | None = None
    cell_id: str | None = None
    record: RecordNote | None = None
    copies: tuple[Copy, ...] = ()
    explanation: tuple[str, ...] = ()
    start: float | None = None
    end: float | None = None
    uri: str | None = None
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of a query, best first, and how they were found. docs/hit.md is the contract of the fields."""

    mode: Mode
    reason: str | None  # Why ``mode`` is not what was asked, or what limits it
    stale: Stale | None
    space: str | None  # None for a keyword answer
    hits: tuple[Hit, ...]
    corrected: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

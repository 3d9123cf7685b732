"""Every error that Outcrop raises on purpose. Each carries what happened and what to do about it.

OutcropError
├── SourceError       NotARepository · SourceLocked · ArtifactUnreadable
├── EmbedderError     EmbedderUnavailable (EgressRefused · EmbedderTimeout · InputRefused) · BadEmbedding
│                     DimensionMismatch
├── StoreError        IndexMissing · SpaceMismatch · SchemaTooNew · StoreLocked · StoreDamaged · StoreFull · NoLocks
├── WorkerUnavailable
├── FormatError       BlobError · ManifestError · IntegrityError
└── UsageError        UnknownKind · UnknownProject · UnknownCorpus · UnknownArtifact · BadConfig

Search falls back to keywords on IndexMissing, SpaceMismatch and any EmbedderError of the question, and records why.
Only the context before a turn of an agent swallows an OutcropError, and logs it. Everything else reaches the caller.
"""

from __future__ import annotations


class OutcropError(Exception):
    """What happened to which thing (``what``), and what the reader can do about it (``fix``, may be empty)."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}. {self.fix}" if self.fix else self.what


class SourceError(OutcropError):
    """A repository or folder cannot be read."""


class NotARepository(SourceError):
    """The path is not a folder, a git repository or a Fossil repository."""


class SourceLocked(SourceError):
    """Another program has locked the repository."""


class ArtifactUnreadable(SourceError):
    """One artifact cannot be read or does not match its hash."""


class WorkerUnavailable(OutcropError):
    """No process can be started that reads source code."""


class EmbedderError(OutcropError):
    """Text cannot be embedded."""


class EmbedderUnavailable(EmbedderError):
    """The embedder cannot be reached or loaded."""


class EgressRefused(EmbedderUnavailable):
    """Text would leave the machine without consent."""


class EmbedderTimeout(EmbedderUnavailable):
    """The embedder does not answer in time."""


class InputRefused(EmbedderUnavailable):
    """The embedder fails on these texts, and perhaps not on others."""


class BadEmbedding(EmbedderError):
    """The embedder's answer is not the vectors of the texts."""


class DimensionMismatch(EmbedderError):
    """The vectors have another length than expected."""


class StoreError(OutcropError):
    """The index cannot be used."""


class IndexMissing(StoreError):
    """There is no index yet."""


class SpaceMismatch(StoreError):
    """The index holds vectors of another model than the one in use."""


class SchemaTooNew(StoreError):
    """A newer version of Outcrop wrote this index."""


class StoreLocked(StoreError):
    """Another process is writing the index."""


class StoreDamaged(StoreError):
    """The index file is not a readable database."""


class StoreFull(StoreError):
    """The disk is full or read-only."""


class NoLocks(StoreError):
    """The file system cannot lock files, or share memory between processes, as an index needs it."""


class FormatError(OutcropError):
    """Bytes do not follow one of Outcrop's formats."""


class BlobError(FormatError):
    """A transfer blob is truncated, oversize or holds bad vectors."""


class ManifestError(FormatError):
    """A media manifest is broken."""


class IntegrityError(FormatError):
    """A downloaded asset is not the one its manifest names."""


class UsageError(OutcropError):
    """The caller names something that does not exist."""


class UnknownKind(UsageError):
    """No such kind."""


class UnknownProject(UsageError):
    """No such project in this index."""


class UnknownCorpus(UsageError):
    """No such corpus in this index."""


class UnknownArtifact(UsageError):
    """No such artifact in this index."""


class BadConfig(UsageError):
    """A setting is unknown or has an impossible value."""

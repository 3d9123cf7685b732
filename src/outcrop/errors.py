"""Every error that Outcrop raises on purpose. Each says what happened and what to do about it.

OutcropError
├── SourceError       NotARepository · SourceLocked · ArtifactUnreadable
├── EmbedderError     EmbedderUnavailable (EgressRefused · EmbedderTimeout) · BadEmbedding · DimensionMismatch
├── StoreError        IndexMissing · SpaceMismatch · SchemaTooNew · StoreLocked · StoreDamaged · StoreFull
├── FormatError       BlobError · ManifestError · IntegrityError
└── UsageError        UnknownKind · UnknownProject · UnknownCorpus · UnknownArtifact · BadConfig

Search falls back to keywords on IndexMissing, SpaceMismatch and any EmbedderError met while the question is embedded,
and records why. Everything else reaches the caller.
"""

from __future__ import annotations


class OutcropError(Exception):
    """The root: one sentence of what happened, one of what to do.

    Args:
        what: What happened, naming the thing it happened to.
        fix: What the reader can do about it; empty when nothing can be done.
    """

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}. {self.fix}" if self.fix else self.what


class SourceError(OutcropError):
    """The material cannot be read."""


class NotARepository(SourceError):
    """The path is not a folder, a git repository or a Fossil repository."""


class SourceLocked(SourceError):
    """Another program holds the repository."""


class ArtifactUnreadable(SourceError):
    """One artifact cannot be read or does not match its hash."""


class EmbedderError(OutcropError):
    """Text could not be turned into vectors."""


class EmbedderUnavailable(EmbedderError):
    """The embedder cannot be reached or loaded."""


class EgressRefused(EmbedderUnavailable):
    """Text would leave the machine and nobody agreed to that."""


class EmbedderTimeout(EmbedderUnavailable):
    """The embedder did not answer in time."""


class BadEmbedding(EmbedderError):
    """The embedder answered with something that is not the vectors asked for."""


class DimensionMismatch(EmbedderError):
    """The vectors have another length than the settings say."""


class StoreError(OutcropError):
    """The index cannot be used."""


class IndexMissing(StoreError):
    """There is no index yet."""


class SpaceMismatch(StoreError):
    """The index holds vectors of another model than the one asked."""


class SchemaTooNew(StoreError):
    """A newer version of Outcrop wrote this index."""


class StoreLocked(StoreError):
    """Another process is writing the index."""


class StoreDamaged(StoreError):
    """The index file is not a readable database."""


class StoreFull(StoreError):
    """The disk has no room for the index, or does not allow writing it."""


class FormatError(OutcropError):
    """Bytes that should follow one of our formats do not."""


class BlobError(FormatError):
    """A transfer blob is truncated, oversize or holds bad vectors."""


class ManifestError(FormatError):
    """A media manifest is broken."""


class IntegrityError(FormatError):
    """A downloaded asset is not the one its manifest names."""


class UsageError(OutcropError):
    """The caller asked for something that does not exist."""


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

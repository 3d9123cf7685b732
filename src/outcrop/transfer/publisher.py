"""What a build shares: blobs of what it indexed, and the withdrawal of those that are stale or hidden.

Copies of a repository get each other's vectors before, or without, each other's check-ins. A build withdraws what is
old, and leaves alone what another copy has published and this one does not know yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from outcrop.core.model import Space
from outcrop.core.protocols import Publisher, Source, TransferStore, VectorStore, Withholding, override
from outcrop.core.rows import BuildOutcome, StoredArtifact, TransferCounts
from outcrop.transfer import blob, sync
from outcrop.transfer.sync import Outgoing


class BlobPublisher(Publisher):
    """Implements :class:`outcrop.core.protocols.Publisher` with the blobs of a transfer store."""

    def __init__(self, source: Source, store: VectorStore, transfer: TransferStore) -> None:
        self._source = source
        self._store = store
        self._transfer = transfer
        self._known: Mapping[str, StoredArtifact] = {}

    @override
    def withdraw_hidden(self) -> int:
        # Read before the build forgets it: otherwise a build that is stopped takes these for another copy's.
        self._known = self._store.known()
        if not isinstance(self._source, Withholding) or not self._known:
            return 0
        names = self._transfer.names()
        hidden = self._source.withheld(
            {artifact: known.version for artifact, known in self._known.items() if blob.name_of(artifact) in names}
        )
        return self._transfer.replace({}, list(map(blob.name_of, hidden))).removed if hidden else 0

    @override
    def withdraw_others(self, hashes: Collection[str], space: Space) -> None:
        keep = self._foreign(space).union(hashes)
        there = self._transfer.names()
        gone = [blob.name_of(artifact) for artifact in blob.hashes_of(there) - keep]
        if gone:
            self._transfer.replace({}, gone)

    @override
    def publish(self, outcome: BuildOutcome, on_start: Callable[[], None]) -> TransferCounts:
        note = sync.note_of(self._transfer)
        shared = None if note is None else (note.space, note.revision)
        space, revision = outcome.space, outcome.revision
        if shared == (space, revision) and not outcome.changed and not outcome.has_new_vectors:
            return TransferCounts(0, 0)
        on_start()
        others = self._foreign(space)
        only = outcome.changed if shared == (space, outcome.before) else None
        return sync.export(self._store, self._transfer, Outgoing(space, revision, outcome.hashes), only, others)

    def _foreign(self, space: Space) -> frozenset[str]:
        return foreign_hashes(self._source, self._transfer, space, self._known)


def foreign_hashes(source: Source, transfer: TransferStore, space: Space, known: Collection[str]) -> frozenset[str]:
    """Artifacts that have a blob of this space, and that this copy of the source has never had.

    Those that were indexed here before the build (``known``) are not foreign but gone.
    """
    note = sync.note_of(transfer)
    if note is None or note.space != space or not isinstance(source, Withholding):
        return frozenset()
    return source.foreign_artifacts(blob.hashes_of(transfer.names()).difference(known))

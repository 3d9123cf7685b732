"""What a build shares: blobs of what it indexed, and the withdrawal of those that are stale or hidden.

Copies of a repository get each other's vectors before, or without, each other's check-ins. A build withdraws what is
old, and leaves alone what another copy has published and this one does not know yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from outcrop.core.model import Space
from outcrop.core.protocols import Guard, Publisher, Source, TransferStore, VectorStore, override
from outcrop.core.rows import StoredArtifact, TransferCounts
from outcrop.transfer import blob, sync


class BlobPublisher(Publisher):
    """Implements :class:`outcrop.core.protocols.Publisher` with the blobs of a transfer store.

    Args:
        source: What the blobs are made of.
        store: Where passages and vectors are.
        transfer: Where the blobs are.
    """

    def __init__(self, source: Source, store: VectorStore, transfer: TransferStore) -> None:
        self._source = source
        self._store = store
        self._transfer = transfer
        self._known: Mapping[str, StoredArtifact] = {}

    @override
    def withdraw_hidden(self) -> int:
        # Read before the build forgets it: otherwise a build that is stopped takes these for another copy's.
        self._known = self._store.known()
        if not isinstance(self._source, Guard) or not self._known:
            return 0
        names = self._transfer.names()
        hidden = self._source.withheld(
            {hash: known.version for hash, known in self._known.items() if blob.name_of(hash) in names}
        )
        return self._transfer.replace({}, list(map(blob.name_of, hidden))).removed if hidden else 0

    @override
    def withdraw_others(self, hashes: Collection[str], space: Space) -> None:
        sync.withdraw(self._transfer, self._foreign(space).union(hashes))

    @override
    def publish(
        self,
        hashes: Collection[str],
        changed: Collection[str],
        space: Space,
        revision: str,
        before: str | None,
        has_new_vectors: bool,
        on_start: Callable[[], None],
    ) -> TransferCounts:
        shared = sync.current(self._transfer)
        if shared == (space, revision) and not changed and not has_new_vectors:
            return TransferCounts(0, 0)
        on_start()
        others = self._foreign(space)
        only = changed if shared == (space, before) else None
        return sync.export(self._store, self._transfer, hashes, space, revision, only, others)

    def _foreign(self, space: Space) -> frozenset[str]:
        return foreign_hashes(self._source, self._transfer, space, self._known)


def foreign_hashes(source: Source, transfer: TransferStore, space: Space, known: Collection[str]) -> frozenset[str]:
    """Artifacts that have a blob of this space, and that this copy of the source has never had.

    Args:
        source: Which one.
        transfer: Where the blobs are.
        space: That of a build.
        known: What was indexed here before the build: what the source does not know and was indexed here is gone.
    """
    shared = sync.current(transfer)
    if shared is None or shared[0] != space or not isinstance(source, Guard):
        return frozenset()
    there = {hash for name in transfer.names() if (hash := blob.hash_of(name)) is not None}
    return source.foreign_artifacts(there.difference(known))

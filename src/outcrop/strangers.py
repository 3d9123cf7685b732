"""Blobs of what this copy of a source has not seen yet, and of what it may not show any more.

Copies of a repository get each other's vectors before, or without, each other's check-ins. A build withdraws what is
old; it must leave alone what is somebody else's and new.
"""

from __future__ import annotations

from collections.abc import Mapping

from outcrop import blobs, sync
from outcrop.model import Space
from outcrop.ports import Guard, Source, TransferStore
from outcrop.records import Known


def unseen(source: Source, transfer: TransferStore, space: Space, mine: Mapping[str, Known]) -> frozenset[str]:
    """Artifacts that have a blob of this space, and that this copy of the source has never had.

    Args:
        source: Which one.
        transfer: Where the blobs are.
        space: That of a build.
        mine: What was indexed here before the build. What the source does not know and was indexed here is gone.

    Raises:
        SourceError: The source cannot be read.
        BlobError: The note beside the blobs is none.
    """
    shared = sync.current(transfer)
    if shared is None or shared[0] != space or not isinstance(source, Guard):
        return frozenset()
    there = {hash for name in transfer.names() if (hash := blobs.hash_of(name)) is not None}
    return source.unseen(there - mine.keys())


def withdraw_hidden(source: Source, transfer: TransferStore, mine: Mapping[str, Known]) -> int:
    """Take back the blobs of what was indexed here and may not be shown any more: private, shunned, gone.

    Before a build forgets what that was: else a build that is stopped would take them for somebody else's.

    Returns:
        How many there were.

    Raises:
        SourceError: The source cannot be read.
        StoreError: They cannot be taken back.
    """
    if not isinstance(source, Guard) or not mine:
        return 0
    names = transfer.names()
    hidden = source.withheld({hash: known.version for hash, known in mine.items() if blobs.name_of(hash) in names})
    return transfer.replace({}, list(map(blobs.name_of, hidden))).removed if hidden else 0

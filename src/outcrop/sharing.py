"""Which sources carry vectors to other copies, and what there is to warn of."""

from __future__ import annotations

import logging
from collections.abc import Collection

from outcrop.errors import UsageError
from outcrop.model import Kind
from outcrop.ports import Source, TransferStore
from outcrop.reports import Exchanged

_log = logging.getLogger("outcrop.sharing")


def transfer_of(source: Source) -> TransferStore | None:
    """Where a source keeps blobs that travel with it; None where it has no such place."""
    if source.type != "fossil":
        return None
    # Imported here: only Fossil repositories need it.
    from outcrop.transfer.fossil_uv import FossilTransfer

    return FossilTransfer(source.store_path())


def needed(source: Source) -> TransferStore:
    """The same, for what cannot do without.

    Raises:
        UsageError: The source has no such place.
    """
    transfer = transfer_of(source)
    if transfer is None:
        raise UsageError(
            f"vectors travel with a Fossil repository, and {source.root} is none", "Run there: outcrop index"
        )
    return transfer


def exchange(source: Source, url: str | None) -> Exchanged:
    """Let this and another copy of a repository have the latest blobs.

    Raises:
        UsageError: A source that vectors do not travel with.
        StoreError: The other copy cannot be reached.
    """
    needed(source)
    # Imported here: only Fossil repositories need it.
    from outcrop.transfer import fossil_remote

    moved = fossil_remote.exchange(source.store_path(), url)
    if moved.refused:
        _log.warning(
            "the other copy has other vectors and took none of ours: your user there needs the capability y, which even"
            " the owner must be given by name (there: fossil user capabilities NAME LETTERS)"
        )
    return Exchanged(moved.sent, moved.received, moved.refused)


def warn_of_readers(source: Source, kinds: Collection[str]) -> None:
    """Name the users who can read indexed text through a ticket report, whatever else is withheld from them.

    Raises:
        SourceError: The repository cannot be read.
    """
    # Imported here: only Fossil repositories need it.
    from outcrop.sources.fossil import FossilSource

    if not isinstance(source, FossilSource):
        return
    for writer in source.report_writers([Kind(kind) for kind in kinds]):
        _log.warning(
            "%s may write ticket reports (capability t), and can read the index through them, also: %s",
            writer.login,
            ", ".join(sorted(writer.withheld)),
        )

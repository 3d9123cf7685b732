"""Which sources carry vectors to other copies and how, and what there is to warn of."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path

from outcrop.core.model import Kind, Space
from outcrop.core.protocols import Publisher, Source, TransferStore, VectorStore
from outcrop.core.reports import ExportReport, ImportReport, Progress, SyncReport
from outcrop.errors import StoreError, UsageError

_log = logging.getLogger("outcrop.transfer.service")


def transfer_of(source: Source) -> TransferStore | None:
    """Where a source keeps blobs that travel with it; None where it has no such place."""
    # Imported here, as what follows: each kind of source needs its own, and a build in a folder none.
    if source.type == "fossil":
        from outcrop.transfer.fossil.unversioned import FossilTransfer

        return FossilTransfer(source.store_path())
    if source.type == "git":
        from outcrop.transfer.git.publish import repository_of
        from outcrop.transfer.git.ref import GitTransfer

        return GitTransfer(repository_of(source))
    return None


def publisher(source: Source, store: VectorStore) -> Publisher | None:
    """What each build shares with. In git that is left to ``push`` and ``export``: see docs/design.md."""
    if source.type != "fossil":
        return None
    # Imported here: most builds publish nothing.
    from outcrop.transfer.publisher import BlobPublisher

    return BlobPublisher(source, store, needed(source))


def needed(source: Source) -> TransferStore:
    """Where a source keeps its blobs, for what cannot do without."""
    transfer = transfer_of(source)
    if transfer is None:
        raise UsageError(
            f"vectors travel with a Fossil or git repository, and {source.root} is a plain folder",
            "Carry them in a folder of their own: outcrop export DIR, outcrop import DIR",
        )
    return transfer


def push(source: Source, store: VectorStore, remote: str | None, unpublished: bool = False) -> SyncReport:
    """Let another copy of a repository have the vectors of this one.

    Args:
        source: The repository.
        store: Its index.
        remote: The other copy; None for the one that is the usual one.
        unpublished: Also what stands in commits that the other copy has not got (git).
    """
    needed(source)
    if source.type == "git":
        from outcrop.transfer.git import publish

        return publish.push(source, store, remote, unpublished)
    return _exchange(source, remote)


def pull(source: Source, space: Space, remote: str | None) -> SyncReport:
    """Get the vectors that another copy of a repository has; they are not in the tables yet.

    Args:
        source: The repository.
        space: The embedder's.
        remote: The other copy; None for the one that is the usual one.
    """
    needed(source)
    if source.type == "git":
        from outcrop.transfer.git import publish

        return publish.pull(source, space, remote)
    return _exchange(source, remote)


def _exchange(source: Source, url: str | None) -> SyncReport:
    """Let this and another copy of a Fossil repository have the latest blobs."""
    from outcrop.transfer.fossil import remote as fossil_remote

    moved = fossil_remote.exchange(source.store_path(), url)
    if moved.refused:
        _log.warning(
            "the other copy has other vectors and took none of ours: your user there needs the capability y, which even"
            " the owner must be given by name (there: fossil user capabilities NAME LETTERS)"
        )
    return SyncReport(moved.sent, moved.received, moved.refused)


def export(source: Source, store: VectorStore, folder: Path | None) -> ExportReport:
    """Lay the vectors of an index out to be carried away.

    Args:
        source: What is indexed.
        store: Its index.
        folder: Where to; None for the repository itself, from where git or Fossil moves them.
    """
    from outcrop.transfer import folder_export, sync
    from outcrop.transfer.directory import DirectoryTransfer
    from outcrop.transfer.git import publish
    from outcrop.transfer.publisher import foreign_hashes

    started = time.perf_counter()
    if folder is None and source.type == "git":
        transfer = needed(source)
        moved = publish.lay_out(source, store)
        where = "refs/outcrop/vectors"
    else:
        transfer = needed(source) if folder is None else DirectoryTransfer(folder)
        going = publish.outgoing(source, store)
        where = str(source.store_path() if folder is None else folder)
        if folder is None:
            others = foreign_hashes(source, transfer, going.space, store.known())
            moved = sync.export(store, transfer, going.hashes, going.space, going.revision, keep=others)
        else:
            moved = folder_export.write(
                source, store, transfer, going.hashes, going.space, going.revision, going.places
            )
    there = [name for name in transfer.names() if name.endswith(".bin")]
    if not there:
        raise StoreError("nothing was exported: no vector may travel", "Commit what is indexed, then: outcrop index")
    return ExportReport(where, len(there), moved.added, moved.removed, time.perf_counter() - started)


def bring_in(
    source: Source, store: VectorStore, space: Space, folder: Path | None, report: Callable[[Progress], None]
) -> ImportReport:
    """Fill an index from vectors that came with the repository, or in a folder. No model is asked.

    An export that holds something of what the source has gives vectors to that. One that has nothing in common with an
    empty place is taken as it is, with its own texts and paths.

    Args:
        source: What the index is of.
        store: Where to.
        space: The embedder's.
        folder: Where the export is; None for what came with the repository.
        report: Told how far it is.
    """
    from outcrop.transfer import blob, folder_export, sync
    from outcrop.transfer.directory import DirectoryTransfer

    if folder is None:
        return sync.bring_in(source, store, needed(source), space, report)
    transfer = DirectoryTransfer(folder)
    listed = {ref.hash for ref in source.artifacts(store.seen() if store.exists else {}).refs}
    if listed & set(map(blob.hash_of, transfer.names())):
        return sync.bring_in(source, store, transfer, space, report)
    if listed:
        raise UsageError(
            f"nothing of what {folder} holds stands in {source.root}",
            f"As a project of its own: outcrop import-project {folder}; or import it in an empty folder",
        )
    return folder_export.bring_in(source, store, transfer, space, report)


def warn_of_readers(source: Source, kinds: Collection[str]) -> None:
    """Name the users who can read indexed text through a ticket report, whatever else is withheld from them."""
    # Imported here: only Fossil repositories need it.
    from outcrop.sources.fossil.source import FossilSource

    if not isinstance(source, FossilSource):
        return
    for writer in source.report_writers([Kind(kind) for kind in kinds]):
        _log.warning(
            "%s may write ticket reports (capability t), and can read the index through them, also: %s",
            writer.login,
            ", ".join(sorted(writer.withheld)),
        )

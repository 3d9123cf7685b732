"""Which sources carry vectors to other copies and how, and what there is to warn of."""

# Imports in functions: each type of source needs its own part, and a search or a build in a folder none.
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
    from outcrop.transfer.publisher import BlobPublisher

    return BlobPublisher(source, store, require_transfer(source))


def require_transfer(source: Source) -> TransferStore:
    """As :func:`transfer_of`, or an error."""
    transfer = transfer_of(source)
    if transfer is None:
        raise UsageError(
            f"vectors travel with a Fossil or git repository, and {source.root} is a plain folder",
            "Carry them in a folder of their own: outcrop export DIR, outcrop import DIR",
        )
    return transfer


def push(source: Source, store: VectorStore, remote: str | None, unpublished: bool = False) -> SyncReport:
    """Give another copy of a repository (None: the usual one) the vectors of this one.

    In git, those of commits that the other copy does not have go only if ``unpublished``.
    """
    if source.type != "git":
        return _exchange(source, remote)
    from outcrop.transfer.git import publish

    return publish.push(source, store, remote, unpublished)


def pull(source: Source, space: Space, remote: str | None) -> SyncReport:
    """Get the vectors of the embedder's space that another copy (None: the usual one) has; an import reads them."""
    if source.type != "git":
        return _exchange(source, remote)
    from outcrop.transfer.git import publish

    return publish.pull(source, space, remote)


def _exchange(source: Source, url: str | None) -> SyncReport:
    require_transfer(source)
    from outcrop.transfer.fossil import remote

    report = remote.exchange(source.store_path(), url)
    if report.refused:
        _log.warning(
            "the other copy has other vectors and took none of ours: your user there needs the capability y, which even"
            " the owner must be given by name (there: fossil user capabilities NAME LETTERS)"
        )
    return report


def export(source: Source, store: VectorStore, folder: Path | None) -> ExportReport:
    """Write the vectors of an index to a folder, or to the repository itself, from where git or Fossil moves them."""
    from outcrop.transfer import folder_export, sync
    from outcrop.transfer.directory import DirectoryTransfer
    from outcrop.transfer.git import publish
    from outcrop.transfer.publisher import foreign_hashes

    started = time.perf_counter()
    transfer = require_transfer(source) if folder is None else DirectoryTransfer(folder)
    if folder is not None:
        where = str(folder)
        counts = folder_export.export(source, store, transfer, publish.outgoing(source, store))
    elif source.type == "git":
        where = "refs/outcrop/vectors"
        counts = publish.export(source, store)
    else:
        where = str(source.store_path())
        going = publish.outgoing(source, store)
        others = foreign_hashes(source, transfer, going.space, store.known())
        counts = sync.export(store, transfer, going, keep=others)
    there = sum(name.endswith(".bin") for name in transfer.names())
    if not there:
        raise StoreError("nothing was exported: no vector may travel", "Commit what is indexed, then: outcrop index")
    return ExportReport(where, there, counts.added, counts.removed, time.perf_counter() - started)


def import_blobs(
    source: Source, store: VectorStore, space: Space, folder: Path | None, report: Callable[[Progress], None]
) -> ImportReport:
    """Fill an index from vectors that came with the repository, or in a folder. No model is asked.

    An export that holds something of what the source has gives vectors to that. One that has nothing in common with an
    empty source is imported with its own texts and paths.
    """
    from outcrop.transfer import blob, folder_export, sync
    from outcrop.transfer.directory import DirectoryTransfer

    if folder is None:
        return sync.import_blobs(source, store, require_transfer(source), space, report)
    transfer = DirectoryTransfer(folder)
    listed = {ref.hash for ref in source.artifacts(store.seen() if store.exists else {}).refs}
    if listed & blob.hashes_of(transfer.names()):
        return sync.import_blobs(source, store, transfer, space, report)
    if listed:
        raise UsageError(
            f"nothing of what {folder} holds is in {source.root}",
            f"As a project of its own: outcrop import-project {folder}; or import it in an empty folder",
        )
    return folder_export.import_export(source, store, transfer, space, report)


def warn_of_readers(source: Source, kinds: Collection[str]) -> None:
    """Name the users who can read indexed text through a ticket report, although Fossil withholds it from them."""
    from outcrop.sources.fossil.source import FossilSource

    if not isinstance(source, FossilSource):
        return
    for writer in source.report_writers([Kind(kind) for kind in kinds]):
        _log.warning(
            "%s may write ticket reports (capability t), and can read the index through them, also: %s",
            writer.login,
            ", ".join(sorted(writer.withheld)),
        )

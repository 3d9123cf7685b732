"""``outcrop import``, ``normalize``, ``export``, ``push`` and ``pull``: vectors that travel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from outcrop.core.reports import ImportReport, NormaliseReport, SyncReport
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.progress import open_with_progress
from outcrop.surfaces.cli.report_view import skipped_lines
from outcrop.surfaces.render import counted, duration, harmless_line

remote_argument = click.argument("remote", required=False)


@options.command("import")
@options.path_argument
@options.branch_option
@options.result_options
def import_command(path: Path | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Fill the index with vectors that were made elsewhere. No model is used.

    PATH is a repository, or a folder that `outcrop export` made. Then `outcrop index` embeds only what has no vector
    yet.

    Examples:
        outcrop import
        outcrop import project.fossil
        outcrop import /mnt/share/project-vectors
        outcrop import -C ~/src/project --embedder hash
    """
    from outcrop.transfer.directory import is_export

    where = directory / (path or "")
    folder = where if path is not None and is_export(where) else None
    with open_with_progress(where if folder is None else directory, flags) as (index, display):
        report = index.import_blobs(folder, progress=display)
    options.show_result(report, as_json, import_lines(report))


@options.command("normalize")
@options.path_argument
@options.result_options
def normalize_command(path: Path | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Convert vectors and blobs that older tools wrote. No model is used.

    Vectors get length 1, and blobs get a header. What has that already is left alone.

    Examples:
        outcrop normalize
        outcrop normalize project.fossil --json
    """
    with options.open_index(directory / (path or ""), flags) as index:
        report = index.normalize()
    options.show_result(report, as_json, normalise_lines(report))


@options.command("export")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@options.branch_option
@options.result_options
def export_command(folder: Path | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Write the vectors to a folder, or into the repository.

    DIR is new, empty, or an earlier export. Without it the vectors go where git (refs/outcrop/vectors) or Fossil
    (unversioned files) transfers them from. Only what is committed is exported; of a plain folder, everything that is
    indexed.

    Examples:
        outcrop export /mnt/share/project-vectors
        outcrop export -C ~/src/project ./vectors
    """
    with options.open_index(directory, flags) as index:
        report = index.export(None if folder is None else directory / folder)
    line = (
        f"{counted(report.artifacts, 'artifact')} in {harmless_line(report.where)}: {report.written:,} written, "
        f"{report.withdrawn:,} withdrawn ({duration(report.seconds)})"
    )
    options.show_result(report, as_json, [line])


@options.command("push")
@remote_argument
@click.option("--unpublished", is_flag=True, help="Also vectors of commits that the other copy does not have (git).")
@options.result_options
def push_command(remote: str | None, unpublished: bool, as_json: bool, directory: Path, **flags: Any) -> None:
    """Send the vectors to another copy of the repository, and check that they arrived.

    REMOTE is the other copy: a git remote or an address. Without it: origin, or the only remote; in Fossil the address
    of the last sync. Vectors that others pushed stay there.

    Examples:
        git push && outcrop push
        outcrop push upstream
        outcrop push https://me@example.org/project
    """
    with options.open_index(directory, flags) as index:
        report = index.push(remote, unpublished=unpublished)
    options.show_result(report, as_json, sync_lines(report))
    if report.refused:
        raise click.exceptions.Exit(1)


@options.command("pull")
@remote_argument
@options.result_options
def pull_command(remote: str | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Get the vectors of another copy and fill the index. No model is used.

    REMOTE is the other copy: a git remote or an address. Without it: origin, or the only remote; in Fossil the address
    of the last sync.

    Examples:
        outcrop pull
        outcrop pull upstream
        outcrop pull https://example.org/project
    """
    with open_with_progress(directory, flags, quiet=as_json) as (index, display):
        received = index.pull(remote)
        report = index.import_blobs(progress=display)
    options.show_result(report, as_json, (*sync_lines(received), *import_lines(report)))


def import_lines(report: ImportReport) -> Iterator[str]:
    yield (
        f"imported {counted(report.imported, 'vector')} of {report.space}: {counted(report.artifacts, 'artifact')}, "
        f"{counted(report.chunks, 'chunk')} ({duration(report.seconds)})"
    )
    if report.missing:
        yield f"{counted(report.missing, 'chunk')} still without a vector → outcrop index"
    if report.stale:
        yield f"ignored {counted(report.stale, 'blob')} of what is not here"
    yield from skipped_lines(report.refused, "refused", "blob", reasons=False)


def normalise_lines(report: NormaliseReport) -> Iterator[str]:
    yield (
        f"rewrote {counted(report.vectors, 'vector')} and {counted(report.blobs, 'blob')}, "
        f"{report.unchanged:,} were fine ({duration(report.seconds)})"
    )
    if report.dropped:
        yield f"dropped {counted(report.dropped, 'vector')} of length 0 → outcrop index"
    yield from skipped_lines(report.refused, "refused", "blob", reasons=False)


def sync_lines(report: SyncReport) -> Iterator[str]:
    withdrawn = f", withdrew {counted(report.withdrawn, 'blob')}" if report.withdrawn else ""
    yield f"sent {counted(report.sent, 'blob')}, received {counted(report.received, 'blob')}{withdrawn}"
    if report.withheld:
        yield (
            f"kept back {counted(report.withheld, 'artifact')} of commits that the other copy does not have"
            " → git push, then outcrop push"
        )

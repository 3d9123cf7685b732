"""``outcrop import``, ``normalize``, ``export``, ``push`` and ``pull``: vectors that travel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from outcrop.core.model import Skipped
from outcrop.core.reports import ImportReport, NormaliseReport, SyncReport
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    directory_option,
    embedder_options,
    json_option,
    open_index,
    show_json,
)
from outcrop.surfaces.cli.progress import progress
from outcrop.surfaces.cli.terminal import show
from outcrop.surfaces.render import counted, duration, harmless_line

IMPORT_EXAMPLES = """
outcrop import
outcrop import project.fossil
outcrop import /mnt/share/project-vectors
outcrop import -C ~/src/project --embedder hash
"""

NORMALIZE_EXAMPLES = """
outcrop normalize
outcrop normalize project.fossil --json
"""

EXPORT_EXAMPLES = """
outcrop export /mnt/share/project-vectors
outcrop export -C ~/src/project ./vectors
"""

PUSH_EXAMPLES = """
git push && outcrop push
outcrop push upstream
outcrop push https://me@example.org/project
"""

PULL_EXAMPLES = """
outcrop pull
outcrop pull upstream
outcrop pull https://example.org/project
"""

path_argument = click.argument("path", type=click.Path(path_type=Path), required=False)
remote_argument = click.argument("remote", required=False)


@click.command(
    "import",
    cls=Command,
    examples=IMPORT_EXAMPLES,
    short_help="Fill the index from vectors that were made elsewhere.",
)
@path_argument
@branch_option
@json_option
@directory_option
@embedder_options
def import_command(path: Path | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Fill the index from vectors that were made elsewhere. No model is asked.

    PATH is a repository, or a folder that `outcrop export` made. Afterwards `outcrop index` embeds only what no vector
    came for.
    """
    # Imported here: help does without.
    from outcrop.transfer.directory import is_export

    folder = directory / path if path is not None and is_export(directory / path) else None
    where = directory if folder is not None else _where(directory, path)
    with progress(quiet=False) as display, open_index(where, flags, before_asking=display.hide) as index:
        report = index.import_blobs(folder, progress=display)
    if as_json:
        show_json(report)
        return
    for line in import_lines(report):
        show(line)


@click.command(
    "normalize",
    cls=Command,
    examples=NORMALIZE_EXAMPLES,
    short_help="Bring vectors and blobs of older tools to the present form.",
)
@path_argument
@json_option
@directory_option
@embedder_options
def normalize_command(path: Path | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Bring vectors and blobs of older tools to the present form. No model is asked.

    Vectors get length 1, blobs their header: older tools wrote vectors of any length and blobs without one. What is in
    order already is left alone.
    """
    with open_index(_where(directory, path), flags) as index:
        report = index.normalize()
    if as_json:
        show_json(report)
        return
    for line in normalise_lines(report):
        show(line)


@click.command(
    "export",
    cls=Command,
    examples=EXPORT_EXAMPLES,
    short_help="Lay the vectors out in a folder, or in the repository.",
)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@branch_option
@json_option
@directory_option
@embedder_options
def export_command(folder: Path | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Lay the vectors out in a folder, or in the repository.

    DIR is new, empty, or an earlier export. Without it the vectors go where git (refs/outcrop/vectors) or Fossil
    (unversioned files) moves them from. Only what is committed is exported; of a plain folder, everything indexed.
    """
    with open_index(directory, flags) as index:
        report = index.export(None if folder is None else directory / folder)
    if as_json:
        show_json(report)
        return
    show(
        f"{counted(report.artifacts, 'artifact')} in {harmless_line(report.where)}: {report.written:,} written, "
        f"{report.withdrawn:,} withdrawn ({duration(report.seconds)})"
    )


@click.command(
    "push", cls=Command, examples=PUSH_EXAMPLES, short_help="Send the vectors to another copy of the repository."
)
@remote_argument
@click.option(
    "--unpublished", is_flag=True, help="Also what stands in commits that the other copy has not got yet (git)."
)
@json_option
@directory_option
@embedder_options
def push_command(remote: str | None, unpublished: bool, as_json: bool, directory: Path, **flags: Any) -> None:
    """Send the vectors to another copy of the repository, and make sure that it took them.

    REMOTE is the other copy: a git remote or an address. Without it: origin, or the only one; in Fossil the one that
    was synchronised with last. Vectors that others pushed stay there.
    """
    with open_index(directory, flags) as index:
        moved = index.push(remote, unpublished=unpublished)
    _show_moved(moved, as_json)
    if moved.refused:
        raise click.exceptions.Exit(1)


@click.command(
    "pull", cls=Command, examples=PULL_EXAMPLES, short_help="Get the vectors of another copy and fill the index."
)
@remote_argument
@json_option
@directory_option
@embedder_options
def pull_command(remote: str | None, as_json: bool, directory: Path, **flags: Any) -> None:
    """Get the vectors of another copy and fill the index. No model is asked.

    REMOTE is the other copy: a git remote or an address. Without it: origin, or the only one; in Fossil the one that
    was synchronised with last.
    """
    with progress(quiet=as_json) as display, open_index(directory, flags, before_asking=display.hide) as index:
        moved = index.pull(remote)
        report = index.import_blobs(progress=display)
    if as_json:
        show_json(report)
        return
    _show_moved(moved, as_json)
    for line in import_lines(report):
        show(line)


def import_lines(report: ImportReport) -> Iterator[str]:
    """What an import did."""
    yield (
        f"imported {counted(report.imported, 'vector')} of {report.space}: {counted(report.artifacts, 'artifact')}, "
        f"{counted(report.chunks, 'chunk')} ({duration(report.seconds)})"
    )
    if report.missing:
        yield f"{counted(report.missing, 'chunk')} still without a vector → outcrop index"
    if report.stale:
        yield f"passed over {counted(report.stale, 'blob')} of what is not here"
    yield from _refusals(report.refused)


def normalise_lines(report: NormaliseReport) -> Iterator[str]:
    """What a normalisation did."""
    yield (
        f"rewrote {counted(report.vectors, 'vector')} and {counted(report.blobs, 'blob')}, "
        f"{report.unchanged:,} were fine ({duration(report.seconds)})"
    )
    if report.dropped:
        yield f"dropped {counted(report.dropped, 'vector')} without a direction → outcrop index"
    yield from _refusals(report.refused)


def _refusals(refused: Sequence[Skipped]) -> Iterator[str]:
    if refused:
        yield f"refused {counted(len(refused), 'blob')}:"
        for item in refused:
            yield f"  {harmless_line(item.path)}: {harmless_line(item.detail or item.reason)}"


def _show_moved(moved: SyncReport, as_json: bool) -> None:
    if as_json:
        show_json(moved)
    else:
        withdrawn = f", withdrew {counted(moved.withdrawn, 'blob')}" if moved.withdrawn else ""
        show(f"sent {counted(moved.sent, 'blob')}, received {counted(moved.received, 'blob')}{withdrawn}")
        if moved.withheld:
            show(
                f"kept back {counted(moved.withheld, 'artifact')} of commits that the other copy has not got"
                " → git push, then outcrop push"
            )


def _where(directory: Path, path: Path | None) -> Path:
    return directory / path if path else directory

"""``outcrop status``, ``outcrop check`` and ``outcrop clear``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outcrop.errors import UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.report_view import catalog_lines, check_lines, status_lines
from outcrop.surfaces.cli.terminal import choose_paint, confirm
from outcrop.surfaces.render import size


@options.command("status")
@options.verbose_option
@click.option("--catalog", "as_catalog", is_flag=True, help="Show how much there is of each kind, project and folder.")
@options.revision_options
@options.color_option
@options.result_options
def status_command(
    verbose: bool, as_catalog: bool, rev: str | None, as_json: bool, color: str, directory: Path, **flags: Any
) -> None:
    """Show what is indexed, where, and whether it is current. Sends nothing, loads no model.

    Examples:
        outcrop status
        outcrop status --verbose
        outcrop status --catalog
        outcrop status --json | jq .stale
    """
    paint = choose_paint(color)
    with options.open_index(directory, flags, rev=rev) as index:
        if as_catalog:
            from outcrop.app.catalog import catalog

            found = catalog(index.store, index.source, index.embedder)
            options.show_result(found, as_json, catalog_lines(found, paint, verbose=verbose))
        else:
            status = index.status()
            options.show_result(status, as_json, status_lines(status, paint, verbose=verbose))


@options.command("check")
@click.option("--repair", is_flag=True, help="Make again what is damaged, and only that.")
@options.quiet_option
@options.result_options
def check_command(repair: bool, quiet: bool, as_json: bool, directory: Path, **flags: Any) -> None:
    """Look for damage in the index: passages, vectors, words, and blobs that travel. Without --repair it only reads.

    The exit code is 1 while something is damaged.

    Examples:
        outcrop check
        outcrop check --repair
        outcrop check --json | jq .damage
    """
    from outcrop.surfaces.cli.progress import open_with_progress

    with open_with_progress(directory, flags, quiet=quiet) as (index, display):
        report = index.check(repair=repair, progress=display)
    if as_json or not quiet:
        options.show_result(report, as_json, check_lines(report))
    if report.left:
        raise click.exceptions.Exit(1)


@options.command("clear")
@click.option("--corpus", metavar="NAME", help="Remove this corpus.")
@click.option("--project", metavar="NAME", help="Remove this imported project.")
@click.option("--space", metavar="ID", help="Remove the vectors of this space, as outcrop status names it.")
@click.option("--all", "everything", is_flag=True, help="Remove the whole index.")
@options.yes_option
@options.result_options
def clear_command(
    corpus: str | None,
    project: str | None,
    space: str | None,
    everything: bool,
    yes: bool,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """Remove a corpus, a project, a space, or the whole index. The files that it was made from stay.

    Examples:
        outcrop clear --corpus docs
        outcrop clear --project numpy-2.4
        outcrop clear --space hash-768 --yes
        outcrop clear --all
    """
    given = {"corpus": corpus, "project": project, "space": space}
    chosen = [f"{noun} {name}" for noun, name in given.items() if name] + ["everything"] * everything
    if len(chosen) != 1:
        raise UsageError(
            "clear takes exactly one of --corpus, --project, --space and --all", "outcrop status shows what there is."
        )
    with options.open_index(directory, flags) as index:
        if not yes:
            confirm(f"Remove {chosen[0]} from the index of {index.source.root}?")
        if project:
            from outcrop.projects import service

            freed = service.remove(index, project)
        else:
            freed = index.clear(corpus=corpus, space=space)
    options.show_result({"freed": freed}, as_json, [f"removed {chosen[0]}, {size(freed)} freed"])

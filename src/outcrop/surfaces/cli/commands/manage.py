"""``outcrop status`` and ``outcrop clear``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outcrop.errors import UsageError
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    color_option,
    directory_option,
    embedder_options,
    json_option,
    open_index,
    rev_option,
    show_json,
)
from outcrop.surfaces.cli.report_view import catalog_lines, status_lines
from outcrop.surfaces.cli.terminal import confirm, paint, show
from outcrop.surfaces.render import size

STATUS_EXAMPLES = """
outcrop status
outcrop status --verbose
outcrop status --catalog
outcrop status --json | jq .stale
"""

CLEAR_EXAMPLES = """
outcrop clear --corpus docs
outcrop clear --project numpy-2.4
outcrop clear --space hash-768 --yes
outcrop clear --all
"""


@click.command(
    "status", cls=Command, examples=STATUS_EXAMPLES, short_help="Show what is indexed, where, and how current it is."
)
@click.option("--verbose", "-v", is_flag=True, help="Name everything that was left out, and why.")
@click.option("--catalog", "whole", is_flag=True, help="Show how much there is of each kind, project and folder.")
@rev_option
@branch_option
@json_option
@color_option
@directory_option
@embedder_options
def status_command(
    verbose: bool, whole: bool, rev: str | None, as_json: bool, color: str, directory: Path, **flags: Any
) -> None:
    """Show what is indexed, where, and how current it is. Sends nothing, loads no model."""
    with open_index(directory, flags, rev=rev) as index:
        if whole:
            # Imported here: the plain status does without.
            from outcrop.app.catalog import catalog

            found = catalog(index.store, index.source, index.embedder)
            if as_json:
                show_json(found)
                return
            lines = catalog_lines(found, paint(color), verbose=verbose)
        else:
            status = index.status()
            if as_json:
                show_json(status)
                return
            lines = status_lines(status, paint(color), verbose=verbose)
        for line in lines:
            show(line)


@click.command(
    "clear", cls=Command, examples=CLEAR_EXAMPLES, short_help="Remove a corpus, a project, a space, or the whole index."
)
@click.option("--corpus", metavar="NAME", help="Remove this corpus.")
@click.option("--project", metavar="NAME", help="Remove this imported project.")
@click.option("--space", metavar="ID", help="Remove the vectors of this space, as outcrop status names it.")
@click.option("--all", "everything", is_flag=True, help="Remove the whole index.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@directory_option
@embedder_options
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
    """Remove a corpus, a project, a space, or the whole index. The files it was made from are not touched."""
    chosen = [
        text
        for text, given in (
            (f"corpus {corpus}", corpus),
            (f"project {project}", project),
            (f"space {space}", space),
            ("everything", everything),
        )
        if given
    ]
    if len(chosen) != 1:
        raise UsageError(
            "clear takes exactly one of --corpus, --project, --space and --all", "outcrop status shows what there is."
        )
    with open_index(directory, flags) as index:
        if not yes:
            confirm(f"Remove {chosen[0]} from the index of {index.source.root}?")
        if project:
            # Imported here because it brings all that indexing needs.
            from outcrop.projects import service

            freed = service.remove(index, project)
        else:
            freed = index.clear(corpus=corpus, space=space)
    if as_json:
        show_json({"freed": freed})
    else:
        show(f"removed {chosen[0]}, {size(freed)} freed")

"""``outcrop index`` and ``outcrop rebuild``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.errors import StoreLocked, UsageError
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    directory_option,
    embedder_options,
    json_option,
    listing_options,
    open_index,
    rev_option,
    show_json,
)
from outcrop.surfaces.cli.progress import Display, progress
from outcrop.surfaces.cli.report_view import build_lines, plan_lines
from outcrop.surfaces.cli.terminal import note, show
from outcrop.surfaces.render import outcome

if TYPE_CHECKING:
    from outcrop.app.index import Index
    from outcrop.core.reports import BuildReport

# Between two tries while a watch updates the index.
TURN_SECONDS = 0.5

INDEX_EXAMPLES = """
outcrop index
outcrop index ~/notes
outcrop index --dry-run
outcrop index --verbose --exclude 'vendor/' --max-bytes '4 MiB'
outcrop index --rev v2.1
outcrop index --json | jq .embedded
outcrop index --corpus notebooks lab/ '**/*.ipynb'
"""

REBUILD_EXAMPLES = """
outcrop rebuild
outcrop rebuild --embedder hash
"""

path_argument = click.argument("path", type=click.Path(path_type=Path), required=False)
verbose_option = click.option("--verbose", "-v", is_flag=True, help="Name everything that was left out, and why.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Say nothing unless something fails.")


@click.command(
    "index", cls=Command, examples=INDEX_EXAMPLES, short_help="Index what is new or changed here, forget what is gone."
)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--corpus", metavar="NAME", help="Build a corpus of your own: the paths that are named are all of it.")
@click.option("--no-prune", is_flag=True, help="With --corpus: keep what earlier builds put in and no path names now.")
@rev_option
@branch_option
@click.option("--dry-run", "-n", is_flag=True, help="Only say what would be indexed, and what would be embedded where.")
@verbose_option
@quiet_option
@json_option
@directory_option
@listing_options
@embedder_options
def index_command(
    paths: tuple[str, ...],
    corpus: str | None,
    no_prune: bool,
    rev: str | None,
    dry_run: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """Index what is new or changed here, forget what is gone.

    PATH is a folder, a place in a git repository or Fossil checkout, which is then indexed whole, or a Fossil
    repository file; without it, the current folder.
    What did not change is not read or embedded again. The index lives inside the repository.

    With --corpus, the PATHs are files, folders and patterns (quoted, ** for any depth), from the current folder;
    without them, those that the setting corpora names.
    """
    where, own = _own_corpus(directory, paths, corpus, no_prune)
    if dry_run:
        with open_index(where, flags, rev=rev) as index:
            plan = index.plan(**own)
        if as_json:
            show_json(plan)
        else:
            for line in plan_lines(plan):
                show(line)
        return
    _build(where, flags, own, rev=rev, verbose=verbose, quiet=quiet, as_json=as_json)


def _own_corpus(
    directory: Path, paths: tuple[str, ...], corpus: str | None, no_prune: bool
) -> tuple[Path, dict[str, Any]]:
    """Where the index is, and the arguments that make a build one of a corpus of one's own."""
    if corpus is not None:
        here = directory.absolute()
        named = [here / path for path in paths] if paths else None
        return directory, {"corpus": corpus, "paths": named, "prune": not no_prune}
    if no_prune:
        raise UsageError("--no-prune goes with --corpus", "outcrop index --corpus NAME --no-prune PATH")
    if len(paths) > 1:
        raise UsageError("an index is of one folder or repository", "To build a corpus of several paths: --corpus NAME")
    return (directory / paths[0] if paths else directory), {}


@click.command(
    "rebuild",
    cls=Command,
    examples=REBUILD_EXAMPLES,
    short_help="Forget every vector and embed everything again.",
)
@path_argument
@rev_option
@branch_option
@verbose_option
@quiet_option
@json_option
@directory_option
@listing_options
@embedder_options
def rebuild_command(
    path: Path | None, rev: str | None, verbose: bool, quiet: bool, as_json: bool, directory: Path, **flags: Any
) -> None:
    """Forget every vector and embed everything again.

    Hardly ever needed: `outcrop index` notices by itself what changed, also another model.
    """
    where = directory / path if path else directory
    _build(where, flags, {"rebuild": True}, rev=rev, verbose=verbose, quiet=quiet, as_json=as_json)


def _build(
    where: Path,
    flags: dict[str, Any],
    arguments: dict[str, Any],
    *,
    rev: str | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    try:
        with (
            progress(quiet=quiet) as display,
            open_index(where, flags, rev=rev, before_asking=display.hide) as index,
        ):
            result = _build_in_turn(index, display, arguments)
    except (KeyboardInterrupt, click.Abort) as stop:
        note("\noutcrop: stopped; what was done is kept\n  → outcrop index goes on where it was")
        raise click.exceptions.Exit(outcome(KeyboardInterrupt()).exit) from stop
    if as_json:
        show_json(result)
    elif not quiet:
        for line in build_lines(result, verbose=verbose):
            show(line)


def _build_in_turn(index: Index, display: Display, arguments: dict[str, Any]) -> BuildReport:
    """Build; where a watch of this index is at it, wait until it has done what it does."""
    told = False
    while True:
        try:
            return index.build(progress=display, **arguments)
        except StoreLocked:
            # Imported here: only who is kept waiting needs it.
            from outcrop.app import watch_lock

            watcher = watch_lock.read(index.store)
            if watcher is None:
                raise
            if not told:
                display.hide()
                note(f"outcrop: process {watcher.process} watches this and is updating the index; waiting for it")
            told = True
        time.sleep(TURN_SECONDS)

"""``outcrop index`` and ``outcrop rebuild``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.errors import StoreLocked, UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.progress import Display, open_with_progress
from outcrop.surfaces.cli.report_view import build_lines, plan_lines
from outcrop.surfaces.cli.terminal import note
from outcrop.surfaces.render import outcome

if TYPE_CHECKING:
    from outcrop.app.index import Index
    from outcrop.core.reports import BuildReport

# Where an index is, from the folder of its source.
INDEXES = (".outcrop/index.sqlite", ".git/outcrop/index.sqlite")

# Between two tries while a watch updates the index.
RETRY_SECONDS = 0.5


@options.command("index")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--corpus", metavar="NAME", help="Build a corpus of your own, of exactly these paths.")
@click.option("--no-prune", is_flag=True, help="With --corpus: also keep files that no PATH names now.")
@options.revision_options
@click.option("--dry-run", "-n", is_flag=True, help="List what would be indexed, and where text would be embedded.")
@options.verbose_option
@options.quiet_option
@options.listing_options
@options.result_options
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
    """Index what is new or changed here, and forget what is gone.

    PATH is a folder, or a Fossil repository file; without it, the current folder. Any folder in a git repository or a
    Fossil checkout means the whole repository.
    What did not change is not read or embedded again. The index is kept inside the repository. Corpora of your own that
    are in it and whose paths the setting corpora names are brought up to date too.

    With --corpus, PATHs are files, folders and patterns (quoted, ** for any depth), from the current folder; without
    them, the paths in the setting corpora.

    Examples:
        outcrop index
        outcrop index ~/notes
        outcrop index --dry-run
        outcrop index --verbose --exclude 'vendor/' --max-bytes '4 MiB'
        outcrop index --rev v2.1
        outcrop index --json | jq .embedded
        outcrop index --corpus notebooks lab/ '**/*.ipynb'
    """
    where, arguments = _custom_corpus(directory, paths, corpus, no_prune)
    if dry_run:
        with options.open_index(where, flags, rev=rev) as index:
            plan = index.plan(**arguments)
        options.show_result(plan, as_json, plan_lines(plan))
    else:
        _build(where, flags, arguments, rev=rev, verbose=verbose, quiet=quiet, as_json=as_json)


def _custom_corpus(
    directory: Path, paths: tuple[str, ...], corpus: str | None, no_prune: bool
) -> tuple[Path, dict[str, Any]]:
    if corpus is not None:
        here = directory.absolute()
        named = [here / path for path in paths] if paths else None
        return directory, {"corpus": corpus, "paths": named, "prune": not no_prune}
    if no_prune:
        raise UsageError("--no-prune needs --corpus", "outcrop index --corpus NAME --no-prune PATH")
    if len(paths) > 1:
        raise UsageError("an index is of one folder or repository", "To build a corpus of several paths: --corpus NAME")
    return (directory / paths[0] if paths else directory), {}


@options.command("rebuild")
@options.path_argument
@options.revision_options
@options.verbose_option
@options.quiet_option
@options.listing_options
@options.result_options
def rebuild_command(
    path: Path | None, rev: str | None, verbose: bool, quiet: bool, as_json: bool, directory: Path, **flags: Any
) -> None:
    """Forget every vector and embed everything again. The old index answers until the new one is complete.

    Rarely needed: `outcrop index` finds by itself what changed, another model too.

    Examples:
        outcrop rebuild
        outcrop rebuild --embedder hash
    """
    where = directory / (path or "")
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
    if not any((folder / place).exists() for folder in (where, *where.absolute().parents) for place in INDEXES):
        # A first build, it seems: a process that cuts starts while this one imports. One that is not needed only ends.
        from outcrop.chunking.workers.pool import prepare

        prepare()
    try:
        with open_with_progress(where, flags, rev=rev, quiet=quiet) as (index, display):
            from outcrop.app.update import unmanaged_corpora

            before = unmanaged_corpora(index)
            report, others = _build_after_watch(index, display, arguments)
            left = [] if "corpus" in arguments else _left_behind(index, report, before)
    except (KeyboardInterrupt, click.Abort) as stop:
        if arguments.get("rebuild"):
            note("\noutcrop: stopped; the index is as it was\n  → outcrop rebuild starts again")
        else:
            note("\noutcrop: stopped; what was done is kept\n  → outcrop index continues from there")
        raise click.exceptions.Exit(outcome(KeyboardInterrupt()).exit) from stop
    if as_json or not quiet:
        result = {**asdict(report), "corpora": others} if as_json else None
        options.show_result(result, as_json, _lines(report, others, verbose=verbose))
    for name in left:
        note(f"outcrop: corpus {name} was not brought up to date: its paths are not in the setting corpora")
    if left:
        from outcrop.search.staleness import update_commands

        note(f"  → {update_commands(left, ())}")


def _left_behind(index: Index, report: BuildReport, names: Sequence[str]) -> list[str]:
    """Of corpora whose paths no setting names, those that are not what they would be if they were built now."""
    revisions = index.store.revisions()
    return [name for name in names if revisions.get(name) != report.revision]


def _lines(report: BuildReport, others: Mapping[str, BuildReport], *, verbose: bool) -> Iterator[str]:
    yield from build_lines(report, verbose=verbose)
    for name, each in others.items():
        first, *rest = build_lines(each, verbose=verbose)
        yield f"corpus {name}: {first}"
        yield from (f"  {line}" for line in rest)


def _build_after_watch(
    index: Index, display: Display, arguments: dict[str, Any]
) -> tuple[BuildReport, Mapping[str, BuildReport]]:
    """Build, and of a build of everything also custom corpora; while a watch of this index updates it, wait."""
    from outcrop.app.update import build_all

    waiting = False
    while True:
        try:
            if "corpus" in arguments:
                return index.build(progress=display, **arguments), {}
            return build_all(index, display, **arguments)
        except StoreLocked:
            from outcrop.app import watch_lock

            watcher = watch_lock.read(index.store)
            if watcher is None:
                raise
            if not waiting:
                display.hide()
                note(f"outcrop: process {watcher.process} watches this and is updating the index; waiting for it")
            waiting = True
        time.sleep(RETRY_SECONDS)

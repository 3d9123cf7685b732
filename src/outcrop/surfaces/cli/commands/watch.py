"""``outcrop watch``."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from outcrop.errors import UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.progress import Display, open_with_progress, progress
from outcrop.surfaces.cli.terminal import note
from outcrop.surfaces.render import harmless_line, outcome


@options.command("watch")
@options.path_argument
@click.option("--once", is_flag=True, help="Bring the index up to date, waiting for other builds of it, and exit.")
@click.option("--if-indexed", is_flag=True, help="The same, but do nothing where there is no index yet (for hooks).")
@click.option(
    "--install",
    type=click.Choice(["auto", "hook", "unit"]),
    is_flag=False,
    flag_value="auto",
    metavar="[=hook|unit]",
    help="Install a repository hook or a systemd user unit that does this.",
)
@click.option("--uninstall", is_flag=True, help="Remove hooks and unit, and restore what was there.")
@options.yes_option
@options.quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per event, a line each.")
@options.branch_option
@options.index_options
def watch_command(
    path: Path | None,
    once: bool,
    if_indexed: bool,
    install: str | None,
    uninstall: bool,
    yes: bool,
    quiet: bool,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """Keep the index current while files change.

    Runs until Ctrl-C or SIGTERM. It indexes what changed, and nothing else, after commits, merges and pulls, branch
    switches, saved files, and everything that becomes public in a Fossil repository. Without an index it builds one
    first. Text leaves this machine only where `outcrop index` would send it.

    Examples:
        outcrop watch
        outcrop watch ~/notes --json
        outcrop watch --once
        outcrop watch --install
        outcrop watch --install=unit
        outcrop watch --uninstall
    """
    where = directory / (path or "")
    if sum((once or if_indexed, install is not None, uninstall)) > 1:
        raise UsageError("--once, --install and --uninstall exclude each other", "outcrop watch --help")
    if install is not None or uninstall:
        from outcrop.surfaces.cli.install_prompt import change_watch_installation

        change_watch_installation(where, flags, install, yes=yes, as_json=as_json, quiet=quiet)
        return
    with _stopping():
        if once or if_indexed:
            from outcrop.surfaces.watch.once import update_once

            with open_with_progress(where, flags, quiet=quiet or as_json) as (index, display):
                result = update_once(index, display, if_indexed=if_indexed)
            if as_json:
                options.show_json(result.details)
            elif not quiet:
                note(f"outcrop: {harmless_line(result.text)}")
        else:
            _watch(where, flags, quiet=quiet, as_json=as_json)


@contextmanager
def _stopping() -> Iterator[None]:
    """SIGTERM ends the work like Ctrl-C, but is no failure: it is how a service is stopped."""
    terminated: list[bool] = []

    def terminate(number: int, frame: FrameType | None) -> None:
        terminated.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except (KeyboardInterrupt, click.Abort) as stop:
        note("outcrop: stopped; what was done is kept")
        raise click.exceptions.Exit(0 if terminated else outcome(KeyboardInterrupt()).exit) from stop
    finally:
        signal.signal(signal.SIGTERM, before)


def _watch(where: Path, flags: dict[str, Any], *, quiet: bool, as_json: bool) -> None:
    from outcrop.surfaces.watch.daemon import Event, watch

    current: list[Display] = []

    @contextmanager
    def display() -> Iterator[Display]:
        with progress(quiet=quiet or as_json) as inner:
            current[:] = [inner]
            yield inner

    def report(event: Event) -> None:
        if as_json:
            options.show_json({"event": event.name, "time": time.time(), **event.details})
            sys.stdout.flush()
        elif not quiet or event.name in ("waiting", "gone"):
            note(f"{time.strftime('%H:%M:%S')}  {harmless_line(event.text)}")

    def before_asking() -> None:
        for each in current:
            each.hide()

    other = watch(lambda: options.open_index(where, flags, before_asking=before_asking), report, display)
    if as_json:
        options.show_json({"event": "watched", "time": time.time(), "process": other.process, "since": other.since})
    else:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(other.since))
        note(f"outcrop: process {other.process} has been watching this since {since}; nothing to do")

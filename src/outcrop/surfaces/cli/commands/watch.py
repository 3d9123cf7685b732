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
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    directory_option,
    embedder_options,
    open_index,
    show_json,
)
from outcrop.surfaces.cli.progress import Display, progress
from outcrop.surfaces.cli.terminal import note
from outcrop.surfaces.render import harmless_line, outcome

WATCH_EXAMPLES = """
outcrop watch
outcrop watch ~/notes --json
outcrop watch --once
outcrop watch --install
outcrop watch --install=unit
outcrop watch --uninstall
"""


@click.command("watch", cls=Command, examples=WATCH_EXAMPLES, short_help="Keep the index current while files change.")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--once", is_flag=True, help="Bring the index up to date, waiting for whoever builds it, and exit.")
@click.option("--if-indexed", is_flag=True, help="Do nothing where there is no index yet (what hooks use).")
@click.option(
    "--install",
    type=click.Choice(["auto", "hook", "unit"]),
    is_flag=False,
    flag_value="auto",
    metavar="[=hook|unit]",
    help="Have it done for you: by a hook of the repository, or by a systemd user unit.",
)
@click.option("--uninstall", is_flag=True, help="Take hooks and unit out again, and put back what was there.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a hook or unit is changed.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing unless something fails.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per event, a line each.")
@branch_option
@directory_option
@embedder_options
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

    Works until it is stopped with Ctrl-C or SIGTERM. After commits, merges and pulls, branch switches, saved files,
    and whatever becomes public in a Fossil repository, what changed is indexed and nothing else. A first build is made
    where there is none. Text goes to an address outside this machine only as `outcrop index` would send it.
    """
    where = directory / path if path else directory
    if sum((once or if_indexed, install is not None, uninstall)) > 1:
        raise UsageError("--once, --install and --uninstall exclude each other", "outcrop watch --help")
    if install is not None or uninstall:
        # Imported here, as below: each way of calling needs only its own part.
        from outcrop.surfaces.cli.install_prompt import change_watch_installation

        change_watch_installation(where, flags, install, yes=yes, as_json=as_json, quiet=quiet)
        return
    with _stopping():
        if once or if_indexed:
            _once(where, flags, if_indexed=if_indexed, quiet=quiet, as_json=as_json)
        else:
            _watch(where, flags, quiet=quiet, as_json=as_json)


@contextmanager
def _stopping() -> Iterator[None]:
    """SIGTERM ends the work inside like Ctrl-C, keeping what was done, but is no failure: a service is stopped so."""
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

    shown: list[Display] = []

    @contextmanager
    def display() -> Iterator[Display]:
        with progress(quiet=quiet or as_json) as inner:
            shown[:] = [inner]
            yield inner

    def tell(event: Event) -> None:
        if as_json:
            show_json({"event": event.name, "time": time.time(), **event.details})
            sys.stdout.flush()
        elif not quiet or event.name in ("waiting", "gone"):
            note(f"{time.strftime('%H:%M:%S')}  {harmless_line(event.text)}")

    def before_asking() -> None:
        for each in shown:
            each.hide()

    other = watch(lambda: open_index(where, flags, before_asking=before_asking), tell, display)
    if as_json:
        show_json({"event": "watched", "time": time.time(), "process": other.process, "since": other.since})
    else:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(other.since))
        note(f"outcrop: process {other.process} has been watching this since {since}; nothing to do")


def _once(where: Path, flags: dict[str, Any], *, if_indexed: bool, quiet: bool, as_json: bool) -> None:
    from outcrop.surfaces.watch.once import update_once

    with progress(quiet=quiet or as_json) as display, open_index(where, flags, before_asking=display.hide) as index:
        result = update_once(index, display, if_indexed=if_indexed)
    if as_json:
        show_json(result.details)
    elif not quiet:
        note(f"outcrop: {harmless_line(result.text)}")

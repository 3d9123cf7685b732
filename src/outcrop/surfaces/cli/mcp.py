"""``outcrop mcp``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.errors import BadConfig, UsageError
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    directory_option,
    embedder_options,
    open_index,
    rev_option,
)
from outcrop.surfaces.cli.terminal import is_terminal, note, show
from outcrop.surfaces.mcp.clients import CLIENTS, Change, install, uninstall
from outcrop.surfaces.render import harmless, harmless_line

if TYPE_CHECKING:
    from outcrop.app import Index

EXAMPLES = """
outcrop mcp --install claude-code
outcrop mcp --install vscode --yes
outcrop mcp --uninstall cursor
outcrop mcp ~/project
outcrop mcp --rev v2.1 ~/project
"""


@click.command("mcp", cls=Command, examples=EXAMPLES, short_help="Serve agents: search and reading as MCP tools.")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--install", "installed", type=click.Choice(list(CLIENTS)), help="Set this client up for this project.")
@click.option("--uninstall", "uninstalled", type=click.Choice(list(CLIENTS)), help="Take that back.")
@click.option("--name", default="outcrop", show_default=True, metavar="NAME", help="What that client calls the server.")
@click.option("--yes", "-y", is_flag=True, help="Change the client's settings without asking.")
@click.option("--text-only", is_flag=True, help="Answer in words alone, without the object beside them.")
@rev_option
@branch_option
@directory_option
@embedder_options
def mcp_command(
    path: Path | None,
    installed: str | None,
    uninstalled: str | None,
    name: str,
    yes: bool,
    text_only: bool,
    rev: str | None,
    directory: Path,
    **flags: Any,
) -> None:
    """Serve agents: search and reading as MCP tools, over standard input and output.

    A client starts this command by itself once it is set up: --install shows the change to its settings in this
    project and asks first. docs/mcp.md has the lines for other clients, and outcrop serve offers the same over HTTP.
    """
    place = directory if path is None else directory / path
    if installed or uninstalled:
        if text_only or rev or any(flags.values()):
            raise UsageError("a client's settings take no options of Outcrop's", "Set them in outcrop.toml")
        _set_up(place, installed, uninstalled, name, yes)
        return
    _serve(place, rev, flags, structured=not text_only)


def _serve(place: Path, rev: str | None, flags: dict[str, Any], *, structured: bool) -> None:
    if not place.exists():
        raise UsageError(f"there is no {place}", "Name a folder or a repository")
    if place.resolve() in (Path("/"), Path.home()):
        # Where clients start servers that nobody told where to be. Without an index every file would be read.
        raise UsageError(f"{place.resolve()} is no project", "Name the project's folder: outcrop mcp PATH")
    if is_terminal(sys.stdin):
        note("outcrop: an MCP client is meant to start this, and to speak JSON on standard input. Ctrl-C ends it.")
        note("  → outcrop mcp --install sets a client up")
    # Imported here: --help does without.
    from outcrop.surfaces.mcp.stdio import serve

    serve(lambda: open_index(place, flags, rev=rev), lambda index: _is_current(index, flags), structured=structured)


def _is_current(index: Index, flags: dict[str, Any]) -> bool:
    """Whether the settings still are those that the index was opened with."""
    # Imported here: it is asked once the server runs.
    from outcrop.config import load_settings

    given = {name: value for name, value in flags.items() if name != "branch"}
    if given.get("store") is not None:
        given["store"] = given["store"].absolute()
    try:
        now = load_settings(index.source.root, given)
    except BadConfig:
        # Somebody is in the middle of editing the file.
        return True
    return now == index.settings


def _set_up(place: Path, installed: str | None, uninstalled: str | None, name: str, yes: bool) -> None:
    # Imported here: a server finds its source by itself, later.
    from outcrop.sources.discover import find_root

    if installed and uninstalled:
        raise UsageError("either --install or --uninstall", "One at a time")
    root = find_root(place).root
    client = CLIENTS[installed or uninstalled or ""]
    change = (install if installed else uninstall)(root, client, name)
    if change.is_none:
        done = "is set up already" if installed else "is not set up"
        show(f"{client.title} {done} ({harmless_line(str(change.path))})")
        return
    for line in change.lines():
        show(harmless(line))
    if not yes:
        _ask(change)
    change.make()
    note(
        f"outcrop: {client.title} is set up. {client.then}"
        if installed
        else f"outcrop: {client.title} knows us no more."
    )


def _ask(change: Change) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError("nobody is here to be asked, so nothing was changed", "Add --yes")
    verb = "Remove" if change.after is None else "Change" if change.before is not None else "Write"
    click.confirm(f"{verb} {harmless_line(str(change.path))}?", err=True, abort=True)

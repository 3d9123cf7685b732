"""``outcrop serve``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from outcrop.errors import BadConfig
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    directory_option,
    embedder_options,
    open_index,
    rev_option,
)
from outcrop.surfaces.cli.terminal import note, show

EXAMPLES = """
outcrop serve
outcrop serve --open ~/projects/kettle
outcrop serve --host 0.0.0.0 --token-ref OUTCROP_PAGE_TOKEN
"""

SHORTEST_TOKEN = 16


@click.command("serve", cls=Command, examples=EXAMPLES, short_help="Serve the search page, its JSON API and MCP.")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port; 0 for any that is free.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
@click.option("--token", is_flag=True, help="Demand a token on this machine too, where others have accounts.")
@click.option("--token-ref", metavar="NAME", help="Environment variable that holds the token (never the token).")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Another name of this server. Repeatable.")
@rev_option
@branch_option
@directory_option
@embedder_options
def serve_command(
    path: Path | None,
    host: str,
    port: int | None,
    open_browser: bool,
    token: bool,
    token_ref: str | None,
    allow_host: tuple[str, ...],
    rev: str | None,
    directory: Path,
    **flags: Any,
) -> None:
    """Serve the search page, its JSON API and MCP, until Ctrl-C.

    Without anything else only this machine reaches it. On another address whoever comes needs a token: it is made up
    and shown, unless an environment variable holds one.
    """
    # Imported here: a server takes longer to import than most commands run.
    from outcrop.surfaces.web import server
    from outcrop.surfaces.web.access import Doorkeeper, new_token
    from outcrop.surfaces.web.app import BASE, make_app

    given = _given(token_ref)
    with open_index(path or directory, flags, rev=rev) as index:
        listening = server.listen(host, port)
        secret = given or (new_token() if token or not listening.loopback else None)
        names = [*allow_host, *(() if listening.loopback else server.own_names(host))]
        app = make_app(index, doorkeeper=Doorkeeper(names, secret, listening.loopback))
        address = f"{listening.address}{BASE}/search"
        shown = address if secret is None or given else f"{address}?token={secret}"
        if port is None and listening.port != server.PORT:
            note(f"outcrop: port {server.PORT} is taken, so another one was chosen")
        if given:
            note(f"outcrop: the token is the one that {token_ref} holds")

        def ready() -> None:
            show(shown)
            # Whoever started this reads the address from a pipe and waits for it.
            sys.stdout.flush()
            note(f"outcrop: {index.source.project}, MCP at {listening.address}/mcp; Ctrl-C ends it")
            if open_browser:
                click.launch(shown)

        server.run(app, listening, ready)
    note("outcrop: ended")


def _given(name: str | None) -> str | None:
    """The token that a variable holds.

    Raises:
        BadConfig: It holds none, or one that can be guessed.
    """
    if name is None:
        return None
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadConfig(f"there is no environment variable {name}, or it is empty", "Set it to the token.")
    if len(value) < SHORTEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value:
        raise BadConfig(
            f"the token in {name} is too simple",
            f"Take at least {SHORTEST_TOKEN} letters and digits, for example from: openssl rand -base64 24",
        )
    return value

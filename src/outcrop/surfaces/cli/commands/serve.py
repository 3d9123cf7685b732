"""``outcrop serve``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from outcrop.config.settings import NAMES, user_file
from outcrop.errors import BadConfig, UsageError
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    directory_option,
    embedder_options,
    open_index,
    rev_option,
)
from outcrop.surfaces.cli.terminal import note, show
from outcrop.surfaces.install.fossil_ext import check, install_ext, script, script_path, uninstall_ext
from outcrop.surfaces.render import harmless_line

SERVE_EXAMPLES = """
outcrop serve
outcrop serve --open ~/projects/kettle
outcrop serve --host 0.0.0.0 --token-ref OUTCROP_PAGE_TOKEN
"""

SHORTEST_TOKEN = 16


@click.command("serve", cls=Command, examples=SERVE_EXAMPLES, short_help="Serve the search page, its JSON API and MCP.")
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
    from outcrop.surfaces.web.app import BASE, make_app
    from outcrop.surfaces.web.auth import Authenticator, new_token

    given = _given(token_ref)
    with open_index(path or directory, flags, rev=rev) as index:
        listening = server.listen(host, port)
        secret = given or (new_token() if token or not listening.loopback else None)
        names = [*allow_host, *(() if listening.loopback else server.own_names(host))]
        app = make_app(index, authenticator=Authenticator(names, secret, listening.loopback))
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
    """The token that a variable holds."""
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


FOSSIL_EXAMPLES = """
outcrop fossil install-ext /srv/ext
outcrop fossil install-ext /srv/ext -C ~/museum/project.fossil
outcrop fossil install-ext /srv/ext --uninstall
"""

# Where the model's cache and the user's settings are.
_CARRIED = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


@click.command("fossil", cls=Command, examples=FOSSIL_EXAMPLES, short_help="Put the search page into a Fossil server.")
@click.argument("action", type=click.Choice(["install-ext"]))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--uninstall", "away", is_flag=True, help="Take it out again.")
@branch_option
@directory_option
@embedder_options
def fossil_command(action: str, folder: Path, away: bool, branch: str | None, directory: Path, **flags: Any) -> None:
    """Put the search page into a Fossil server.

    DIR is the folder that the server gets as --extroot; the page is then at /ext/search. Each reader sees on it what
    their capabilities open in Fossil. Run it as the user that the server runs as. The settings of the command line, of
    the environment and of your own file hold for the page. With -C a repository is looked at, to say what visitors
    will see of it.
    """
    if os.name == "nt":
        raise UsageError("Fossil runs such pages on Unix only", "Use outcrop serve here")
    path = script_path(folder)
    shown = harmless_line(str(path))
    if away:
        plan = uninstall_ext(folder)
        plan.apply()
        show(f"removed {shown}" if plan.changes else f"there is no {shown}")
        return
    install_ext(folder, script(_variables(flags), branch)).apply()
    try:
        check(path)
    except BaseException:
        uninstall_ext(folder).apply()
        raise
    show(f"wrote {shown}")
    for line in _visible(directory, {**flags, "branch": branch}) if directory != Path() else ():
        show(line)
    # A server that root starts locks itself into the repository's folder, where the script is not to be found.
    jail = " --nojail" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    note(f"  → fossil server{jail} --extroot {harmless_line(str(path.parent))} REPOSITORY, then /ext/search")


def _variables(flags: dict[str, Any]) -> dict[str, str]:
    """The environment that the page gets: of ours what is set now, and what was said at the command line."""
    names = {f"OUTCROP_{name.upper()}" for name in NAMES}
    made = {name: value for name, value in os.environ.items() if name in names or name in _CARRIED}
    made.setdefault("HOME", str(Path.home()))
    if user_file().is_file():
        made["OUTCROP_CONFIG"] = str(user_file())
    for name, value in flags.items():
        if value not in (None, ()):
            text = "\n".join(value) if isinstance(value, tuple) else str(value)
            made[f"OUTCROP_{name.upper()}"] = str(value.absolute()) if isinstance(value, Path) else text
    # One question is scored as it is read: threads of numpy's would only take the processor from the model.
    return made | {"OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"}


def _visible(directory: Path, flags: dict[str, Any]) -> Iterator[str]:
    """What visitors of a repository will see of its index."""
    # Imported here: only a repository that was named is looked at.
    from outcrop.core.model import Kind
    from outcrop.sources.fossil.capabilities import capabilities_of, may_see
    from outcrop.sources.fossil.source import FossilSource
    from outcrop.vcs.fossil import opened

    with open_index(directory, flags) as index:
        if not isinstance(index.source, FossilSource):
            raise UsageError(f"{directory} is no Fossil repository", "Name one, or leave -C out")
        if not index.store.exists:
            yield "nothing is indexed there yet → outcrop index"
            return
        kinds = sorted(index.store.names().kinds)
        with opened(index.source.store_path()) as database:
            for who in ("nobody", "anonymous"):
                capabilities = capabilities_of(database, who)
                seen = [kind for kind in kinds if may_see(capabilities, Kind(kind))]
                yield f"{who} sees: {', '.join(seen) or 'nothing'}"

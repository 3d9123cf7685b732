"""``outcrop serve`` and ``outcrop fossil``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from outcrop.config.settings import NAMES, user_file
from outcrop.errors import BadConfig, UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.terminal import note, show
from outcrop.surfaces.install.fossil_ext import check, install_ext, script, script_path, uninstall_ext
from outcrop.surfaces.render import harmless_line

SHORTEST_TOKEN = 16


@options.command("serve")
@options.path_argument
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port; 0 for any free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
@click.option("--token", is_flag=True, help="Require a token from this machine too, if other people use it.")
@click.option("--token-ref", metavar="NAME", help="The environment variable that holds the token (never the token).")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Another name of this server. Repeatable.")
@options.revision_options
@options.index_options
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

    By default only this machine reaches it. On another address every visitor needs a token: a new one is shown, unless
    an environment variable holds one.

    Examples:
        outcrop serve
        outcrop serve --open ~/projects/kettle
        outcrop serve --host 0.0.0.0 --token-ref OUTCROP_PAGE_TOKEN
    """
    import secrets

    from outcrop.surfaces.web import server
    from outcrop.surfaces.web.app import BASE, make_app
    from outcrop.surfaces.web.auth import Authenticator

    given = _token_from(token_ref)
    with options.open_index(path or directory, flags, rev=rev) as index:
        listening = server.listen(host, port)
        secret = given or (secrets.token_urlsafe(24) if token or not listening.loopback else None)
        names = [*allow_host, *(() if listening.loopback else server.own_names(host))]
        app = make_app(index, authenticator=Authenticator(names, secret, listening.loopback))
        address = f"{listening.address}{BASE}/search"
        shown = address if secret is None or given else f"{address}?token={secret}"
        if port is None and listening.port != server.PORT:
            note(f"outcrop: port {server.PORT} is in use, so another port was chosen")
        if given:
            note(f"outcrop: the token is the value of {token_ref}")

        def ready() -> None:
            show(shown)
            # A program that started this may wait for the address in a pipe.
            sys.stdout.flush()
            note(f"outcrop: {index.source.project}, MCP at {listening.address}/mcp; Ctrl-C stops it")
            if open_browser:
                click.launch(shown)

        server.run(app, listening, ready)
    note("outcrop: ended")


def _token_from(name: str | None) -> str | None:
    if name is None:
        return None
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadConfig(f"there is no environment variable {name}, or it is empty", "Set it to the token.")
    if len(value) < SHORTEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value:
        raise BadConfig(
            f"the token in {name} is too simple",
            f"Use at least {SHORTEST_TOKEN} letters and digits, for example from: openssl rand -base64 24",
        )
    return value


# They say where the model's cache and the user's settings are.
_INHERITED = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


@options.command("fossil")
@click.argument("action", type=click.Choice(["install-ext"]))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--uninstall", "remove", is_flag=True, help="Remove it again.")
@options.branch_option
@options.index_options
def fossil_command(action: str, folder: Path, remove: bool, branch: str | None, directory: Path, **flags: Any) -> None:
    """Install the search page in a Fossil server.

    DIR is the folder that the server gets as --extroot; the page is then at /ext/search. It shows each reader what
    their capabilities in Fossil allow. Run this as the user that runs the server. The page uses the settings of this
    command line, of the environment and of your own file. With -C REPOSITORY the command also says what visitors will
    see of it.

    Examples:
        outcrop fossil install-ext /srv/ext
        outcrop fossil install-ext /srv/ext -C ~/museum/project.fossil
        outcrop fossil install-ext /srv/ext --uninstall
    """
    if os.name == "nt":
        raise UsageError("Fossil runs such pages only on Unix", "Use outcrop serve here")
    path = script_path(folder)
    shown = harmless_line(str(path))
    if remove:
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
    for line in _visible_kinds(directory, {**flags, "branch": branch}) if directory != Path() else ():
        show(line)
    # A server that root starts is confined to the repository's folder, where it does not find the script.
    jail = " --nojail" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    note(f"  → fossil server{jail} --extroot {harmless_line(str(path.parent))} REPOSITORY, then /ext/search")


def _variables(flags: dict[str, Any]) -> dict[str, str]:
    names = {f"OUTCROP_{name.upper()}" for name in NAMES}
    made = {name: value for name, value in os.environ.items() if name in names or name in _INHERITED}
    made.setdefault("HOME", str(Path.home()))
    if user_file().is_file():
        made["OUTCROP_CONFIG"] = str(user_file())
    for name, value in flags.items():
        if value not in (None, ()):
            made[f"OUTCROP_{name.upper()}"] = "\n".join(value) if isinstance(value, tuple) else str(value)
    # See ``options.open_index``.
    return made | {"OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"}


def _visible_kinds(directory: Path, flags: dict[str, Any]) -> Iterator[str]:
    from outcrop.core.model import Kind
    from outcrop.sources.fossil.capabilities import capabilities_of, may_see
    from outcrop.sources.fossil.source import FossilSource
    from outcrop.vcs.fossil import open_fossil

    with options.open_index(directory, flags) as index:
        if not isinstance(index.source, FossilSource):
            raise UsageError(f"{directory} is not a Fossil repository", "Name one, or leave -C out")
        if not index.store.exists:
            yield "nothing is indexed there yet → outcrop index"
            return
        kinds = sorted(index.store.names().kinds)
        with open_fossil(index.source.store_path()) as database:
            for login in ("nobody", "anonymous"):
                capabilities = capabilities_of(database, login)
                seen = [kind for kind in kinds if may_see(capabilities, Kind(kind))]
                yield f"{login} sees: {', '.join(seen) or 'nothing'}"

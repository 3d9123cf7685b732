"""``outcrop fossil``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from outcrop.config import NAMES, user_file
from outcrop.errors import UsageError
from outcrop.surfaces.cli.options import Command, branch_option, directory_option, embedder_options, open_index
from outcrop.surfaces.cli.terminal import note, show
from outcrop.surfaces.extroot import check, install, script, uninstall
from outcrop.surfaces.render import harmless_line

EXAMPLES = """
outcrop fossil install-ext /srv/ext
outcrop fossil install-ext /srv/ext -C ~/museum/project.fossil
outcrop fossil install-ext /srv/ext --uninstall
"""

_CARRIED = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
"""Where the model's cache and the user's settings are."""


@click.command("fossil", cls=Command, examples=EXAMPLES, short_help="Put the search page into a Fossil server.")
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
    if away:
        gone = uninstall(folder)
        show(f"removed {harmless_line(str(gone))}" if gone else "there was none")
        return
    target = install(folder, script(_variables(flags), branch))
    try:
        check(target)
    except BaseException:
        uninstall(folder)
        raise
    show(f"wrote {harmless_line(str(target))}")
    for line in _visible(directory, {**flags, "branch": branch}) if directory != Path() else ():
        show(line)
    # A server that root starts locks itself into the repository's folder, where the script is not to be found.
    jail = " --nojail" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    note(f"  → fossil server{jail} --extroot {harmless_line(str(target.parent))} REPOSITORY, then /ext/search")


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
    from outcrop.model import Kind
    from outcrop.sources.fossil import FossilSource
    from outcrop.sources.fossil_capabilities import capabilities_of, may_see
    from outcrop.sources.fossil_repository import opened

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

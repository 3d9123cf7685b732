"""``outcrop config``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outcrop.config import NAMES, REPOSITORY_FILE, Settings, user_file
from outcrop.surfaces.cli.options import (
    Command,
    color_option,
    directory_option,
    embedder_options,
    json_option,
    listing_options,
    open_index,
    show_json,
)
from outcrop.surfaces.cli.reports import settings_lines
from outcrop.surfaces.cli.terminal import paint, show
from outcrop.surfaces.render import harmless_line

EXAMPLES = """
outcrop config
outcrop config --json | jq .settings.embedder
OUTCROP_EMBEDDER=hash outcrop config
"""


@click.command("config", cls=Command, examples=EXAMPLES, short_help="Show every setting and where its value came from.")
@json_option
@color_option
@directory_option
@listing_options
@embedder_options
def config_command(as_json: bool, color: str, directory: Path, **flags: Any) -> None:
    """Show every setting and where its value came from.

    In growing strength: defaults, outcrop.toml in the repository's root, your own file, OUTCROP_* variables, options.
    """
    with open_index(directory, flags) as index:
        settings, root = index.settings, index.source.root
    files = {"repository": root / REPOSITORY_FILE, "user": user_file()}
    if as_json:
        show_json({"settings": _plain(settings), "files": files})
        return
    for line in settings_lines(settings, paint(color)):
        show(line)
    show("")
    for name, path in files.items():
        show(f"{name} file  {harmless_line(str(path))}{'' if path.exists() else '  (none)'}")


def _plain(settings: Settings) -> dict[str, dict[str, object]]:
    return {name: {"value": getattr(settings, name), "origin": settings.origins[name]} for name in NAMES}

"""``outcrop call``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from outcrop.errors import UsageError
from outcrop.surfaces.cli.options import Command, directory_option, embedder_options, json_option, open_index, show_json
from outcrop.surfaces.cli.terminal import is_terminal, show
from outcrop.surfaces.render import columns

EXAMPLES = """
outcrop call --list
outcrop call vectors.index.status
outcrop call vectors.query '{"texts": ["where are retries configured"], "k": 3}'
outcrop call vectors.index.build '{"corpus": "notebooks", "paths": ["**/*.ipynb"]}'
outcrop call vectors.index.upsert - > report.json
"""


@click.command("call", cls=Command, examples=EXAMPLES, short_help="Call a capability by name, with JSON in and out.")
@click.argument("name", required=False)
@click.argument("arguments", metavar="[JSON]", required=False)
@click.option("--list", "listing", is_flag=True, help="Name every capability; with --json also their schemas.")
@json_option
@directory_option
@embedder_options
def call_command(
    name: str | None, arguments: str | None, listing: bool, as_json: bool, directory: Path, **flags: Any
) -> None:
    """Call a capability by name, with JSON in and out.

    JSON is one object with the arguments; without it, or as -, it is read from the standard input where that is not a
    terminal. The result is printed as one JSON object.
    """
    # Imported here because it brings numpy: `--help` and shell completion do without.
    from outcrop import capabilities

    if listing:
        _list(as_json)
        return
    if name is None:
        raise UsageError("call needs the name of a capability", "outcrop call --list names them.")
    if name not in capabilities.REGISTRY:
        raise UsageError(f"there is no capability {name!r}", "outcrop call --list names them.")
    given = _read(arguments)
    with open_index(directory, flags) as index:
        show_json(capabilities.call(name, given, index=index))


def _list(as_json: bool) -> None:
    from outcrop import capabilities

    entries = capabilities.REGISTRY.values()
    if as_json:
        listed = [{"name": each.name, "description": each.documentation, "arguments": each.schema} for each in entries]
        show_json({"capabilities": listed})
        return
    for line in columns([(each.name, each.summary) for each in entries]):
        show(line)


def _read(arguments: str | None) -> dict[str, Any]:
    """The object with the arguments.

    Raises:
        UsageError: It is not JSON, or not an object.
    """
    text = arguments
    if text == "-" or (text is None and not is_terminal(sys.stdin)):
        text = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    if text is None or not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(
            f"the arguments are not valid JSON ({error})", "Give one object: '{\"name\": value}'"
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"the arguments are a JSON {type(value).__name__}, not an object", "Give '{\"name\": value}'")
    return value

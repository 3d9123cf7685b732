"""``outcrop config``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.config.settings import NAMES, REPOSITORY_FILE, Settings, user_file
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
from outcrop.surfaces.cli.report_view import settings_lines
from outcrop.surfaces.cli.terminal import paint, show
from outcrop.surfaces.render import columns, duration, harmless_line

if TYPE_CHECKING:
    from outcrop.embedders.check import EmbedderStatus, EmbedderTest
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

CONFIG_EXAMPLES = """
outcrop config
outcrop config --json | jq .settings.embedder
OUTCROP_EMBEDDER=hash outcrop config
"""


@click.command(
    "config", cls=Command, examples=CONFIG_EXAMPLES, short_help="Show every setting and where its value came from."
)
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


EMBEDDER_EXAMPLES = """
outcrop embedder status
outcrop embedder test
outcrop embedder test --embedder ollama --model nomic-embed-text
"""


@click.command(
    "embedder",
    cls=Command,
    examples=EMBEDDER_EXAMPLES,
    short_help="Show which embedder is set, or try it with one real call.",
)
@click.argument("action", type=click.Choice(["status", "test"]))
@json_option
@directory_option
@embedder_options
def embedder_command(action: str, as_json: bool, directory: Path, **flags: Any) -> None:
    """Show which embedder is set, or try it with one real call.

    status sends nothing. test embeds four sentences of its own, none of your text, and tells whether two that mean the
    same come out nearer than two that do not.
    """
    with open_index(directory, flags) as index:
        # Imported here because it brings numpy: `--help` and shell completion do without.
        from outcrop.embedders import check

        found = (check.status if action == "status" else check.test)(index.embedder)
    if as_json:
        show_json(found)
        return
    lines = _status(found) if isinstance(found, check.EmbedderStatus) else _test(found)
    for line in lines:
        show(line)


def _status(status: EmbedderStatus) -> Iterator[str]:
    rows = [
        ("space", status.space),
        ("model", status.model),
        ("length", f"{status.dim:,}"),
        ("reads", f"{status.max_tokens:,} word pieces of a text"),
        ("address", status.address or "none: text stays in this process"),
    ]
    if status.address is not None:
        rows.append(("leaves", _leaves(status)))
        rows.append(("token", f"the one named {status.token}" if status.token else "none"))
        rows.append(("proxy", "yes" if status.proxy else "none"))
    yield from columns(rows)


def _leaves(status: EmbedderStatus) -> str:
    if status.leaves is None:
        return "unknown: the name cannot be looked up"
    if not status.leaves:
        return "no, the address is this machine"
    return "yes, allowed by allow_remote" if status.allowed else "yes, after asking (or with --allow-remote)"


def _test(test: EmbedderTest) -> Iterator[str]:
    verdict = (
        "sentences that mean the same are nearer: it understands meaning"
        if test.understands
        else "sentences that mean the same are not nearer: it matches words, not meaning"
    )
    yield from columns(
        [
            ("space", test.space),
            ("address", test.address or "none: text stayed in this process"),
            ("took", duration(test.seconds)),
            ("length", f"{test.dim:,}"),
            ("norm", f"{test.norm:.6f}"),
            ("near", f"{test.near:.3f}"),
            ("far", f"{test.far:.3f}"),
        ]
    )
    yield verdict


COMPLETION_EXAMPLES = """
outcrop completion bash >> ~/.bashrc
outcrop completion zsh >> ~/.zshrc
outcrop completion fish > ~/.config/fish/completions/outcrop.fish
"""

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command(
    "completion",
    cls=Command,
    examples=COMPLETION_EXAMPLES,
    short_help="Print the script that makes a shell complete commands.",
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and values of outcrop."""
    complete = _SHELLS[shell](ctx.find_root().command, {}, "outcrop", "_OUTCROP_COMPLETE")
    show((complete.source_template % complete.source_vars()).rstrip())

"""``outcrop completion``."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from outcrop.surfaces.cli.options import Command
from outcrop.surfaces.cli.terminal import show

EXAMPLES = """
outcrop completion bash >> ~/.bashrc
outcrop completion zsh >> ~/.zshrc
outcrop completion fish > ~/.config/fish/completions/outcrop.fish
"""

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command(
    "completion",
    cls=Command,
    examples=EXAMPLES,
    short_help="Print the script that makes a shell complete commands.",
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and values of outcrop."""
    complete = _SHELLS[shell](ctx.find_root().command, {}, "outcrop", "_OUTCROP_COMPLETE")
    show((complete.source_template % complete.source_vars()).rstrip())

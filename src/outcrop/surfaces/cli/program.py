"""The command line. Commands live in ``commands/`` and are imported only when they are called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import outcrop
from outcrop.surfaces.cli.terminal import note, show, steady_streams
from outcrop.surfaces.render import message, outcome

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETION_VARIABLE = "_OUTCROP_COMPLETE"

# Commands under the headings of ``outcrop --help``: name, module, and the line that is shown without importing it.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Everyday": {
        "index": ("build", "Index what is new or changed here, forget what is gone."),
        "search": ("search", "Find the passages nearest to a question."),
        "status": ("manage", "Show what is indexed, where, and how current it is."),
        "watch": ("watch", "Keep the index current while files change."),
    },
    "More to search in": {
        "import-project": ("projects", "Bring in another repository or a Python package."),
        "projects": ("projects", "List, refresh or remove imported projects."),
        "media": ("media", "List, add or check recordings that lie elsewhere."),
    },
    "Sharing vectors": {
        "push": ("transfer", "Send the vectors to another copy of the repository."),
        "pull": ("transfer", "Get the vectors of another copy and fill the index."),
        "export": ("transfer", "Lay the vectors out in a folder, or in the repository."),
        "import": ("transfer", "Fill the index from vectors that were made elsewhere."),
    },
    "Browsers and agents": {
        "serve": ("serve", "Serve the search page, its JSON API and MCP."),
        "fossil": ("serve", "Put the search page into a Fossil server."),
        "mcp": ("agents", "Serve agents: search and reading as MCP tools."),
        "context": ("agents", "Print the passages that bear on a prompt, for an agent."),
        "call": ("agents", "Call a capability by name, with JSON in and out."),
    },
    "Settings and care": {
        "config": ("settings", "Show every setting and where its value came from."),
        "embedder": ("settings", "Show which embedder is set, or try it with one real call."),
        "probe": ("evaluate", "Test whether a passage is found by its meaning."),
        "eval": ("evaluate", "Measure retrieval on questions of your own."),
        "rebuild": ("build", "Forget every vector and embed everything again."),
        "clear": ("manage", "Remove a corpus, a project, a space, or the whole index."),
        "normalize": ("transfer", "Bring vectors and blobs of older tools to the present form."),
        "completion": ("settings", "Print the script that makes a shell complete commands."),
    },
}

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

EPILOG = """\b
Begin with:
  outcrop index && outcrop search "where are retries configured"

Nothing leaves this machine unless you choose an embedder with an address.
"""


class LazyGroup(click.Group):
    """Knows its commands by ``COMMANDS`` and imports the module of the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"outcrop.surfaces.cli.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is none of that name."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            # Imported here because start-up time matters and only a mistake needs it.
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, n=1)
            guess = f"Did you mean {close[0]}?" if close else f"Commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"there is no command {name!r}. {guess}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them under their headings, without importing them."""
        widest = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, (_, line) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing any."""
        # Imported here because only a shell that completes needs it.
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=help_line)
            for name, (_, help_line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        show(f"outcrop {outcrop.__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version and exit."
)
@click.pass_context
def program(ctx: click.Context) -> None:
    """Make a repository or folder searchable by meaning, with an index inside it."""
    if ctx.invoked_subcommand is None:
        show(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: What follows the program's name; ``sys.argv`` when None.

    Returns:
        0 fine, 1 failed, 2 asked for something that does not exist, 130 stopped with Ctrl-C.
    """
    return run(program, "outcrop", list(sys.argv[1:] if arguments is None else arguments))


def run(command: click.Command, name: str, arguments: list[str]) -> int:
    """Run a program's command and turn whatever comes of it into an exit code.

    Args:
        command: The program.
        name: What it is called.
        arguments: What follows its name.
    """
    steady_streams()
    try:
        return _run(command, name, arguments)
    except KeyboardInterrupt:
        return outcome(KeyboardInterrupt()).exit


def _run(command: click.Command, name: str, arguments: list[str]) -> int:
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        # Imported here because only a shell that completes needs it.
        from click.shell_completion import shell_complete

        return shell_complete(program, {}, "outcrop", COMPLETION_VARIABLE, instruction)
    try:
        with command.make_context(name, arguments) as ctx:
            command.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        return _usage(error)
    except (KeyboardInterrupt, click.Abort):
        note("\noutcrop: stopped")
        return outcome(KeyboardInterrupt()).exit
    except BrokenPipeError:
        # The reader has seen enough (`| head`), which is no failure.
        _silence_stdout()
        return 0
    except Exception as error:
        return _failed(error)
    return 0


def _usage(error: click.ClickException) -> int:
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "outcrop"
    what = " ".join(error.format_message().split()).rstrip(".")
    note(f"outcrop: {what[:1].lower()}{what[1:]}\n  → {where} --help")
    return error.exit_code


def _failed(error: Exception) -> int:
    if os.environ.get("OUTCROP_DEBUG"):
        # Imported here because only someone who is looking for a bug needs it.
        import traceback

        traceback.print_exception(error)
    _silence_stdout()
    note(message(error))
    return outcome(error).exit


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere: writing it at exit would fail a second time, loudly."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

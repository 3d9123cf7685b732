"""The program ``outcrop``. Its commands are in ``commands/``; a module there is imported when its command is called.

In this folder functions import what `--help` and shell completion do not need: it takes longer than all the rest.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import outcrop
from outcrop.surfaces.cli.terminal import make_streams_robust, note, show
from outcrop.surfaces.render import message, outcome

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETION_VARIABLE = "_OUTCROP_COMPLETE"

# Commands under the headings of ``outcrop --help``: name, module, and the short help.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Everyday": {
        "index": ("build", "Index what is new or changed here, and forget what is gone."),
        "search": ("search", "Find the passages nearest to a question."),
        "status": ("manage", "Show what is indexed, where, and whether it is current."),
        "watch": ("watch", "Keep the index current while files change."),
    },
    "More to search in": {
        "import-project": ("projects", "Import another repository or a Python package."),
        "projects": ("projects", "List, refresh or remove imported projects."),
        "media": ("media", "List, add or check recordings that are kept elsewhere."),
    },
    "Sharing vectors": {
        "push": ("transfer", "Send the vectors to another copy of the repository."),
        "pull": ("transfer", "Get the vectors of another copy and fill the index."),
        "export": ("transfer", "Write the vectors to a folder, or into the repository."),
        "import": ("transfer", "Fill the index with vectors that were made elsewhere."),
    },
    "Browsers and agents": {
        "serve": ("serve", "Serve the search page, its JSON API and MCP."),
        "fossil": ("serve", "Install the search page in a Fossil server."),
        "mcp": ("agents", "Serve agents: search and reading as MCP tools."),
        "context": ("agents", "Print the passages that are about a prompt, for an agent."),
        "call": ("agents", "Call a capability by name, with JSON in and out."),
    },
    "Settings and maintenance": {
        "config": ("settings", "Show every setting and where its value comes from."),
        "embedder": ("settings", "Show the embedder, or test it with one real call."),
        "probe": ("evaluate", "Test whether a passage is found by its meaning."),
        "eval": ("evaluate", "Measure retrieval on questions of your own."),
        "check": ("manage", "Look for damage in the index."),
        "rebuild": ("build", "Forget every vector and embed everything again."),
        "clear": ("manage", "Remove a corpus, a project, a space, or the whole index."),
        "normalize": ("transfer", "Convert vectors and blobs that older tools wrote."),
        "completion": ("settings", "Print the script that lets a shell complete commands."),
    },
}

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

EPILOG = """\b
Start with:
  outcrop index && outcrop search "where are retries configured"

Nothing leaves this machine unless you choose an embedder with an address.
"""


class LazyGroup(click.Group):
    """Its commands are those of ``COMMANDS``; only the one that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"outcrop.surfaces.cli.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, n=1)
            guess = f"Did you mean {close[0]}?" if close else f"Commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"there is no command {name!r}. {guess}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, (_, line) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=help_line)
            for name, (_, help_line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(outcrop.__version__, message="outcrop %(version)s")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Make a repository or a folder searchable by meaning, with an index inside it."""
    if ctx.invoked_subcommand is None:
        show(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of ``sys.argv`` or of ``arguments``, and return its exit code.

    0 is success, 1 a failure, 2 a request for something that does not exist, 130 Ctrl-C.
    """
    return run(program, "outcrop", list(sys.argv[1:] if arguments is None else arguments))


def run(command: click.Command, name: str, arguments: list[str]) -> int:
    make_streams_robust()
    try:
        return _run(command, name, arguments)
    except KeyboardInterrupt:
        return outcome(KeyboardInterrupt()).exit


def _run(command: click.Command, name: str, arguments: list[str]) -> int:
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(program, {}, "outcrop", COMPLETION_VARIABLE, instruction)
    try:
        with command.make_context(name, arguments) as ctx:
            command.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "outcrop"
        what = " ".join(error.format_message().split()).rstrip(".")
        note(f"outcrop: {what[:1].lower()}{what[1:]}\n  → {where} --help")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _stopped()
    except BrokenPipeError:
        # The reader needs no more (`| head`), which is no failure.
        _silence_stdout()
        return 0
    except Exception as error:
        if _is_interrupted_import(error):
            return _stopped()
        if os.environ.get("OUTCROP_DEBUG"):
            import traceback

            traceback.print_exception(error)
        _silence_stdout()
        note(message(error))
        return outcome(error).exit
    return 0


def _stopped() -> int:
    note("\noutcrop: stopped")
    return outcome(KeyboardInterrupt()).exit


def _is_interrupted_import(error: BaseException | None) -> bool:
    """Whether Ctrl-C came while a C extension began, which makes an ImportError of it."""
    while error is not None:
        cause = error.__cause__ or error.__context__
        if isinstance(error, ImportError) and isinstance(cause, KeyboardInterrupt):
            return True
        error = cause
    return False


def _silence_stdout() -> None:
    """Drop what is still buffered: writing it at exit would fail again, with a traceback."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

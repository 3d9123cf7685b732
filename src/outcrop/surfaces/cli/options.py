"""What commands share: their options, how they open an index, how they print a result."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from outcrop.core.model import Kind, Mode
from outcrop.surfaces.cli.program import COMMANDS
from outcrop.surfaces.cli.terminal import is_utf8, show
from outcrop.surfaces.render import to_json

if TYPE_CHECKING:
    from outcrop.app.index import Index

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose docstring ends with examples."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        attributes["help"], _, self.examples = inspect.cleandoc(attributes["help"]).partition("\n\nExamples:\n")
        super().__init__(*args, **attributes)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Unwrapped, so that they can be copied.
        with formatter.section("Examples"):
            for line in self.examples.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line.strip()}\n")


def command(name: str) -> Callable[[Callable[..., Any]], Command]:
    """A command of ``outcrop``, whose short help is in the table of commands."""
    return click.command(name, cls=Command, short_help=COMMANDS[name][1])


def _all(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


directory_option = click.option(
    "-C",
    "--directory",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Work in DIR instead of the current folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Use colours; auto: on a terminal, unless NO_COLOR is set.",
)
rev_option = click.option("--rev", metavar="REV", help="This commit instead of the working tree (git).")
# Passed on with the settings; see ``open_index``.
branch_option = click.option("--branch", metavar="NAME", help="Files of this branch instead of trunk (Fossil).")
revision_options = _all(rev_option, branch_option)
verbose_option = click.option("--verbose", "-v", is_flag=True, help="Name every file that was left out, and why.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print nothing unless something fails.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
path_argument = click.argument("path", type=click.Path(path_type=Path), required=False)

# The settings beside ``embedder`` that decide which vectors.
space_options = _all(
    click.option("--model", metavar="NAME", help="The model of the embedder."),
    click.option("--dim", type=int, metavar="N", help="The expected length of its vectors."),
    click.option("--endpoint-url", metavar="URL", help="The address that the embedder sends text to."),
    click.option("--secret-ref", metavar="NAME", help="The name of the token for that address (never the token)."),
    click.option(
        "--allow-remote",
        metavar="ADDRESS",
        multiple=True,
        help="Allow text to leave this machine for ADDRESS. Repeatable.",
    ),
    click.option(
        "--store",
        type=click.Path(path_type=Path),
        callback=lambda _, __, path: path and path.absolute(),
        metavar="FILE",
        help="Keep the index in FILE.",
    ),
)

# Settings that decide which vectors; every command that opens an index takes them.
embedder_options = _all(click.option("--embedder", metavar="NAME", help="What turns text into vectors."), space_options)
index_options = _all(directory_option, embedder_options)
result_options = _all(json_option, index_options)

# Settings that decide which files; only commands that build take them.
listing_options = _all(
    click.option("--max-bytes", metavar="SIZE", help="Leave larger files out (1048576, '2 MiB')."),
    click.option("--exclude", metavar="PATTERN", multiple=True, help="Leave matching files out. Repeatable."),
    click.option(
        "--include-secrets",
        metavar="PATTERN",
        multiple=True,
        help="Index matching files although their names suggest secrets. Repeatable.",
    ),
    click.option("--raw-cells", is_flag=True, default=None, help="Index raw cells of notebooks as documents."),
    click.option("--history", metavar="N", help="Index the N newest commits; all or 0 (none) (default 2000)."),
)

MODES = [mode.value for mode in (Mode.HYBRID, Mode.SEMANTIC, Mode.KEYWORD)]


def complete_kind(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [kind for kind in Kind if kind.startswith(incomplete)]


def search_options(mode: Mode, mode_help: str) -> Callable[[Function], Function]:
    return _all(
        click.argument("query", nargs=-1, required=True),
        click.option(
            "--kind", multiple=True, metavar="KIND", shell_complete=complete_kind, help="Only this kind. Repeatable."
        ),
        click.option("--project", multiple=True, metavar="NAME", help="Only this project. Repeatable."),
        click.option("-k", type=int, default=10, show_default=True, metavar="N", help="The number of hits at most."),
        click.option("--mode", type=click.Choice(MODES), default=mode.value, show_default=True, help=mode_help),
    )


def open_index(
    directory: Path, flags: dict[str, Any], *, rev: str | None = None, before_asking: Callable[[], None] = lambda: None
) -> Index:
    """Open the index of a folder with settings by name, and ``branch``; None or empty where not given.

    ``before_asking`` is called before a person is asked whether text may leave the machine.
    """
    # numpy's BLAS would start a thread for each processor and let it spin for a tenth of a second, which takes that
    # processor from the model. A short command has no use for them: one question is scored as it is read.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from outcrop.app import index
    from outcrop.surfaces.cli.opening import make_consent, show_warnings

    show_warnings()
    settings = dict(flags)
    branch = settings.pop("branch", None)
    return index.open(directory, settings=settings, rev=rev, branch=branch, consent=make_consent(before_asking))


def show_json(value: object) -> None:
    show(to_json(value, ascii_only=not is_utf8()))


def show_result(value: object, as_json: bool, lines: Iterable[str]) -> None:
    if as_json:
        show_json(value)
    else:
        for line in lines:
            show(line)


def readable(argument: str) -> str:
    """An argument as text; bytes that are not UTF-8 are read as Western European ones, as such terminals send."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return os.fsencode(argument).decode("latin-1")
    return argument

"""Options that several commands share, and the one way in which a command opens an index."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from outcrop.surfaces.cli.terminal import is_utf8, show
from outcrop.surfaces.render import to_json

if TYPE_CHECKING:
    from outcrop.app.index import Index

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose help ends with examples, as they are."""

    def __init__(self, *args: Any, examples: str, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples unwrapped, so that they can be copied."""
        with formatter.section("Examples"):
            for line in self.examples.strip().splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line.strip()}\n")


def _all(options: list[Callable[[Function], Function]]) -> Callable[[Function], Function]:
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
    help="Use colours; auto means on a terminal, unless NO_COLOR is set.",
)

# Passed on with the settings; see ``opening.open_here``.
branch_option = click.option("--branch", metavar="NAME", help="Files of this branch instead of trunk (Fossil).")

# The settings beside ``embedder`` that decide which vectors.
space_options = _all(
    [
        click.option("--model", metavar="NAME", help="The embedder's model."),
        click.option("--dim", type=int, metavar="N", help="Expected length of its vectors."),
        click.option("--endpoint-url", metavar="URL", help="Where an embedder that has an address sends text."),
        click.option("--secret-ref", metavar="NAME", help="Name of the token for that address (never the token)."),
        click.option(
            "--allow-remote",
            metavar="ADDRESS",
            multiple=True,
            help="Let text go to this address outside the machine. Repeatable.",
        ),
        click.option("--store", type=click.Path(path_type=Path), metavar="FILE", help="Keep the index in FILE."),
    ]
)

# Settings that decide which vectors; every command that opens an index takes them.
embedder_options = _all(
    [click.option("--embedder", metavar="NAME", help="What turns text into vectors."), space_options]
)

# Settings that decide which files; only commands that build take them.
listing_options = _all(
    [
        click.option("--max-bytes", metavar="SIZE", help="Leave larger files out (1048576, '2 MiB')."),
        click.option("--exclude", metavar="PATTERN", multiple=True, help="Leave out what matches. Repeatable."),
        click.option(
            "--include-secrets",
            metavar="PATTERN",
            multiple=True,
            help="Index what matches although its name says that it holds secrets. Repeatable.",
        ),
        click.option("--raw-cells", is_flag=True, default=None, help="Raw cells of notebooks are documents too."),
    ]
)


rev_option = click.option("--rev", metavar="REV", help="This commit instead of the working tree (git).")


def open_index(
    directory: Path,
    flags: dict[str, Any],
    *,
    rev: str | None = None,
    before_asking: Callable[[], None] = lambda: None,
) -> Index:
    """Open the index of a folder with the settings given on the command line.

    Args:
        directory: Where to look.
        flags: The values of the settings options, and ``branch``; what was not given is None or empty.
        rev: Commit to index instead of the working tree.
        before_asking: Called before a person is asked whether text may leave the machine.
    """
    # numpy's BLAS would start a thread for each processor and let it spin for a tenth of a second, which takes that
    # processor from the model. A command that ends soon has no use for them: one question is scored as it is read.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imported here because it takes longer than all the rest: `--help` and shell completion of a command do without.
    from outcrop.surfaces.cli.opening import open_here

    return open_here(directory, flags, rev=rev, before_asking=before_asking)


def show_json(value: object) -> None:
    """Print the one JSON object of a command."""
    show(to_json(value, ascii_only=not is_utf8()))


def readable(argument: str) -> str:
    """An argument as text: bytes that are not UTF-8 are taken for Western European ones, as such terminals send."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return os.fsencode(argument).decode("latin-1")
    return argument

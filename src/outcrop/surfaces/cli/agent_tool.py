"""The program ``agent-tool``: five commands under the names of older tools, with the engine of ``outcrop``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import click

from outcrop.core.model import Answer, Mode
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.commands.build import index_command, rebuild_command
from outcrop.surfaces.cli.commands.transfer import import_command, normalize_command
from outcrop.surfaces.cli.program import run
from outcrop.surfaces.cli.terminal import note
from outcrop.surfaces.render import harmless, harmless_line

NAME = "agent-tool"


@click.group(NAME, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def agent_tool_program() -> None:
    """Index a repository and search it by meaning. `outcrop` is the same with more commands."""


@click.command("vec-search", cls=options.Command, short_help="Find the passages nearest to a question.")
@options.search_options(
    Mode.SEMANTIC, "By meaning and words, by meaning only (in the order of the scores), or by words only."
)
@options.branch_option
@options.result_options
def search_command(
    query: tuple[str, ...],
    kind: tuple[str, ...],
    project: tuple[str, ...],
    k: int,
    mode: str,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """Find the passages nearest to a question.

    Each hit is printed with the fields score, kind, project, path, hash and text, the best one first.

    Examples:
        agent-tool vec-search "where are retries configured"
        agent-tool vec-search --kind=wiki -k 3 "release checklist"
        agent-tool vec-search --json "parse a date"
    """
    with options.open_index(directory, flags) as index:
        answer = index.search(" ".join(map(options.readable, query)), k=k, kind=kind, project=project, mode=mode)
    options.show_result(answer, as_json, hit_lines(answer))
    if not as_json:
        note(" · ".join(harmless_line(part) for part in (answer.mode, answer.space, answer.reason) if part))


def hit_lines(answer: Answer) -> Sequence[str]:
    """The fields of each hit, which programs parse: five on one line, then the text, indented."""
    lines: list[str] = []
    for hit in answer.hits:
        path = "-" if hit.path is None else harmless_line(hit.path)
        lines.append(f"{hit.score:.4f}  {hit.kind}  {harmless_line(hit.project) or '-'}  {path}  {hit.hash}")
        lines += [f"    {line}".rstrip() for line in harmless(hit.text).splitlines()]
        lines.append("")
    return lines


def _renamed(command: options.Command, name: str) -> options.Command:
    renamed = copy(command)
    renamed.name = name
    renamed.examples = command.examples.replace(f"outcrop {command.name}", f"{NAME} {name}")
    return renamed


for _command, _name in (
    (index_command, "vec-index"),
    (import_command, "vec-import"),
    (normalize_command, "vec-normalize"),
    (rebuild_command, "vec-rebuild"),
):
    agent_tool_program.add_command(_renamed(_command, _name))
agent_tool_program.add_command(search_command)


def main(arguments: Sequence[str] | None = None) -> int:
    return run(agent_tool_program, NAME, list(sys.argv[1:] if arguments is None else arguments))

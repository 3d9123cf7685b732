"""``outcrop search``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outcrop.core.model import Kind, Mode
from outcrop.surfaces.cli.answer_view import View, answer_lines, suggestions
from outcrop.surfaces.cli.options import (
    Command,
    branch_option,
    color_option,
    directory_option,
    embedder_options,
    json_option,
    open_index,
    readable,
    rev_option,
    show_json,
)
from outcrop.surfaces.cli.terminal import note, paint, show, width

EXAMPLES = """
outcrop search "where are retries configured"
outcrop search --kind doc --kind wiki how do I install it from source
outcrop search --path 'src/**' -k 3 --full parse a date
outcrop search --mode keyword getUserName
outcrop search --json "open the database" | jq -r '.hits[].path'
outcrop search -C ~/other/repo "release checklist"
"""


def _kinds(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [kind for kind in Kind if kind.startswith(incomplete)]


@click.command("search", cls=Command, examples=EXAMPLES, short_help="Find the passages nearest to a question.")
@click.argument("query", nargs=-1, required=True)
@click.option("--kind", multiple=True, metavar="KIND", shell_complete=_kinds, help="Only this kind. Repeatable.")
@click.option("--project", multiple=True, metavar="NAME", help="Only this project. Repeatable.")
@click.option("--corpus", multiple=True, metavar="NAME", help="Only this corpus. Repeatable.")
@click.option("--path", multiple=True, metavar="GLOB", help="Only paths that match. Repeatable.")
@click.option("-k", type=int, default=10, show_default=True, metavar="N", help="How many hits at most.")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in (Mode.HYBRID, Mode.SEMANTIC, Mode.KEYWORD)]),
    default=Mode.HYBRID.value,
    show_default=True,
    help="By meaning and words, by meaning only, or by words only.",
)
@click.option("--min-score", type=float, metavar="SCORE", help="Only hits whose vectors are this near (0 to 1).")
@click.option("--full", is_flag=True, help="Show whole passages instead of their best lines.")
@click.option("--explain", is_flag=True, help="Say why each hit stands where it stands.")
@rev_option
@branch_option
@json_option
@color_option
@directory_option
@embedder_options
def search_command(
    query: tuple[str, ...],
    kind: tuple[str, ...],
    project: tuple[str, ...],
    corpus: tuple[str, ...],
    path: tuple[str, ...],
    k: int,
    mode: str,
    min_score: float | None,
    full: bool,
    explain: bool,
    rev: str | None,
    as_json: bool,
    color: str,
    directory: Path,
    **flags: Any,
) -> None:
    """Find the passages nearest to a question, or to a few words.

    Each hit starts with its path and line. Its score is how near the meaning is, from 0 to 1; in hybrid mode the order
    counts matching words too. The last line says by which mode the hits were found, and why, where it is not the one
    that was asked for.
    """
    text = " ".join(readable(word) for word in query)
    with open_index(directory, flags, rev=rev) as index:
        answer = index.search(
            text,
            k=k,
            kind=kind,
            project=project,
            corpus=corpus,
            path=path,
            mode=mode,
            min_score=min_score,
            explain=explain,
        )
        # The files of a repository that was named by its file lie nowhere; their paths are shown as they are.
        root = Path.cwd() if directory.is_file() else index.source.root
    if as_json:
        show_json(answer)
        return
    for line in answer_lines(answer, text, View(root, Path.cwd(), paint(color), width(), full)):
        show(line)
    if not answer.hits:
        note(suggestions(answer, filtered=bool(kind or project or corpus or path), floor=min_score is not None))

"""``outcrop search``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outcrop.core.model import Mode
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.answer_view import AnswerView, answer_lines, suggestions
from outcrop.surfaces.cli.terminal import choose_paint, note, width


@options.command("search")
@options.search_options(Mode.HYBRID, "By meaning and words, by meaning only, or by words only.")
@click.option("--corpus", multiple=True, metavar="NAME", help="Only this corpus. Repeatable.")
@click.option("--path", multiple=True, metavar="GLOB", help="Only paths that match. Repeatable.")
@click.option("--min-score", type=float, metavar="SCORE", help="Only hits whose vectors are this near (0 to 1).")
@click.option("--full", is_flag=True, help="Show whole passages instead of their best lines.")
@click.option("--explain", is_flag=True, help="Show what gave each hit its place.")
@options.revision_options
@options.color_option
@options.result_options
def search_command(
    query: tuple[str, ...],
    min_score: float | None,
    full: bool,
    rev: str | None,
    as_json: bool,
    color: str,
    directory: Path,
    k: int,
    mode: str,
    explain: bool,
    kind: tuple[str, ...],
    project: tuple[str, ...],
    corpus: tuple[str, ...],
    path: tuple[str, ...],
    **flags: Any,
) -> None:
    """Find the passages nearest to a question, or to a few words.

    Each hit starts with its path and line. Its score says how near the meaning is, from 0 to 1; in hybrid mode matching
    words count for the order too. The last line names the mode in which the hits were found, and the reason where it is
    not the one you asked for.

    Examples:
        outcrop search "where are retries configured"
        outcrop search --kind doc --kind wiki how do I install it from source
        outcrop search --path 'src/**' -k 3 --full parse a date
        outcrop search --mode keyword getUserName
        outcrop search --json "open the database" | jq -r '.hits[].path'
        outcrop search -C ~/other/repo "release checklist"
    """
    text = " ".join(map(options.readable, query))
    filters = {"kind": kind, "project": project, "corpus": corpus, "path": path}
    with options.open_index(directory, flags, rev=rev) as index:
        answer = index.search(text, k=k, mode=mode, min_score=min_score, explain=explain, **filters)
        # A repository named by its file has no working tree: paths of hits are shown as they are.
        root = Path.cwd() if directory.is_file() else index.source.root
    view = AnswerView(root, Path.cwd(), choose_paint(color), width(), full)
    options.show_result(answer, as_json, answer_lines(answer, text, view))
    if not answer.hits and not as_json:
        note(suggestions(answer, filtered=any(filters.values()), min_score=min_score is not None))

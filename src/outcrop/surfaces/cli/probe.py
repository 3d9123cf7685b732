"""``outcrop probe``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.surfaces.cli.options import Command, directory_option, embedder_options, json_option, open_index, show_json
from outcrop.surfaces.cli.terminal import show
from outcrop.surfaces.render import columns, harmless_line

if TYPE_CHECKING:
    from outcrop.probe import Column, Place, Probe

EXAMPLES = """
outcrop probe
outcrop probe --embedder ollama --model nomic-embed-text
outcrop probe --notebook fit.ipynb --question "how are outliers treated" --expect "clip the tails"
"""


@click.command(
    "probe",
    cls=Command,
    examples=EXAMPLES,
    short_help="Test whether a passage is found by its meaning.",
)
@click.option("--notebook", type=click.Path(path_type=Path), metavar="FILE", help="A notebook of your own.")
@click.option("--question", metavar="TEXT", help="What to ask it, in other words than the answer's.")
@click.option("--expect", metavar="TEXT", help="A piece of the cell that answers.")
@json_option
@directory_option
@embedder_options
def probe_command(
    notebook: Path | None, question: str | None, expect: str | None, as_json: bool, directory: Path, **flags: Any
) -> None:
    """Test whether a passage is found by its meaning.

    One notebook is indexed cell by cell, in memory, and asked a question that shares no words with its answer: once
    with every embedder that is available, and once by words alone. Fails when a real model does not put the cell first.
    """
    with open_index(directory, flags) as index:
        found = index.probe(notebook, question, expect)
    if as_json:
        show_json(found)
    else:
        for line in probe_lines(found):
            show(line)
    if not found.passed:
        raise click.exceptions.Exit(1)


def probe_lines(found: Probe) -> Iterator[str]:
    """What each embedder did, as lines for a person."""
    yield f"question  {harmless_line(found.question)}"
    yield f"expected  cell {found.cell + 1} of {found.cells}: {harmless_line(found.expected)}"
    yield ""
    rows = [("embedder", "space", "rank", "score", "best other")]
    rows += [(each.embedder, each.space or "–", *_numbers(each.place)) for each in found.columns]
    if found.control is not None:
        rank, _, _ = _numbers(found.control)
        rows.append(("keyword only", "–", rank, "–", "–"))
    yield from columns(rows, right={2, 3, 4})
    yield ""
    for each in found.columns:
        yield f"{each.embedder}: {harmless_line(each.verdict)}"
    if found.control is not None:
        yield f"keyword only: {_control(found.control)}"
    yield _summary(found)


def _numbers(place: Place | None) -> tuple[str, str, str]:
    if place is None:
        return "–", "–", "–"
    rank = "not found" if place.rank is None else str(place.rank)
    score, other = ("–" if each is None else f"{each:.4f}" for each in (place.score, place.other))
    return rank, score, other


def _control(place: Place) -> str:
    if place.rank == 1:
        return "finds it too"
    return "does not find it" if place.rank is None else f"finds it in place {place.rank}"


def _summary(found: Probe) -> str:
    failed = [each.embedder for each in found.columns if each.passed is False]
    if failed:
        return f"FAILED: {', '.join(failed)}"
    if not any(_is_proof(each) for each in found.columns):
        return "no real model was asked: this proves the pipeline and nothing about meaning"
    return "OK"


def _is_proof(column: Column) -> bool:
    return column.means and column.passed is True

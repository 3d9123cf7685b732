"""``outcrop eval`` and ``outcrop probe``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.errors import UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.progress import open_with_progress
from outcrop.surfaces.render import columns, counted, duration, harmless_line, listed

if TYPE_CHECKING:
    from outcrop.evaluation.probe import Probe, ProbeRank
    from outcrop.evaluation.results import AskedQuestion, Evaluation, ResultRow

# Of a long list, so many are named; --json has them all.
NAMED = 5


@options.command("eval")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--topics", type=click.Path(path_type=Path), metavar="FILE", help="The questions of TREC judgements.")
@click.option(
    "--embedder",
    "embedders",
    multiple=True,
    metavar="NAME[=MODEL[@DIM]]",
    help="Measure this embedder, on a copy if the index has none of its vectors. Repeatable.",
)
@click.option(
    "--mode", "modes", multiple=True, type=click.Choice(options.MODES), help="Measure only this mode. Repeatable."
)
@click.option("--per-query", is_flag=True, help="Show the result of each question, the worst first.")
@options.revision_options
@options.json_option
@options.directory_option
@options.space_options
def eval_command(
    file: Path,
    topics: Path | None,
    embedders: tuple[str, ...],
    modes: tuple[str, ...],
    per_query: bool,
    rev: str | None,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """Measure retrieval on questions of your own.

    FILE has a line for each question, with what answers it: {"query": "…", "relevant": ["src/net.py", "a.md#Retries"]},
    or holds TREC judgements (qrels), whose questions are in --topics.

    The first row is what answers you today; the others are compared with it, and the table says where a difference may
    be chance. What is embedded for this is thrown away: your index is only read.

    Examples:
        outcrop eval questions.jsonl
        outcrop eval questions.jsonl --per-query
        outcrop eval questions.jsonl --embedder local --embedder ollama=mxbai-embed-large
        outcrop eval qrels.txt --topics topics.tsv --mode hybrid --mode keyword
        outcrop eval questions.jsonl --json | jq '.rows[] | {embedder, mode, ndcg: .ndcg.mean}'
    """
    with open_with_progress(directory, _settings(flags, embedders), rev=rev) as (index, display):
        from outcrop.app import compare

        modes = modes or compare.MODES
        found = compare.compare(index, file, topics=topics, embedders=embedders, modes=modes, progress=display)
    options.show_result(found, as_json, evaluation_lines(found, per_query=per_query))
    if found.failures:
        raise click.exceptions.Exit(1)


def _settings(flags: dict[str, Any], embedders: Sequence[str]) -> dict[str, Any]:
    """The settings to open the index with; several embedders are made later, one by one."""
    if len(embedders) == 1:
        from outcrop.app.compare import parse

        name, model, dim = parse(embedders[0])
        for option, value in (("model", model), ("dim", dim)):
            if value is not None and flags.get(option) not in (None, value):
                raise UsageError(f"the {option} is given twice", f"Leave --{option} out")
        return flags | {"embedder": name, "model": model or flags.get("model"), "dim": dim or flags.get("dim")}
    for option in ("model", "dim"):
        if embedders and flags.get(option) is not None:
            raise UsageError(
                f"--{option} does not say which embedder it is for", "Name each with its own: --embedder NAME=MODEL@DIM"
            )
    return flags


def evaluation_lines(found: Evaluation, *, per_query: bool = False) -> Iterator[str]:
    total = counted(found.by_file + found.by_passage, "question")
    judged = "by passage" if found.by_passage else "by file"
    if found.by_file and found.by_passage:
        judged = f"{found.by_file:,} by file and {found.by_passage:,} by passage"
    yield f"{total} of {harmless_line(found.file)}, judged {judged}"
    yield ""
    table = [("embedder", "mode", "NDCG@10", "95 %", "recall@10", "MRR@10", "NDCG@10 against the first")]
    for row in found.rows:
        interval = f"{row.ndcg.low:.2f}–{row.ndcg.high:.2f}" if row.ndcg.count > 1 else "–"
        means = f"{row.ndcg.mean:.3f}", interval, f"{row.recall:.3f}", f"{row.mrr:.3f}"
        table.append((harmless_line(row.embedder or "–"), row.mode, *means, _against(row)))
    if found.rows:
        yield from columns(table, right={2, 4, 5})
        yield ""
    yield from _notes(found)
    if per_query:
        for asked in sorted(found.questions, key=lambda each: each.results[0].scores.ndcg if each.results else 0.0):
            yield ""
            yield from _question(asked, found.rows)


def _against(row: ResultRow) -> str:
    if row.against is None:
        return "–"
    gap = row.against.interval
    return f"{_signed(gap.mean)} ({_signed(gap.low)} to {_signed(gap.high)})  {row.against.verdict}"


def _signed(number: float) -> str:
    return f"{number:+.3f}".replace("-", "−")


def _notes(found: Evaluation) -> Iterator[str]:
    for made in found.embedded:
        if made.passages:
            took = f"{counted(made.passages, 'passage')} in {duration(made.seconds)}"
            yield f"{harmless_line(made.embedder)}: embedded {took} for this, and kept nothing"
    for failure in found.failures:
        yield f"{harmless_line(failure.embedder)}: not measured: {harmless_line(failure.reason)}"
    if found.missing:
        yield f"not in this index, and not counted: {counted(len(found.missing), 'label')}"
        for each in found.missing[:NAMED]:
            yield f"  {harmless_line(each.label)}  ({harmless_line(each.id)})"
        if len(found.missing) > NAMED:
            yield f"  … and {len(found.missing) - NAMED:,} more"
    for ids, why in (
        (found.left_out, "left out, because the index holds no answer"),
        (found.without_answer, "left out, because nothing is judged relevant"),
        (found.without_topic, "left out, because no topic has the question"),
    ):
        if ids:
            yield f"{why}: {counted(len(ids), 'question')} ({listed(list(map(harmless_line, ids)), NAMED)})"
    if found.not_judged:
        yield f"topics without a judgement: {found.not_judged:,}"
    if found.passed_over:
        yield "the file of questions is indexed itself; its passages do not count (to leave it out: .outcropignore)"
    if found.stale:
        yield "the index is behind its source → outcrop index"


def _question(asked: AskedQuestion, rows: Sequence[ResultRow]) -> Iterator[str]:
    if not asked.results:
        return
    first = asked.results[0]
    yield f"{first.scores.ndcg:.2f}  {harmless_line(asked.id)}  {harmless_line(asked.query)}"
    wanted = [
        (harmless_line(label), "not found" if place is None else f"place {place}")
        for label, grade, place in zip(asked.labels, asked.grades, first.places, strict=True)
        if grade
    ]
    for at, line in enumerate(columns(wanted)):
        yield f"      {'wanted' if not at else '      '}  {line}"
    if first.first is not None and 1 not in first.places:
        yield f"      first   {harmless_line(first.first)}"
    others = [
        f"{harmless_line(' '.join(filter(None, (row.embedder, row.mode))))} {result.scores.ndcg:.2f}"
        for row, result in zip(rows[1:], asked.results[1:], strict=True)
    ]
    if others:
        yield f"      others  {' · '.join(others)}"


@options.command("probe")
@click.option("--notebook", type=click.Path(path_type=Path), metavar="FILE", help="A notebook of your own.")
@click.option("--question", metavar="TEXT", help="The question, in other words than the answer's.")
@click.option("--expect", metavar="TEXT", help="A part of the cell that answers.")
@options.result_options
def probe_command(
    notebook: Path | None, question: str | None, expect: str | None, as_json: bool, directory: Path, **flags: Any
) -> None:
    """Test whether a passage is found by its meaning.

    It indexes one notebook cell by cell, in memory, and asks a question that shares no words with its answer: with each
    embedder that is available, and by words alone. It fails when a real model does not put the right cell first.

    Examples:
        outcrop probe
        outcrop probe --embedder ollama --model nomic-embed-text
        outcrop probe --notebook fit.ipynb --question "how are outliers treated" --expect "clip the tails"
    """
    with options.open_index(directory, flags) as index:
        found = index.probe(notebook, question, expect)
    options.show_result(found, as_json, probe_lines(found))
    if not found.passed:
        raise click.exceptions.Exit(1)


def probe_lines(found: Probe) -> Iterator[str]:
    yield f"question  {harmless_line(found.question)}"
    yield f"expected  cell {found.cell + 1} of {found.cells}: {harmless_line(found.expected)}"
    yield ""
    rows = [("embedder", "space", "rank", "score", "best other")]
    rows += [(each.embedder, each.space or "–", *_numbers(each.place)) for each in found.columns]
    control = found.control
    if control is not None:
        rows.append(("keyword only", "–", _numbers(control)[0], "–", "–"))
    yield from columns(rows, right={2, 3, 4})
    yield ""
    for each in found.columns:
        yield f"{each.embedder}: {harmless_line(each.verdict)}"
    if control is not None:
        place = "does not find it" if control.rank is None else f"finds it in place {control.rank}"
        yield f"keyword only: {'finds it too' if control.rank == 1 else place}"
    failed = [each.embedder for each in found.columns if each.passed is False]
    if failed:
        yield f"FAILED: {', '.join(failed)}"
    elif any(each.means and each.passed is True for each in found.columns):
        yield "OK"
    else:
        yield "no real model was tested: this proves the pipeline and nothing about meaning"


def _numbers(found: ProbeRank | None) -> tuple[str, str, str]:
    if found is None:
        return "–", "–", "–"
    rank = "not found" if found.rank is None else str(found.rank)
    score, other = ("–" if each is None else f"{each:.4f}" for each in (found.score, found.other))
    return rank, score, other

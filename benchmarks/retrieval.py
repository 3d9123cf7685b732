"""Retrieval quality on the judged set: NDCG@10, recall@10 and MRR for keyword, semantic and hybrid.

usage: retrieval.py [--half tuning|reporting] [--corpus NAME …] [--by category|corpus] [--embedder NAME] [--limit N]

A hit counts for an answer when it lies in the answer's file and overlaps its lines (cells, in a notebook); each answer
counts once, at its first hit. Caveats: the labels come from one reader, a language model; unlabelled passages count as
wrong; differences under about 0.02 are noise.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import ir_measures
from ir_measures import RR, Qrel, R, ScoredDoc, nDCG
from platformdirs import user_cache_path

import outcrop
from judged.corpora import NAMES, lay_out
from judged.labels import Question, Span, load_questions, locate
from record import record, table

MODES = ("keyword", "semantic", "hybrid")
MEASURES = (nDCG @ 10, R @ 10, RR @ 10)
WORKSHOP = user_cache_path("outcrop") / "judged"


def main() -> None:
    options = _options()
    questions = [q for q in load_questions() if options.half in (None, q.half) and q.corpus in options.corpus]
    scores: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    for corpus in options.corpus:
        asked = [q for q in questions if q.corpus == corpus][: options.limit]
        for mode, question, values in evaluate(corpus, asked, options.embedder):
            scores[mode, "all"].append(values)
            group = question.category if options.by == "category" else question.corpus
            scores[mode, group].append(values)
    groups = ["all", *sorted({group for _, group in scores} - {"all"})]
    rows = []
    for group in groups:
        for mode in MODES:
            values = scores[mode, group]
            means = [sum(column) / len(values) for column in zip(*values, strict=True)]
            rows.append((group, mode, len(values), *(round(mean, 3) for mean in means)))
    columns = ("group", "mode", "questions", "NDCG@10", "recall@10", "MRR@10")
    table(f"Retrieval, half: {options.half or 'both'}, embedder: {options.embedder}", columns, rows)
    record("retrieval", {"half": options.half, "embedder": options.embedder}, columns, rows)


def evaluate(
    corpus: str,
    questions: Sequence[Question],
    embedder: str | Mapping[str, object] = "local",
    modes: Sequence[str] = MODES,
) -> Iterable[tuple[str, Question, tuple[float, ...]]]:
    """Index a corpus, ask every question in every mode, and measure.

    Args:
        corpus: One of ``NAMES``.
        questions: What to ask.
        embedder: Name of the embedder, or several settings.
    """
    root = lay_out(corpus, WORKSHOP)
    with outcrop.open(root, settings={"embedder": embedder} if isinstance(embedder, str) else embedder) as index:
        index.build()
        for question in questions:
            answers = {
                f"answer {number}": (answer.path, answer.grade, locate(root, answer))
                for number, answer in enumerate(question.answers)
            }
            qrels = [Qrel(question.id, name, grade) for name, (_, grade, _) in answers.items()]
            for mode in modes:
                hits = index.search(question.query, k=10, mode=mode).hits
                run = [ScoredDoc(question.id, name, float(-rank)) for rank, name in enumerate(_named(hits, answers))]
                run = run or [ScoredDoc(question.id, "nothing", 0.0)]
                values = {metric.measure: metric.value for metric in ir_measures.iter_calc(MEASURES, qrels, run)}
                yield mode, question, tuple(values[measure] for measure in MEASURES)


def _named(hits: Sequence[outcrop.Hit], answers: dict[str, tuple[str, int, list[Span]]]) -> list[str]:
    """Each hit as the answer it is the first to give, or as a document of its own."""
    names: list[str] = []
    for rank, hit in enumerate(hits):
        given = [
            name
            for name, (path, _, spans) in answers.items()
            if path in hit.paths and name not in names and any(_overlaps(hit, span) for span in spans)
        ]
        # A passage may lie in a section and in its parent, both labelled; it gives the better one.
        given.sort(key=lambda name: -answers[name][1])
        names.append(given[0] if given else f"other {rank}")
    return names


def _overlaps(hit: outcrop.Hit, span: Span) -> bool:
    first, last = (hit.cell + 1, hit.cell + 1) if hit.cell is not None else hit.lines
    return first <= span.last and last >= span.first


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tuning", "reporting"))
    parser.add_argument("--corpus", action="append", choices=NAMES)
    parser.add_argument("--by", choices=("category", "corpus"), default="category")
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    options.corpus = options.corpus or list(NAMES)
    return options


if __name__ == "__main__":
    main()

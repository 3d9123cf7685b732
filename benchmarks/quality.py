"""Retrieval quality, all of it: the judged set by half, mode, corpus and category, then files, each with intervals.

usage: quality.py [--corpus NAME …] [--embedder NAME]
                  [--files DIR [--kind KIND …] [--against RANKINGS …] [--figure N] [--choose] [--scores FILE]]

The tuning half may have shaped the ranking; the reporting half did not, and its figures are the ones to quote. Each
difference is paired: both modes answered the same questions. --files and what follows it are passed on to files.py.
Caveats: see retrieval.py and files.py.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import files
from judged.corpora import NAMES
from judged.labels import HALVES, Question, load_questions
from outcrop.evaluation.bootstrap import difference, interval
from record import record, table
from retrieval import MODES, evaluate

Figures = Mapping[str, Mapping[str, tuple[float, ...]]]
"""NDCG@10, recall@10 and MRR@10 by mode and by a question's id."""


def main() -> None:
    options = _options()
    corpora = options.corpus or list(NAMES)
    questions = [question for question in load_questions() if question.corpus in corpora]
    found: dict[str, dict[str, tuple[float, ...]]] = {mode: {} for mode in MODES}
    for corpus in corpora:
        asked = [question for question in questions if question.corpus == corpus]
        for mode, question, values in evaluate(corpus, asked, options.embedder):
            found[mode][question.id] = values
        print(f"{corpus}: {len(asked)} questions", file=sys.stderr)
    for half in HALVES:
        own = [question for question in questions if question.half == half]
        if own:
            show_half(half, own, found, options.embedder)
    if options.files:
        files.measure(
            argparse.Namespace(
                directory=options.files,
                mode=None,
                kind=options.kind,
                against=options.against,
                figure=options.figure,
                scores=options.scores,
                choose=options.choose,
                misses=False,
            )
        )


def show_half(half: str, questions: Sequence[Question], found: Figures, embedder: str) -> None:
    """One half by mode, what hybrid gains over its parts, and NDCG@10 by corpus and category."""
    groups: dict[str, list[str]] = {"all": [question.id for question in questions]}
    by_name: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        by_name[f"corpus {question.corpus}"].append(question.id)
        by_name[f"category {question.category}"].append(question.id)
    groups |= dict(sorted(by_name.items(), reverse=True))
    rows = []
    for name, ids in groups.items():
        ndcg = {mode: [found[mode][key][0] for key in ids] for mode in MODES}
        span = interval(ndcg["hybrid"])
        gains = (
            f"{gap.interval.mean:+.3f} ({gap.interval.low:+.3f} to {gap.interval.high:+.3f}) {gap.verdict}"
            for gap in (difference(ndcg["hybrid"], ndcg[mode]) for mode in MODES if mode != "hybrid")
        )
        means = (f"{sum(ndcg[mode]) / len(ids):.3f}" for mode in MODES)
        rows.append((name, len(ids), *means, f"{span.low:.3f} to {span.high:.3f}", *gains))
    others = (f"hybrid over {mode}" for mode in MODES if mode != "hybrid")
    columns = ("group", "questions", *MODES, "95 % of hybrid", *others)
    table(f"NDCG@10 by passage, {half} half, embedder: {embedder}", columns, rows)
    record("quality", {"half": half, "embedder": embedder}, columns, rows)
    means = [
        (mode, *(f"{sum(found[mode][key][at] for key in groups['all']) / len(questions):.3f}" for at in range(3)))
        for mode in MODES
    ]
    table(f"All figures, {half} half", ("mode", "NDCG@10", "recall@10", "MRR@10"), means)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", choices=NAMES)
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--files", type=Path, metavar="DIR")
    parser.add_argument("--kind", action="append")
    parser.add_argument("--against", action="append", type=Path, default=[], metavar="RANKINGS")
    parser.add_argument("--figure", type=float)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--scores", type=Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()

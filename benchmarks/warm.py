"""How long a question takes in a process that stays: p50 and p95, embedding the question included.

usage: warm.py [--chunks N] [--rounds N]

Questions are those of the judged set's standard library, which the made-up index (synthetic.py) has the words of; each
is asked once a round, in another order. Beside it, the same question embedded alone: what is left is the product's.
Caveat: a repository of 20,000 chunks of made-up vectors, so candidates stand in more different files than real ones.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

import outcrop
from judged.labels import load_questions
from record import record, table
from synthetic import indexed_repository

LIMITS = {"p50": 25.0, "p95": 60.0}
"""Milliseconds, for the default mode."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    texts = [question.query for question in load_questions() if question.corpus == "stdlib"]
    order = random.Random(0)
    with outcrop.open(indexed_repository(options.chunks)) as index:
        for mode in ("hybrid", "semantic", "keyword"):
            index.search("warm up", mode=mode)
        index.search("warm up")
        times: dict[str, list[float]] = {"embedding alone": [], "hybrid": [], "semantic": [], "keyword": []}
        for _ in range(options.rounds):
            for text in order.sample(texts, len(texts)):
                for what, measured in times.items():
                    started = time.perf_counter()
                    if what in {"hybrid", "semantic", "keyword"}:
                        index.search(text, mode=what)
                    else:
                        index.embedder.embed_queries([text])
                    measured.append(1000 * (time.perf_counter() - started))
    rows = [(what, *_figures(measured), _verdict(what, measured)) for what, measured in times.items()]
    columns = ("what", "p50 ms", "p95 ms", "best ms", "limit")
    table(f"A question in a process that stays, {options.chunks} chunks", columns, rows)
    record("warm", {"chunks": options.chunks, "questions": len(texts), "rounds": options.rounds}, columns, rows)


def _figures(measured: list[float]) -> tuple[float, float, float]:
    parts = statistics.quantiles(measured, n=20)
    return round(statistics.median(measured), 1), round(parts[18], 1), round(min(measured), 1)


def _verdict(what: str, measured: list[float]) -> str:
    if what != "hybrid":
        return ""
    p50, p95, _ = _figures(measured)
    kept = p50 <= LIMITS["p50"] and p95 <= LIMITS["p95"]
    return f"{'OK' if kept else 'MISSED'} ({LIMITS['p50']:.0f} and {LIMITS['p95']:.0f})"


if __name__ == "__main__":
    main()

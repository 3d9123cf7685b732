"""How long the exact scan takes, in memory and from the database.

usage: scan.py [--rounds N]

In memory: the ten nearest of clustered random unit vectors, beside a plain numpy product with argpartition over the
same matrix, in turns; the ratio is the median over the rounds. From the database: what `nearest` of a store costs
a process that asks once, that asks for the second time (it reads the matrix), and that asks again.

Caveats: a scan is bound by memory, so neighbours on the machine slow it down, and numpy's BLAS, whose threads wait for
each other, most of all; then trust the ratios, not the times. OPENBLAS_NUM_THREADS=1 shows one thread. The vectors are
made up: the time does not depend on them, the number of candidates that are scored twice does, a little.
"""

from __future__ import annotations

import argparse
import itertools
import statistics

import numpy as np

from measure import in_turns, median, ratio, seconds_of
from outcrop.core.model import Filter, Space
from outcrop.core.protocols import Matrix, Vector
from outcrop.stores.scan import Indices, top_k
from outcrop.stores.sqlite.store import SqliteStore
from record import record, table
from synthetic import indexed_repository, unit_vectors

K = 10
SIZES = ((10_000, 768), (100_000, 768), (100_000, 384))
LIMITS = {(10_000, 768): 2.0, (100_000, 768): 20.0}
"""Milliseconds that the scan may take."""

RATIO_LIMIT = 1.05

COLUMNS = ("what", "chunks", "dim", "median ms", "best ms", "× plain", "limit")


def plain(matrix: Matrix, query: Vector, k: int) -> Indices:
    """What one would write without thinking of ties or rounding."""
    scores = matrix @ query
    best = np.argpartition(scores, len(scores) - k)[-k:]
    order: Indices = best[np.argsort(-scores[best])]
    return order


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    rows = [row for count, dim in SIZES for row in in_memory(count, dim, rounds)]
    rows += from_database(100_000, max(3, rounds // 6))
    table("Exact scan, top 10", COLUMNS, rows)
    record("scan", {"rounds": rounds, "k": K}, COLUMNS, rows)


def in_memory(count: int, dim: int, rounds: int) -> list[tuple[object, ...]]:
    """The scan, the same under a filter, and the plain way."""
    matrix = unit_vectors(count, dim)
    queries = itertools.cycle(unit_vectors(rounds, dim, seed=1))
    some = np.flatnonzero(np.random.default_rng(2).random(count) < 0.1).astype(np.int64)
    query = next(queries)

    def ask() -> float:
        nonlocal query
        query = next(queries)
        return seconds_of(lambda: plain(matrix, query, K))

    times = in_turns(
        {
            "plain numpy": ask,
            "top_k": lambda: seconds_of(lambda: top_k(matrix, query, K)),
            "top_k of a tenth": lambda: seconds_of(lambda: top_k(matrix, query, K, some)),
        },
        rounds,
    )
    limit = LIMITS.get((count, dim))
    return [
        _row(name, count, dim, values, times["plain numpy"], limit if name == "top_k" else None)
        for name, values in times.items()
    ]


def from_database(count: int, rounds: int) -> list[tuple[object, ...]]:
    """A store that is asked for the first time, the second, and once more."""
    root = indexed_repository(count)
    path = root / ".git" / "outcrop" / "index.sqlite"
    space = Space("all-MiniLM-L6-v2", 384)
    query = unit_vectors(1, space.dim, seed=1)[0]
    times: dict[str, list[float]] = {"first question": [], "second, reads the matrix": [], "third": []}
    for _ in range(rounds):
        store = SqliteStore(path)
        for values in times.values():
            values.append(seconds_of(lambda: store.nearest(query, K, Filter())))  # noqa: B023, called at once
        store.close()
    return [_row(name, count, space.dim, values, None, None) for name, values in times.items()]


def _row(
    name: str, count: int, dim: int, values: list[float], against: list[float] | None, limit: float | None
) -> tuple[object, ...]:
    times = None if against is None else ratio(values, against)
    within = limit is None or (statistics.median(values) * 1000 <= limit and (times or 0.0) <= RATIO_LIMIT)
    verdict = "" if limit is None else f"{'OK' if within else 'MISSED'}: {limit:g} ms, {RATIO_LIMIT} ×"
    best, middle = round(min(values) * 1000, 2), round(median(values) * 1000, 2)
    return (name, count, dim, middle, best, "" if times is None else round(times, 2), verdict)


if __name__ == "__main__":
    main()

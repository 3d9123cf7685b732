"""Peak memory of building and of searching, each in a process of its own.

usage: memory.py [--chunks N] [--embedded N]

Building: `outcrop index` of a repository that gives about this many chunks, with the `hash` embedder, and of a smaller
one with the default model. Searching: `outcrop search`, and one process that asks three questions, over small and large
indexes; "beyond" is what is over the same process with an index of one file, and the matrix is 4 bytes times chunks
times 384.

Caveats: resident memory as Linux counts it (`ru_maxrss`), shared libraries included and pages of the database that
the system caches not. The default model's own memory is part of every figure but those under "beyond".
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

import outcrop
from measure import MEGABYTE, OUTCROP, run
from record import record, table
from synthetic import indexed_repository, repository, stretches

BUILD_LIMIT = 600
MATRIX_LIMIT = 1.3
SMALL, LARGE = 5_000, 100_000
CHUNKS_PER_STRETCH = 1.6
"""How many chunks the parser makes of one stretch, about."""

COLUMNS = ("what", "chunks", "peak MB", "beyond MB", "× matrix", "limit")

QUESTION = "how do we convert a list of file names to the default value when the object is empty"

_THREE = f"""
import sys, outcrop
with outcrop.open(sys.argv[1]) as index:
    for _ in range(3):
        index.search({QUESTION!r})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=20_000, help="built with hash")
    parser.add_argument("--embedded", type=int, default=2_000, help="built with the default model")
    options = parser.parse_args()
    rows = [built("hash", options.chunks), built("local", options.embedded)]
    one = repository("one-file", {"readme.md": "# One file\n\nIt says that there is one file.\n"})
    run(OUTCROP, "index", one)
    for name, command in (("search", _search), ("three questions, one process", _ask_three)):
        least = command(one)
        for chunks in (SMALL, LARGE):
            peak = command(indexed_repository(chunks))
            matrix = chunks * 384 * 4
            share = (peak - least) / matrix
            limit = _verdict(share <= MATRIX_LIMIT, f"≤ {MATRIX_LIMIT:g} × matrix") if chunks == LARGE else ""
            beyond = (peak - least) // MEGABYTE
            rows.append((name, chunks, peak // MEGABYTE, beyond, round(share, 2), limit))
    table("Peak memory", COLUMNS, rows)
    record("memory", vars(options), COLUMNS, rows)


def built(embedder: str, chunks: int) -> tuple[object, ...]:
    """Peak of a first build of about that many chunks."""
    texts = islice(stretches(seed=5), int(chunks / CHUNKS_PER_STRETCH))
    files = {f"package{at % 50:02}/module{at:05}.py": text for at, text in enumerate(texts)}
    root = repository(f"build-{embedder}", files)
    peak = run(OUTCROP, "index", "--embedder", embedder, root).peak
    with outcrop.open(root, settings={"embedder": embedder}) as index:
        there = sum(line.chunks for line in index.status().collections)
    limit = f"≤ {BUILD_LIMIT} MB"
    return (f"build, {embedder}", there, peak // MEGABYTE, "", "", _verdict(peak <= BUILD_LIMIT * MEGABYTE, limit))


def _search(root: Path) -> int:
    return run(OUTCROP, "search", "-C", root, QUESTION).peak


def _ask_three(root: Path) -> int:
    return run(sys.executable, "-c", _THREE, root).peak


def _verdict(good: bool, limit: str) -> str:
    return f"{'OK' if good else 'MISSED'}: {limit}"


if __name__ == "__main__":
    main()

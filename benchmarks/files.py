"""Which file answers: NDCG@10 over repositories with judged files.

usage: files.py DIR [--mode MODE …]

DIR holds one folder a repository and queries.jsonl, rows {"id", "repo", "query", "files": [paths that answer]}. Hits
are turned into files in order of their first hit. Caveat: as good as its labels; a file is a coarse answer.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import outcrop
from record import record, table

FILES = 10
HITS = 60
"""Hits that are asked for to fill ten files."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--mode", action="append", choices=("keyword", "semantic", "hybrid"))
    parser.add_argument("--misses", action="store_true", help="print each question that scores below 0.7")
    options = parser.parse_args()
    modes = options.mode or ["keyword", "semantic", "hybrid"]
    by_repository: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in (options.directory / "queries.jsonl").read_text("utf-8").splitlines():
        by_repository[json.loads(line)["repo"]].append(json.loads(line))
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for repository, questions in by_repository.items():
        with outcrop.open(options.directory / repository) as index:
            index.build()
            for question in questions:
                for mode in modes:
                    hits = index.search(question["query"], k=HITS, mode=mode).hits
                    files = list(dict.fromkeys(hit.path or "" for hit in hits))[:FILES]
                    value = ndcg(files, question["files"])
                    scores[repository, mode].append(value)
                    scores["all", mode].append(value)
                    if options.misses and mode == modes[-1] and value < 0.7:
                        print(
                            f"{value:.2f} {repository}: {question['query']!r}",
                            question["files"],
                            files[:6],
                            sep="\n   ",
                        )
    rows = [
        (name, *(round(sum(scores[name, mode]) / len(scores[name, mode]), 3) for mode in modes))
        for name in ["all", *by_repository]
    ]
    table("NDCG@10 by file", ("repository", *modes), rows)
    record("files", {"questions": len(scores["all", modes[0]])}, ("repository", *modes), rows)


def ndcg(ranked: Sequence[str], relevant: Sequence[str]) -> float:
    """Binary NDCG@10 (Järvelin and Kekäläinen, 2002)."""
    gain = sum(1 / math.log2(rank + 2) for rank, path in enumerate(ranked) if path in relevant)
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(FILES, len(relevant))))


if __name__ == "__main__":
    main()

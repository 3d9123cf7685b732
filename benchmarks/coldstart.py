"""What one command costs from nothing to its last byte, and what of that is imports.

usage: coldstart.py [--rounds N] [--small N] [--large N]

Whole processes of the shipped command, in turns: `outcrop --help`, `outcrop search` (default embedder) in git
repositories with a small and a large index, and what every Python program and every user of numpy pays. Imports are the
sum that `python -X importtime` gives, the least of several runs; that option slows imports down by about a tenth.

Caveats: files are in the system's cache, and Python's bytecode is compiled. The first search on a machine takes a
second longer, since it prepares the model. Text and vectors of the indexes are made up (synthetic.py), the question is
one with frequent words.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

from measure import MEGABYTE, OUTCROP, in_turns, median, run
from record import record, table
from synthetic import indexed_repository

QUESTION = "how do we convert a list of file names to the default value when the object is empty"

COLUMNS = ("what", "median s", "best s", "processor s", "peak MB", "limit")
IMPORT_RUNS = 7
IMPORT_LIMIT = 0.25
HELP_LIMIT = 0.15
SEARCH_LIMITS = {5_000: 0.6, 100_000: 1.2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--small", type=int, default=5_000)
    parser.add_argument("--large", type=int, default=100_000)
    options = parser.parse_args()
    small, large = indexed_repository(options.small), indexed_repository(options.large)
    commands: dict[str, tuple[tuple[str | Path, ...], float | None]] = {
        "python -c pass": ((sys.executable, "-c", "pass"), None),
        "import numpy": ((sys.executable, "-c", "import numpy"), None),
        "outcrop --help": ((OUTCROP, "--help"), HELP_LIMIT),
    }
    for root, chunks in ((small, options.small), (large, options.large)):
        for mode in ("hybrid", "semantic", "keyword"):
            command = (OUTCROP, "search", "-C", root, "--mode", mode, QUESTION)
            commands[f"search, {chunks} chunks, {mode}"] = (command, SEARCH_LIMITS.get(chunks))
    runs = in_turns({name: partial(run, *command) for name, (command, _) in commands.items()}, options.rounds)
    rows: list[tuple[object, ...]] = []
    for name, (_, limit) in commands.items():
        seconds = [each.seconds for each in runs[name]]
        rows.append(
            (
                name,
                round(median(seconds), 3),
                round(min(seconds), 3),
                round(median([each.processor for each in runs[name]]), 3),
                max(each.peak for each in runs[name]) // MEGABYTE,
                _verdict(median(seconds), limit),
            )
        )
    imports = min(_import_seconds(str(small)) for _ in range(IMPORT_RUNS))
    name = f"  imports of search, {options.small} chunks"
    rows.append((name, "", round(imports, 3), "", "", _verdict(imports, IMPORT_LIMIT)))
    table("Whole processes", COLUMNS, rows)
    record("coldstart", {"rounds": options.rounds, "question": QUESTION}, COLUMNS, rows)


def _import_seconds(root: str) -> float:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-X", "importtime", "-m", "outcrop", "search", "-C", root, QUESTION]
    shown = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stderr
    return sum(int(own) for own in re.findall(r"^import time:\s+(\d+) \|", shown, re.MULTILINE)) / 1e6


def _verdict(seconds: float, limit: float | None) -> str:
    return "" if limit is None else f"{'OK' if seconds <= limit else 'MISSED'}: {limit:g} s"


if __name__ == "__main__":
    main()

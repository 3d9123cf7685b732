"""Is nobody held up? By a model that hangs, by a hook of git, by scoring many texts against many.

usage: promises.py [--rounds N]

- `rag_context` with a model that never answers, against the time that it was given.
- `git commit` with the hooks of `outcrop watch --install`, against the same without them, in turns. Between two commits
  the update that the hook began comes to its end.
- `match` of 1,000 texts with 1,000 whose vectors are there, against the plain product and a stable
  sort of each row, in turns.

A ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import outcrop
from measure import OUTCROP, in_turns, median, ratio, seconds_of
from outcrop.core.model import Space
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from outcrop.search.match import match
from record import record, table
from synthetic import unit_vectors

TIME_LIMIT = 1.0
"""Seconds that a block of context may take."""

LIMITS = {"context": 1.1, "commit": 1.5, "match": 2.0}

TEXTS = 1000
DIM = 384

COLUMNS = ("what", "median ms", "against ms", "ratio", "limit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    rows = [context(rounds), commits(rounds), matches(rounds)]
    table("What others wait for", COLUMNS, rows)
    record("promises", {"rounds": rounds}, COLUMNS, rows)


def context(rounds: int) -> tuple[object, ...]:
    """A block of context while the model hangs."""
    gate = threading.Event()

    class Hanging(HashEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> Matrix:
            gate.wait()
            return super().embed_queries(texts)

    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), 0)
        with outcrop.open(folder, settings={"embedder": "hash"}) as index:
            index.build()
            index.embedder = Hanging()

            def ask() -> float:
                gate.clear()
                seconds = seconds_of(lambda: outcrop.rag_context("which words", index=index, timeout=TIME_LIMIT))
                gate.set()
                return seconds

            times = in_turns({"context": ask}, rounds)["context"]
    return _row("context", times, [TIME_LIMIT] * rounds)


def commits(rounds: int) -> tuple[object, ...]:
    """A commit with and without hooks."""
    with tempfile.TemporaryDirectory() as folder:
        hooked, plain = (Path(folder) / name for name in ("hooked", "plain"))
        for root in (hooked, plain):
            root.mkdir()
            _git(root, "init", "-q")
            _commit(root, 0)
        _outcrop("index", hooked)
        _outcrop("watch", hooked, "--install", "--yes")
        numbers = iter(range(1, 10 * rounds + 10))

        def with_hooks() -> float:
            seconds = _commit(hooked, next(numbers))
            while not _is_current(hooked):
                time.sleep(0.2)
            return seconds

        turns = in_turns({"hooked": with_hooks, "plain": lambda: _commit(plain, next(numbers))}, rounds)
    return _row("commit", turns["hooked"], turns["plain"])


def matches(rounds: int) -> tuple[object, ...]:
    """Many against many, the vectors being there."""
    vectors = unit_vectors(TEXTS, DIM)

    class Ready:
        space = Space("ready", DIM)
        address = None
        max_tokens = 99

        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            return vectors

        def embed_queries(self, texts: Sequence[str]) -> Matrix:
            return vectors

    texts = [str(number) for number in range(TEXTS)]
    contenders: dict[str, Callable[[], float]] = {
        "match": lambda: seconds_of(lambda: match(texts, texts, Ready())),
        "plain": lambda: seconds_of(lambda: np.argsort(-(vectors @ vectors.T), axis=1, kind="stable")),
    }
    turns = in_turns(contenders, rounds)
    return _row("match", turns["match"], turns["plain"])


def _row(what: str, times: Sequence[float], against: Sequence[float]) -> tuple[object, ...]:
    times_over, limit = ratio(times, against), LIMITS[what]
    verdict = f"{'OK' if times_over <= limit else 'MISSED'}: ≤ {limit:g} ×"
    return (what, round(median(times) * 1e3, 1), round(median(against) * 1e3, 1), round(times_over, 2), verdict)


def _write(root: Path, number: int) -> None:
    for file in range(50):
        (root / f"note{file}.md").write_text(f"# Note {file}\n\nThe words of round {number}.\n")


def _commit(root: Path, number: int) -> float:
    _write(root, number)
    _git(root, "add", "-A")
    return seconds_of(lambda: _git(root, "commit", "-q", "-m", f"round {number}"))


def _git(root: Path, *arguments: str) -> None:
    person = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", *person, *arguments], cwd=root, check=True)


def _outcrop(command: str, root: Path, *arguments: str) -> None:
    run = [OUTCROP, command, "-C", root, "--embedder", "hash", *arguments]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)


def _is_current(root: Path) -> bool:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        status = index.status()
        return not (status.stale or status.writer)


if __name__ == "__main__":
    main()

"""What building costs: a first index against the model alone, and one that finds nothing changed against git status.

usage: index.py [--rounds N] [--builds N] [--chunks N] [--files N]

First index: chunks a second of a whole first build (list, read, cut, store, embed, write) and of the default model
alone over the very texts that the build embedded, in turns; and what the build handed to the system for writing, the
write-ahead log included, beside the size of the index. Unchanged: `outcrop index` and `Index.build` in a git
repository of many files, beside `git status`, in turns; neither may read a text or load a model, which is checked.

Caveats: the texts are made up of real source code (synthetic.py), cut by the parser; prose is quicker to cut. Every
round builds another repository, so that no text is embedded twice. The model's speed is that of this machine under
its present load, the ratio much less so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import outcrop
from measure import OUTCROP, in_turns, median, ratio, run
from outcrop.core.model import Space
from outcrop.core.protocols import Matrix
from outcrop.embedders.local.embedder import LocalEmbedder
from record import record, table
from synthetic import MadeUp, repository, stretches

FIRST_LIMIT = 0.85
MODEL_LIMIT = 100.0
UNCHANGED_SECONDS = 0.5
UNCHANGED_RATIO = 12.0

COLUMNS = ("what", "median", "best", "unit", "against", "ratio", "limit")


class Keeping:
    """The default embedder, with a memory of what it was given."""

    def __init__(self, model: LocalEmbedder) -> None:
        self.model = model
        self.texts: list[str] = []

    @property
    def space(self) -> Space:
        """The model's."""
        return self.model.space

    @property
    def address(self) -> None:
        """On this machine."""

    @property
    def max_tokens(self) -> int:
        """The model's."""
        return self.model.max_tokens

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Remember and embed."""
        self.texts += texts
        return self.model.embed_passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Embed."""
        return self.model.embed_queries(texts)


def _written() -> int:
    """Bytes that this process handed to the system for writing so far; Linux only, elsewhere 0."""
    counters = Path("/proc/self/io")
    lines = counters.read_text("ascii").splitlines() if counters.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="of the unchanged index")
    parser.add_argument("--builds", type=int, default=5, help="first builds")
    parser.add_argument("--chunks", type=int, default=600, help="of each first build, about")
    parser.add_argument("--files", type=int, default=3_000, help="of the unchanged repository")
    options = parser.parse_args()
    rows = [*first_builds(options.builds, options.chunks), *unchanged(options.files, options.rounds)]
    table("Building an index", COLUMNS, rows)
    record("index", vars(options), COLUMNS, rows)


def first_builds(builds: int, chunks: int) -> list[tuple[object, ...]]:
    """A first index and the model alone, in chunks a second."""
    model = LocalEmbedder()
    model.load()
    source = stretches(seed=3)
    whole: list[float] = []
    alone: list[float] = []
    written: list[float] = []
    sizes: list[float] = []
    for number in range(builds + 1):
        files = {f"package/module{at:03}.py": "".join(islice(source, 8)) for at in range(chunks // 8)}
        root = repository("first", files)
        with outcrop.open(root) as index:
            index.embedder = keeping = Keeping(model)
            before = _written()
            report = index.build()
            handed = _written() - before
            size = index.status().bytes
            if report.embedded != len(keeping.texts) or not report.complete:
                raise SystemExit("the build did not embed every chunk")
        started = time.perf_counter()
        model.embed_passages(keeping.texts)
        seconds = time.perf_counter() - started
        if number:
            whole.append(report.embedded / report.seconds)
            alone.append(len(keeping.texts) / seconds)
            written.append(handed / 1e6)
            sizes.append(size / 1e6)
    share = ratio(whole, alone)
    fast = _verdict(median(alone) >= MODEL_LIMIT, f"≥ {MODEL_LIMIT:g}")
    near = _verdict(share >= FIRST_LIMIT, f"≥ {FIRST_LIMIT:g} ×")
    return [
        ("model alone", *_rates(alone), "chunks/s", "", "", fast),
        ("first index", *_rates(whole), "chunks/s", "model alone", round(share, 2), near),
        ("  written by it", *_rates(written), "MB", "the index", round(ratio(written, sizes), 2), ""),
    ]


def unchanged(files: int, rounds: int) -> list[tuple[object, ...]]:
    """The command, the function and ``git status``, in milliseconds."""
    source = stretches(seed=4)
    root = repository(
        f"unchanged-{files}", {f"package{at % 60:02}/module{at:05}.py": next(source) for at in range(files)}
    )
    with outcrop.open(root) as index:
        index.embedder = MadeUp(LocalEmbedder().space)
        index.build()
        index.embedder = model = LocalEmbedder()

        def build() -> float:
            report = index.build()
            if report.embedded or report.added or report.removed or model.loaded:
                raise SystemExit("something was read or embedded although nothing changed")
            return report.seconds

        seconds = in_turns(
            {
                "git status": lambda: run("git", "-C", root, "status", "--porcelain").seconds,
                "Index.build": build,
                "outcrop index": lambda: run(OUTCROP, "index", root).seconds,
            },
            rounds,
        )
    status, function, command = seconds.values()
    share = ratio(function, status)
    return [
        ("git status", *_milliseconds(status), "ms", "", "", ""),
        (
            f"Index.build, {files} files unchanged",
            *(*_milliseconds(function), "ms", "git status", round(share, 1)),
            _verdict(share <= UNCHANGED_RATIO, f"≤ {UNCHANGED_RATIO:g} ×"),
        ),
        (
            f"outcrop index, {files} files unchanged",
            *(*_milliseconds(command), "ms", "git status", round(ratio(command, status), 1)),
            _verdict(median(command) <= UNCHANGED_SECONDS, f"≤ {UNCHANGED_SECONDS:g} s"),
        ),
    ]


def _rates(values: Sequence[float]) -> tuple[float, float]:
    return round(median(values), 1), round(max(values), 1)


def _milliseconds(values: Sequence[float]) -> tuple[float, float]:
    return round(median(values) * 1000, 1), round(min(values) * 1000, 1)


def _verdict(good: bool, limit: str) -> str:
    return f"{'OK' if good else 'MISSED'}: {limit}"


if __name__ == "__main__":
    main()

"""Every embedder that this machine has, against keyword search alone: speed, latency, and what it finds.

usage: embedders.py [--corpus NAME …] [--half tuning|reporting] [--model PATH …] [--limit N]

Always there: `hash`, and `local`. `local over HTTP` is the same model behind a server of Ollama's shape on loopback:
what it is slower by is the cost of asking over a socket, and what it finds has to be the same. A real Ollama is
measured when one answers at OLLAMA_HOST or its usual address with nomic-embed-text pulled; an endpoint when
OUTCROP_ENDPOINT_URL and OUTCROP_MODEL are set and its address is allowed; a model of your own with --model.

Passages a second are those of a build from nothing, chunking and writing not counted. The first question is timed in a
process of its own, from the open index to the answer: it loads the model. Caveats: as in retrieval.py; and this machine
shares its processors, so compare within one table.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import outcrop
from judged.corpora import NAMES, lay_out
from judged.labels import load_questions
from outcrop.config.settings import load_settings
from outcrop.embedders import check
from outcrop.embedders.factory import make_embedder
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.errors import OutcropError
from record import record, table
from retrieval import MODES, WORKSHOP, evaluate

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from servers import as_ollama, listening

SMALL = ("celery", "seaborn", "hvplot", "nbclassic")
"""Corpora that take a minute each; the other two take several."""

FIRST = """
import sys, time, outcrop
with outcrop.open(sys.argv[1], settings=dict(pair.split("=", 1) for pair in sys.argv[2:])) as index:
    for _ in range(2):
        started = time.perf_counter()
        answer = index.search("where are connections closed?", mode="semantic")
        assert answer.mode == "semantic", answer.reason
        print(time.perf_counter() - started)
"""

COLUMNS = ("embedder", "space", "passages/s", "first question, ms", "later, ms", "semantic", "hybrid")


def main() -> None:
    options = _options()
    questions = [each for each in load_questions() if options.half in (None, each.half)]
    rows: list[tuple[object, ...]] = []
    keyword: list[float] = []
    with ExitStack() as stack:
        for name, settings in _embedders(options.model, stack):
            told = _measure(name, settings, options.corpus, questions, options.limit)
            keyword = told.pop("keyword")
            rows.append((name, *told["row"]))
    rows.insert(0, ("keyword alone", "–", "–", "–", "–", "–", f"{_mean(keyword):.3f} (words)"))
    title = f"NDCG@10 over {len(keyword)} questions, half: {options.half or 'both'}; {', '.join(options.corpus)}"
    table(title, COLUMNS, rows)
    record("embedders", {"half": options.half, "corpora": options.corpus}, COLUMNS, rows)


def _measure(
    name: str, settings: Mapping[str, object], corpora: Sequence[str], questions: Sequence, limit: int | None
) -> dict[str, list]:
    ndcg: dict[str, list[float]] = {mode: [] for mode in MODES}
    passages, seconds = 0, 0.0
    first: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for corpus in corpora:
            own = dict(settings) | {"store": Path(folder) / f"{corpus}.sqlite"}
            embedding = [0.0, 0.0]

            def clock(progress: outcrop.Progress, embedding: list[float] = embedding) -> None:
                if progress.phase == "embedding":
                    embedding[1] = time.perf_counter()
                    embedding[0] = embedding[0] or embedding[1]

            root = lay_out(corpus, WORKSHOP)
            with outcrop.open(root, settings=own) as index:
                passages += index.build(progress=clock).embedded
            seconds += embedding[1] - embedding[0]
            asked = [each for each in questions if each.corpus == corpus][:limit]
            for mode, _, values in evaluate(corpus, asked, own):
                ndcg[mode].append(values[0])
            if not first:
                pairs = [f"{key}={value}" for key, value in own.items()]
                run = subprocess.run(
                    [sys.executable, "-c", FIRST, str(root), *pairs], capture_output=True, text=True, check=True
                )
                first = [1000 * float(line) for line in run.stdout.split()]
            print(f"{name}: {corpus} done", file=sys.stderr)
    space = make_embedder(load_settings(None, settings)).space.id
    row = [space, f"{passages / seconds:.0f}", f"{first[0]:.0f}", f"{first[1]:.0f}"]
    row += [f"{_mean(ndcg['semantic']):.3f}", f"{_mean(ndcg['hybrid']):.3f}"]
    return {"row": row, "keyword": ndcg["keyword"]}


def _embedders(models: Sequence[str], stack: ExitStack) -> Iterator[tuple[str, dict[str, object]]]:
    """Name and settings of whatever can be used here."""
    yield "hash", {"embedder": "hash"}
    yield "local", {"embedder": "local"}
    server = stack.enter_context(listening(as_ollama(LocalEmbedder(), "all-minilm")))
    yield "local over HTTP", {"embedder": "ollama", "model": "all-minilm", "endpoint_url": server.url}
    wanted = [("ollama", {"embedder": "ollama"})]
    if {"OUTCROP_ENDPOINT_URL", "OUTCROP_MODEL"} <= os.environ.keys():
        wanted.append(("endpoint", {"embedder": "endpoint"}))
    wanted += [(Path(model).name, {"embedder": "local", "model": model}) for model in models]
    for name, settings in wanted:
        try:
            check.test(make_embedder(load_settings(None, settings)))
        except OutcropError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
        else:
            yield name, dict(settings)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", choices=NAMES)
    parser.add_argument("--half", choices=("tuning", "reporting"), default="reporting")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    options.corpus = options.corpus or list(SMALL)
    return options


if __name__ == "__main__":
    main()

"""Retrieval quality on a small part of the judged set, with a floor: a change that ruins the ranking is noticed here.

The full figures come from ``benchmarks/retrieval.py``; this part takes seconds. Its floors lie well under what was
measured, so that another Python's standard library does not fail it.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

import outcrop
from outcrop.embedders.local.embedder import LocalEmbedder

FILES = """
functools.py shutil.py tempfile.py graphlib.py dataclasses.py csv.py fileinput.py getpass.py filecmp.py uuid.py
shelve.py copy.py contextlib.py logging/handlers.py asyncio/streams.py asyncio/taskgroups.py asyncio/runners.py
concurrent/futures/thread.py asyncio/locks.py socketserver.py
""".split()


FLOORS = {"keyword": 0.37, "semantic": 0.50, "hybrid": 0.46}
"""Mean reciprocal rank. Measured on 2026-11-30 with Python 3.11: 0.44, 0.59 and 0.53."""


def judged(name: str) -> ModuleType:
    path = Path(__file__).parent.parent.parent / "benchmarks" / "judged" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"judged_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> outcrop.Index:
    root = tmp_path_factory.mktemp("library")
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(sysconfig.get_path("stdlib")) / name, root / name)
    opened = outcrop.open(root, settings={"embedder": "local"})
    opened.embedder = LocalEmbedder()
    assert opened.build().complete
    return opened


def test_the_right_passage_is_among_the_first(index: outcrop.Index) -> None:
    labels = judged("labels")
    questions = [
        question
        for question in labels.load_questions()
        if question.corpus == "stdlib"
        and question.category != "foreign"
        and all(answer.path in FILES for answer in question.answers if answer.grade == 2)
    ]
    assert len(questions) >= 30
    reached = dict.fromkeys(("keyword", "semantic", "hybrid"), 0.0)
    for question in questions:
        spans = [
            (answer.path, span)
            for answer in question.answers
            if answer.path in FILES
            for span in labels.locate(index.source.root, answer)
        ]
        for mode in reached:
            hits = index.search(question.query, k=10, mode=mode).hits
            ranks = (
                rank
                for rank, hit in enumerate(hits, start=1)
                if any(
                    hit.path == path and hit.lines[0] <= span.last and hit.lines[1] >= span.first
                    for path, span in spans
                )
            )
            reached[mode] += 1 / next(ranks, 1_000) / len(questions)
    assert {mode: value for mode, value in reached.items() if value < FLOORS[mode]} == {}

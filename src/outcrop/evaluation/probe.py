"""The self-test: does this installation find a passage by its meaning?

A question worded unlike its answer is asked through the shipped search; the same words by keyword are the control.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from outcrop.chunking.workers import pool
from outcrop.chunking.workers.pool import Text
from outcrop.core.model import Answer, Artifact, Chunk, FileState, Hit, Kind, Listing, Mode, Ref
from outcrop.core.protocols import Embedder, Source, VectorStore, override
from outcrop.errors import EmbedderError, OutcropError, UsageError
from outcrop.indexing import build
from outcrop.search.engine import search
from outcrop.search.parse import parse
from outcrop.search.query import Query

PATH = "probe.ipynb"


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked."""

    notebook: str
    question: str
    expected: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """An embedder to try."""

    name: str  # As the setting ``embedder`` names it
    embedder: Embedder | OutcropError
    chosen: bool
    means: bool  # Whether it is a real model, of which finding by meaning is expected


@dataclass(frozen=True, slots=True)
class ProbeRank:
    """Where the expected cell came."""

    rank: int | None  # 1 for first; None when it was not among the hits
    score: float | None
    first: int | None  # Number of the cell that came first, from 0; None without hits
    other: float | None  # The best score of another cell


@dataclass(frozen=True, slots=True)
class Column:
    """What one embedder did."""

    embedder: str
    space: str | None  # Id of its space; None when it could not be made
    address: str | None  # Where text goes; None when it stays in the process
    chosen: bool
    means: bool
    place: ProbeRank | None  # Where the expected cell came; None when the embedder could not be used
    seconds: float
    # Whether it did what is expected of it: a real model puts the cell first; ``hash`` only has to run. None where it
    # could not be used and is not the one that is set.
    passed: bool | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Probe:
    """The whole self-test."""

    question: str
    expected: str
    cell: int  # Number of that cell, from 0
    cells: int
    columns: tuple[Column, ...]
    control: ProbeRank | None  # Where the same words alone found the cell; None when no embedder could be used
    passed: bool  # Whether no column failed and the chosen one ran


def load_task(notebook: Path | None = None, question: str | None = None, expected: str | None = None) -> Task:
    """The task that ships with the product; one of the caller's own needs all three."""
    if notebook is None:
        text = files("outcrop").joinpath("data", PATH).read_text("utf-8")
        shipped: Mapping[str, Any] = json.loads(text)["metadata"]["outcrop"]
        if (question is None) != (expected is None):
            raise UsageError("a question of your own needs the text that answers it", "Give both, or neither")
        return Task(text, question or shipped["question"], expected or shipped["expected"])
    if question is None or expected is None:
        raise UsageError("a notebook of your own needs a question and the text that answers it", "Give all three")
    try:
        return Task(notebook.read_text("utf-8"), question, expected)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{notebook} cannot be read ({error})", "Name a notebook") from error


def probe(task: Task, candidates: Sequence[Candidate], make_store: Callable[[], VectorStore]) -> Probe:
    """Let every candidate answer the task, in a store that is forgotten when it is closed."""
    cut = pool.cut(Text(task.notebook, PATH, Kind.CODE))
    if cut.error is not None:
        raise cut.error
    cells = cut.chunks
    cell = _expected_cell(task, cells)
    source = _OneNotebook(task.notebook)
    columns: list[Column] = []
    control: ProbeRank | None = None
    for candidate in candidates:
        column, words = _ask(task, candidate, source, make_store)
        columns.append(column)
        control = control or words
    return Probe(
        question=task.question,
        expected=task.expected,
        cell=cell,
        cells=len({chunk.cell for chunk in cells}),
        columns=tuple(columns),
        control=control,
        passed=all(column.passed is not False for column in columns),
    )


def _expected_cell(task: Task, cells: Sequence[Chunk]) -> int:
    holding = {each.cell for each in cells if each.cell is not None and _holds(each.text, task.expected)}
    if len(holding) != 1:
        numbers = ", ".join(str(cell + 1) for cell in sorted(holding))
        found = f"cells {numbers} hold" if holding else "no cell holds"
        raise UsageError(f"{found} the text {task.expected!r}", "Give a text that is in exactly one cell")
    (cell,) = holding
    return cell


def _ask(
    task: Task, candidate: Candidate, source: Source, make_store: Callable[[], VectorStore]
) -> tuple[Column, ProbeRank | None]:
    """One column, and where the words alone found the cell."""
    embedder = candidate.embedder
    if isinstance(embedder, OutcropError):
        return _failed(candidate, None, None, embedder), None
    store = make_store()
    started = time.perf_counter()
    try:
        build.build(source, store, embedder)
        meaning, words = (
            _place(task, search(parse(task.question, mode, 1000), store, source, embedder, _no_index))
            for mode in (Mode.SEMANTIC, Mode.KEYWORD)
        )
    except EmbedderError as error:
        return _failed(candidate, embedder.space.id, embedder.address, error), None
    finally:
        store.close()
    passed = meaning.rank == 1 or not candidate.means
    return (
        Column(
            embedder=candidate.name,
            space=embedder.space.id,
            address=embedder.address,
            chosen=candidate.chosen,
            means=candidate.means,
            place=meaning,
            seconds=time.perf_counter() - started,
            passed=passed,
            verdict=_verdict(candidate, meaning, words),
        ),
        words,
    )


def _verdict(candidate: Candidate, meaning: ProbeRank, words: ProbeRank) -> str:
    if not candidate.means:
        return "the pipeline works; hash matches shared words, so this says nothing about meaning"
    if meaning.rank != 1:
        first = "nothing was found" if meaning.first is None else f"cell {meaning.first + 1} came first"
        return f"did not find the cell by meaning: {first}"
    if words.rank == 1:
        return "found the cell, but so do its words alone: ask in other words to test meaning"
    return "found the cell by meaning; its words alone do not"


def _failed(candidate: Candidate, space: str | None, address: str | None, error: OutcropError) -> Column:
    passed = False if candidate.chosen else None
    verdict = f"not available: {error.what}"
    return Column(candidate.name, space, address, candidate.chosen, candidate.means, None, 0.0, passed, verdict)


def _place(task: Task, answer: Answer) -> ProbeRank:
    hits = answer.hits
    rank = next((place for place, hit in enumerate(hits, 1) if _is_expected(hit, task)), None)
    return ProbeRank(
        rank=rank,
        score=None if rank is None else hits[rank - 1].score,
        first=hits[0].cell if hits else None,
        other=next((hit.score for hit in hits if not _is_expected(hit, task)), None),
    )


def _is_expected(hit: Hit, task: Task) -> bool:
    return _holds(hit.text, task.expected)


def _holds(text: str, piece: str) -> bool:
    return " ".join(piece.split()).casefold() in " ".join(text.split()).casefold()


def _no_index(query: Query, reason: str | None) -> Answer:
    raise AssertionError(f"the probe's own collection is gone ({reason}), asked: {query.text}")


class _OneNotebook(Source):
    """A source of one notebook that is not on disk."""

    type = "folder"
    root = Path()
    project = "probe"
    worktree = ""
    rules = ""

    def __init__(self, text: str) -> None:
        digest = hashlib.sha3_256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self._artifact = Artifact(Ref(digest, Kind.CODE, PATH, digest), text)

    @override
    def worktrees(self) -> frozenset[str]:
        return frozenset({""})

    @override
    def store_path(self) -> Path:
        return Path(":memory:")

    @override
    def revision(self, seen: Mapping[str, FileState]) -> str:
        return self._artifact.ref.hash

    @override
    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        return Listing(self._artifact.ref.hash, [self._artifact.ref], ())

    @override
    def read(self, refs: Sequence[Ref]) -> Iterator[Artifact]:
        return (self._artifact for _ in refs)

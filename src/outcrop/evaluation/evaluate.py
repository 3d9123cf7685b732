"""How well an index answers questions whose answers are known: by each mode and embedder, through the shipped search.

A label that the index does not hold cannot be found by any ranking, so it is reported and does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from outcrop.core.model import EVERYTHING, Answer, Filter, Hit, Mode
from outcrop.core.protocols import Embedder, Source, Vector, VectorStore
from outcrop.core.reports import Progress
from outcrop.core.rows import ArtifactKey, PassageRef
from outcrop.errors import EmbedderError, IndexMissing, UsageError
from outcrop.evaluation import bootstrap, metrics
from outcrop.evaluation.judgements import Judged, Judgement
from outcrop.evaluation.labels import LabelIndex, Target, Texts, merged
from outcrop.evaluation.results import (
    AskedQuestion,
    EmbeddingCost,
    Evaluation,
    FailedEmbedder,
    MissingLabel,
    QuestionResult,
    ResultRow,
)
from outcrop.indexing import build
from outcrop.search import query
from outcrop.search.engine import search
from outcrop.search.fallback import build_command
from outcrop.search.parse import parse
from outcrop.search.query import Query
from outcrop.search.staleness import StalenessCheck

# Hits that are asked for: enough to fill ten files, and to say where an answer came that did not come early.
HITS = 100

QUESTIONS_AT_ONCE = 64

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class EvaluatedEmbedder:
    """An embedder to measure."""

    name: str
    embedder: Embedder
    # Gives a store of the same passages to be embedded and thrown away; None where the index itself has its vectors
    clone: Callable[[], VectorStore] | None = None


@dataclass(frozen=True, slots=True)
class _Task:
    """A question that can be scored."""

    judgement: Judgement
    filter: Filter
    targets: tuple[Target, ...]

    @property
    def by_passage(self) -> bool:
        return any(target.is_passage for target in self.targets)


@dataclass(frozen=True, slots=True)
class _Run:
    """What is the same for every row."""

    tasks: Sequence[_Task]
    source: Source
    own: Collection[str]
    progress: Report


@dataclass(frozen=True, slots=True)
class _Measured:
    """One row before it is compared: per task a ranking and the first hit, and whether hits were passed over."""

    candidate: EvaluatedEmbedder | None
    mode: Mode
    rankings: list[list[str]]
    firsts: list[str | None]
    passed: bool


def evaluate(
    judged: Judged,
    embedders: Sequence[EvaluatedEmbedder],
    modes: Sequence[Mode],
    source: Source,
    store: VectorStore,
    refs: Callable[[Filter], Sequence[PassageRef]],
    texts: Texts,
    own: Collection[str] = (),
    progress: Report = lambda _: None,
) -> Evaluation:
    """Ask every question in every mode with every embedder, and score the answers.

    ``own`` are paths of the judged files themselves: where they are indexed, they hold every question word for word.
    """
    metrics.require()
    tasks, missing, left_out = _prepare(judged, source, store, refs, texts)
    if not tasks:
        raise UsageError(
            f"this index holds nothing of what {judged.file} judges"
            + (f", such as {missing[0].label}" if missing else ""),
            "Paths start at the root of what is indexed; outcrop search --json shows them",
        )
    run = _Run(tasks, source, own, progress)
    staleness = StalenessCheck(store, source)
    measured: list[_Measured] = []
    embedded: list[EmbeddingCost] = []
    failures: list[FailedEmbedder] = []
    by_meaning = [mode for mode in modes if mode is not Mode.KEYWORD]
    for candidate in embedders if by_meaning else ():
        try:
            measured += _measure(run, candidate, by_meaning, store, embedded)
        except EmbedderError as error:
            failures.append(FailedEmbedder(candidate.name, str(error)))
    if Mode.KEYWORD in modes:
        # Words need no embedder; this one is not asked.
        measured.append(_ask(run, Mode.KEYWORD, None, embedders[0].embedder, store))
    rows, questions = _scored(measured, tasks)
    return Evaluation(
        file=str(judged.file),
        by_file=sum(not task.by_passage for task in tasks),
        by_passage=sum(task.by_passage for task in tasks),
        rows=tuple(rows),
        questions=tuple(questions),
        missing=tuple(missing),
        left_out=tuple(left_out),
        without_answer=judged.without_answer,
        without_topic=judged.without_topic,
        not_judged=judged.not_judged,
        embedded=tuple(embedded),
        failures=tuple(failures),
        stale=staleness.result() is not None,
        passed_over=any(each.passed for each in measured),
    )


def _prepare(
    judged: Judged, source: Source, store: VectorStore, refs: Callable[[Filter], Sequence[PassageRef]], texts: Texts
) -> tuple[list[_Task], list[MissingLabel], list[str]]:
    """What can be scored, the labels that mean nothing here, and the questions that are left out for it."""
    names = store.names()
    if not names.corpora:
        raise IndexMissing("nothing is indexed yet", f"Run: {build_command(source)}")
    label_indexes: dict[Filter, LabelIndex] = {}
    tasks: list[_Task] = []
    missing: list[MissingLabel] = []
    left_out: list[str] = []
    for each in judged.questions:
        try:
            asked = query.filter_of(each.kind, each.project, each.corpus, None)
            wanted = query.resolve(asked, names, source.project)
        except UsageError as error:
            error.what = f"{judged.file}, line {each.line}: {error.what}"
            raise
        if wanted not in label_indexes:
            label_indexes[wanted] = LabelIndex.of(refs(wanted), texts)
        found = {label: label_indexes[wanted].find(label, grade) for label, grade in each.labels.items()}
        missing += [
            MissingLabel(each.id, label) for label, target in found.items() if target is None and each.labels[label]
        ]
        targets = merged(target for target in found.values() if target is not None)
        if any(target.grade for target in targets):
            tasks.append(_Task(each, asked, tuple(targets)))
        else:
            left_out.append(each.id)
    return tasks, missing, left_out


def _measure(
    run: _Run,
    candidate: EvaluatedEmbedder,
    modes: Sequence[Mode],
    store: VectorStore,
    embedded: list[EmbeddingCost],
) -> list[_Measured]:
    """The rows of one embedder; what had to be embedded for them is added to ``embedded``."""
    embedder = candidate.embedder
    with ExitStack() as stack:
        if candidate.clone is not None:
            store = stack.enter_context(closing(candidate.clone()))
            started = time.perf_counter()
            store.set_space(embedder.space)
            counts = build.embed_pending(store, embedder, run.progress, EVERYTHING)
            seconds = time.perf_counter() - started
            embedded.append(EmbeddingCost(candidate.name, counts.embedded, counts.characters, seconds))
        done, chunks = store.progress(embedder.space)
        if done < chunks:
            raise IndexMissing(f"only {done:,} of {chunks:,} passages are embedded", "Run: outcrop index")
        queries = [task.judgement.query for task in run.tasks]
        vectors: list[Vector] = []
        for start in range(0, len(queries), QUESTIONS_AT_ONCE):
            vectors += list(embedder.embed_queries(queries[start : start + QUESTIONS_AT_ONCE]))
        asked = [_ask(run, mode, vectors, embedder, store) for mode in modes]
    return [replace(each, candidate=candidate) for each in asked]


def _ask(run: _Run, mode: Mode, vectors: Sequence[Vector] | None, embedder: Embedder, store: VectorStore) -> _Measured:
    measured = _Measured(None, mode, [], [], False)
    passed = False
    for at, task in enumerate(run.tasks):
        run.progress(Progress("asking", at, len(run.tasks)))
        vector = None if vectors is None else vectors[at]
        asked = parse(task.judgement.query, mode, HITS, task.filter, vector=vector)
        answer = search(asked, store, run.source, embedder, _no_index)
        if answer.mode is not mode:
            # Another mode's hits under this one's name would be the one thing that a measurement must not show.
            raise EmbedderError(f"question {task.judgement.id!r} was answered by {answer.mode}: {answer.reason}")
        found = [ref_of(hit) for hit in answer.hits if hit.project or not any(path in run.own for path in hit.paths)]
        passed = passed or len(found) < len(answer.hits)
        measured.rankings.append(documents(found, task.targets))
        measured.firsts.append(_written(found[0]) if found else None)
    run.progress(Progress("asking", len(run.tasks), len(run.tasks)))
    return replace(measured, passed=passed)


def _no_index(query: Query, reason: str | None) -> Answer:
    raise IndexMissing(reason or "the index is gone", "Run: outcrop index")


def ref_of(hit: Hit) -> PassageRef:
    return PassageRef(hit.project, hit.hash, hit.paths, hit.lines, hit.name, hit.cell)


def documents(found: Sequence[PassageRef], targets: Sequence[Target]) -> list[str]:
    """Hits as a ranking of what was judged: a target is named by its number, anything else in a way of its own.

    A target comes where the first hit in it does, and a hit gives one target, the best that is not there yet. Where
    files are judged, a file's later hits take no place; where a passage is, every other hit is a document of its own.
    """
    names: list[str] = []
    given: set[int] = set()
    seen: set[ArtifactKey] = set()
    by_passage = any(target.is_passage for target in targets)
    for place, ref in enumerate(found):
        holding = [number for number, target in enumerate(targets) if target.holds(ref)]
        fresh = [number for number in holding if number not in given]
        if fresh:
            best = max(fresh, key=lambda number: (targets[number].grade, -number))
            given.add(best)
            names.append(document_name(best))
        elif any(not targets[number].is_passage for number in holding):
            continue
        elif by_passage or ref.artifact not in seen:
            names.append(f"other {place}")
        seen.add(ref.artifact)
    return names


def document_name(number: int) -> str:
    return f"target {number}"


def _scored(measured: Sequence[_Measured], tasks: Sequence[_Task]) -> tuple[list[ResultRow], list[AskedQuestion]]:
    grades = [{document_name(at): target.grade for at, target in enumerate(task.targets)} for task in tasks]
    scores = [metrics.score(each.rankings, grades) for each in measured]
    first = [each.ndcg for each in scores[0]] if scores else []
    rows = [
        ResultRow(
            embedder=each.candidate.name if each.candidate else None,
            space=each.candidate.embedder.space.id if each.candidate else None,
            mode=each.mode,
            ndcg=bootstrap.interval([one.ndcg for one in own]),
            recall=sum(one.recall for one in own) / len(own),
            mrr=sum(one.mrr for one in own) / len(own),
            against=bootstrap.difference([one.ndcg for one in own], first) if number else None,
        )
        for number, (each, own) in enumerate(zip(measured, scores, strict=True))
    ]
    questions = [
        AskedQuestion(
            id=task.judgement.id,
            query=task.judgement.query,
            labels=tuple(target.label for target in task.targets),
            grades=tuple(target.grade for target in task.targets),
            results=tuple(
                QuestionResult(own[at], _places(each.rankings[at], len(task.targets)), each.firsts[at])
                for each, own in zip(measured, scores, strict=True)
            ),
        )
        for at, task in enumerate(tasks)
    ]
    return rows, questions


def _places(ranking: Sequence[str], targets: int) -> tuple[int | None, ...]:
    places = {name: place for place, name in enumerate(ranking, start=1)}
    return tuple(places.get(document_name(number)) for number in range(targets))


def _written(ref: PassageRef) -> str:
    where = ref.paths[0] if ref.paths else ref.hash
    if ref.cell is not None:
        return f"{where} cell {ref.cell + 1}"
    return f"{where}:{ref.lines[0]}-{ref.lines[1]}"

"""Which file answers: NDCG@10 over repositories with judged files.

usage: files.py DIR [--mode MODE …] [--kind KIND …] [--against RANKINGS.jsonl …] [--figure N] [--scores FILE]
                    [--choose] [--misses]

DIR holds one folder a repository and queries.jsonl, rows {"id", "repo", "query", "files": [paths that answer]}. Hits
are turned into files in order of their first hit. Another system's rankings of the same questions, rows {"id", "files":
[best first]}, are compared question by question; where only its mean is known, --figure takes that.

--kind code asks code alone, as a system that indexes nothing else does; without it prose may answer too, which no label
names. Intervals: 95 %, bootstrap over questions; those "over repositories" draw repositories first and questions within
each, so they say what to expect of another one. --choose asks what the rules would be worth to repositories that had no
say in them: each constant of the ranking is switched off, halved and raised by half, the best of these is chosen on all
repositories but one, and scored on that one. Caveat: as good as its labels; a file is a coarse answer.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import outcrop
from outcrop.evaluation.bootstrap import Difference, Interval, difference, interval
from record import record, table

FILES = 10
HITS = 60
"""Hits that are asked for to fill ten files."""

MODES = ("keyword", "semantic", "hybrid")

Scores = dict[str, dict[str, float]]
"""NDCG@10 by mode and by a question's key."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--kind", action="append", help="only these kinds may answer")
    parser.add_argument("--against", action="append", type=Path, default=[], help="rankings of another system")
    parser.add_argument("--figure", type=float, help="mean NDCG@10 of another system, where that is all that is known")
    parser.add_argument("--scores", type=Path, help="write each question's figures to this file")
    parser.add_argument("--choose", action="store_true", help="choose constants leaving one repository out")
    parser.add_argument("--misses", action="store_true", help="print each question that scores below 0.7")
    measure(parser.parse_args())


def measure(options: argparse.Namespace) -> None:
    """Measure, compare, print and record."""
    modes = options.mode or list(MODES)
    questions = load(options.directory)
    repositories = {question["id"]: question["repo"] for question in questions}
    scores: Scores = {mode: {} for mode in modes}
    rankings: dict[tuple[str, str], list[str]] = {}
    for question, mode, files in ranked(options.directory, modes, options.kind):
        scores[mode][question["id"]] = ndcg(files, question["files"])
        rankings[question["id"], mode] = files
        if options.misses and mode == modes[-1] and scores[mode][question["id"]] < 0.7:
            print(f"{scores[mode][question['key']]:.2f} {question['key']}: {question['query']!r}")
            print(f"   wanted {question['files']}\n   found  {files[:6]}")
    show_repositories(scores, repositories, options.kind)
    show_sorts(scores, questions, options.kind)
    own = scores[modes[-1]]
    for file in options.against:
        there = other_scores(file, questions)
        show_against(file.stem, own, there, repositories)
        scores[file.stem] = there
    if options.figure is not None:
        show_figure(options.figure, own, repositories)
    if options.choose:
        from rules import settings

        trials = {name: trial(options.directory, options.kind, switch) for name, switch in settings()}
        show_choice({"as they are": own} | trials, repositories)
    if options.scores:
        rows = [
            {
                "id": question["id"],
                "repo": question["repo"],
                "query": question["query"],
                "ndcg": {name: round(values[question["id"]], 4) for name, values in scores.items()},
                "files": rankings[question["id"], modes[-1]],
            }
            for question in questions
        ]
        options.scores.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def load(directory: Path) -> list[dict[str, Any]]:
    """The questions."""
    return [json.loads(line) for line in (directory / "queries.jsonl").read_text("utf-8").splitlines() if line.strip()]


def ranked(
    directory: Path, modes: Sequence[str], kind: Sequence[str] | None = None, *, build: bool = True
) -> Iterator[tuple[dict[str, Any], str, list[str]]]:
    """Each question in each mode with the files that answer it, best first.

    Args:
        directory: See above.
        modes: The modes.
        kind: Only these may answer; None for all.
        build: Whether indexes are brought up to date first.
    """
    questions = load(directory)
    for repository in dict.fromkeys(question["repo"] for question in questions):
        with outcrop.open(directory / repository) as index:
            if build:
                index.build()
            for question in questions:
                if question["repo"] == repository:
                    for mode in modes:
                        hits = index.search(question["query"], k=HITS, mode=mode, kind=kind).hits
                        yield question, mode, list(dict.fromkeys(hit.path or "" for hit in hits))[:FILES]


def trial(directory: Path, kind: Sequence[str] | None, switch: Any) -> dict[str, float]:
    """NDCG@10 of hybrid search by question while a constant has another value."""
    with switch():
        found = ranked(directory, ["hybrid"], kind, build=False)
        return {question["id"]: ndcg(files, question["files"]) for question, _, files in found}


def ndcg(files: Sequence[str], relevant: Sequence[str]) -> float:
    """Binary NDCG@10 (Järvelin and Kekäläinen, 2002)."""
    gain = sum(1 / math.log2(rank + 2) for rank, path in enumerate(files) if path in relevant)
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(FILES, len(relevant))))


def other_scores(file: Path, questions: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Another system's figures from its stored rankings; a question that it does not name scores 0."""
    stored = (json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip())
    files = {row["id"]: list(dict.fromkeys(row["files"]))[:FILES] for row in stored}
    return {each["id"]: ndcg(files.get(each["id"], []), each["files"]) for each in questions}


def show_repositories(scores: Scores, repositories: Mapping[str, str], kind: Sequence[str] | None) -> None:
    """A line a repository, and all of them."""
    modes = list(scores)
    rows = []
    for name, ids in _groups(repositories).items():
        means = (f"{interval([scores[mode][key] for key in ids]).mean:.3f}" for mode in modes)
        rows.append((name, len(ids), *means, _span(interval([scores[modes[-1]][key] for key in ids]))))
    last = [scores[modes[-1]][key] for key in repositories]
    rows.append(("all, over repositories", len(last), *[""] * len(modes), _span(_by_repository(last, repositories))))
    columns = ("repository", "questions", *modes, f"95 % of {modes[-1]}")
    table("NDCG@10 by file", columns, rows)
    record("files", {"questions": len(repositories), "kind": kind}, columns, rows)


def show_sorts(scores: Scores, questions: Sequence[Mapping[str, Any]], kind: Sequence[str] | None) -> None:
    """A line a sort of question, where the questions name theirs: the mean of the repositories' means."""
    rows = []
    for sort in sorted({question.get("sort", "") for question in questions} - {""}):
        ids: dict[str, list[str]] = defaultdict(list)
        for question in questions:
            if question["sort"] == sort:
                ids[question["repo"]].append(question["id"])
        means = (fmean(fmean(found[key] for key in group) for group in ids.values()) for found in scores.values())
        rows.append((sort, sum(map(len, ids.values())), *(f"{mean:.3f}" for mean in means)))
    if rows:
        columns = ("sort", "questions", *scores)
        table("NDCG@10 by file, by sort of question", columns, rows)
        record("files by sort", {"kind": kind}, columns, rows)


def show_against(name: str, own: dict[str, float], there: dict[str, float], repositories: Mapping[str, str]) -> None:
    """Question by question against another system: each repository, all, and all but each."""
    rows = []
    for repository, ids in _groups(repositories).items():
        ours, theirs = [own[key] for key in ids], [there[key] for key in ids]
        gap = difference(ours, theirs)
        wins = sum(a > b for a, b in zip(ours, theirs, strict=True))
        losses = sum(a < b for a, b in zip(ours, theirs, strict=True))
        rows.append((repository, _mean(ours), _mean(theirs), *_told(gap), f"{wins} : {losses}"))
    ids = list(repositories)
    gap = difference([own[key] for key in ids], [there[key] for key in ids], [repositories[key] for key in ids])
    rows.append(("all, over repositories", "", "", *_told(gap), ""))
    for repository in dict.fromkeys(repositories.values()):
        rest = [key for key in ids if repositories[key] != repository]
        ours, theirs = [own[key] for key in rest], [there[key] for key in rest]
        rows.append((f"all but {repository}", _mean(ours), _mean(theirs), *_told(difference(ours, theirs)), ""))
    columns = ("repository", "ours", "theirs", "difference", "95 %", "verdict", "better : worse")
    table(f"NDCG@10 by file against {name}, question by question", columns, rows)
    record("files against", {"system": name}, columns, rows)


def show_figure(figure: float, own: dict[str, float], repositories: Mapping[str, str]) -> None:
    """Against a mean alone. The other system's own noise is unknown, so this is less than a paired comparison."""
    values = list(own.values())
    gaps = [value - figure for value in values]
    rows = [
        (
            level,
            f"{found.mean:+.3f}",
            f"{found.low:+.3f} to {found.high:+.3f}",
            "above" if found.low > 0 else "not clear",
        )
        for level, found in (
            ("over questions", interval(gaps)),
            ("over repositories", _by_repository(gaps, repositories)),
        )
    ]
    columns = ("drawn", "difference", "95 %", "verdict")
    table(f"NDCG@10 by file, {_mean(values)}, against the figure {figure} (our noise only)", columns, rows)
    record("files against a figure", {"figure": figure}, columns, rows)


def show_choice(trials: Mapping[str, dict[str, float]], repositories: Mapping[str, str]) -> None:
    """Which constants the other repositories would have chosen, and what that is worth to the one left out."""
    own = trials["as they are"]
    held_out: dict[str, float] = {}
    rows = []
    for repository in dict.fromkeys(repositories.values()):
        inside = [key for key, name in repositories.items() if name == repository]
        rest = [key for key in repositories if key not in inside]
        best = max(trials, key=lambda name: sum(trials[name][key] for key in rest))
        held_out |= {key: trials[best][key] for key in inside}
        rows.append((repository, best, _mean([own[key] for key in inside]), _mean([held_out[key] for key in inside])))
    chosen = [held_out[key] for key in repositories]
    rows.append(("all", "", _mean([own[key] for key in repositories]), _mean(chosen)))
    columns = ("left out", "chosen on the others", "as they are", "as chosen")
    table(f"NDCG@10 by file with one of {len(trials)} settings, chosen without the repository", columns, rows)
    record("files, one left out", {"settings": len(trials)}, columns, rows)


def _groups(repositories: Mapping[str, str]) -> dict[str, list[str]]:
    """Ids of each repository's questions, and of all."""
    groups: dict[str, list[str]] = defaultdict(list)
    for key, repository in repositories.items():
        groups[repository].append(key)
    return dict(sorted(groups.items())) | {"all": list(repositories)}


def _by_repository(values: Sequence[float], repositories: Mapping[str, str]) -> Interval:
    return interval(values, list(repositories.values()))


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}"


def _span(found: Interval) -> str:
    return f"{found.low:.3f} to {found.high:.3f}"


def _told(found: Difference) -> tuple[str, str, str]:
    span = found.interval
    return f"{span.mean:+.3f}", f"{span.low:+.3f} to {span.high:+.3f}", str(found.verdict)


if __name__ == "__main__":
    main()

"""What each rule of the ranking is worth: quality with it, and with it switched off.

usage: rules.py [--files DIR] [--corpus NAME …]

Passages: NDCG@10 on the tuning half of the judged set. Files: NDCG@10 on DIR (see files.py), where it is given. Each
rule is switched off alone, on the same indexes and in one run. Caveat: rules overlap, so gains do not add up.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from files import ndcg, ranked
from judged.corpora import NAMES
from judged.labels import load_questions
from outcrop.search import ranking
from outcrop.search.file_roles import FileRole
from record import record, table
from retrieval import evaluate

NUMBERS = {
    "file name": ("STEM", 0.0),
    "folder name": ("FOLDER", 0.0),
    "name of the passage": ("NAME", 0.0),
    "definition of the symbol": ("DEFINES", 0.0),
    "… but for case": ("DEFINES_LOOSELY", 0.0),
    "… inside its definition": ("DEFINES_MEMBER", 0.0),
    "definition of what is mentioned": ("DEFINES_MENTIONED", 0.0),
    "support within a file": ("FILE", 0.0),
    "… by the file's length": ("FILE_LENGTH", 0.0),
    "… sharpened": ("FILE_SHARPNESS", 1.0),
    "meaning of the file": ("FILE_MEANING", 0.0),
    "words in the file": ("FILE_WORDS", 0.0),
    "a file crowds the list": ("CROWDED", 1.0),
    "quoted word for word": ("PHRASE", 0.0),
    "prose lower": ("PROSE", 0.0),
    "a symbol is a matter of words": ("DENSE_SHARE_SYMBOL", ranking.DENSE_SHARE),
}
"""Rule, the constant behind it, and the value that switches it off."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--corpus", action="append", choices=NAMES)
    options = parser.parse_args()
    corpora = options.corpus or NAMES

    def measure() -> tuple[float, float]:
        return passages(corpora), by_file(options.files) if options.files else float("nan")

    whole = measure()
    rows: list[tuple[str, float, float]] = [("all rules", round(whole[0], 4), round(whole[1], 4))]
    for rule, switch in _switches():
        with switch():
            without = measure()
        rows.append((rule, round(whole[0] - without[0], 4), round(whole[1] - without[1], 4)))
        print(*rows[-1], flush=True)
    columns = ("rule", "gain by passage", "gain by file")
    table("NDCG@10 with all rules, and what is lost without each", columns, rows)
    record("rules", {"corpora": list(corpora)}, columns, rows)


def passages(corpora: list[str] | tuple[str, ...]) -> float:
    """Mean NDCG@10 of hybrid search over the tuning half."""
    questions = [question for question in load_questions() if question.half == "tuning"]
    values = [
        scores[0]
        for corpus in corpora
        for _, _, scores in evaluate(corpus, [q for q in questions if q.corpus == corpus], modes=("hybrid",))
    ]
    return sum(values) / len(values)


def by_file(directory: Path) -> float:
    """Mean NDCG@10 over the repositories of a folder."""
    values = [ndcg(files, question["files"]) for question, _, files in ranked(directory, ["hybrid"])]
    return sum(values) / len(values)


def settings() -> Iterator[tuple[str, Callable[[], object]]]:
    """Neighbours of the ranking as it is: each rule off, and each constant halved and raised by half."""
    yield from ((f"without: {rule}", switch) for rule, switch in _switches())
    for rule, (name, _) in NUMBERS.items():
        for factor in (0.5, 1.5):
            value = getattr(ranking, name) * factor
            yield f"{rule} × {factor}", lambda name=name, value=value: _set(name, value)


def _switches() -> Iterator[tuple[str, Callable[[], object]]]:
    for rule, (name, off) in NUMBERS.items():
        yield rule, lambda name=name, off=off: _set(name, off)
    for role in ranking.ROLE_FACTORS:
        yield f"{role} lower", lambda role=role: _set("ROLE_FACTORS", _without(role))


def _without(role: FileRole) -> dict[FileRole, float]:
    return {other: factor for other, factor in ranking.ROLE_FACTORS.items() if other is not role}


@contextmanager
def _set(name: str, value: object) -> Iterator[None]:
    before = getattr(ranking, name)
    setattr(ranking, name, value)
    try:
        yield
    finally:
        setattr(ranking, name, before)


if __name__ == "__main__":
    main()

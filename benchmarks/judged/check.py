"""Holds every judged label against the material, and says how many of a question's words its answer shares.

python benchmarks/judged/check.py             exits 1 if a label, an id or the balance of the halves is wrong
python benchmarks/judged/check.py --assign    gives a half to each question that has none yet
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from corpora import NAMES, lay_out
from labels import CATEGORIES, HALVES, QUESTIONS, Question, Span, load_questions, locate

# In these categories the words of the answer belong to the question: a name, a message, or either with a slip in it.
QUOTING = frozenset({"symbol", "error", "typo"})
# Share of a question's content words that may stand in one of its direct answers, and in that answer's own title.
MOST_IN_TEXT = 0.75
MOST_IN_TITLE = 0.5
# A long report tells a story, and a story of a hundred words always meets a long passage somewhere.
MOST_IN_TEXT_OF_LONG = 0.6
# With fewer content words than this a share says nothing.
LEAST_WORDS = 4
SMALLEST_SET = 260
SMALLEST_CORE = 120
CORE = frozenset({"symbol", "behaviour", "architecture", "how-to"})

STOPWORDS = frozenset(
    """
    about above after again all also always an and another any anything are as at away back be because been before
    being between both but by came can cannot come comes could did do does doing done don down each else end ends even
    every everything far few find first for from full gets getting give given go goes going good got had has have having
    her here his how however if in inside instead into is it its itself just keep kept know known last least left let
    like likes little long look looks made make makes making many may me mean means might mine more most much must my
    never new no not nothing now of off often on once one ones only or other our out over own part place please put
    right said same say says second see seen several shall should show shows since so some something still such take
    taken tell than that the their them then there these they thing things this those though through till to together
    told too two under until up upon us use used uses using very want was way we well went were what when where whether
    which while who whole whom whose why will with without would yes yet you your
    """.split()
)


def content_words(text: str) -> set[str]:
    """Split a text into its content words: identifiers taken apart, common words gone, endings cut off."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {_stem(word) for word in re.findall(r"[^\W\d_]{3,}", split.lower()) if word not in STOPWORDS}


def _stem(word: str) -> str:
    for ending in ("ingly", "ing", "edly", "ies", "ied", "ed", "es", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def check_shape(questions: Sequence[Question]) -> list[str]:
    """Find what is wrong with the questions by themselves: ids, categories, grades, doubles, sizes."""
    faults = []
    for kind, values in (("id", [q.id for q in questions]), ("query", [q.query for q in questions])):
        faults += [f"{kind} stands twice: {value!r}" for value, times in Counter(values).items() if times > 1]
    for question in questions:
        if question.corpus not in NAMES or not question.id.startswith(f"{question.corpus}-"):
            faults.append(f"{question.id}: unknown corpus {question.corpus!r}")
        if question.category not in CATEGORIES:
            faults.append(f"{question.id}: unknown category {question.category!r}")
        if question.half not in HALVES:
            faults.append(f"{question.id}: unknown half {question.half!r}")
        if {answer.grade for answer in question.answers} - {1, 2} or all(a.grade < 2 for a in question.answers):
            faults.append(f"{question.id}: grades are 1 and 2, and at least one answer must be direct")
        if len({(answer.path, answer.name) for answer in question.answers}) < len(question.answers):
            faults.append(f"{question.id}: one answer stands twice")
    core = sum(question.category in CORE for question in questions)
    if len(questions) < SMALLEST_SET or core < SMALLEST_CORE:
        faults.append(f"{len(questions)} questions, {core} of them core: too few")
    return faults


def check_labels(questions: Sequence[Question], roots: Mapping[str, Path]) -> tuple[list[str], dict[str, list[Span]]]:
    """Look every label up.

    Returns:
        The faults, and for each question's id the passages of its direct answers.
    """
    faults = []
    direct: dict[str, list[Span]] = defaultdict(list)
    for question in questions:
        for answer in question.answers:
            try:
                spans = locate(roots[question.corpus], answer)
            except OSError as error:
                faults.append(f"{question.id}: {error}")
                continue
            if not spans:
                faults.append(f"{question.id}: {answer.path} has no {answer.name!r}")
            if answer.grade == 2:
                direct[question.id] += spans
    return faults, direct


def check_overlap(questions: Sequence[Question], direct: Mapping[str, Sequence[Span]]) -> list[str]:
    """Print how many of their words the questions share with their answers, and name those that share too many."""
    faults = []
    shares: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        words = content_words(question.query)
        titles = [content_words(f"{Path(a.path).stem} {a.name or ''}") for a in question.answers if a.grade == 2]
        in_text = max((_share(words, content_words(span.text)) for span in direct[question.id]), default=0.0)
        in_title = max((_share(words, title) for title in titles), default=0.0)
        shares[question.category].append(in_text)
        if question.category in QUOTING or len(words) < LEAST_WORDS:
            continue
        if in_text > (MOST_IN_TEXT_OF_LONG if question.category == "long" else MOST_IN_TEXT):
            faults.append(f"{question.id}: {in_text:.0%} of its words stand in an answer: {question.query[:70]!r}")
        if in_title > MOST_IN_TITLE:
            faults.append(f"{question.id}: {in_title:.0%} of its words stand in a title: {question.query[:70]!r}")
    print("share of a question's content words that its best direct answer has")
    print(f"{'category':14}{'n':>5}{'mean':>7}   " + "".join(f"{low:>5}-{low + 20}%" for low in range(0, 100, 20)))
    for category in CATEGORIES:
        values = shares[category]
        bins = Counter(min(int(value * 5), 4) for value in values)
        mean = sum(values) / len(values) if values else 0.0
        print(f"{category:14}{len(values):>5}{mean:>7.0%}   " + "".join(f"{bins[b]:>8}" for b in range(5)))
    return faults


def _share(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words) if words else 0.0


def check_balance(questions: Sequence[Question]) -> list[str]:
    """Print corpora and categories by half, and complain where the halves differ by more than one question."""
    faults = []
    groups = Counter((q.corpus, q.category, q.half) for q in questions)
    print(f"\n{'questions: tuning/reporting':28}" + "".join(f"{category:>14}" for category in CATEGORIES))
    for corpus in NAMES:
        pairs = [[groups[corpus, category, half] for half in HALVES] for category in CATEGORIES]
        print(f"{corpus:28}" + "".join(f"{f'{tuning}/{reporting}':>14}" for tuning, reporting in pairs))
        for category, (tuning, reporting) in zip(CATEGORIES, pairs, strict=True):
            if abs(tuning - reporting) > 1:
                faults.append(f"halves of {corpus} {category}: {tuning} and {reporting}")
    total = Counter(q.half for q in questions)
    print("in all: " + ", ".join(f"{total[half]} {half}" for half in HALVES))
    if abs(total[HALVES[0]] - total[HALVES[1]]) > len(NAMES):
        faults.append(f"halves: {dict(total)}")
    return faults


def assign_halves(path: Path = QUESTIONS) -> int:
    """Give each question without a half the one that its corpus and category have less of.

    Halves once given stay, so that a question never wanders from the reporting half into the tuning half.

    Returns:
        How many questions got one.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    missing = sorted(
        (row for row in rows if "half" not in row), key=lambda row: hashlib.sha256(row["query"].encode()).hexdigest()
    )
    for row in missing:
        row["half"] = min(HALVES, key=lambda half: _crowding(rows, row, half))
    ordered = ("id", "corpus", "query", "category", "half", "answers", "note")
    lines = (json.dumps({key: row[key] for key in ordered if key in row}, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(missing)


def _crowding(rows: Iterable[Mapping[str, object]], row: Mapping[str, object], half: str) -> tuple[int, int, int]:
    there = [other for other in rows if other.get("half") == half]
    alike = [other for other in there if other["corpus"] == row["corpus"]]
    return sum(other["category"] == row["category"] for other in alike), len(alike), len(there)


def main() -> int:
    """Run the checks.

    Returns:
        0 if all is well, 1 if not.
    """
    parser = argparse.ArgumentParser(description="Check the judged questions.")
    parser.add_argument("--assign", action="store_true", help="give a half to the questions that have none")
    parser.add_argument("--into", type=Path, help="folder for the corpora (default: a temporary one)")
    arguments = parser.parse_args()
    if arguments.assign:
        print(f"{assign_halves()} questions got their half")
    questions = load_questions()
    with tempfile.TemporaryDirectory() as scratch:
        roots = {name: lay_out(name, arguments.into or Path(scratch)) for name in NAMES}
        faults, direct = check_labels(questions, roots)
    faults = check_shape(questions) + faults + check_overlap(questions, direct) + check_balance(questions)
    for fault in faults:
        print(f"WRONG {fault}", file=sys.stderr)
    print(f"{len(questions)} questions, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

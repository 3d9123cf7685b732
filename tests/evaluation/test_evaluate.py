"""Measuring retrieval: labels mean what they say, figures are right to the digit, and noise is called noise."""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from fossil_program import SampleRepository
from hypothesis import given
from hypothesis import strategies as st
from servers import as_ollama, listening

import outcrop
from outcrop.app.compare import compare
from outcrop.chunking.definitions import lines_of
from outcrop.config.settings import Settings
from outcrop.core.model import EVERYTHING, Filter, Kind, Mode, Record, Space
from outcrop.embedders.factory import other
from outcrop.embedders.hash import HashEmbedder
from outcrop.errors import BadConfig, FormatError, IndexMissing, SpaceMismatch, UnknownCorpus, UnknownKind, UsageError
from outcrop.evaluation import metrics
from outcrop.evaluation.bootstrap import Verdict, difference, interval
from outcrop.evaluation.evaluate import EvaluatedEmbedder, document_name, documents, evaluate
from outcrop.evaluation.judgements import Judgement, read
from outcrop.evaluation.labels import LabelIndex, LabelPart, PassageRef, Target, merged, names
from outcrop.evaluation.metrics import Scores, score
from outcrop.surfaces.cli.program import main
from outcrop.text.terms import query_words

# -- what is worth how much -------------------------------------------------------------------------------------------


def test_figures_are_those_of_the_books() -> None:
    found = score([["x", "a", "y", "b"], ["a", "b"], []], [{"a": 2, "b": 1, "c": 1}, {"a": 1, "b": 2}, {"a": 1}])
    ideal = 2 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    first, second, nothing = found
    assert first.ndcg == pytest.approx((2 / math.log2(3) + 1 / math.log2(5)) / ideal, abs=1e-9)
    assert (first.recall, first.mrr) == (pytest.approx(2 / 3), 0.5)
    # Both are there, in the wrong order: (1 + 2 / log2 3) / (2 + 1 / log2 3) = 0.8597.
    assert second.ndcg == pytest.approx(0.8597186998521972, abs=1e-9)
    assert (second.recall, second.mrr) == (1.0, 1.0)
    assert nothing == Scores(0.0, 0.0, 0.0)
    assert score([[]], [{"a": 1}]) == [Scores(0.0, 0.0, 0.0)]


def test_only_ten_documents_count() -> None:
    ranking = [f"other {at}" for at in range(9)]
    assert score([[*ranking, "a"]], [{"a": 1}]) == [Scores(pytest.approx(1 / math.log2(11)), 1.0, 0.1)]
    assert score([[*ranking, "x", "a"]], [{"a": 1}]) == [Scores(0.0, 0.0, 0.0)]


def test_what_is_judged_irrelevant_is_worth_nothing() -> None:
    assert score([["b", "a"]], [{"a": 1, "b": 0}]) == [Scores(pytest.approx(1 / math.log2(3)), 1.0, 0.5)]


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(UsageError, match="ir-measures") as caught:
        metrics.require()
    assert "pip install 'outcrop[eval]'" in caught.value.fix
    with pytest.raises(UsageError, match="ir-measures"), outcrop.open(tmp_path) as index:
        compare(index, tmp_path / "none.jsonl")


# -- noise ------------------------------------------------------------------------------------------------------------


def test_an_interval_lies_around_its_mean_and_narrows_with_more_questions() -> None:
    draw = random.Random(1)
    few = [draw.random() for _ in range(25)]
    many = few * 16
    found, narrow = interval(few), interval(many)
    assert found.mean == pytest.approx(sum(few) / 25)
    assert found.low < found.mean < found.high
    # For a uniform sample the normal interval is ± 1.96 × 0.29 / √n.
    deviation = float(np.std(few)) / 5
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.1)
    assert narrow.high - narrow.low == pytest.approx((found.high - found.low) / 4, rel=0.1)


def test_the_same_scores_give_the_same_interval() -> None:
    values = [0.1, 0.5, 0.9, 1.0, 0.0, 0.3]
    assert interval(values) == interval(values)
    assert interval(values, "aabbcc") == interval(values, "aabbcc")


def test_pairs_tell_what_two_intervals_do_not() -> None:
    draw = random.Random(2)
    one = [draw.random() * 0.9 for _ in range(40)]
    better = [value + 0.05 for value in one]
    assert interval(one).high > interval(better).low
    found = difference(better, one)
    assert (found.verdict, found.interval.mean) == (Verdict.BETTER, pytest.approx(0.05))
    assert difference(one, better).verdict is Verdict.WORSE


def test_a_difference_of_a_few_questions_each_way_may_be_chance() -> None:
    one = [1.0] * 20 + [0.0] * 5 + [1.0] * 4
    other = [1.0] * 20 + [1.0] * 4 + [0.0] * 5
    assert difference(one, other).verdict is Verdict.CHANCE
    slightly = difference([*one, 1.0], [*other, 0.0])
    assert slightly.interval.mean > 0
    assert slightly.verdict is difference([*other, 0.0], [*one, 1.0]).verdict is Verdict.CHANCE
    assert difference(one, one).verdict is Verdict.SAME
    assert difference([1.0] * 9, [0.0] * 9).verdict is Verdict.TOO_FEW
    assert difference([1.0] * 10, [0.0] * 10).verdict is Verdict.BETTER


def test_groups_that_differ_make_an_interval_wider() -> None:
    values = [0.9] * 30 + [0.3] * 30
    flat, grouped = interval(values), interval(values, ["good"] * 30 + ["bad"] * 30)
    assert flat.mean == grouped.mean == pytest.approx(0.6)
    # Two groups: a quarter of the draws takes one of them twice.
    assert (grouped.low, grouped.high) == (pytest.approx(0.3), pytest.approx(0.9))
    assert flat.high - flat.low < 0.2


@pytest.mark.parametrize(("one", "other"), [([], []), ([1.0], [1.0, 0.0])])
def test_what_is_no_pair_has_no_difference(one: list[float], other: list[float]) -> None:
    with pytest.raises(ValueError, match=r"no values|no pairs"):
        difference(one, other)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_an_interval_never_leaves_its_values(values: list[float]) -> None:
    found = interval(values)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.count == len(values)


# -- what a label means -----------------------------------------------------------------------------------------------

SPOTS = [
    PassageRef("", "aaaaaaaa11", ("src/net.py",), (1, 20), "Client"),
    PassageRef("", "aaaaaaaa11", ("src/net.py",), (21, 40), "Client.connect, Client.close"),
    PassageRef("", "aaaaaaaa11", ("src/net.py",), (41, 60), None),
    PassageRef("", "aaaaaaaa22", ("docs/a.md", "docs/copy.md"), (1, 9), "Install > From source"),
    PassageRef("", "bbbbbbbb33", ("lab/roof.ipynb",), (1, 5), None, 2),
    PassageRef("", "bbbbbbbb33", ("lab/roof.ipynb",), (6, 9), None, 2),
    PassageRef("", "cccccccc44", ("notes/C# and F#.md",), (1, 5), "Why: a:1"),
    PassageRef("", "dddddddd55", ("odd:10",), (1, 5)),
    PassageRef("peer", "eeeeeeee66", ("src/net.py",), (1, 7), "Client"),
    PassageRef("peer", "eeeeeeee77", ("src/far.py",), (1, 7)),
    PassageRef("", "f" * 40, (), (1, 3)),
]


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("src/net.py", [0, 1, 2]),
        ("./src/net.py", [0, 1, 2]),
        ("src\\net.py", [0, 1, 2]),
        ("src/net.py:5", [0]),
        ("src/net.py:15-25", [0, 1]),
        ("src/net.py:25-15", [0, 1]),
        ("src/net.py#L41-L50", [2]),
        ("src/net.py#L41-50", [2]),
        ("src/net.py#Client", [0, 1]),
        ("src/net.py#Client.close", [1]),
        ("peer: src/net.py", [8]),
        ("peer: src/net.py#Client", [8]),
        ("peer: src/net.py:8", None),
        ("src/far.py", [9]),
        ("src/net.py#close", [1]),
        ("src/net.py#clos", None),
        ("src/net.py#Client.open", None),
        ("src/net.py:61", None),
        ("src/other.py", None),
        ("docs/copy.md#From source", [3]),
        ("docs/copy.md#Install  > From source", [3]),
        ("docs/a.md#Install", [3]),
        ("lab/roof.ipynb", [4, 5]),
        ("lab/roof.ipynb cell 3", [4, 5]),
        ("lab/roof.ipynb cell 3:7-20", [5]),
        ("lab/roof.ipynb cell 4", None),
        ("lab/roof.ipynb:3", None),
        ("notes/C# and F#.md", [6]),
        ("notes/C# and F#.md#Why: a:1", [6]),
        ("notes/C# and F#.md:4", [6]),
        ("odd:10", [7]),
        ("odd:10:2", [7]),
        ("ffffffff", [10]),
        ("FFFFFFFF", [10]),
        ("f" * 40 + ":2", [10]),
        ("aaaaaaaa", None),
        ("aaaaaaaa1", [0, 1, 2]),
        ("aaaaaa", None),
        ("#Client", None),
        (":5", None),
        ("src/net.py#", None),
    ],
)
def test_a_label_means_the_passages_that_it_names(label: str, meant: list[int] | None) -> None:
    target = LabelIndex.of(SPOTS).find(label, 1)
    held = None if target is None else [at for at, ref in enumerate(SPOTS) if target.holds(ref)]
    assert held == meant


@given(st.text(st.sampled_from("a/#:L-1 0cell\\."), max_size=12), st.text(st.sampled_from("a/#:L-1 0."), min_size=1))
def test_a_path_is_itself_whatever_signs_it_has(path: str, other_path: str) -> None:
    whole = f"{path}x"
    found = LabelIndex.of(
        [PassageRef("", "1" * 40, (whole,), (1, 2)), PassageRef("", "2" * 40, (other_path,), (1, 2))]
    ).find(whole, 1)
    assert found == Target(whole, 1, frozenset({("", "1" * 40)}))


def test_names_match_by_whole_parts() -> None:
    assert names("Flask.run", "run")
    assert names("Flask.run", "Flask")
    assert names("mod::Type::new", "Type::new")
    assert names("a, Flask.run", "Flask.run")
    assert not names("Flask.running", "run")
    assert not names("run.Flask", "Flask.run")
    assert not names("anything", ".")


PYTHON = """import x


class Client:
    def connect(self):
        return 1

    def close(self):
        return connect(2)


def close():
    return 3
"""


@pytest.mark.parametrize(
    ("form", "text", "name", "lines"),
    [
        ("python", PYTHON, "Client", (4, 9)),
        ("python", PYTHON, "Client.connect", (5, 6)),
        ("python", PYTHON, "connect", (5, 6)),
        ("python", PYTHON, "close", (8, 9)),
        ("python", PYTHON, "x", None),
        ("go", "package a\n\nfunc (c *Client) Close() error {\n\treturn nil\n}\n", "Client.Close", (3, 5)),
        ("markdown", "# Guide\n\n## Run\n\na\n\n### Fast\n\nb\n\n## Stop\n\nc\n", "Run", (3, 10)),
        ("markdown", "# Guide\n\n## Run\n\na\n\n### Fast\n\nb\n\n## Stop\n\nc\n", "Guide > Run > Fast", (7, 10)),
        ("markdown", "# Guide\n\n## 2.1 Run it\n\na\n", "2.1 Run it", (3, 6)),
        ("markdown", "# Guide\n\nRun\n", "Run", None),
        ("rst", "Guide\n=====\n\nRun\n---\n\na\n", "Run", (4, 8)),
        ("windows", "def close(): pass", "close", None),
        ("text", "", "x", None),
    ],
)
def test_the_lines_of_a_definition_are_those_that_it_takes(
    form: str, text: str, name: str, lines: tuple[int, int] | None
) -> None:
    assert lines_of(text, form, name) == lines


def test_one_file_at_two_paths_is_one_answer_with_the_better_grade() -> None:
    found = LabelIndex.of(SPOTS)
    found = [found.find(label, grade) for label, grade in (("docs/a.md", 1), ("docs/copy.md", 3), ("docs/a.md:2", 1))]
    kept = merged(target for target in found if target is not None)
    assert [(target.label, target.grade, target.part) for target in kept] == [
        ("docs/copy.md", 3, LabelPart()),
        ("docs/a.md:2", 1, LabelPart((2, 2))),
    ]


# -- from hits to a ranking -------------------------------------------------------------------------------------------


def at(path: str, first: int, last: int) -> PassageRef:
    return PassageRef("", path, (path,), (first, last))


def wanted(label: str, grade: int = 1, *, lines: tuple[int, int] | None = None) -> Target:
    return Target(label, grade, frozenset({("", label)}), LabelPart(lines))


def test_by_file_a_files_later_hits_take_no_place() -> None:
    hits = [at("b", 1, 9), at("a", 1, 9), at("b", 10, 19), at("a", 10, 19), at("c", 1, 2), at("d", 1, 2)]
    ranking = documents(hits, [wanted("a"), wanted("d")])
    assert [ranking.index(document_name(number)) for number in (0, 1)] == [1, 3]
    assert len(ranking) == 4


def test_by_passage_every_hit_takes_a_place_and_an_answer_counts_once() -> None:
    hits = [at("b", 1, 9), at("b", 10, 19), at("a", 1, 9), at("a", 10, 19), at("a", 40, 50)]
    ranking = documents(hits, [wanted("a", lines=(5, 12)), wanted("a", lines=(45, 45))])
    assert [ranking.index(document_name(number)) for number in (0, 1)] == [2, 4]
    assert len(ranking) == 5


def test_a_hit_gives_its_best_answer_first_and_the_file_around_it_after() -> None:
    whole, part = wanted("a", 1), wanted("a", 2, lines=(1, 5))
    assert documents([at("a", 1, 9), at("a", 10, 19), at("a", 20, 29)], [whole, part]) == [
        document_name(1),
        document_name(0),
    ]


# -- files of questions -----------------------------------------------------------------------------------------------


def written(folder: Path, text: str | bytes, name: str = "q.jsonl") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_lines_of_ones_own(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '\ufeff{"query": " where? ", "relevant": ["a.py", "b.md#Intro", "a.py"]}\r\n'
        "\r\n"
        '{"id": 7, "query": "was\u2028ist", "relevant": {"a.py": 3, "c.py": 0}, "kind": "code", "note": "mine"}\n'
        '{"id": "x", "query": "q", "relevant": "a.py", "corpus": ["docs", "code"], "project": ""}',
    )
    assert read(file).questions == (
        Judgement("line-1", "where?", {"a.py": 1, "b.md#Intro": 1}, 1),
        Judgement("7", "was\u2028ist", {"a.py": 3, "c.py": 0}, 3, ("code",)),
        Judgement("x", "q", {"a.py": 1}, 4, (), ("docs", "code"), ("",)),
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not valid JSON"),
        ('{"query": "q", "relevant": ["a"]} x', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"query": "q", "relevant": {"a": ' + "9" * 5000 + "}}", "not valid JSON"),
        ('[{"query": "q", "relevant": ["a"]}]', "not a JSON object"),
        ('{"relevant": ["a"]}', "no question"),
        ('{"query": " ", "relevant": ["a"]}', "no question"),
        ('{"query": ["q"], "relevant": ["a"]}', "no question"),
        ('{"query": "q"}', "nothing is named as relevant"),
        ('{"query": "q", "relevant": []}', "nothing is named as relevant"),
        ('{"query": "q", "relevant": {}}', "nothing is named as relevant"),
        ('{"query": "q", "relevant": 3}', "nothing is named as relevant"),
        ('{"query": "q", "relevant": {"a": 0}}', "nothing is relevant"),
        ('{"query": "q", "relevant": [{"path": "a"}]}', "is no label"),
        ('{"query": "q", "relevant": [null]}', "null is no label"),
        ('{"query": "q", "relevant": [" "]}', "a label is empty"),
        ('{"query": "q", "relevant": {"a": true}}', "the grade of 'a' is true"),
        ('{"query": "q", "relevant": {"a": 0.5}}', "the grade of 'a' is 0.5"),
        ('{"query": "q", "relevant": {"a": NaN}}', "the grade of 'a' is NaN"),
        ('{"query": "q", "relevant": {"a": -1}}', "the grade of 'a' is -1"),
        ('{"query": "q", "relevant": {"a": 1001}}', "the grade of 'a' is 1001"),
        ('{"query": "q", "relevent": ["a"]}', "no field 'relevent'"),
        ('{"query": "q", "relevant": ["a"], "kinds": "code"}', "no field 'kinds'"),
        ('{"query": "q", "relevant": ["a"], "kind": 3}', "kind is 3"),
        ('{"query": "q", "relevant": ["a"], "corpus": ["a", null]}', "corpus is"),
        ('{"query": "q", "relevant": ["a"], "id": {}}', "{} is no id"),
        ('{"query": "q", "relevant": ["a"], "id": ""}', '"" is no id'),
        ('{"query": "q", "relevant": ["a"], "id": "first"}', "is used in line 1 already"),
        ("first 0 a 1", "not valid JSON"),
        ("\0", "this is no text"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: str, says: str) -> None:
    file = written(tmp_path, '{"id": "first", "query": "q", "relevant": ["a"]}\n\n' + line + "\n")
    with pytest.raises(FormatError) as caught:
        read(file)
    assert f"{file}, line 3: " in caught.value.what
    assert says in caught.value.what


def test_what_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 2: this is not UTF-8 text"):
        read(written(tmp_path, b'{"query": "q", "relevant": ["a"]}\n{"query": "\xe9t\xe9", "relevant": ["a"]}\n'))
    with pytest.raises(FormatError, match="line 1: this is not UTF-8 text"):
        read(written(tmp_path, '{"query": "q", "relevant": ["a"]}'.encode("utf-16")))
    with pytest.raises(FormatError, match="holds no questions"):
        read(written(tmp_path, "\n \n"))
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path)


def test_trec_judgements_find_their_topics(tmp_path: Path) -> None:
    qrels = written(tmp_path, "2 0 my notes/a b.md 1\n1\t0\tsrc/a.py\t2\n1 Q0 src/b.py -1\n3 0 a 0\n4 0 a 1\n", "qrels")
    topics = written(tmp_path, "1\twhere is it?\n2\thow\tso?\n3\tnever\n9\tunjudged\n", "topics.tsv")
    judged = read(qrels, topics)
    assert judged.questions == (
        Judgement("2", "how\tso?", {"my notes/a b.md": 1}, 1),
        Judgement("1", "where is it?", {"src/a.py": 2, "src/b.py": 0}, 2),
    )
    assert (judged.without_answer, judged.without_topic, judged.not_judged) == (("3",), ("4",), 1)


def test_judgements_with_a_header_have_three_columns(tmp_path: Path) -> None:
    qrels = written(tmp_path, "query-id\tcorpus-id\tscore\nq1\ta b.md\t1\n", "test.tsv")
    topics = written(tmp_path, '{"_id": "q1", "text": "where?"}\n', "queries.jsonl")
    assert read(qrels, topics).questions == (Judgement("q1", "where?", {"a b.md": 1}, 2),)


@pytest.mark.parametrize(
    ("qrels", "topics", "says"),
    [
        ("1 0 a\n", "1\tq\n", "qrels, line 1: this is neither JSON nor a judgement"),
        ("1 0 a 1\n1 0 a x\n", "1\tq\n", "qrels, line 2: this is neither"),
        ("1 0 a 1\n1 0 a 2\n", "1\tq\n", "qrels, line 2: 'a' has another grade for question '1' above"),
        ("1 0 a 1001\n", "1\tq\n", "qrels, line 1: the grade of 'a' is 1001"),
        ("query-id\tcorpus-id\tscore\n1 a 1\n", "1\tq\n", "qrels, line 2: this is neither"),
        ("1 0 a 1\n", "1 q\n", "topics, line 1: there is no question"),
        ("1 0 a 1\n", "1\tq\n1\tq\n", "topics, line 2: the id '1' is used in line 1 already"),
        ("1 0 a 1\n", '{"id": "1"}\n', "topics, line 1: there is no question"),
        ("1 0 a 1\n", "2\tq\n", "has none of the ids"),
    ],
)
def test_bad_judgements_and_topics_are_refused(tmp_path: Path, qrels: str, topics: str, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(written(tmp_path, qrels, "qrels"), written(tmp_path, topics, "topics"))
    assert says in caught.value.what


def test_topics_go_with_judgements_and_with_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="without the questions"):
        read(written(tmp_path, "1 0 a 1\n", "qrels"))
    with pytest.raises(UsageError, match="holds its questions"):
        read(written(tmp_path, '{"query": "q", "relevant": ["a"]}'), written(tmp_path, "1\tq\n", "topics"))


@given(
    st.dictionaries(st.text(min_size=1).filter(str.strip), st.integers(1, 9), min_size=1), st.text().filter(str.strip)
)
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, labels: dict[str, int], query: str) -> None:
    line = json.dumps({"id": "1", "query": query, "relevant": labels})
    file = written(tmp_path_factory.mktemp("given"), line + "\n")
    assert read(file).questions == (Judgement("1", query.strip(), labels, 1),)


# -- an index ---------------------------------------------------------------------------------------------------------

FILES = {
    "src/walrus.py": "def dive(depth):\n    return depth * 2\n\n\ndef surface():\n    return 'breathe out'\n",
    "src/kettle.py": "def whistle(steam):\n    return steam > 100\n",
    "docs/tram.md": "# Trams\n\nThey stop at midnight.\n\n## Tickets\n\nA conductor punches them.\n",
    "docs/storm.md": "# Storms\n\nThunder follows lightning.\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    folder = tmp_path / "pond"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def index(root: Path) -> Iterator[outcrop.Index]:
    with outcrop.open(root) as opened:
        opened.build()
        yield opened


def questions(folder: Path, *lines: dict[str, object]) -> Path:
    return written(folder, "".join(json.dumps(line) + "\n" for line in lines))


def asking(query: str, *labels: str, **more: object) -> dict[str, object]:
    return {"query": query, "relevant": list(labels), **more}


def test_a_question_is_scored_by_where_its_answer_comes(index: outcrop.Index, tmp_path: Path) -> None:
    file = questions(
        tmp_path,
        asking("thunder lightning", "docs/storm.md", id="first"),
        # The words stand in one file, and the label names another.
        asking("whistle steam", "docs/tram.md", "docs/storm.md", id="never"),
        asking("conductor punches", "docs/tram.md#Tickets", id="part"),
        asking("depth breathe", "src/walrus.py#dive", id="near"),
    )
    found = compare(index, file, modes=["keyword"])
    (row,) = found.rows
    assert (row.embedder, row.space, row.mode, row.against) == (None, None, Mode.KEYWORD, None)
    assert [asked.results[0].scores for asked in found.questions] == [
        Scores(1.0, 1.0, 1.0),
        Scores(0.0, 0.0, 0.0),
        Scores(1.0, 1.0, 1.0),
        Scores(1.0, 1.0, 1.0),
    ]
    assert (row.ndcg.mean, row.recall, row.mrr) == (0.75, 0.75, 0.75)
    assert (found.by_file, found.by_passage) == (2, 2)
    assert [asked.results[0].places for asked in found.questions] == [(1,), (None, None), (1,), (1,)]
    assert found.questions[1].results[0].first == "src/kettle.py:1-2"
    assert (found.missing, found.left_out, found.failures, found.embedded, found.stale) == ((), (), (), (), False)


def test_the_figures_are_those_of_the_answers(index: outcrop.Index, tmp_path: Path) -> None:
    asked = {"stop depth steam thunder": "docs/tram.md", "midnight lightning whistle": "src/kettle.py"}
    found = compare(index, questions(tmp_path, *(asking(query, label) for query, label in asked.items())))
    assert [(row.embedder, row.mode) for row in found.rows] == [
        ("hash", Mode.HYBRID),
        ("hash", Mode.SEMANTIC),
        (None, Mode.KEYWORD),
    ]
    for number, row in enumerate(found.rows):
        for one, (query, label) in zip(found.questions, asked.items(), strict=True):
            files = list(dict.fromkeys(hit.path for hit in index.search(query, k=50, mode=row.mode).hits))
            place = files.index(label) + 1 if label in files else None
            assert one.results[number].places == (place,)
            assert one.results[number].scores.mrr == (1 / place if place else 0.0)
        assert row.mrr == pytest.approx(sum(one.results[number].scores.mrr for one in found.questions) / 2)


def test_what_the_index_does_not_hold_is_told_and_does_not_count(index: outcrop.Index, tmp_path: Path) -> None:
    file = questions(
        tmp_path,
        asking("thunder", "docs/storm.md", "docs/gone.md", "src/walrus.py#flies", id="half"),
        asking("dive", "src/gone.py", id="none"),
        # It is there, and not among what may answer.
        asking("dive", "src/walrus.py", id="elsewhere", corpus="docs"),
        asking("steam", "src/kettle.py", id="whole", kind=["code"]),
        {"query": "dive", "relevant": {"src/walrus.py": 1, "src/never.py": 0}, "id": "unwanted"},
        {"query": "dive", "relevant": {"src/walrus.py": 0, "src/never.py": 1}, "id": "wrong"},
    )
    found = compare(index, file, modes=["hybrid"])
    assert [(each.id, each.label) for each in found.missing] == [
        ("half", "docs/gone.md"),
        ("half", "src/walrus.py#flies"),
        ("none", "src/gone.py"),
        ("elsewhere", "src/walrus.py"),
        ("wrong", "src/never.py"),
    ]
    assert found.left_out == ("none", "elsewhere", "wrong")
    assert [asked.id for asked in found.questions] == ["half", "whole", "unwanted"]
    assert found.questions[0].results[0].scores == Scores(1.0, 1.0, 1.0)
    with pytest.raises(UsageError, match=r"holds nothing of what .* judges, such as src/gone.py"):
        compare(index, questions(tmp_path, asking("dive", "src/gone.py")))


def test_questions_that_are_indexed_themselves_answer_nothing(index: outcrop.Index, tmp_path: Path) -> None:
    root = index.source.root
    lines = (asking("zebra okapi thunder", "docs/storm.md"), asking("conductor punches", "docs/tram.md"))
    inside, topics = questions(root, *lines), written(root, "1\tzebra okapi thunder\n", "topics.tsv")
    index.build()
    assert index.search("zebra okapi thunder", mode="keyword").hits[0].path in ("q.jsonl", "topics.tsv")
    found = compare(index, inside, modes=["keyword"])
    assert [asked.results[0].first for asked in found.questions] == ["topics.tsv:1-1", "docs/tram.md:1-7"]
    assert found.passed_over
    outside = written(tmp_path, "1 0 docs/storm.md 1\n", "qrels")
    inside.unlink()
    index.build()
    found = compare(index, outside, topics=topics, modes=["keyword"])
    assert (found.questions[0].results[0].first, found.passed_over) == ("docs/storm.md:1-3", True)


def test_filters_of_a_question_are_kept(index: outcrop.Index, tmp_path: Path) -> None:
    labels = ["src/kettle.py", "docs/storm.md"]
    everything, code = (
        compare(index, questions(tmp_path, asking("thunder steam", *labels, **more)), modes=["semantic"])
        for more in ({}, {"corpus": "code"})
    )
    assert everything.questions[0].labels == tuple(labels)
    assert code.questions[0].labels == ("src/kettle.py",)
    assert code.questions[0].results[0].scores == Scores(1.0, 1.0, 1.0)
    elsewhere = compare(
        index, questions(tmp_path, asking("lightning", "src/kettle.py", kind="code")), modes=["semantic"]
    )
    assert (elsewhere.questions[0].results[0].first or "").startswith("src/")


@pytest.mark.parametrize(
    ("more", "error"),
    [({"kind": "poem"}, UnknownKind), ({"kind": "wiki"}, UnknownKind), ({"corpus": "x"}, UnknownCorpus)],
)
def test_a_filter_that_names_nothing_is_told_with_its_line(
    index: outcrop.Index, tmp_path: Path, more: dict[str, object], error: type[UsageError]
) -> None:
    file = questions(tmp_path, asking("dive", "src/walrus.py"), asking("dive", "src/walrus.py", **more))
    with pytest.raises(error, match="line 2: "):
        compare(index, file)


def test_without_an_index_there_is_nothing_to_measure(root: Path, tmp_path: Path) -> None:
    file = questions(tmp_path, asking("dive", "src/walrus.py"))
    with outcrop.open(root) as index:
        with pytest.raises(IndexMissing):
            compare(index, file)
        assert not index.store.exists
        index.build()
        index.clear()
        with pytest.raises(IndexMissing):
            compare(index, file)


def test_an_index_that_is_behind_is_said_to_be(index: outcrop.Index, tmp_path: Path) -> None:
    file = questions(tmp_path, asking("steam", "src/kettle.py"))
    (index.source.root / "new.md").write_text("# New")
    assert compare(index, file, modes=["keyword"]).stale


def test_records_are_judged_by_their_hash_or_path(index: outcrop.Index, tmp_path: Path) -> None:
    index.upsert([Record("r1", "a heron waits in the reeds"), Record("r2", "an otter swims", path="log/otter")])
    (heron,) = (hit.hash for hit in index.search("heron reeds", k=1, mode="keyword").hits)
    found = compare(index, questions(tmp_path, asking("heron", heron[:12]), asking("otter", "log/otter")))
    assert [row.ndcg.mean for row in found.rows] == [1.0, 1.0, 1.0]


# -- other embedders --------------------------------------------------------------------------------------------------


class Reader(HashEmbedder):
    """Another space, in which each text is where its first word says."""

    space = Space("reader", 8)

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.eye(8, dtype=np.float32)[[sum(map(ord, text[:3])) % 8 for text in texts]]

    embed_queries = embed_passages


def contents(index: outcrop.Index) -> list[str]:
    with index.store.file.reading() as database:
        return list(database.iterdump())


def test_another_embedder_is_measured_on_a_copy_that_leaves_nothing(index: outcrop.Index, tmp_path: Path) -> None:
    before = contents(index)
    file = questions(tmp_path, asking("thunder lightning", "docs/storm.md"), asking("steam", "src/kettle.py"))
    with listening(as_ollama(Reader(), "reader")) as server:
        settings = Settings(embedder="hash", endpoint_url=server.url, history=0)
        with outcrop.open(index.source.root, settings=settings) as opened:
            found = compare(opened, file, embedders=["hash", "ollama=reader@8"])
        sent = list(server.texts)
    assert [(row.embedder, row.space, str(row.mode)) for row in found.rows] == [
        ("hash", "hash-768", "hybrid"),
        ("hash", "hash-768", "semantic"),
        ("ollama=reader@8", "reader-8", "hybrid"),
        ("ollama=reader@8", "reader-8", "semantic"),
        (None, None, "keyword"),
    ]
    (made,) = found.embedded
    chunks = sum(each.chunks for each in index.status().collections)
    assert (made.embedder, made.passages) == ("ollama=reader@8", chunks)
    assert len(sent) == chunks + 2
    assert not found.failures
    assert not found.stale
    assert contents(index) == before
    assert [row.against is None for row in found.rows] == [True, False, False, False, False]
    assert all(row.against.verdict in (Verdict.TOO_FEW, Verdict.SAME) for row in found.rows if row.against)


def test_vectors_that_the_index_has_are_not_made_again(index: outcrop.Index, tmp_path: Path) -> None:
    with outcrop.open(index.source.root, settings={"embedder": "hash", "dim": 64}) as small:
        small.build()
        file = questions(tmp_path, asking("steam", "src/kettle.py"))
        # The index has vectors of both, and scans the small ones now.
        with pytest.raises(SpaceMismatch, match="holds vectors of hash-64-64, but the embedder is hash-768") as caught:
            compare(index, file)
        assert "--embedder hash" in caught.value.fix
        assert compare(index, file, modes=["keyword"]).rows[0].ndcg.mean == 1.0
        found = compare(index, file, embedders=["hash"])
        assert [each.passages for each in found.embedded] == [0]
        assert [row.space for row in found.rows] == ["hash-768", "hash-768", None]
        assert small.search("steam", mode="semantic").mode is Mode.SEMANTIC


def test_an_embedder_that_fails_leaves_the_others_their_figures(
    index: outcrop.Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    file = questions(tmp_path, asking("steam", "src/kettle.py"))
    found = compare(index, file, embedders=["ollama", "hash"])
    assert [row.embedder for row in found.rows] == ["hash", "hash", None]
    (failure,) = found.failures
    assert (failure.embedder, "127.0.0.1:9" in failure.reason) == ("ollama", True)
    with pytest.raises(BadConfig, match="there is no embedder 'hasch'"):
        compare(index, file, embedders=["hash", "hasch"])
    with pytest.raises(UsageError, match="there is no mode"):
        compare(index, file, modes=["hybird"])


def test_text_goes_to_no_other_machine_unasked(
    index: outcrop.Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://192.0.2.1:9")
    found = compare(index, questions(tmp_path, asking("steam", "src/kettle.py")), embedders=["hash", "ollama"])
    (failure,) = found.failures
    assert "text would leave this machine for http://192.0.2.1:9" in failure.reason
    assert len(found.rows) == 3


def test_an_answer_in_another_mode_is_no_figure(index: outcrop.Index, tmp_path: Path) -> None:
    """A semantic row that is made of keyword hits would be the lie that this command exists to prevent."""
    judged = read(questions(tmp_path, asking("steam", "src/kettle.py")))
    with outcrop.open(index.source.root, settings={"embedder": "hash", "dim": 64}) as small:
        small.build()
    found = evaluate(
        judged,
        [EvaluatedEmbedder("other", index.embedder)],
        [Mode.SEMANTIC],
        index.source,
        index.store,
        index.store.passage_refs,
        index.store.text_of,
    )
    assert found.rows == ()
    (failure,) = found.failures
    assert "question 'line-1' was answered by keyword: the index holds vectors of hash-64-64" in failure.reason


def test_an_index_that_is_not_complete_is_not_measured(index: outcrop.Index, tmp_path: Path) -> None:
    file = questions(tmp_path, asking("steam", "src/kettle.py"))
    index.store.clear(space=index.embedder.space)
    with pytest.raises(IndexMissing, match="only 0 of 4 passages are embedded"):
        compare(index, file)
    assert compare(index, file, modes=["keyword"]).rows[0].ndcg.mean == 1.0


def test_a_copy_answers_as_the_index_does(index: outcrop.Index) -> None:
    index.upsert([Record("r", "a heron waits")])
    copy = index.store.clone(index.embedder.space)
    try:
        for store in (index.store, copy):
            assert store.progress(index.embedder.space) == (5, 5)
        for query in ("thunder", "depth breathe", "heron"):
            words = query_words(query)
            assert copy.keyword(words, 9, EVERYTHING) == index.store.keyword(words, 9, EVERYTHING) != []
            vector = index.embedder.embed_queries([query])[0]
            assert copy.nearest(vector, 9, EVERYTHING) == index.store.nearest(vector, 9, EVERYTHING)
        assert copy.passage_refs(EVERYTHING) == index.store.passage_refs(EVERYTHING)
        assert {ref.paths for ref in copy.passage_refs(Filter(kinds=(Kind.CODE,)))} == {
            ("src/kettle.py",),
            ("src/walrus.py",),
        }
        empty = index.store.clone(Space("other", 3))
        assert empty.progress(index.embedder.space) == (0, 5)
        empty.close()
    finally:
        copy.close()


def test_a_fossil_repository_is_only_read(
    sample: SampleRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repository = sample.copy(tmp_path)
    with outcrop.open(repository, settings={"embedder": "hash"}) as index:
        index.build()
        (hit, *_) = index.search("the", k=1, mode="keyword").hits
        before = repository.read_bytes()
        file = questions(tmp_path, asking(hit.text[:200], hit.path or hit.hash))
        found = compare(index, file, embedders=["hash", "hash=@64"], modes=["hybrid", "keyword"])
        assert [row.ndcg.mean for row in found.rows] == [1.0, 1.0, 1.0]
        assert found.embedded[0].passages > 5
        assert repository.read_bytes() == before


def test_settings_of_one_embedder_are_none_of_anothers() -> None:
    mine = Settings(
        embedder="endpoint",
        model="m",
        dim=5,
        endpoint_url="https://a",
        secret_ref="S",
        headers=(("a", "b"),),
        max_tokens=9,
    )
    assert other(mine, "endpoint") is mine
    assert other(mine, "endpoint", "m") is mine
    second = other(mine, "endpoint", "n")
    assert (second.model, second.dim, second.endpoint_url, second.secret_ref) == ("n", None, "https://a", "S")
    local = other(mine, "local")
    assert (local.embedder, local.model, local.dim, local.max_tokens) == ("local", None, None, None)
    assert (local.endpoint_url, local.secret_ref, local.headers) == (None, None, ())


def test_an_artifact_is_whole_again_with_every_line_in_its_place(root: Path) -> None:
    text = "# Long\n\n" + "".join(f"## LabelPart {n}\n\n{'word ' * 120}\n\n\n\n" for n in range(30))
    (root / "docs" / "long.md").write_text(text)
    with outcrop.open(root) as index:
        index.build()
        places = [ref for ref in index.store.passage_refs(EVERYTHING) if ref.paths == ("docs/long.md",)]
        assert len(places) > 10
        whole, form = index.store.text_of(places[0].artifact)
        assert form == "markdown"
        assert [line.rstrip() for line in whole.split("\n")] == [line.rstrip() for line in text.rstrip().split("\n")]
        assert lines_of(whole, form, "LabelPart 7") == (3 + 7 * 6, 8 + 7 * 6)


# -- the command ------------------------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_shows_a_table_and_its_notes(
    index: outcrop.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = questions(
        tmp_path,
        asking("thunder lightning", "docs/storm.md", "docs/gone.md"),
        asking("conductor punches", "docs/tram.md#Tickets"),
        asking("dive", "src/gone\x1b[31m.py", id="gone"),
    )
    code, out, err = run(capsys, "eval", "-C", index.source.root, file, "--embedder", "hash=@64", "--embedder", "hash")
    assert (code, err) == (0, "")
    head, _, columns, *rows = out.splitlines()
    assert head == f"2 questions of {file}, judged 1 by file and 1 by passage"
    assert columns.split("  ")[0] == "embedder"
    assert [row.split()[:3] for row in rows[:5]] == [
        ["hash=@64", "hybrid", "1.000"],
        ["hash=@64", "semantic", "1.000"],
        ["hash", "hybrid", "1.000"],
        ["hash", "semantic", "1.000"],
        ["–", "keyword", "1.000"],
    ]
    assert rows[1].endswith("+0.000 (+0.000 to +0.000)  the same")
    assert re.search(r"^hash=@64: embedded 4 passages in \d+\.\d s for this, and kept nothing$", out, re.MULTILINE)
    assert (
        "not in this index, and not counted: 2 labels\n  docs/gone.md  (line-1)\n  src/gone\\x1b[31m.py  (gone)\n"
        in out
    )
    assert "left out, because the index holds no answer: 1 question (gone)" in out


def test_one_question_has_no_interval(index: outcrop.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = questions(tmp_path, asking("thunder lightning", "docs/storm.md"))
    _, out, _ = run(capsys, "eval", "-C", index.source.root, file, "--mode", "keyword")
    assert out.splitlines()[3].split() == ["–", "keyword", "1.000", "–", "1.000", "1.000", "–"]


def test_each_question_is_shown_the_worst_first(
    index: outcrop.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = questions(
        tmp_path,
        asking("thunder lightning", "docs/storm.md", id="good"),
        asking("whistle steam", "docs/tram.md", id="bad"),
    )
    _, out, _ = run(
        capsys, "eval", "-C", index.source.root, file, "--mode", "keyword", "--mode", "hybrid", "--per-query"
    )
    shown = out.split("\n\n")[2:]
    assert "bad  whistle steam" in shown[0]
    assert "      first   src/kettle.py:1-2" in shown[0].splitlines()
    assert "      others  keyword 0.00" in shown[0].splitlines()
    assert shown[1].splitlines() == [
        "1.00  good  thunder lightning",
        "      wanted  docs/storm.md  place 1",
        "      others  keyword 1.00",
    ]


def test_the_json_has_every_figure(index: outcrop.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = questions(tmp_path, {"id": "a", "query": "thunder", "relevant": {"docs/storm.md": 2, "docs/tram.md": 0}})
    code, out, _ = run(capsys, "eval", "-C", index.source.root, file, "--json", "--mode", "keyword")
    found = json.loads(out)
    assert code == 0
    assert found["rows"] == [
        {
            "embedder": None,
            "space": None,
            "mode": "keyword",
            "ndcg": {"mean": 1.0, "low": 1.0, "high": 1.0, "count": 1},
            "recall": 1.0,
            "mrr": 1.0,
            "against": None,
        }
    ]
    (asked,) = found["questions"]
    assert (asked["labels"], asked["grades"]) == (["docs/storm.md", "docs/tram.md"], [2, 0])
    assert asked["results"][0]["scores"] == {"ndcg": 1.0, "recall": 1.0, "mrr": 1.0}


def test_an_embedder_that_fails_fails_the_command_after_the_table(
    index: outcrop.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    file = questions(tmp_path, asking("thunder", "docs/storm.md"))
    code, out, _ = run(capsys, "eval", "-C", index.source.root, file, "--embedder", "ollama", "--embedder", "hash")
    assert code == 1
    assert "ollama: not measured: " in out
    assert "\nhash      hybrid" in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--embedder", "hash", "--embedder", "local", "--model", "m"], "--model does not say which embedder"),
        (["--embedder", "hash", "--embedder", "local", "--dim", "9"], "--dim does not say which embedder"),
        (["--embedder", "ollama=a", "--model", "b"], "the model is given twice"),
        (["--embedder", "hasch"], "there is no embedder 'hasch'"),
        (["--embedder", ""], "embedder cannot be ''"),
        (["--mode", "hybird"], "'hybird' is not one of"),
        (["--topics", "none"], "none are taken from none"),
    ],
)
def test_wrong_options_are_told(
    index: outcrop.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    file = questions(tmp_path, asking("thunder", "docs/storm.md"))
    code, out, err = run(capsys, "eval", "-C", index.source.root, file, *options)
    assert (code, out) == (2, "")
    assert says in err


def test_a_bad_file_ends_with_its_line(
    index: outcrop.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "eval", "-C", index.source.root, written(tmp_path, "\n{"))
    assert (code, out) == (1, "")
    assert "q.jsonl, line 2: this is not valid JSON" in err
    code, _, err = run(capsys, "eval", "-C", index.source.root, tmp_path / "none")
    assert (code, "cannot be read" in err) == (2, True)

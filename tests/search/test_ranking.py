"""What moves a hit up or down, each rule by itself, on candidates that are alike in everything else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outcrop.core.model import Kind
from outcrop.search.parse import parse
from outcrop.search.ranking import ScoredPassage, rank


def candidate(number: int, path: str = "", name: str | None = None, **more: object) -> ScoredPassage:
    plain = ScoredPassage(
        id=number,
        dense=0.5,
        keyword=None,
        path=path or f"src/file{number}.py",
        name=name,
        text="nothing in particular",
        kind=Kind.CODE,
        siblings=3,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def order(question: str, *candidates: ScoredPassage) -> list[int]:
    return [item.id for item in rank(parse(question), candidates)]


def reasons(question: str, *candidates: ScoredPassage) -> dict[int, set[str]]:
    return {item.id: {why for why, _ in item.reasons} for item in rank(parse(question), candidates)}


def test_equals_stand_in_the_order_of_their_ids() -> None:
    assert order("anything", candidate(3), candidate(1), candidate(2)) == [1, 2, 3]
    assert order("anything") == []


def test_nearer_and_wordier_stand_first() -> None:
    assert order("x y", candidate(1, dense=0.4), candidate(2, dense=0.6)) == [2, 1]
    assert order("x y", candidate(1, keyword=2.0), candidate(2, keyword=5.0)) == [2, 1]


def test_the_definition_of_a_symbol_stands_before_its_uses() -> None:
    use, definition = candidate(1, name="caller", dense=0.9), candidate(2, name="Parser.parse_args", dense=0.3)
    assert order("parse_args", use, definition) == [2, 1]
    assert order("Parser.parse_args()", use, definition) == [2, 1]
    assert "defines it" in reasons("parse_args", use, definition)[2]


def test_a_name_that_differs_in_case_counts_less_than_one_that_does_not() -> None:
    assert order("Config", candidate(1, name="config"), candidate(2, name="Config")) == [2, 1]


def test_a_file_named_like_the_question_stands_first() -> None:
    assert order("command completion", candidate(1, "src/core.py"), candidate(2, "src/completions.py")) == [2, 1]


@pytest.mark.parametrize(
    "path",
    ["tests/test_pool.py", "examples/pool.py", "vendor/pool.py", "CHANGES/pool.py", ".agents/skills/pool.py"],
)
def test_what_stands_around_the_thing_is_lower_unless_asked_for(path: str) -> None:
    around, thing = candidate(1, path), candidate(2, "src/pool.py")
    if path.startswith("CHANGES"):
        around = candidate(1, "changelog/pool.py")
    assert order("how is the pool drained", around, thing) == [2, 1]
    asked = {
        "tests": "test",
        "examples": "example",
        "vendor": "vendored",
        "CHANGES": "changelog",
        ".agents": "skill",
    }[path.split("/")[0]]
    assert order(f"{asked} drained pool", around, thing) == [1, 2]


def test_a_notebook_among_examples_is_documentation() -> None:
    notebook, code = candidate(1, "examples/pool.ipynb"), candidate(2, "examples/pool.py")
    assert order("how is the pool drained", code, notebook) == [1, 2]
    assert "example" not in reasons("how is the pool drained", notebook)[1]


def test_prose_is_lower_only_where_nearly_everything_is_code() -> None:
    prose, code = candidate(1, "docs/a.md", kind=Kind.DOC), [candidate(n) for n in range(2, 11)]
    assert "prose" in reasons("pool draining", prose, *code)[1]
    assert "prose" not in reasons("how do I drain the pool", prose, *code)[1]
    many = [candidate(n, f"docs/{n}.md", kind=Kind.DOC) for n in range(2, 11)]
    assert "prose" not in reasons("pool draining", candidate(1), *many)[5]


def test_a_file_that_speaks_of_all_of_it_stands_before_one_that_speaks_of_half() -> None:
    whole = [candidate(1, "a.py", text="drains sockets"), candidate(2, "a.py", text="a pool")]
    half = [candidate(3, "b.py", text="a pool"), candidate(4, "b.py", text="another pool")]
    assert order("draining pools", *half, *whole)[0] in {1, 2}


def test_good_passages_of_one_file_support_each_other() -> None:
    together = [candidate(2, "b.py", dense=0.5), candidate(3, "b.py", dense=0.5)]
    assert order("anything", candidate(1, "a.py", dense=0.5), *together)[0] == 2


def test_one_file_does_not_crowd_the_list() -> None:
    crowd = [candidate(n, "a.py", dense=0.60 - n / 1000) for n in range(1, 13)]
    lonely = candidate(99, "b.py", dense=0.56)
    places = order("anything", *crowd, lonely)
    assert 4 < places.index(99) < 12
    assert "one of many of its file" in reasons("anything", *crowd, lonely)[12]
    assert "one of many of its file" not in reasons("anything", *crowd, lonely)[5]


def test_passages_without_a_path_are_no_crowd() -> None:
    tickets = [replace(candidate(n, kind=Kind.TICKET), path="") for n in range(1, 13)]
    assert all("one of many of its file" not in why for why in reasons("anything", *tickets).values())


def test_what_is_quoted_stands_first_word_for_word() -> None:
    apart = candidate(1, text="refused, the connection was", dense=0.9)
    exact = candidate(2, text="raise Error('Connection\n    refused by peer')", dense=0.2)
    assert order('"connection refused"', apart, exact) == [2, 1]
    assert order("“connection  refused”", apart, exact) == [2, 1]
    assert order("connection refused", apart, exact) == [1, 2]


def test_reasons_add_up_to_the_points() -> None:
    parts = [candidate(1, "tests/test_pool.py", "drain", keyword=2.0, text='the "drain" of a pool'), candidate(2)]
    for item in rank(parse('how does "drain" work'), parts):
        value = 0.0
        for _, amount in item.reasons:
            value = value + float(amount[1:]) if amount[0] == "+" else value * float(amount[1:])
        assert value == pytest.approx(item.points, abs=0.05)

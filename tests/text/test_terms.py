"""Terms: identifiers split, CJK in pairs, accents folded; spans point at what matched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.text.terms import query_words, spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", ["get", "user", "name", "getusername"]),
        ("get_user_name", ["get", "user", "name", "getusername"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("utf8", ["utf", "8", "utf8"]),
        ("plain words", ["plain", "words"]),
        ("Größe naïve", ["große", "naive"]),
        ("Привет мир", ["привет", "мир"]),
        ("検索する", ["検索", "索す", "する"]),
        ("字", ["字"]),
        ("node検索", ["node", "検索"]),
        ("__init__", ["init"]),
        ("___ --- !", []),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_question_loses_its_stop_words_and_repeats() -> None:
    assert query_words("where do we open the open socket") == ["open", "socket"]


def test_a_question_of_stop_words_only_keeps_them() -> None:
    assert query_words("who is it") == ["who", "is", "it"]


@given(st.text())
def test_words_are_folded_and_never_blank(text: str) -> None:
    assert all(word and not word.isspace() for word in words(text))
    assert words(text) == words(text)


@given(st.text())
def test_spans_are_ascending_and_inside(text: str) -> None:
    found = spans(text, set(words(text)))
    at = 0
    for start, end in found:
        assert at <= start < end <= len(text)
        at = end


def marked(text: str, *wanted: str) -> list[str]:
    return [text[start:end] for start, end in spans(text, set(wanted))]


def test_spans_mark_the_part_or_the_whole_identifier() -> None:
    assert marked("def getUserName(x): return user_list", "user") == ["User", "user"]
    assert marked("getUserName", "getusername") == ["getUserName"]
    assert marked("getUserName", "get", "user") == ["getUser"]
    assert marked("das naïve Modell", "naive") == ["naïve"]
    assert marked("全文検索エンジン", "検索") == ["検索"]

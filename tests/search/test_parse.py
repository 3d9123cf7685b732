"""What is read off a question."""

from __future__ import annotations

import pytest

from outcrop.search.parse import parse


@pytest.mark.parametrize(
    "text",
    [
        "when did we drop Python 3.8",
        "When was the retry limit introduced?",
        "why was the parser rewritten",
        "who changed the default timeout",
        "which commit broke the build",
        "the commit that removed caching",
        "commits about the scheduler",
        "regression since 2.1 in the renderer",
        "what caused a regression of the scan",
        "commit message of the login fix",
        "since when is the cache bounded",
    ],
)
def test_questions_about_a_change(text: str) -> None:
    assert parse(text).asks_for_change


@pytest.mark.parametrize(
    "text",
    [
        "how do I commit a transaction",
        "session.commit",
        "logistic regression",
        "the regression coefficients",
        "where is the retry limit",
        "when a request times out",
        "why is the parser slow",
        "commit",
        "git commit hook",
        "what happens when the cache is full",
        "who may log in",
    ],
)
def test_other_questions(text: str) -> None:
    assert not parse(text).asks_for_change

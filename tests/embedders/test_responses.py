"""Whatever a server sends: unit vectors of the length asked for, or a named error. And what is sent fits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.embedders.http import responses
from outcrop.embedders.http.address import canonical
from outcrop.embedders.truncate import sanitize, truncate
from outcrop.errors import BadConfig, BadEmbedding, EmbedderError
from outcrop.text import tokenizer

ADDRESS = "http://localhost"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["data", "embeddings", "embedding", "index", "error"]), inner, max_size=3)
    ),
    max_leaves=20,
)
NUMBERS = st.floats() | st.integers()


@given(JSON, st.integers(1, 3))
def test_any_json_is_vectors_or_a_named_error(value: object, dim: int) -> None:
    sent = json.dumps(value).encode()
    try:
        made = responses.vectors(responses.parse(sent, ADDRESS), 2, dim, ADDRESS)
    except EmbedderError as error:
        named = error.what
    else:
        named = ADDRESS
        assert made.shape == (2, dim)
    assert ADDRESS in named


@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=2, max_size=2))
def test_any_numbers_are_unit_rows_or_a_named_error(rows: list[list[float]]) -> None:
    try:
        made = responses.vectors({"embeddings": rows}, 2, 3, ADDRESS)
    except BadEmbedding:
        # Beyond these a square leaves what a float holds.
        assert not all(
            any(each for each in row) and all(1e-150 < abs(each or 1) < 1e150 for each in row) for row in rows
        )
    else:
        assert made.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(made.astype(np.float64), axis=1), 1, atol=1e-6)


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_a_named_error(sent: bytes) -> None:
    try:
        parsed = responses.parse(sent, ADDRESS)
    except BadEmbedding:
        with pytest.raises((ValueError, RecursionError)):
            json.loads(sent)
    else:
        assert parsed == json.loads(sent) or parsed != parsed


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"error": "model not found"}, "model not found"),
        ({"error": {"message": "too\n  long", "type": "x"}}, "too long"),
        ({"message": "no"}, "no"),
        ({"detail": [{"msg": "bad"}]}, '[{"msg": "bad"}]'),
        (b"plain words", "plain words"),
        (b"<html>Oops", ""),
        (b"", ""),
    ],
)
def test_what_a_server_says(sent: object, said: str) -> None:
    assert responses.message(sent if isinstance(sent, bytes) else json.dumps(sent).encode()) == said


def test_a_long_speech_is_cut() -> None:
    assert responses.shorten("a" * 200) == "a" * 200
    assert responses.shorten("a" * 201) == "a" * 199 + "…"


@given(st.text(st.characters(), max_size=300), st.integers(1, 40))
def test_a_head_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    kept = truncate(text, limit)
    assert text.startswith(kept)
    assert bool(kept) == bool(text)
    assert len(kept) <= 1 or tokenizer.count(kept) <= limit
    if len(kept) < len(text) and len(kept) > 1:
        longer = text[: len(kept) + 1]
        assert tokenizer.count(longer) > limit or len(longer) // 16 > limit, "not one character too few"


@given(st.text(st.characters(), max_size=100))
def test_what_is_sent_is_unicode_and_not_empty(text: str) -> None:
    sent = sanitize(text)
    assert sent.strip()
    assert sent.encode("utf-8")
    assert "\0" not in sent
    if text.isascii() and text.strip() and "\0" not in text:
        assert sent == text


@given(st.sampled_from(["http", "HTTPS"]), st.text("aB.-:[]@/?#é%1", max_size=20))
def test_a_canonical_address_is_its_own(scheme: str, rest: str) -> None:
    try:
        once = canonical(f"{scheme}://{rest}")
    except BadConfig:
        return
    assert canonical(once) == once

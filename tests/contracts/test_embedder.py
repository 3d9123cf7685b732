"""What every built-in embedder promises, run on each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.local import LocalEmbedder
from outcrop.model import Space
from outcrop.ports import Embedder

TEXTS = [
    "How do I read a file line by line?",
    "def parse_headers(lines):\n    return dict(line.split(': ', 1) for line in lines)",
    "",
    " \n\t",
    "\x00\x01\ud800",
    "北京大学 ひらがな 한국어 naïve Ωmega",
    "🚀👩🏽\u200d💻",
    "!!! ??? ---",
    "a" * 50_000,
    "the cat sat on the mat. " * 4_000,
]


@pytest.fixture(scope="module", params=["hash", "local"])
def embedder(request, model_cache) -> Embedder:
    return HashEmbedder() if request.param == "hash" else LocalEmbedder(model_cache)


@pytest.fixture(params=["embed_passages", "embed_queries"])
def embed(request, embedder):
    return getattr(embedder, request.param)


def test_space_is_known_and_nothing_leaves(embedder, model_cache) -> None:
    assert embedder.space in {Space("hash", 768), Space("all-MiniLM-L6-v2", 384)}
    assert embedder.address is None
    assert embedder.max_tokens >= 128


def test_unit_rows_of_the_space(embed, embedder) -> None:
    vectors = embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.space.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-6)


def test_nothing_gives_no_rows(embed, embedder) -> None:
    vectors = embed([])
    assert vectors.dtype == np.float32
    assert vectors.shape == (0, embedder.space.dim)


def test_row_depends_on_its_text_alone_bit_for_bit(embed) -> None:
    together = embed(TEXTS * 3)
    backwards = embed(TEXTS[::-1])
    for number, text in enumerate(TEXTS):
        alone = embed([text])[0].tobytes()
        assert alone == together[number].tobytes() == together[number + 2 * len(TEXTS)].tobytes()
        assert alone == backwards[len(TEXTS) - 1 - number].tobytes()


def test_rows_are_in_order(embed) -> None:
    texts = [f"number {n} " * (1 + n % 7) for n in range(40)]
    vectors = embed(texts)
    wanted = np.vstack([embed([text]) for text in texts])
    assert vectors.tobytes() == wanted.tobytes()


def test_shared_words_are_nearer_than_none(embed) -> None:
    same, near, far = embed(["open the database file", "the database file was opened", "purple mountain holiday"])
    assert same @ near > same @ far + 0.2


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(), max_size=200))
def test_any_text_has_a_unit_vector(embed, text: str) -> None:
    vector = embed([text])[0]
    assert abs(np.linalg.norm(vector.astype(np.float64)) - 1) < 1e-6

"""Feature hashing: the same everywhere, and sensible about words."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from outcrop.embedders.hash import HashEmbedder


def test_vector_by_hand() -> None:
    """One term: one component, whose place and sign are bits of its BLAKE2b digest."""
    number = int.from_bytes(hashlib.blake2b(b"outcrop", digest_size=8).digest(), "little")
    vector = HashEmbedder(16).embed_passages(["outcrop"])[0]
    assert np.flatnonzero(vector).tolist() == [(number >> 1) % 16]
    assert vector.sum() == (1 if number & 1 else -1)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_every_process_makes_the_same(seed: str) -> None:
    text = "def getHTTPResponse(url): return fetch_url(url)  # 北京"
    program = (
        f"from outcrop.embedders.hash import HashEmbedder as E;print(E().embed_passages([{text!r}]).tobytes().hex())"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == HashEmbedder().embed_passages([text]).tobytes().hex()


def test_parts_of_identifiers_match() -> None:
    query, camel, snake, other = HashEmbedder().embed_passages(
        ["http response", "getHTTPResponse", "get_http_response", "closeDatabaseCursor"]
    )
    assert query @ camel > 0.5
    assert query @ snake > 0.5
    assert abs(query @ other) < 0.2


def test_repetition_counts_less_and_less() -> None:
    once, often, word = HashEmbedder().embed_passages(["alpha beta", "alpha beta " + "alpha " * 99, "alpha"])
    assert once @ word < often @ word < 0.99


def test_common_words_do_not_drown_the_rest() -> None:
    query, passage, chaff = HashEmbedder().embed_queries(
        ["how do I parse the config", "parse config", "how do I do it and what is this for"]
    )
    assert query @ passage > 0.9
    assert abs(query @ chaff) < 0.2


def test_terms_that_cancel_out_still_have_a_vector() -> None:
    words = [f"w{n}" for n in range(20)]
    vectors = HashEmbedder(1).embed_passages([f"{a} {b}" for a in words for b in words])
    assert set(np.abs(vectors).ravel().tolist()) == {1.0}


def test_other_dimensions() -> None:
    assert HashEmbedder(1536).embed_passages(["x"]).shape == (1, 1536)
    with pytest.raises(ValueError, match="at least 1"):
        HashEmbedder(0)

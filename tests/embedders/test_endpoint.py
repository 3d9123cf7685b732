"""Any endpoint: both shapes, headers and tokens, rate limits, proxies."""

from __future__ import annotations

import base64
import email.utils
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from servers import Sent, as_endpoint, embeddings_shape, listening, openai_shape

from outcrop.config.settings import Settings, load_settings
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http import retry
from outcrop.embedders.http.connection import RequestGroup
from outcrop.embedders.http.from_settings import find_secret, make
from outcrop.errors import BadConfig, BadEmbedding, DimensionMismatch, EmbedderUnavailable

TOKEN = "tok-5up3r-s3cret"


def endpoint(url: str, environ: dict[str, str] | None = None, **settings):
    values = {"model": "m", "dim": 2} | settings
    return make(Settings(embedder="endpoint", endpoint_url=url, **values), environ=environ or {})


def two(request) -> Sent:
    return openai_shape([[3.0, 4.0]] * len(request.texts))


def test_both_shapes_give_the_same_vectors() -> None:
    vectors = [[3.0, 4.0], [0, -2]]
    for shape in (openai_shape, embeddings_shape):
        with listening(lambda _, shape=shape: shape(vectors)) as server:
            made = endpoint(server.url + "/v1/embeddings").embed_passages(["a", "b"])
            np.testing.assert_allclose(made, [[0.6, 0.8], [0, -1]], atol=1e-7)
            assert made.dtype == np.float32
        assert server.requests[0].path == "/v1/embeddings"
        assert server.requests[0].json == {"model": "m", "input": ["a", "b"]}


def test_a_real_embedder_behind_it_keeps_its_numbers() -> None:
    texts = ["open the file", "close the socket", "北京"]
    with listening(as_endpoint(HashEmbedder(64))) as server:
        made = endpoint(server.url, dim=64).embed_passages(texts)
    np.testing.assert_allclose(made, HashEmbedder(64).embed_passages(texts), atol=1e-6)


def test_the_index_counts_and_not_the_order() -> None:
    data = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
    with listening(lambda _: Sent({"data": data})) as server:
        np.testing.assert_array_equal(endpoint(server.url).embed_passages(["a", "b"]), [[1, 0], [0, 1]])
    for places in ([0, 0], [1, 2], [0, "1"], [0, None]):
        data = [{"index": place, "embedding": [0, 1]} for place in places]
        with listening(lambda _, data=data: Sent({"data": data})) as server, pytest.raises(BadEmbedding, match="index"):
            endpoint(server.url).embed_passages(["a", "b"])


def test_the_token_is_looked_up_by_name_and_sent_as_a_bearer() -> None:
    with listening(two) as server:
        embedder = endpoint(server.url, {"MY_TOKEN": f" {TOKEN}\n"}, secret_ref="MY_TOKEN")
        embedder.embed_queries(["x"])
        assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
        assert embedder.token == "MY_TOKEN"


def test_headers_say_where_else_the_token_goes() -> None:
    headers = (("api-key", "{secret}"), ("X-Team", "search"))
    with listening(two) as server:
        endpoint(server.url, {"T": TOKEN}, secret_ref="T", headers=headers).embed_queries(["x"])
    sent = server.requests[0].headers
    assert (sent["api-key"], sent["x-team"]) == (TOKEN, "search")
    assert "authorization" not in sent


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer abc"},
        {"x-api-key": "abc"},
        {"Host": "x"},
        {"a b": "c"},
        {"A": "x\r\nB: y"},
        {"A": "ü"},
    ],
)
def test_headers_that_are_refused_without_repeating_them(headers) -> None:
    with pytest.raises(BadConfig) as caught:
        load_settings(None, {"headers": headers}, {"OUTCROP_CONFIG": "/dev/null"})
    assert "abc" not in str(caught.value)


def test_a_variable_can_hold_headers() -> None:
    environ = {"OUTCROP_CONFIG": "/dev/null", "OUTCROP_HEADERS": "api-key={secret}, X-Query=a=b"}
    assert load_settings(None, {}, environ).headers == (("api-key", "{secret}"), ("X-Query", "a=b"))
    with pytest.raises(BadConfig, match="OUTCROP_HEADERS: an item is not NAME=VALUE"):
        load_settings(None, {}, environ | {"OUTCROP_HEADERS": "Bearer abc"})


def test_a_token_that_is_not_there_is_named_and_nothing_is_sent() -> None:
    with listening(two) as server:
        for name in ("NOWHERE_TO_BE_FOUND", "env:NOWHERE_TO_BE_FOUND"):
            with pytest.raises(EmbedderUnavailable, match="no token named NOWHERE_TO_BE_FOUND"):
                endpoint(server.url, secret_ref=name).embed_queries(["x"])
        with pytest.raises(EmbedderUnavailable, match="no token is named"):
            endpoint(server.url, headers=(("k", "{secret}"),)).embed_queries(["x"])
        with pytest.raises(EmbedderUnavailable) as caught:
            find_secret("T", {"T": "abc\ndef"})
        assert "abc" not in str(caught.value)
        assert not server.requests


def test_no_message_repeats_the_token() -> None:
    with (
        listening(lambda r: Sent({"error": {"message": f"bad key {r.headers['authorization']}"}}, 401)) as server,
        pytest.raises(EmbedderUnavailable, match=r"status 401: bad key Bearer \[hidden\]") as caught,
    ):
        endpoint(server.url, {"T": TOKEN}, secret_ref="T").embed_queries(["x"])
    assert TOKEN not in str(caught.value)
    assert "secret_ref" in caught.value.fix


def test_a_token_does_not_go_to_an_address_it_was_not_set_beside(tmp_path) -> None:
    (tmp_path / "outcrop.toml").write_text('embedder = "endpoint"\nmodel = "m"\ndim = 2\nendpoint_url = "URL"\n')
    environ = {"OUTCROP_CONFIG": "/dev/null", "OUTCROP_SECRET_REF": "T", "OUTCROP_HEADERS": "X-Team=search", "T": TOKEN}
    with listening(two) as server:
        (tmp_path / "outcrop.toml").write_text((tmp_path / "outcrop.toml").read_text().replace("URL", server.url))
        make(load_settings(tmp_path, {}, environ), environ=environ).embed_queries(["x"])
        assert not {"authorization", "x-team"} & server.requests[0].headers.keys()
        ollama = {"OLLAMA_HOST": server.url} | environ
        settings = load_settings(None, {"embedder": "ollama", "model": "m", "dim": 2}, ollama)
        make(settings, environ=ollama).embed_queries(["x"])
        assert server.requests[1].path == "/api/embed"
        assert "authorization" not in server.requests[1].headers


def test_what_has_to_be_set() -> None:
    with pytest.raises(BadConfig, match="no address"):
        make(Settings(embedder="endpoint", model="m", dim=2), environ={})
    with pytest.raises(BadConfig, match="no model"):
        make(Settings(embedder="endpoint", endpoint_url="http://localhost", dim=2), environ={})
    with pytest.raises(BadConfig, match="how long"):
        endpoint("http://localhost", dim=None)
    with pytest.raises(BadConfig, match=r"something secret \(api_key\)"):
        endpoint(f"http://localhost/?api_key={TOKEN}")


def test_a_query_belongs_to_the_address() -> None:
    with listening(two) as server:
        embedder = endpoint(f"{server.url}/openai?api-version=2024")
        embedder.embed_queries(["x"])
        assert server.requests[0].path == "/openai?api-version=2024"
        assert embedder.address == f"{server.url}/openai?api-version=2024"


def test_a_path_beyond_ascii_is_encoded_once() -> None:
    with listening(two) as server:
        endpoint(f"{server.url}/für/a%20b?ä=1&b=%C3%A4").embed_queries(["x"])
    assert server.requests[0].path == "/f%C3%BCr/a%20b?%C3%A4=1&b=%C3%A4"


def test_known_models_need_no_length_and_can_be_shortened() -> None:
    with listening(as_endpoint(HashEmbedder(1536))) as server:
        assert endpoint(server.url, model="text-embedding-3-small", dim=None).embed_queries(["x"]).shape == (1, 1536)
        short = endpoint(server.url, model="text-embedding-3-small", dim=512)
        assert short.space.id == "text-embedding-3-small@512-512"
        with pytest.raises(DimensionMismatch, match="1536 dimensions, but 512"):
            short.embed_queries(["x"])
        assert server.requests[-1].json["dimensions"] == 512
    names = {"nomic-ai/nomic-embed-text-v1.5": 768, "openai/text-embedding-3-large": 3072, "intfloat/e5-base-v2": 768}
    for name, dim in names.items():
        assert endpoint("http://localhost", model=name, dim=None).space.dim == dim


@pytest.fixture
def hasty(monkeypatch) -> None:
    monkeypatch.setattr(retry, "PAUSES", (0.01, 0.02, 0.03))


@pytest.mark.parametrize("after", ["0.2", "date"])
def test_a_rate_limit_is_waited_for_and_told_at_once(after: str, hasty, caplog, monkeypatch) -> None:
    class Stopped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append((timeout, len(server.requests), caplog.text.count("status 429; trying again in 0.2 s")))
            return False

    def answer(request):
        if len(server.requests) == 1:
            date = email.utils.formatdate(1_700_000_001, usegmt=True)
            return Sent({"error": "slow down"}, 429, {"Retry-After": date if after == "date" else after})
        return two(request)

    waited: list[tuple[float | None, int, int]] = []
    group = partial(RequestGroup, stopped=Stopped())
    monkeypatch.setattr("outcrop.embedders.http.embedder.RequestGroup", group)
    monkeypatch.setattr(retry, "JITTER", 0)
    monkeypatch.setattr(retry, "time", SimpleNamespace(time=lambda: 1_700_000_000.8))
    with listening(answer) as server:
        endpoint(server.url).embed_passages(["x"])
        assert len(server.requests) == 2
    assert waited == [(pytest.approx(0.2), 1, 1)]


def test_a_rate_limit_without_a_time_is_tried_again_more_often_than_a_fault(hasty) -> None:
    def answer(request):
        if request.texts == ["again"] and len(server.requests) < 8:
            return Sent({"error": "slow down"}, 429)
        return two(request)

    with listening(answer) as server:
        embedder = endpoint(server.url)
        embedder.embed_passages(["first"])
        embedder.embed_passages(["again"])
        assert len(server.requests) == 8


def test_too_long_a_pause_is_an_error_at_once(caplog) -> None:
    with listening(lambda _: Sent(b"", 429, {"Retry-After": "3600"})) as server:
        with pytest.raises(EmbedderUnavailable, match="asks to wait 3600 s"):
            endpoint(server.url).embed_passages(["x"])
        assert len(server.requests) == 1
        assert "trying again" not in caplog.text
    with listening(lambda _: Sent(b"", 503, {"Retry-After": "5"})) as server:
        with pytest.raises(EmbedderUnavailable, match="asks to wait 5 s"):
            endpoint(server.url).embed_queries(["x"])
        assert len(server.requests) == 1, "a question is not worth five seconds: words answer at once"


def test_a_proxy_sees_the_request_and_this_machine_never_uses_one() -> None:
    login = base64.b64encode(b"me:pa ss").decode()
    with listening(two) as proxy, listening(two) as here:
        named = f"http://me:pa%20ss@127.0.0.1:{proxy.port}"
        environ = {"HTTP_PROXY": named, "HTTPS_PROXY": named}
        url = "http://embed.example:8080/v1?x=1"
        endpoint(url, environ, allow_remote=(url,)).embed_queries(["x"])
        assert proxy.requests[0].path == url
        assert proxy.requests[0].headers["host"] == "embed.example:8080"
        assert proxy.requests[0].headers["proxy-authorization"] == f"Basic {login}"
        endpoint(here.url, environ).embed_queries(["x"])
        assert len(proxy.requests) == 1
        assert len(here.requests) == 1
        assert "proxy-authorization" not in here.requests[0].headers


def test_https_goes_through_a_tunnel_that_may_be_refused() -> None:
    with listening(lambda _: Sent(b"", 403)) as proxy:
        url = "https://embed.example/v1"
        with pytest.raises(EmbedderUnavailable, match="refuses with status 403"):
            endpoint(url, {"https_proxy": f"127.0.0.1:{proxy.port}"}, allow_remote=(url,)).embed_queries(["x"])
        assert (proxy.requests[0].method, proxy.requests[0].path) == ("CONNECT", "embed.example:443")
        assert not proxy.requests[0].body
        url = "https://[2001:db8::1]:8443/v1"
        with pytest.raises(EmbedderUnavailable, match="refuses with status 403"):
            endpoint(url, {"https_proxy": f"127.0.0.1:{proxy.port}"}, allow_remote=(url,)).embed_queries(["x"])
        assert proxy.requests[1].path == "[2001:db8::1]:8443"


@pytest.mark.parametrize(
    ("environ", "used"),
    [
        ({"HTTP_PROXY": "http://p:1"}, True),
        ({"ALL_PROXY": "http://p:1"}, True),
        ({"HTTPS_PROXY": "http://p:1"}, False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "other.org, .example"}, False),
        ({"HTTP_PROXY": "http://p:1", "no_proxy": "embed.example:8080"}, False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, False),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "xample"}, True),
        ({"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, False),
    ],
)
def test_which_proxy_the_environment_names(environ, used: bool) -> None:
    embedder = endpoint("http://embed.example:8080", environ)
    if used:
        assert embedder.locate().proxy == "http://p:1"
    else:
        with pytest.raises(EmbedderUnavailable, match=r"no host embed\.example"):
            embedder.locate()


def test_a_kind_of_proxy_that_is_not_understood() -> None:
    url = "http://embed.example"
    with pytest.raises(EmbedderUnavailable, match="does not begin with http://"):
        endpoint(url, {"ALL_PROXY": "socks5://127.0.0.1:1"}, allow_remote=(url,)).embed_queries(["x"])

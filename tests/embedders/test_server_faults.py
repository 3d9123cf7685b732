"""Every way in which a server can misbehave, by real servers that do: a named error, soon, and nothing kept of it."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from servers import Sent, as_endpoint, free_port, listening, openai_shape

import outcrop
from outcrop.config.settings import Settings
from outcrop.core.model import Mode
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http import retry
from outcrop.embedders.http.from_settings import make
from outcrop.errors import (
    BadEmbedding,
    DimensionMismatch,
    EgressRefused,
    EmbedderError,
    EmbedderTimeout,
    EmbedderUnavailable,
)


@pytest.fixture(autouse=True)
def hasty(monkeypatch) -> None:
    monkeypatch.setattr(retry, "PAUSES", (0.01, 0.02, 0.03))


def endpoint(url: str, **settings):
    return make(Settings(embedder="endpoint", endpoint_url=url, **({"model": "m", "dim": 2} | settings)), environ={})


def unit(request) -> Sent:
    return openai_shape([[1.0, 0.0]] * len(request.texts))


def fails(error: type[EmbedderError], match: str, url: str, texts: int = 2, **settings) -> EmbedderError:
    """One call that has to fail, as just this error."""
    with pytest.raises(error, match=match) as caught:
        endpoint(url, **settings).embed_passages(["text"] * texts)
    assert type(caught.value).__name__ not in ("EmbedderError", "OutcropError")
    assert caught.value.fix
    return caught.value


BAD_ANSWERS = [
    (Sent(b"<!DOCTYPE html><p>Sign in"), BadEmbedding, "should answer in JSON and sent a web page"),
    (Sent(b""), BadEmbedding, "sent nothing"),
    (Sent(b"\x00\x01\xff"), BadEmbedding, "sent something else"),
    (Sent(b"[" * 100_000), BadEmbedding, "should answer in JSON"),
    (Sent(b'{"data": [{"embedding": [1'), BadEmbedding, "should answer in JSON"),
    (Sent({"ok": True}), BadEmbedding, "holds neither embeddings nor data"),
    (Sent([[1, 0], [0, 1]]), BadEmbedding, "holds neither"),
    (Sent({"data": ["x", "y"]}), BadEmbedding, "holds neither"),
    (Sent({"embeddings": [[1, 0]]}), BadEmbedding, "1 vectors for 2 texts"),
    (Sent({"embeddings": [[1, 0]] * 3}), BadEmbedding, "3 vectors for 2 texts"),
    (Sent({"embeddings": []}), BadEmbedding, "0 vectors for 2 texts"),
    (Sent({"embeddings": [[1, 0], [1, 0, 0]]}), BadEmbedding, r"different lengths \(2, 3\)"),
    (Sent({"embeddings": [[1, 0, 0]] * 2}), DimensionMismatch, "of 3 dimensions, but 2 are expected"),
    (Sent({"embeddings": [[1, 0], []]}), BadEmbedding, "an empty list where vector 1 of 2"),
    (Sent({"embeddings": [[1, 0], None]}), BadEmbedding, "null where vector 1 of 2"),
    (Sent({"embeddings": [1, 0]}), BadEmbedding, "a single number where vector 0 of 2"),
    (Sent({"data": [{"embedding": "AACAPw=="}, {"embedding": "AACAPw=="}]}), BadEmbedding, "a string where vector 0"),
    (Sent({"data": [{}, {}]}), BadEmbedding, "null where vector 0"),
    (Sent({"embeddings": [[1, 0], [1, None]]}), BadEmbedding, "null in vector 1 of 2"),
    (Sent({"embeddings": [[1, 0], ["1", "0"]]}), BadEmbedding, "a string in vector 1 of 2"),
    (Sent({"embeddings": [[1, 0], [True, False]]}), BadEmbedding, "true or false in vector 1 of 2"),
    (Sent({"embeddings": [[[1, 0]], [[1, 0]]]}), BadEmbedding, "a list in vector 0"),
    (Sent(b'{"embeddings": [[1, 0], [NaN, 0]]}'), BadEmbedding, "vector 1 of 2 holds NaN or infinity"),
    (Sent(b'{"embeddings": [[1, 0], [1e999, 0]]}'), BadEmbedding, "vector 1 of 2 holds NaN or infinity"),
    (Sent(b'{"embeddings": [[1, 0], [-Infinity, 0]]}'), BadEmbedding, "vector 1 of 2 holds NaN or infinity"),
    (Sent(b'{"embeddings": [[1, 0], [1' + b"0" * 400 + b", 0]]}"), BadEmbedding, "too large"),
    (Sent({"embeddings": [[1, 0], [0, 0.0]]}), BadEmbedding, "vector 1 of 2 holds only zeros"),
]


@pytest.mark.parametrize(("sent", "error", "match"), BAD_ANSWERS, ids=[each[2] for each in BAD_ANSWERS])
def test_an_answer_that_is_not_the_vectors_asked_for(sent: Sent, error, match: str) -> None:
    with listening(lambda _: sent) as server:
        raised = fails(error, match, server.url)
        assert server.url in raised.what
        assert len(server.requests) == 1, "the same question would get the same answer"


STATUSES = [
    (401, EmbedderUnavailable, "status 401: no", "secret_ref"),
    (403, EmbedderUnavailable, "status 403: no", "secret_ref"),
    (404, EmbedderUnavailable, "status 404: no", "endpoint_url"),
    (405, EmbedderUnavailable, "status 405: no", ""),
    (407, EmbedderUnavailable, "status 407: no", "HTTPS_PROXY"),
    (418, EmbedderUnavailable, "status 418: no", ""),
]


@pytest.mark.parametrize(("status", "error", "match", "fix"), STATUSES)
def test_a_status_that_asking_again_does_not_change(status: int, error, match: str, fix: str) -> None:
    with listening(lambda _: Sent({"error": {"message": "no", "type": "x"}}, status)) as server:
        assert fix in fails(error, match, server.url).fix
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_failing_server_is_asked_again_a_few_times_and_told_of_each_time(status: int, caplog) -> None:
    with listening(lambda _: Sent(b"<h1>Oops</h1>", status)) as server:
        fails(EmbedderUnavailable, f"status {status}$|status {status}[.]", server.url)
        assert len(server.requests) == 4
    assert caplog.text.count(f"answers with status {status}; trying again in") == 3


def test_five_hundred_then_fine(caplog) -> None:
    with listening(lambda r: unit(r) if len(server.requests) > 2 else Sent({"error": "warming up"}, 500)) as server:
        assert endpoint(server.url).embed_passages(["a", "b"]).shape == (2, 2)
        assert len(server.requests) == 3


def test_a_batch_that_is_too_large_is_halved() -> None:
    def answer(request):
        return unit(request) if len(request.texts) <= 2 else Sent(b"<h1>Payload Too Large</h1>", 413)

    with listening(answer) as server:
        assert endpoint(server.url).embed_passages(["x"] * 7).shape == (7, 2)
    assert [len(request.texts) for request in server.requests] == [7, 3, 1, 2, 4, 2, 2]


def test_a_text_that_is_refused_at_any_length() -> None:
    with listening(lambda _: Sent(b"", 413)) as server:
        with pytest.raises(EmbedderError, match="status 413") as caught:
            endpoint(server.url).embed_passages(["a text of some length"])
        assert "max_tokens" in caught.value.fix
        assert len(server.requests) <= 7


def test_refused() -> None:
    error = fails(EmbedderUnavailable, "nothing listens there", f"http://127.0.0.1:{free_port()}")
    assert not isinstance(error, EmbedderTimeout)


@contextmanager
def speaking(script):
    """A server below HTTP: ``script`` gets each connection. Yields its address and the connections so far."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        accepted: list[socket.socket] = []
        ending = threading.Event()

        def serve() -> None:
            while not ending.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    continue
                connection.settimeout(60)
                accepted.append(connection)
                with suppress(OSError):
                    script(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", accepted
        finally:
            ending.set()
            thread.join()
            for connection in accepted:
                connection.close()


def hang(connection: socket.socket) -> None:
    """Accept, and never say a word."""


def reading(then):
    """Read a request, then do that."""

    def script(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            body += connection.recv(65536)
        then(connection)

    return script


def test_hangs_before_it_answers() -> None:
    with speaking(hang) as (url, accepted):
        error = fails(EmbedderTimeout, "no whole answer within 0.25 s", url, timeout=0.25)
        assert "timeout" in error.fix
        assert "batch" in error.fix
        assert len(accepted) == 1


def test_hangs_at_connect() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = []
        try:
            for _ in range(8):  # until no more are taken
                sock = socket.socket()
                waiting.append(sock)
                sock.settimeout(0.05)
                try:
                    sock.connect(("127.0.0.1", port))
                except TimeoutError:
                    break
            else:
                pytest.skip("this system takes any number of connections")
            fails(EmbedderTimeout, "no connection to .* within 0.25 s", f"http://127.0.0.1:{port}", timeout=0.25)
        finally:
            for sock in waiting:
                sock.close()


def test_hangs_in_its_tls_greeting() -> None:
    with speaking(hang) as (url, _):
        fails(EmbedderTimeout, "no TLS greeting within 0.25 s", url.replace("http:", "https:"), timeout=0.25)


def test_hangs_in_the_middle_of_its_answer() -> None:
    with speaking(reading(lambda c: c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"embed'))) as (url, _):
        fails(EmbedderTimeout, "no whole answer within 0.25 s", url, timeout=0.25)


@pytest.mark.parametrize("part", ["status line", "headers", "body", "chunks"])
def test_a_slow_trickle_is_late_however_busy_it_looks(part: str) -> None:
    begin = {
        "status line": b"",
        "headers": b"HTTP/1.1 200 OK\r\nX-Filler: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
        "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    }[part]
    drop = b"1\r\n \r\n" if part == "chunks" else b"H" if part == "status line" else b" "

    def trickle(connection: socket.socket) -> None:
        connection.sendall(begin)
        try:
            for _ in range(600):
                connection.sendall(drop)
                time.sleep(0.05)
        except OSError:
            hung_up.set()

    hung_up = threading.Event()
    with speaking(reading(trickle)) as (url, _):
        fails(EmbedderTimeout, "no whole answer within 0.25 s", url, timeout=0.25)
        assert hung_up.wait(30), "the client does not wait for the end"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"embeddings": [[1, 0], [1, 0]]}',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n{",
    ],
    ids=["without a word", "in the headers", "in the body", "in a chunk"],
)
def test_closed_before_the_answer_was_complete(sent: bytes) -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(sent)
        connection.close()

    with speaking(reading(script)) as (url, accepted):
        error = fails(EmbedderUnavailable, "closed the connection before its answer|failed|not HTTP", url)
        assert not isinstance(error, EmbedderTimeout)
        assert len(accepted) == 2, "worth one more try"


def test_something_that_is_not_http() -> None:
    with speaking(reading(lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 3))) as (url, _):
        fails(BadEmbedding, "not HTTP", url)
    with speaking(reading(lambda c: c.sendall(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000))) as (url, _):
        fails(BadEmbedding, "not HTTP", url)


@pytest.mark.parametrize("with_length", [True, False], ids=["and says so", "without end"])
def test_a_huge_body_is_not_read(with_length: bool) -> None:
    sent = [0]

    def flood(connection: socket.socket) -> None:
        head = b"Content-Length: 99999999999" if with_length else b"Connection: close"
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        for _ in range(1000):
            sent[0] += connection.send(b" " * (1 << 16))

    with speaking(reading(flood)) as (url, _):
        fails(BadEmbedding, "more than 1,[0-9,]+ bytes, which these vectors cannot need", url)
    assert sent[0] < 20 << 20


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again() -> None:
    body = json.dumps({"embeddings": [[1, 0]]}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def once(connection: socket.socket) -> None:
        connection.sendall(head + body)
        connection.close()

    with speaking(reading(once)) as (url, accepted):
        embedder = endpoint(url)
        for _ in range(3):
            assert embedder.embed_passages(["x"]).shape == (1, 2)
        assert len(accepted) == 3


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory) -> ssl.SSLContext:
    """A self-signed certificate, made for this run."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make_one = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    try:
        subprocess.run(
            [
                *make_one.split(),
                "-addext",
                "subjectAltName=DNS:localhost,DNS:embed.example",
                "-keyout",
                key,
                "-out",
                certificate,
            ],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("there is no openssl program to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.certificate = certificate
    return context


def test_a_certificate_that_cannot_be_trusted(untrusted) -> None:
    with listening(unit, tls=untrusted) as server:
        error = fails(EmbedderUnavailable, "certificate of .* cannot be trusted: self-signed", server.url)
        assert "SSL_CERT_FILE" in error.fix
        assert not server.requests


def test_a_certificate_is_for_the_name_and_not_for_the_number(untrusted, monkeypatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(untrusted.certificate))
    with listening(unit, tls=untrusted) as server:
        fails(EmbedderUnavailable, "cannot be trusted: IP address mismatch", server.url)
        named = server.url.replace("127.0.0.1", "localhost")
        embedder = endpoint(named)
        assert embedder.embed_passages(["a", "b"]).shape == (2, 2)
        assert server.requests[0].headers["host"] == f"localhost:{server.port}"
        embedder.embed_passages(["c"])
        assert len(server.requests) == 2


def test_https_passes_a_proxy_that_cannot_read_it(untrusted, monkeypatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(untrusted.certificate))

    def relay(client) -> None:
        with socket.create_connection(("127.0.0.1", server.port)) as onward:
            client.raw(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=copy, args=(onward, client.connection))
            back.start()
            copy(client.connection, onward)
            back.join()

    def copy(source: socket.socket, goal: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                goal.sendall(data)
            goal.shutdown(socket.SHUT_WR)

    url = "https://embed.example/v1"
    with listening(unit, tls=untrusted) as server, listening(lambda _: relay) as proxy:
        settings = Settings(embedder="endpoint", endpoint_url=url, model="m", dim=2, allow_remote=(url,))
        embedder = make(settings, environ={"HTTPS_PROXY": f"http://me:word@127.0.0.1:{proxy.port}"})
        for _ in range(2):
            assert embedder.embed_passages(["x"]).shape == (1, 2)
        assert [request.path for request in proxy.requests] == ["embed.example:443"]
        assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")
        assert [request.headers["host"] for request in server.requests] == ["embed.example"] * 2
        assert "proxy-authorization" not in server.requests[0].headers


def test_a_server_without_tls() -> None:
    with listening(unit) as server:
        error = fails(EmbedderUnavailable, "does not speak TLS", server.url.replace("http:", "https:"))
        assert "http://" in error.fix


def test_redirects() -> None:
    def answer(request):
        if request.path == "/old":
            return Sent(b"", 308, {"Location": "/new"})
        if request.path == "/circle":
            return Sent(b"", 307, {"Location": "/circle"})
        if request.path == "/nowhere":
            return Sent(b"", 302)
        if request.path == "/get":
            return Sent(b"", 303, {"Location": "/new"})
        if request.path.startswith("/to/"):
            return Sent(b"", 307, {"Location": request.path.removeprefix("/to/")})
        return unit(request)

    with listening(unit) as other, listening(answer) as server:
        assert endpoint(f"{server.url}/old").embed_passages(["x"]).shape == (1, 2)
        assert server.requests[-1].texts == ["x"], "the text went along"
        fails(EmbedderUnavailable, "redirects again and again", f"{server.url}/circle")
        fails(EgressRefused, "redirects to nowhere", f"{server.url}/nowhere")
        fails(EmbedderUnavailable, "status 303", f"{server.url}/get")
        for goal in (
            other.url,
            f"//localhost:{server.port}/",
            f"https://127.0.0.1:{server.port}/",
            "http://[/",
            "file:///x",
        ):
            fails(
                EgressRefused,
                "redirects to .*, and text goes only where it was allowed to go",
                f"{server.url}/to/{goal}",
            )
        assert not other.requests
        assert other.connections == 0


def test_the_first_error_ends_a_build_of_many_batches_at_once() -> None:
    with listening(lambda _: Sent({"error": "no"}, 401)) as server:
        fails(EmbedderUnavailable, "401", server.url, texts=1000, batch=2)
        assert len(server.requests) == 1, "the first batch goes alone"


def test_one_failing_batch_ends_the_others_in_flight() -> None:
    def answer(request):
        if "bad" in request.texts:
            return Sent({"error": "no"}, 400)
        if "slow" in request.texts:
            waited.append(server.ending.wait(60))
        return unit(request)

    waited: list[bool] = []

    with listening(answer) as server:
        embedder = endpoint(server.url, batch=1)
        embedder.embed_passages(["first"])
        with pytest.raises(EmbedderUnavailable, match="400"):
            embedder.embed_passages(["slow", "slow", "bad"] + ["never"] * 50)
        assert not waited, "the server still works on the slow ones"
        assert server.texts.count("never") < 25


@pytest.mark.parametrize("answered", [0, 3], ids=["the first batch", "several in flight"])
def test_ctrl_c_ends_what_waits_for_a_server(answered: int) -> None:
    def answer(request):
        if len(server.requests) > answered:
            waited.append(server.ending.wait(60))
        return unit(request)

    waited: list[bool] = []

    with listening(answer) as server:
        embedder = endpoint(server.url, batch=1)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            embedder.embed_passages(["x"] * 20)
        assert not waited, "the server still works on its answers"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("embed")]


def test_a_server_that_restarts_during_a_build_is_waited_for(caplog, monkeypatch) -> None:
    monkeypatch.setattr(retry, "PAUSES", (0.05, 0.5, 0.5))
    with listening(unit) as server:
        embedder = endpoint(server.url)
        embedder.embed_passages(["x"])
    again: list[object] = []

    def restart() -> None:
        with listening(unit, port=server.port) as second:
            again.append(second)
            done.wait(60)

    done = threading.Event()
    timer = threading.Timer(0.15, restart)
    timer.start()
    try:
        assert embedder.embed_passages(["y"]).shape == (1, 2)
    finally:
        done.set()
        timer.join()
    assert len(again) == 1
    assert "nothing listens there; trying again" in caplog.text


def test_a_server_that_is_gone_for_good_is_told_of_each_time(caplog) -> None:
    with listening(unit) as server:
        embedder = endpoint(server.url)
        embedder.embed_passages(["x"])
    with pytest.raises(EmbedderUnavailable, match="nothing listens there"):
        embedder.embed_passages(["x"])
    assert caplog.text.count("nothing listens there; trying again") == 3


def test_a_build_that_fails_part_way_keeps_what_it_has_and_says_how_far_it_came(tmp_path) -> None:
    for number in range(600):
        (tmp_path / f"{number:03}.md").write_text(f"# Note {number}\n\nAbout the number {number} and nothing else.\n")
    healthy = [False]

    def answer(request):
        if not healthy[0] and len(server.texts) > 400:
            return Sent({"error": "out of memory"}, 401)
        return as_endpoint(HashEmbedder(64))(request)

    with listening(answer) as server:
        settings = Settings(embedder="endpoint", model="m", dim=64, endpoint_url=server.url)
        with outcrop.open(tmp_path, settings=settings) as index:
            with pytest.raises(
                EmbedderUnavailable, match=r"out of memory \(after \d+ of 600 passages, which are kept"
            ) as e:
                index.build()
            kept = int(e.value.what.rpartition("after ")[2].split()[0])
            assert 32 <= kept < 600
            status = index.status()
            assert status.complete == pytest.approx(kept / 600)
            answered = index.search("Note 599")
            assert answered.mode is Mode.KEYWORD
            assert "out of memory" in str(answered.reason)
            assert answered.hits[0].path == "599.md"
            healthy[0] = True
            report = index.build()
            assert report.complete
            assert report.embedded == 600 - kept
            assert index.search("Note 599").mode is Mode.HYBRID


def test_faults_are_told_on_the_library_log(caplog) -> None:
    with listening(lambda r: unit(r) if len(server.requests) > 1 else Sent(b"", 502)) as server:
        endpoint(server.url).embed_passages(["x"])
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("outcrop.embedders.http.retry", logging.WARNING)
    ]

"""``outcrop serve`` as people run it: one process, real sockets, several readers, an index that changes meanwhile."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
from mcp import Client
from repositories import write
from serve_process import Server, serving, start
from web_client import GUIDE, make_kettle, open_kettle

from outcrop.errors import OutcropError
from outcrop.surfaces.web import server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_kettle(tmp_path_factory.mktemp("serve") / "kettle")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Server]:
    with serving(folder) as running:
        yield running


def get(address: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    request = urllib.request.Request(address, headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_it_prints_the_address_of_a_page_that_answers(served: Server) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/ext/search", served.address)
    status, page = get(served.address + "?q=vinegar")
    assert status == 200
    assert "guide.md" in page
    assert get(served.base)[0] == 200


def test_a_raw_request_without_a_host_or_with_nonsense_is_survived(served: Server) -> None:
    port = int(served.base.rpartition(":")[2])
    for raw in (
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x00\xff\x16\x03\r\n\r\n",
        b"GET /ext/search?q=\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            assert re.match(rb"HTTP/1\.1 4\d\d", connection.recv(100))
    assert get(served.address)[0] == 200


def test_mcp_answers_on_the_same_port(served: Server) -> None:
    async def ask() -> list[str]:
        async with Client(f"{served.base}/mcp") as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "semantic_search" in anyio.run(ask)


def test_several_readers_while_the_index_is_built_anew(tmp_path: Path) -> None:
    folder = make_kettle(tmp_path / "kettle")
    with serving(folder) as running:

        def read(number: int) -> tuple[int, str]:
            return get(f"{running.base}/ext/api/search?q=limescale+vinegar+{number}")

        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(read, number) for number in range(30)]
            for turn in range(3):
                write(folder, {"docs/guide.md": GUIDE + f"\nRound {turn}.\n"})
                with open_kettle(folder) as index:
                    index.build(rebuild=turn == 1)
            for answer in answers:
                status, text = answer.result()
                assert status == 200
                assert json.loads(text)["mode"] in ("hybrid", "keyword")
        hits = json.loads(get(f"{running.base}/ext/api/search?q=round+2&mode=keyword")[1])["hits"]
        assert any("Round 2." in hit["text"] for hit in hits)


def test_a_hundred_questions_at_once_are_all_answered(served: Server) -> None:
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(get, [f"{served.base}/ext/api/search?q=water+{number}" for number in range(100)]))
    assert {status for status, _ in answers} == {200}


def test_silent_connections_keep_nobody_out(folder: Path) -> None:
    # With 256 descriptors as many connections as there are here do not fit.
    with serving(folder, descriptors=256) as running, contextlib.ExitStack() as silent:
        port = int(running.base.rpartition(":")[2])
        for number in range(300):
            connection = silent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            connection.sendall(b"GET / HT" if number % 2 else b"")
        assert get(running.address + "?q=water")[0] == 200
        code, errors = running.interrupt()
    assert code == 0
    assert "Traceback" not in errors
    assert "no connection can be accepted" not in errors


@pytest.fixture(scope="module")
def impatient(folder: Path) -> Iterator[int]:
    """The port of a server that gives a client half a second."""
    code = (
        "from outcrop.surfaces.cli.entry import outcrop; from outcrop.surfaces.web import connections;"
        " connections.CLIENT_TIMEOUT = 0.5; outcrop()"
    )
    command = [sys.executable, "-c", code, "serve", folder, "--embedder", "hash", "--port", "0"]
    with subprocess.Popen(command, stdout=-1, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline().split(":")[2].partition("/")[0])
        process.kill()


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (b"", 0),
        (b"GET /ext/search HTTP/1.1\r\nHost: 127", 0),
        (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{", 0),
        (b"GET /ext/api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nx", 1),
        (b"GET /ext/api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /", 1),
    ],
)
def test_a_client_that_never_ends_its_request_is_left(impatient: int, sent: bytes, answers: int) -> None:
    with socket.create_connection(("127.0.0.1", impatient), timeout=60) as connection:
        connection.sendall(sent)
        received = b""
        # Only the server can end this.
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(65536):
                received += data
    assert received.count(b"HTTP/1.1 200") == answers
    assert received.count(b"HTTP/1.1") == answers


@pytest.mark.parametrize("blocking", ["await anyio.to_thread.run_sync(time.sleep, 3600)", "time.sleep(3600)"])
def test_sigterm_ends_it_also_while_a_request_never_ends(tmp_path: Path, blocking: str) -> None:
    (tmp_path / "hanging.py").write_text(
        f"""
import anyio, time, sys
from starlette.applications import Starlette
from starlette.routing import Route
from outcrop.surfaces.web import server

async def hang(request):
    print("running", flush=True)
    {blocking}

listening = server.listen("127.0.0.1", 0)
print(listening.port, flush=True)
server.run(Starlette(routes=[Route("/", hang)]), listening)
"""
    )
    with subprocess.Popen([sys.executable, tmp_path / "hanging.py"], stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGTERM)
            try:
                _, errors = process.communicate(timeout=60)
            finally:
                process.kill()
    assert process.returncode == 0
    assert errors == "outcrop: ended; a request was still running\n"


def test_ctrl_c_ends_it_at_once_and_without_noise(folder: Path) -> None:
    with serving(folder) as running:
        get(running.address + "?q=water")
        with socket.create_connection(("127.0.0.1", int(running.base.rpartition(":")[2]))) as idle:
            idle.sendall(b"GET / HT")
            # Does not wait for the idle connection: that would reach the timeout of interrupt().
            code, errors = running.interrupt()
    assert code == 0
    assert errors.endswith("outcrop: ended\n")
    assert "Traceback" not in errors


def test_another_address_demands_a_token(folder: Path) -> None:
    with serving(folder, "--host", "0.0.0.0") as running:
        token = running.address.partition("?token=")[2]
        assert len(token) > 20
        assert get(f"{running.base}/ext/api/status")[0] == 401
        assert get(f"{running.base}/ext/search")[0] == 401
        assert get(f"{running.base}/mcp")[0] == 401
        assert get(f"{running.base}/ext/api/status", {"Authorization": f"Bearer {token}"})[0] == 200


def test_a_token_of_ones_own_is_named_and_never_shown(folder: Path) -> None:
    with serving(folder, "--token-ref", "MY_TOKEN", MY_TOKEN="correct-horse-battery") as running:
        assert "horse" not in running.address
        assert get(f"{running.base}/ext/api/status")[0] == 401
        bearer = {"Authorization": "Bearer correct-horse-battery"}
        assert get(f"{running.base}/ext/api/status", bearer)[0] == 200
        assert "horse" not in running.interrupt()[1]


@pytest.mark.parametrize(
    ("options", "variables", "says"),
    [
        (["--token-ref", "NO_SUCH"], {}, "there is no environment variable NO_SUCH"),
        (["--token-ref", "WEAK"], {"WEAK": "1234"}, "too simple"),
        (["--host", "no.such.host.invalid"], {}, "there is no host"),
        (["--host", "192.0.2.1"], {}, "cannot listen on"),
        (["--port", "70000"], {}, "70000"),
    ],
)
def test_what_cannot_be_served_is_said(folder: Path, options: list[str], variables: dict[str, str], says: str) -> None:
    process = start(folder, *options, **variables)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (1, 2)
    assert says in errors
    assert "Traceback" not in errors


def test_a_taken_port_is_an_error_only_where_it_was_asked_for() -> None:
    with server.listen("127.0.0.1", 0).socket as taken:
        with pytest.raises(OutcropError, match="cannot listen on"):
            server.listen("127.0.0.1", taken.getsockname()[1])
        # Where the default one is taken, there is another.
        with server.listen("127.0.0.1", None).socket as usual, server.listen("127.0.0.1", None).socket as other:
            assert usual.getsockname()[1] != other.getsockname()[1]


def test_addresses_are_shown_as_a_browser_takes_them() -> None:
    wide = server.listen("0.0.0.0", 0)
    with wide.socket:
        assert (wide.address, wide.loopback) == (f"http://127.0.0.1:{wide.port}", False)
    here = server.listen("localhost", 0)
    with here.socket:
        assert here.loopback

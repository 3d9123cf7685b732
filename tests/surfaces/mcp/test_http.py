"""The same tools over streamable HTTP, on a real socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import anyio
import pytest
import uvicorn
from mcp import Client
from repositories import write

import outcrop
from outcrop.app.index import Index
from outcrop.surfaces.mcp.http import LARGEST_BODY, McpEndpoint
from outcrop.surfaces.web.app import make_app
from outcrop.surfaces.web.auth import Authenticator

HASH = {"embedder": "hash"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("http") / "kettle"
    write(
        root, {"README.md": "# Kettle\n\nBoils water.\n", "src/kettle.py": "def boil(water):\n    return heat(water)\n"}
    )
    with outcrop.open(root, settings=HASH) as opened:
        opened.build()
        yield opened


@pytest.fixture(scope="module")
def port(index: Index) -> Iterator[int]:
    app = make_app(index, authenticator=Authenticator(["search.example"]))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(60)
    assert not thread.is_alive()
    listening.close()


def post(port: int, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/mcp", body, HEADERS | headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_hits_are_those_of_the_index(port: int, index: Index, mode: Any) -> None:
    async def run() -> tuple[list[str], Any, Any]:
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("semantic_search", {"query": "boil water", "k": 2})
            read = await client.call_tool("read_passage", {"path": "src/kettle.py:1-1", "around": 0})
            return names, found.structured_content, read.structured_content

    names, found, read = anyio.run(run)
    assert names == ["semantic_search", "read_passage", "index_status"]
    assert found == json.loads(json.dumps(index.search("boil water", k=2).to_dict()))
    assert (read["path"], read["text"]) == ("src/kettle.py", "def boil(water):")


def test_words_alone_are_had_by_another_address(port: int) -> None:
    async def run() -> tuple[Any, Any]:
        async with Client(f"http://127.0.0.1:{port}/mcp?text-only") as client:
            listed = await client.list_tools()
            return listed.tools, await client.call_tool("semantic_search", {"query": "boil water", "k": 2})

    listed, result = anyio.run(run)
    assert [tool.output_schema for tool in listed] == [None, None, None]
    assert result.structured_content is None
    assert result.content[0].text.startswith("hybrid: 2 hits")


def test_no_stream_is_kept_open_for_what_the_server_might_say(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
    assert connection.getresponse().status == 405
    connection.close()


def test_clients_at_the_same_time(port: int) -> None:
    async def one(at: int, found: list[int]) -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            result = await client.call_tool("semantic_search", {"query": f"water {at}"})
            found.append(len(result.structured_content["hits"]))

    async def run() -> list[int]:
        found: list[int] = []
        async with anyio.create_task_group() as group:
            for at in range(8):
                group.start_soon(one, at, found)
        return found

    found = anyio.run(run)
    assert len(found) == 8
    assert all(found)


def test_answers_are_plain_json_without_a_session(port: int) -> None:
    status, body = post(port, json.dumps(GREETING).encode())
    assert status == 200
    assert json.loads(body)["result"]["serverInfo"]["name"] == "outcrop"
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "index_status", "arguments": {}}}
    status, body = post(port, json.dumps(call).encode(), **{"MCP-Protocol-Version": "2025-11-25"})
    assert (status, json.loads(body)["result"]["structuredContent"]["exists"]) == (200, True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "localhost:9"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:9", "Origin": "http://localhost:9"}, 200),
        ({"Host": "search.example", "Origin": "https://search.example"}, 200),
        ({"Origin": "https://search.example"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
def test_other_sites_are_turned_away(port: int, headers: dict[str, str], status: int) -> None:
    assert post(port, json.dumps(GREETING).encode(), **headers)[0] == status


def test_large_and_broken_bodies_are_refused_and_the_server_goes_on(port: int) -> None:
    assert post(port, b"x" * (LARGEST_BODY + 1))[0] == 413
    assert post(port, b"{")[0] == 400
    assert post(port, b"[]")[0] == 400
    assert post(port, b"\xff\xfe")[0] == 400
    assert post(port, json.dumps(GREETING).encode())[0] == 200


def test_the_index_is_left_open_to_whoever_opened_it(index: Index) -> None:
    endpoint = McpEndpoint(lambda: index)

    async def run() -> None:
        async with endpoint.lifespan():
            await anyio.sleep(0.05)

    anyio.run(run)
    assert index.store.file.database is not None

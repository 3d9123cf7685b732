"""The server as a process that a client starts: what it says first, what reaches standard output, and when it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.message import SessionMessage
from mcp_types import version as versions
from repositories import make_repository

import outcrop
from outcrop.app.warm_index import WarmIndex
from outcrop.surfaces.mcp import early_answers, tools
from outcrop.surfaces.mcp.early_answers import ENVELOPE_VERSION, HANDSHAKE_VERSIONS, EarlyResponder
from outcrop.surfaces.mcp.server import make_server

FILES: dict[str, str | bytes] = {
    "README.md": "# Kettle\n\nBoils water.\n",
    "src/kettle.py": "def boil(water):\n    return heat(water, 100)\n",
}
PARTY = {"name": "test", "version": "1"}
META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": ENVELOPE_VERSION,
        "io.modelcontextprotocol/clientInfo": PARTY,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
SEARCH = {"name": "semantic_search", "arguments": {"query": "boil water", "k": 1}}


def request(number: int | str, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method} | ({"params": params} if params else {})


def greeting(version: str = HANDSHAKE_VERSIONS[-1], number: int | str = 0) -> dict[str, Any]:
    return request(number, "initialize", protocolVersion=version, capabilities={"roots": {}}, clientInfo=PARTY)


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_repository(tmp_path_factory.mktemp("mcp") / "kettle", FILES)
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        index.build()
    return root


def environment() -> dict[str, str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OUTCROP_") or name == "OUTCROP_HISTORY"
    }
    return clean | {"OUTCROP_CONFIG": os.devnull, "OUTCROP_EMBEDDER": "hash"}


def command(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "outcrop", "mcp", str(root), *options]


class Talk:
    """A server process, and lines to and from it."""

    def __init__(self, arguments: list[str], **options: Any) -> None:
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            **options,
        )

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def ask(self, *messages: dict[str, Any]) -> dict[str, Any]:
        self.send(*messages)
        return self.hear()


@contextmanager
def talking(arguments: list[str], **options: Any) -> Iterator[Talk]:
    talk = Talk(arguments, **options)
    try:
        yield talk
    finally:
        talk.process.kill()
        talk.process.wait(60)
        for pipe in (talk.process.stdin, talk.process.stdout, talk.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def script(body: str) -> list[str]:
    """A process that prepares something and then is the server."""
    return [sys.executable, "-c", textwrap.dedent(body)]


def answers_of_the_sdk(messages: list[dict[str, Any]], *, structured: bool) -> list[Any]:
    """What the SDK's own server answers, as plain values."""

    async def run() -> list[Any]:
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](10)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](10)
        server = make_server(WarmIndex(lambda: outcrop.open(".")), structured=structured)
        found = []
        async with anyio.create_task_group() as group:
            group.start_soon(server.run, from_client, to_client, server.create_initialization_options())
            for message in messages:
                parsed = mcp_types.jsonrpc_message_adapter.validate_python(message)
                await to_server.send(SessionMessage(parsed))
                if "id" in message:
                    answer = (await from_server.receive()).message
                    found.append(json.loads(answer.model_dump_json(by_alias=True, exclude_unset=True)))
            await to_server.aclose()
        await from_server.aclose()
        return found

    return anyio.run(run)


def early_answers_to(messages: list[dict[str, Any]], *, structured: bool) -> list[Any]:
    early = EarlyResponder(structured=structured)
    found = [early.answer(message) for message in messages]
    return [json.loads(answer) for message, answer in zip(messages, found, strict=True) if "id" in message and answer]


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_the_early_answers_say_what_the_sdk_says(version: str, structured: bool) -> None:
    messages = [greeting(version, "a"), INITIALIZED, request(1, "tools/list")]
    found = early_answers_to(messages, structured=structured)
    assert len(found) == 2
    assert found == answers_of_the_sdk(messages, structured=structured)


@pytest.mark.parametrize("structured", [True, False])
def test_the_early_answers_know_the_newest_version_too(structured: bool) -> None:
    messages = [request(1, "server/discover", **META), request("x", "tools/list", **META)]
    found = early_answers_to(messages, structured=structured)
    assert len(found) == 2
    assert found == answers_of_the_sdk(messages, structured=structured)


def test_the_early_answers_list_the_tools_that_there_are() -> None:
    assert early_answers.listed(structured=True) == tools.listed(structured=True), (
        "python -m outcrop.surfaces.mcp.tools"
    )


def test_the_early_answers_know_every_version_that_the_sdk_knows() -> None:
    assert (*HANDSHAKE_VERSIONS, ENVELOPE_VERSION) == versions.KNOWN_PROTOCOL_VERSIONS


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        "initialize",
        greeting("1999-01-01"),
        request(1, "tools/list"),
        request(1, "ping"),
        request(1, "tools/call", **SEARCH),
        {**greeting(), "id": None},
        {**greeting(), "id": True},
        {**greeting(), "id": 1.5},
        {**greeting(), "jsonrpc": "1.0"},
        {**greeting(), "extra": 1},
        {**greeting(), "params": None},
        {**greeting(), "params": {"protocolVersion": "2025-11-25"}},
        {**greeting(), "params": greeting()["params"] | {"clientInfo": {"name": 1, "version": "1"}}},
        request(1, "server/discover"),
        request(1, "server/discover", _meta=META["_meta"] | {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}),
    ],
)
def test_whatever_else_is_the_sdks_and_so_is_all_that_follows(message: Any) -> None:
    early = EarlyResponder()
    assert early.answer(message) is None
    assert early.answer(greeting()) is None


def test_a_cursor_or_another_era_is_not_answered_early() -> None:
    early = EarlyResponder()
    assert early.answer(greeting()) is not None
    assert early.answer(INITIALIZED) is None
    assert early.answer(request(1, "tools/list", **META)) is None
    early = EarlyResponder()
    assert early.answer(greeting()) is not None
    assert early.answer(request(1, "tools/list", cursor="x")) is None


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_client_meets_the_tools_over_stdio(root: Path, mode: Any) -> None:
    async def run() -> tuple[list[str], Any, str]:
        started = StdioServerParameters(command=sys.executable, args=command(root)[1:], env=environment())
        async with Client(started, mode=mode) as client:
            listed = await client.list_tools()
            result = await client.call_tool(**SEARCH)
            again = await client.list_tools()
            assert again.tools == listed.tools
            return [tool.name for tool in listed.tools], result.structured_content, client.server_info.name

    names, found, name = anyio.run(run)
    assert names == ["semantic_search", "read_passage", "index_status"]
    assert name == "outcrop"
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        assert found == json.loads(json.dumps(index.search("boil water", k=1).to_dict()))


def test_the_first_answers_come_before_the_sdk_is_loaded(root: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    arguments = script(
        f"""
        import pathlib, sys, time
        class Slow:
            def find_spec(self, name, path=None, target=None):
                while name == "mcp" and not pathlib.Path({str(gate)!r}).exists():
                    time.sleep(0.01)
        sys.meta_path.insert(0, Slow())
        from outcrop.surfaces.cli.program import main
        sys.exit(main(["mcp", {str(root)!r}]))
        """
    )
    with talking(arguments) as talk:
        assert talk.ask(greeting())["result"]["serverInfo"]["name"] == "outcrop"
        listed = talk.ask(INITIALIZED, request(1, "tools/list"))
        assert (listed["id"], len(listed["result"]["tools"])) == (1, 3)
        talk.send(request(2, "tools/call", **SEARCH))
        gate.touch()
        # Neither of the first two comes a second time, from the SDK.
        found = talk.hear()
        assert (found["id"], found["result"]["structuredContent"]["mode"]) == (2, "hybrid")
        assert talk.ask(request(0, "ping")) == {"jsonrpc": "2.0", "id": 0, "result": {}}


def test_the_first_answers_need_no_heavy_package(root: Path) -> None:
    arguments = script(
        """
        import sys
        from outcrop.surfaces.mcp import early_answers, stdio
        early_answers.listed(True)
        heavy = {"numpy", "onnxruntime", "mcp", "pydantic", "anyio", "starlette", "asyncio", "httpx2"}
        print(sorted(heavy & sys.modules.keys()))
        """
    )
    assert subprocess.run(arguments, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_standard_output_is_protocol_only(root: Path) -> None:
    arguments = script(
        f"""
        import logging, os, subprocess, sys, warnings
        from outcrop.app.index import Index
        real = Index.search
        def noisy(self, *arguments, **rest):
            print("printed")
            os.write(1, b"written\\n")
            sys.__stdout__.write("buffered")
            sys.stdout.flush()
            subprocess.run(["echo", "echoed"])
            logging.getLogger("outcrop").warning("logged")
            logging.getLogger("anything").error("logged elsewhere")
            warnings.warn("warned")
            assert sys.stdin.read() == ""
            assert os.read(0, 1) == b""
            return real(self, *arguments, **rest)
        Index.search = noisy
        from outcrop.surfaces.cli.program import main
        sys.exit(main(["mcp", {str(root)!r}]))
        """
    )
    lines = [greeting(), INITIALIZED, {"not": "protocol"}, request(1, "tools/call", **SEARCH), request(2, "ping")]
    sent = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b"garbage \xff\n\n"
    run = subprocess.run(arguments, input=sent, capture_output=True, env=environment(), timeout=60, check=True)
    heard = [json.loads(line) for line in run.stdout.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in heard)
    assert {0, 1, 2} <= {message.get("id") for message in heard}
    (found,) = (message for message in heard if message.get("id") == 1)
    assert not found["result"].get("isError"), found
    for noise in ("printed", "written", "buffered", "echoed", "logged", "logged elsewhere", "warned"):
        assert noise in run.stderr.decode(), noise


def test_what_is_piped_in_is_answered_before_the_end(root: Path) -> None:
    lines = [greeting(), INITIALIZED, *(request(number, "tools/call", **SEARCH) for number in range(1, 6))]
    sent = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    run = subprocess.run(command(root), input=sent, capture_output=True, env=environment(), timeout=60, check=True)
    assert sorted(json.loads(line)["id"] for line in run.stdout.splitlines()) == [0, 1, 2, 3, 4, 5]
    assert run.stderr == b""


def test_half_a_character_is_no_reason_not_to_answer(root: Path) -> None:
    asked = request(1, "tools/call", name="semantic_search", arguments={"query": "boil \ud83d water \U0001f600"})
    sent = b"".join(json.dumps(line).encode() + b"\n" for line in (greeting(), INITIALIZED, asked))
    assert rb"\ud83d " in sent
    run = subprocess.run(command(root), input=sent, capture_output=True, env=environment(), timeout=60, check=True)
    found = [json.loads(line) for line in run.stdout.splitlines()][-1]
    assert (found["id"], found["result"]["structuredContent"]["hits"][0]["path"]) == (1, "src/kettle.py")


def test_it_ends_with_its_client(root: Path) -> None:
    with talking(command(root)) as talk:
        talk.ask(greeting())
        assert talk.process.stdin is not None
        talk.process.stdin.close()
        assert talk.process.wait(60) == 0


def test_it_ends_when_its_parent_is_killed(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "pid"
    parent = script(
        f"""
        import subprocess, sys, time
        child = subprocess.Popen({command(root)!r}, stdin=subprocess.PIPE)
        open({str(place)!r}, "w").write(str(child.pid))
        print("started", flush=True)
        time.sleep(60)
        """
    )
    with talking(parent) as talk:
        assert talk.process.stdout is not None
        assert talk.process.stdout.readline() == b"started\n"
        talk.process.kill()
        pid = int(place.read_text())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and _runs(pid):
            time.sleep(0.05)
        assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_it_ends_when_nobody_reads(root: Path) -> None:
    with talking(command(root)) as talk:
        talk.ask(greeting())
        assert talk.process.stdout is not None
        talk.process.stdout.close()
        talk.send(INITIALIZED, request(1, "tools/call", **SEARCH))
        assert talk.process.wait(60) == 0


def test_ctrl_c_ends_it_quietly(root: Path) -> None:
    with talking(command(root)) as talk:
        talk.ask(greeting())
        talk.ask(INITIALIZED, request(1, "tools/call", **SEARCH))
        talk.process.send_signal(signal.SIGINT)
        assert talk.process.wait(60) == 0
        assert talk.process.stderr is not None
        assert talk.process.stderr.read() == b""


def test_closed_standard_input_and_a_missing_folder_are_errors(root: Path, tmp_path: Path) -> None:
    shell = f"exec {' '.join(command(root))} <&-"
    closed = subprocess.run(["sh", "-c", shell], capture_output=True, env=environment(), timeout=60, check=False)
    assert (closed.returncode, closed.stdout) == (2, b"")
    assert b"speaks with a client" in closed.stderr
    missing = subprocess.run(
        command(tmp_path / "missing"), capture_output=True, input=b"", env=environment(), timeout=60, check=False
    )
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert b"there is no" in missing.stderr


@pytest.mark.parametrize("place", ["/", "~"])
def test_a_whole_machine_is_no_project(place: str, tmp_path: Path) -> None:
    run = subprocess.run(
        command(tmp_path if place == "~" else Path("/")),
        capture_output=True,
        input=b"",
        env=environment() | {"HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, b"")
    assert b"is no project" in run.stderr


def test_many_servers_share_one_index_while_it_is_built(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", FILES | {f"src/{name}.py": f"X = {name!r}\n" * 50 for name in "abcdefgh"})
    build = [sys.executable, "-m", "outcrop", "index", "-q", str(root)]
    with talking(command(root)) as one, talking(command(root)) as two, talking(command(root)) as three:
        servers = (one, two, three)
        for server in servers:
            server.ask(greeting())
            assert server.ask(INITIALIZED, request(1, "tools/call", **SEARCH))["result"]["structuredContent"]["hits"]
        builder = subprocess.Popen(build, env=environment())
        asked = 0
        while builder.poll() is None or asked < 3:
            for number, server in enumerate(servers):
                found = server.ask(request(100 + 10 * asked + number, "tools/call", **SEARCH))
                assert found["result"]["structuredContent"]["hits"], found
            asked += 1
        assert builder.wait() == 0
        for server in servers:
            found = server.ask(request(2, "tools/call", **SEARCH))["result"]["structuredContent"]
            assert (found["mode"], found["reason"], found["stale"]) == ("hybrid", None, None)


def test_text_only_and_a_revision_are_options(root: Path) -> None:
    with talking(command(root, "--text-only", "--rev", "HEAD")) as talk:
        talk.ask(greeting())
        listed = talk.ask(INITIALIZED, request(1, "tools/list"))["result"]["tools"]
        assert not any("outputSchema" in tool for tool in listed)
        found = talk.ask(request(2, "tools/call", **SEARCH))["result"]
        assert "structuredContent" not in found
        assert "src/kettle.py" in found["content"][0]["text"]


def test_settings_that_are_edited_meanwhile_count(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", FILES)
    status = {"name": "index_status", "arguments": {}}
    (root / "outcrop.toml").write_text('embedder = "hash"\n')
    with talking(["env", "-u", "OUTCROP_EMBEDDER", *command(root)]) as talk:
        talk.ask(greeting())

        def embedder(number: int) -> str:
            found = talk.ask(request(number, "tools/call", **status))["result"]["structuredContent"]
            return str(found["embedder"])

        talk.send(INITIALIZED)
        assert embedder(1) == "hash-768"
        (root / "outcrop.toml").write_text('embedder = "hash"\ndim = 64\n')
        assert embedder(2) == "hash-64-64"
        (root / "outcrop.toml").write_text("embedder = ")
        assert embedder(3) == "hash-64-64"

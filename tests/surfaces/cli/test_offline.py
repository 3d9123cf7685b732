"""With default settings no command looks a name up or connects to anything; `benchmarks/offline.py` asks the system."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from repositories import git, make_repository

from outcrop.surfaces.cli.program import COMMANDS

# Writes each attempt of this process to talk to somebody to a file.
WATCHER = """
import os, sys
log = open(os.environ["ATTEMPTS"], "a", 1)
def hook(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"):
        log.write(f"{event} {arguments[0]!r}\\n")
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        log.write(f"{event} {arguments[1]!r}\\n")
sys.addaudithook(hook)
"""

RUN = "import sys; from outcrop.surfaces.cli.program import main; sys.exit(main(sys.argv[1:]))"

EVERY = {
    "index": [],
    "search": ["where is water boiled"],
    "status": [],
    "watch": ["--once"],
    "import-project": ["{peer}"],
    "projects": [],
    "media": ["list"],
    "push": ["{remote}"],
    "pull": ["{remote}"],
    "export": ["{out}"],
    "import": [],
    "fossil": ["--help"],
    "context": ["where is water boiled"],
    "call": ["vectors.index.status", "{{}}"],
    "config": [],
    "embedder": ["test"],
    "probe": [],
    "eval": ["{judged}"],
    "rebuild": [],
    "check": [],
    "normalize": [],
    "completion": ["bash"],
    "clear": ["--all", "--yes"],
}
# Those that end when they are told to have tests of their own below.
LASTING = {"serve", "mcp"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OUTCROP_EMBEDDER", raising=False)
    watcher = tmp_path / "watcher"
    watcher.mkdir()
    (watcher / "sitecustomize.py").write_text(WATCHER)
    # Reaches every Python that a command starts, too.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(watcher), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("ATTEMPTS", str(tmp_path / "attempts"))
    (tmp_path / "attempts").touch()
    files: dict[str, str | bytes] = {
        "kettle.py": "def boil():\n    return 'water'\n",
        "guide.md": "# Guide\n\nBoil water.\n",
    }
    make_repository(tmp_path / "peer", files)
    return make_repository(tmp_path / "works", files)


def attempts(place: Path) -> str:
    return (place.parent / "attempts").read_text()


def strangers(place: Path) -> list[str]:
    """Attempts at anything but this machine by its number, where `probe` looks for Ollama and `serve` listens."""
    return [line for line in attempts(place).splitlines() if line.split("'")[1] not in ("127.0.0.1", "::1")]


def outcrop_command(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=300)


def test_the_watcher_sees_what_it_should(place: Path) -> None:
    script = "import socket\nfor f in (lambda: socket.getaddrinfo('localhost', 1), lambda: socket.create_connection"
    script += "(('127.0.0.1', 1))):\n  try: f()\n  except OSError: pass"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert "socket.getaddrinfo 'localhost'" in attempts(place)
    assert "socket.connect ('127.0.0.1', 1)" in attempts(place)


def test_every_command(place: Path) -> None:
    assert EVERY.keys() | LASTING == COMMANDS.keys()
    git(place.parent, "init", "-q", "--bare", "remote.git")
    git(place, "push", "-q", str(place.parent / "remote.git"), "HEAD")
    names = {name: str(place.parent / name) for name in ("peer", "out")} | {"remote": str(place.parent / "remote.git")}
    judged = place.parent / "judged.jsonl"
    judged.write_text(json.dumps({"query": "where is water boiled", "relevant": ["guide.md"]}) + "\n")
    outcrop_command(place.parent / "peer", "index")
    for command, arguments in EVERY.items():
        filled = [argument.format(judged=judged, **names) for argument in arguments]
        done = outcrop_command(place, command, *filled)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert strangers(place) == [], command


def test_mcp(place: Path) -> None:
    asked = [
        {"method": "initialize", "id": 1, "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"method": "tools/call", "id": 2, "params": {"name": "semantic_search", "arguments": {"query": "boil"}}},
    ]
    asked[0]["params"]["clientInfo"] = {"name": "test", "version": "1"}  # type: ignore[index]
    sent = "".join(json.dumps({"jsonrpc": "2.0"} | each) + "\n" for each in asked)
    command = [sys.executable, "-c", RUN, "mcp"]
    done = subprocess.run(command, cwd=place, input=sent, capture_output=True, text=True, check=True, timeout=300)
    assert '"id":2' in done.stdout.replace(" ", "")
    assert strangers(place) == []


def test_serve_takes_questions_and_asks_nobody(place: Path) -> None:
    command = [sys.executable, "-c", RUN, "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            found = re.match(r"http://(127\.0\.0\.1):\d+", address)
            assert found is not None
            with urllib.request.urlopen(f"{found[0]}/ext/search?q=boil", timeout=120) as response:
                assert b"kettle.py" in response.read()
        finally:
            server.terminate()
    assert strangers(place) == []

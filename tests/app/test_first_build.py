"""While another process makes the first index, every surface says so, and none advises what would fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from repositories import write
from web_client import WebClient

import outcrop
from outcrop.app.warm_index import WarmIndex
from outcrop.core.model import Mode
from outcrop.surfaces.mcp.tools import TOOLS

BUILDING = "another process is making the first index"

# Builds, and stops for good once it has the lock and before anything is in the index.
BUILDER = """
import sys, outcrop
def stop(progress):
    print("building", flush=True)
    sys.stdin.read()
with outcrop.open(sys.argv[1], settings={"embedder": "hash"}) as index:
    index.build(progress=stop)
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    write(tmp_path, {"a.md": "# Alpha\n\nzebra crossing\n"})
    command = [sys.executable, "-c", BUILDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as builder:
        assert builder.stdout is not None
        assert builder.stdout.readline() == b"building\n"
        yield tmp_path
        builder.kill()


def run(root: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "outcrop", *arguments, "--embedder", "hash"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout + done.stderr


def test_commands(root: Path) -> None:
    said = run(root, "search", "zebra")
    assert BUILDING in said
    assert "a.md" in said
    assert "outcrop index" not in said
    said = run(root, "status")
    assert "another process is building it" in said
    assert "→ outcrop index" not in said
    assert json.loads(run(root, "status", "--json"))["writer"] is True


def test_the_api_and_mcp(root: Path) -> None:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        answer = index.search("zebra")
        assert (answer.mode, answer.hits[0].path) == (Mode.KEYWORD, "a.md")
        assert answer.reason is not None
        assert answer.reason.startswith(BUILDING)
        service = WarmIndex(lambda: index)
        status = TOOLS["index_status"].run(service, arguments={})
        assert status.value["building"] is True
        assert "it is being built right now" in status.text
        assert "outcrop index" not in status.text
        found = TOOLS["semantic_search"].run(service, arguments={"query": "zebra"})
        assert BUILDING in found.text


def test_the_page(root: Path) -> None:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        ask = WebClient(index)
        assert "Another process is making the first index." in ask("/ext/search").text
        assert BUILDING in ask("/ext/search", ("q", "zebra")).text.lower()

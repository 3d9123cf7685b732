"""One question gives the same hits on every surface: command, in process, HTTP API, page and MCP."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from mcp import Client
from web_client import WebClient, make_kettle, open_kettle

from outcrop.app.index import Index
from outcrop.app.warm_index import WarmIndex
from outcrop.surfaces.mcp.server import make_server

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("remove limescale with vinegar", {}),
    ("boil water", {"mode": "keyword"}),
    ("how hot does it get", {"mode": "semantic", "k": 3}),
    ("kettle", {"kind": "doc", "k": 2}),
    ("kettle", {"path": "src/**"}),
    ("degrees", {"corpus": "code", "project": "kettle"}),
    ("zyzzyva", {"mode": "keyword"}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_kettle(tmp_path_factory.mktemp("surfaces") / "kettle")


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[Index]:
    with open_kettle(folder) as opened:
        yield opened


def by_command(folder: Path, query: str, wanted: dict[str, Any]) -> Any:
    options = [part for name, value in wanted.items() for part in ("-k" if name == "k" else f"--{name}", str(value))]
    run = subprocess.run(
        [sys.executable, "-m", "outcrop", "search", query, "--json", "-C", str(folder), "--embedder", "hash", *options],
        capture_output=True,
        check=True,
        env=os.environ | {"OUTCROP_CONFIG": os.devnull},
    )
    return json.loads(run.stdout)


def by_mcp(index: Index, query: str, wanted: dict[str, Any]) -> Any:
    async def ask() -> Any:
        async with Client(make_server(WarmIndex(lambda: index, closes=False))) as client:
            return (
                await client.call_tool("semantic_search", {"query": query, "full": True, **wanted})
            ).structured_content

    return anyio.run(ask)


def on_the_page(ask: WebClient, query: str, wanted: dict[str, Any]) -> list[tuple[str | None, str, str, str]]:
    """Path, hash, lines and score of each hit, read off the page."""
    page = ask("/ext/search", ("q", query), *wanted.items()).text
    found = []
    for hit in page.split("data-oc-hit>")[1:]:
        href = re.search(r'data-oc-more="([^"]+)"', hit)
        score = re.search(r'class="oc-score" title="([\d.]+)( %)?:', hit)
        assert href is not None
        assert score is not None
        params = parse_qs(urlsplit(html.unescape(href[1])).query)
        shown = f"{float(score[1]) / 100:.2f}" if score[2] else score[1]
        found.append((params.get("path", [None])[0], params["hash"][0], params["lines"][0], shown))
    return found


@pytest.mark.parametrize(("query", "wanted"), QUESTIONS)
def test_every_surface_gives_the_same_hits(folder: Path, index: Index, query: str, wanted: dict[str, Any]) -> None:
    expected = json.loads(json.dumps(index.search(query, **wanted).to_dict()))
    ask = WebClient(index)
    assert by_command(folder, query, wanted) == expected
    assert ask("/ext/api/search", ("q", query), *wanted.items()).json == expected
    assert on_the_page(ask, query, wanted) == [
        (hit["path"], hit["hash"], "{}-{}".format(*hit["lines"]), f"{hit['score']:.2f}") for hit in expected["hits"]
    ]
    by_agent = by_mcp(index, query, wanted)
    frozen = ("score", "kind", "project", "path", "hash", "text", "lines", "mode")
    assert by_agent["mode"] == expected["mode"]
    assert [{name: hit[name] for name in frozen} for hit in by_agent["hits"]] == [
        {name: hit[name] for name in frozen} for hit in expected["hits"]
    ]


@pytest.mark.usefixtures("with_history")
@pytest.mark.parametrize(("query", "wanted"), [("change", {"kind": "commit"}), ("when was the kettle changed", {})])
def test_commits_too(tmp_path: Path, query: str, wanted: dict[str, Any]) -> None:
    folder = make_kettle(tmp_path / "kettle")
    with open_kettle(folder) as index:
        assert "commit" in {hit.kind for hit in index.search(query, **wanted).hits}
        test_every_surface_gives_the_same_hits(folder, index, query, wanted)

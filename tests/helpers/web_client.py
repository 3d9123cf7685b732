"""A small repository with an index, and requests to the page's application without a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
from repositories import git, make_repository

import outcrop
from outcrop.app.index import Index
from outcrop.surfaces.web.app import make_app
from outcrop.surfaces.web.auth import Authenticator
from outcrop.surfaces.web.rate_limit import Bounds

KETTLE = '''"""Boiling water."""

import time


class Kettle:
    """Heats water until it boils."""

    def __init__(self, litres: float) -> None:
        self.litres = litres
        self.degrees = 20

    def boil(self) -> None:
        """Heat the water to a hundred degrees."""
        while self.degrees < 100:
            self.degrees += 1
            time.sleep(0.01)


def is_safe(kettle: Kettle) -> bool:
    """A kettle must not be overfilled: hot water <b>spills</b> & scalds."""
    return kettle.litres <= 1.7
'''

GUIDE = """# Using the kettle

Fill it with fresh water.

## Cleaning

Limescale is removed with vinegar. Let it stand overnight, then rinse twice.

## Guarantee

Two years, except for lime damage.
"""

NOTEBOOK = json.dumps(
    {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"language": "python"}},
        "cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Temperatures\nHow fast does it heat?"},
            {
                "cell_type": "code",
                "id": "b",
                "metadata": {},
                "outputs": [],
                "execution_count": None,
                "source": "slope = [1, 2, 3]\nprint('degrees a minute', slope)",
            },
        ],
    }
)

FILES: Mapping[str, str | bytes] = {
    "src/kettle.py": KETTLE,
    "docs/guide.md": GUIDE,
    "docs/copy of guide.md": GUIDE,
    "lab/heat.ipynb": NOTEBOOK,
    "AGENTS.md": "# Agents\n\nBoil water before you test anything.\n",
    "logo.bin": b"\x00\x01\x02" * 50,
}


def make_kettle(folder: Path) -> Path:
    """A git repository whose one commit a remote on GitHub has, indexed with the ``hash`` embedder."""
    make_repository(folder, dict(FILES))
    git(folder, "remote", "add", "origin", "git@github.com:ada/kettle.git")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    with open_kettle(folder) as index:
        index.build()
    return folder


def open_kettle(folder: Path) -> Index:
    return outcrop.open(folder, settings={"embedder": "hash"})


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class WebClient:
    """Calls the ASGI application like a server, one request at a time."""

    def __init__(self, index: Index, authenticator: Authenticator | None = None, bounds: Bounds | None = None) -> None:
        self.app = make_app(index, authenticator=authenticator, bounds=bounds or Bounds(rate=1e6, burst=10**6))

    def __call__(
        self,
        path: str,
        *pairs: tuple[str, object],
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        client: str = "127.0.0.1",
    ) -> Answer:
        sent: list[dict[str, Any]] = []
        path, _, query = path.partition("?")
        wanted = {"host": "127.0.0.1:8719"} | dict(headers or {})
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": (urlencode(pairs) or query).encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in wanted.items()],
            "client": (client, 50000),
            "server": ("127.0.0.1", 8719),
        }
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(dict(message))

        async def run() -> None:
            await self.app(scope, receive, send)

        anyio.run(run)
        start = next(message for message in sent if message["type"] == "http.response.start")
        return Answer(
            start["status"],
            {name.decode().lower(): value.decode() for name, value in start["headers"]},
            b"".join(message.get("body", b"") for message in sent),
        )

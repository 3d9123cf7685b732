"""MCP clients whose settings are a JSON file in the project: an entry is added to it, or removed from it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from outcrop.errors import FormatError, UsageError
from outcrop.surfaces.install.plan import ChangePlan, FileChange
from outcrop.text.files import read_regular

# An editor replaces this by the folder that is open. What it starts has another current folder, Cursor's even ``/``.
WORKSPACE = "${workspaceFolder}"

# A list of texts and numbers, as ``json.dumps`` breaks it into lines.
_BROKEN_LIST = re.compile(r'\[\n((?:\s+(?:"(?:[^"\\\n]|\\.)*"|[\w.+-]+),?\n)+)\s*\]')


@dataclass(frozen=True, slots=True)
class McpClient:
    """A program that starts MCP servers.

    ``file`` has its settings, from the root of the project, and in them the object ``servers`` holds servers by name.
    An entry has ``arguments`` after ``outcrop mcp --text-only``, and ``more``; ``then`` is what is left to do.
    """

    title: str
    file: str
    servers: str
    arguments: tuple[str, ...]
    then: str
    more: Mapping[str, Any] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        # Where an answer holds an object, all three show their model only that, not the short text; the object holds
        # every passage whole. So they are set up for text alone.
        return {**self.more, "command": _command(), "args": ["mcp", "--text-only", *self.arguments]}


# Clients by the names that ``--install`` takes.
CLIENTS: Mapping[str, McpClient] = {
    "claude-code": McpClient(
        "Claude Code", ".mcp.json", "mcpServers", (), "Start claude here and approve the server; /mcp shows it."
    ),
    "cursor": McpClient(
        "Cursor", ".cursor/mcp.json", "mcpServers", (WORKSPACE,), "Enable it in Cursor's settings, under MCP."
    ),
    "vscode": McpClient(
        "VS Code",
        ".vscode/mcp.json",
        "servers",
        (WORKSPACE,),
        "Run the command MCP: List Servers, and start it.",
        {"type": "stdio"},
    ),
}


def install_client(root: Path, client: McpClient, name: str) -> ChangePlan:
    """Add the entry; a ``FormatError`` says what to add by hand to a file that cannot be written as it is."""
    entry = client.entry()
    member = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(entry, ensure_ascii=False)}"
    by_hand = f'Add this to the object "{client.servers}" in it: {member}'
    path = (root / client.file).resolve()
    text, settings = _read(path, by_hand)
    servers = settings.setdefault(client.servers, {})
    if not isinstance(servers, dict):
        raise FormatError(f'"{client.servers}" in {path} is not a JSON object', f"Write there: {{{member}}}")
    if servers.get(name) == entry:
        return ChangePlan()
    servers[name] = entry
    return _change(path, text, settings, by_hand)


def uninstall_client(root: Path, client: McpClient, name: str) -> ChangePlan:
    """Remove the entry, the object that is then empty, and the file that is then empty."""
    by_hand = f'Remove "{name}" from the object "{client.servers}" in it'
    path = (root / client.file).resolve()
    text, settings = _read(path, by_hand)
    servers = settings.get(client.servers)
    if not isinstance(servers, dict) or name not in servers:
        return ChangePlan()
    del servers[name]
    if not servers:
        del settings[client.servers]
    return _change(path, text, settings, by_hand)


def _read(path: Path, by_hand: str) -> tuple[str | None, dict[str, Any]]:
    """The text of a file (None without one) and the object in it."""
    try:
        text = read_regular(path).decode("utf-8")
        settings = json.loads(text) if text.strip() else {}
    except FileNotFoundError:
        return None, {}
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8", "Save it as UTF-8, and try again") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})", "Add the entry by hand: docs/mcp.md") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not plain JSON ({error}), so it was not changed", by_hand) from error
    if not isinstance(settings, dict):
        raise FormatError(f"{path} is not a JSON object", "Correct it, and try again")
    return text, settings


def _change(path: Path, text: str | None, settings: dict[str, Any], by_hand: str) -> ChangePlan:
    """Give a file other settings, in the same layout, or delete it where none are left."""
    before = text if text and text.strip() else "{}\n"
    for short_lists, ascii_only in product((False, True), repeat=2):
        render = partial(_render, before, short_lists, ascii_only)
        if render(json.loads(before)) == before:
            old = None if text is None else text.encode()
            return ChangePlan((FileChange(path, old, render(settings).encode() if settings else None, 0o644),))
    raise FormatError(f"the layout of {path} would change, so it was not changed", by_hand)


def _render(model: str, short_lists: bool, ascii_only: bool, value: object) -> str:
    indented = re.search(r"\n([ \t]+)", model)
    indent = indented[1] if indented else None if ":" in model else "  "
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    if short_lists:
        text = _BROKEN_LIST.sub(lambda found: f"[{' '.join(map(str.strip, found[1].splitlines()))}]", text)
    return text.replace("\n", "\r\n" if "\r\n" in model else "\n") + model[len(model.rstrip()) :]


def _command() -> str:
    """``outcrop`` where a shell finds it, since the file may be shared; otherwise the path of this program."""
    found = shutil.which("outcrop")
    mine = Path(sys.argv[0])
    if found is not None or mine.name != "outcrop":
        return "outcrop"
    return str(mine.absolute())

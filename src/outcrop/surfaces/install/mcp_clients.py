"""Setting up the clients whose settings are a file in the project: what to write where, and the way back."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from outcrop.errors import FormatError, UsageError
from outcrop.surfaces.install import jsonc

# The folder that is open, in the words of editors: what they start has another current folder, Cursor's even ``/``.
WORKSPACE = "${workspaceFolder}"


@dataclass(frozen=True, slots=True)
class Client:
    """A program that starts MCP servers.

    Attributes:
        title: Its name for people.
        file: Its settings, from the root of the project.
        servers: The object in them that holds servers by name.
        more: What an entry has beside command and arguments.
        arguments: What follows ``outcrop mcp --text-only``.
        then: What is left to do there.
    """

    title: str
    file: str
    servers: str
    more: Mapping[str, Any]
    arguments: tuple[str, ...]
    then: str

    def entry(self) -> dict[str, Any]:
        """The server, as its settings name it.

        All three hand the model only the object of an answer where there is one, and leave the short text out; the
        object holds every passage whole. So they are set up for text alone.
        """
        return {**self.more, "command": _command(), "args": ["mcp", "--text-only", *self.arguments]}


# Clients that can be set up, by the names that ``--install`` takes.
CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "Claude Code", ".mcp.json", "mcpServers", {}, (), "Start claude here and approve the server; /mcp shows it."
    ),
    "cursor": Client(
        "Cursor", ".cursor/mcp.json", "mcpServers", {}, (WORKSPACE,), "Enable it in Cursor's settings, under MCP."
    ),
    "vscode": Client(
        "VS Code",
        ".vscode/mcp.json",
        "servers",
        {"type": "stdio"},
        (WORKSPACE,),
        "Run: MCP: List Servers, and start it.",
    ),
}


@dataclass(frozen=True, slots=True)
class Change:
    """What would be done to a file.

    Attributes:
        path: The file, links followed.
        shown: Its name from the root of the project.
        before: What it says now; None where it is not there.
        after: What it would say; None where it would go.
    """

    path: Path
    shown: str
    before: str | None
    after: str | None

    @property
    def is_none(self) -> bool:
        """Whether there is nothing to do."""
        return self.before == self.after

    def lines(self) -> list[str]:
        """The change as a diff."""
        old, new = (("" if text is None else text).splitlines() for text in (self.before, self.after))
        was, becomes = (os.devnull if text is None else self.shown for text in (self.before, self.after))
        return [line.rstrip("\n") for line in unified_diff(old, new, was, becomes)]

    def make(self) -> None:
        """Do it: the file is whole at every moment, and keeps its permissions."""
        if self.after is None:
            self.path.unlink()
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.after.encode("utf-8"))
            # A new file is readable as its folder's others are; an old one stays as it was.
            Path(name).chmod(self.path.stat().st_mode & 0o7777 if self.path.exists() else 0o644)
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def install(root: Path, client: Client, name: str) -> Change:
    """What sets a client up. Nothing is written."""
    path, before = _read(root, client)
    return Change(
        path, client.file, before, _explained(path, jsonc.put, before or "", (client.servers, name), client.entry())
    )


def uninstall(root: Path, client: Client, name: str) -> Change:
    """What takes a client's entry out again, and the file where nothing else is in it. Nothing is written."""
    path, before = _read(root, client)
    if before is None:
        return Change(path, client.file, None, None)
    after = _explained(path, jsonc.take, before, (client.servers, name))
    is_empty = after != before and not "".join(after.split()).strip("\ufeff{}")
    return Change(path, client.file, before, None if is_empty else after)


def _read(root: Path, client: Client) -> tuple[Path, str | None]:
    path = (root / client.file).resolve()
    try:
        return path, path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return path, None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8", "Save it as UTF-8 and try again") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "Add the entry by hand: docs/mcp.md") from error


def _explained(path: Path, edit: Any, *arguments: Any) -> str:
    try:
        text: str = edit(*arguments)
    except FormatError as error:
        raise FormatError(f"{path}: {error.what}", error.fix) from error
    return text


def _command() -> str:
    """``outcrop`` where a shell finds that: the file may be shared. Otherwise where this one is."""
    found = shutil.which("outcrop")
    mine = Path(sys.argv[0])
    if found is not None or mine.name != "outcrop":
        return "outcrop"
    return str(mine.absolute())

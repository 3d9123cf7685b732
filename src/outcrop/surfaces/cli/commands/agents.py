"""``outcrop call``, ``outcrop context`` and ``outcrop mcp``."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.app import rag_context
from outcrop.errors import BadConfig, UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.opening import show_warnings
from outcrop.surfaces.cli.terminal import is_terminal, note, show
from outcrop.surfaces.install.mcp_clients import CLIENTS, install_client, uninstall_client
from outcrop.surfaces.render import columns, harmless_line

if TYPE_CHECKING:
    from outcrop.app.index import Index


@options.command("call")
@click.argument("name", required=False)
@click.argument("arguments", metavar="[JSON]", required=False)
@click.option("--list", "listing", is_flag=True, help="Name every capability; with --json also their schemas.")
@options.json_option
@options.directory_option
@options.embedder_options
def call_command(
    name: str | None, arguments: str | None, listing: bool, as_json: bool, directory: Path, **flags: Any
) -> None:
    """Call a capability by name, with JSON in and out.

    JSON is one object with the arguments; without it, or as -, it is read from the standard input where that is not a
    terminal. The result is printed as one JSON object.

    Examples:
        outcrop call --list
        outcrop call vectors.index.status
        outcrop call vectors.query '{"texts": ["where are retries configured"], "k": 3}'
        outcrop call vectors.index.build '{"corpus": "notebooks", "paths": ["**/*.ipynb"]}'
        outcrop call vectors.index.upsert - > report.json
    """
    from outcrop.app import capabilities

    if listing:
        entries = capabilities.REGISTRY.values()
        if as_json:
            fields = [
                {"name": each.name, "description": each.documentation, "arguments": each.schema} for each in entries
            ]
            options.show_json({"capabilities": fields})
        else:
            options.show_result(None, False, columns([(each.name, each.summary) for each in entries]))
        return
    if name is None:
        raise UsageError("call needs the name of a capability", "outcrop call --list names them.")
    if name not in capabilities.REGISTRY:
        raise UsageError(f"there is no capability {name!r}", "outcrop call --list names them.")
    given = _read(arguments)
    with options.open_index(directory, flags) as index:
        options.show_json(capabilities.call(name, given, index=index))


def _read(arguments: str | None) -> dict[str, Any]:
    text = arguments
    if text == "-" or (text is None and not is_terminal(sys.stdin)):
        text = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    if text is None or not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(
            f"the arguments are not valid JSON ({error})", "Give one object: '{\"name\": value}'"
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"the arguments are a JSON {type(value).__name__}, not an object", "Give '{\"name\": value}'")
    return value


# Bytes of a hook's JSON; a prompt is shorter.
MAX_HOOK_BYTES = 4 << 20

HOOK_EVENT = "UserPromptSubmit"


@options.command("context")
@click.argument("prompt", nargs=-1)
@click.option("-k", type=int, default=3, show_default=True, metavar="N", help="How many passages at most.")
@click.option("--tokens", type=int, metavar="N", help="Length of the block at most.  [default: 1500]")
@click.option(
    "--timeout",
    type=float,
    default=rag_context.TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="Return by then with what there is.",
)
@click.option("--min-score", type=float, metavar="SCORE", help="Only passages whose vectors are this near (0 to 1).")
@click.option("--hook", is_flag=True, help="Read the JSON of an agent's pre-prompt hook from stdin.")
@options.json_option
@options.directory_option
@options.embedder_options
def context_command(
    prompt: tuple[str, ...],
    k: int,
    tokens: int | None,
    timeout: float,
    min_score: float | None,
    hook: bool,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """Print the passages that are about a prompt, for an agent.

    They are a quoted block, to be put before the agent's turn. Nothing is printed where there is no index, or nothing
    in it has to do with the prompt. It never asks whether text may leave the machine: a prompt goes only to an address
    that was allowed before.

    Examples:
        outcrop context "why are sessions not saved behind the proxy"
        outcrop context -k 5 --tokens 3000 "how are retries configured"
        outcrop context --json "release checklist" | jq -r '.sources[].path'
        outcrop context --hook < call.json
    """
    if bool(prompt) == hook:
        raise UsageError("context takes a prompt, or --hook and a hook's JSON on stdin", "outcrop context --help")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # see options.open_index
    show_warnings()
    began = time.monotonic()
    text, event = " ".join(map(options.readable, prompt)), ""
    if hook:
        given = rag_context.within(timeout, lambda: _read_hook(directory))
        if given is None:
            return
        text, directory, event = given
    request = rag_context.ContextRequest(
        text,
        k,
        directory=directory,
        tokens=tokens,
        timeout=timeout - (time.monotonic() - began),
        min_score=min_score,
        settings=flags,
    )
    found = rag_context.related(request)
    if as_json and not hook:
        fields = ("path", "lines", "kind", "project", "hash", "name", "score", "mode")
        sources = [{field: getattr(hit, field) for field in fields} for hit in found.hits]
        whole = {"context": found.text, "tokens": found.tokens, "mode": found.mode, "reason": found.reason}
        options.show_json({**whole, "sources": sources})
    elif as_json and found.text:
        inner = {"hookEventName": event, "additionalContext": found.text}
        options.show_json({"hookSpecificOutput": inner})
    elif found.text:
        show(found.text)


def _read_hook(directory: Path) -> tuple[str, Path, str] | None:
    """The prompt, the folder to search, and the event of a hook's JSON on stdin; None where it is something else."""
    if sys.stdin is None:
        return None
    data = sys.stdin.buffer.read(MAX_HOOK_BYTES + 1)
    if len(data) > MAX_HOOK_BYTES:
        return None
    try:
        hook = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(hook, dict) or not isinstance(hook.get("prompt"), str):
        return None
    where, event = hook.get("cwd"), hook.get("hook_event_name")
    if directory == Path() and isinstance(where, str) and where and "\0" not in where:
        directory = Path(where)
    return hook["prompt"], directory, event if isinstance(event, str) and event else HOOK_EVENT


@options.command("mcp")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--install", "installed", type=click.Choice(list(CLIENTS)), help="Set this client up for this project.")
@click.option("--uninstall", "uninstalled", type=click.Choice(list(CLIENTS)), help="Remove it again.")
@click.option("--name", default="outcrop", show_default=True, metavar="NAME", help="What that client calls the server.")
@click.option("--yes", "-y", is_flag=True, help="Change the client's settings without asking.")
@click.option("--text-only", is_flag=True, help="Answer with text only, without a JSON object beside it.")
@options.rev_option
@options.branch_option
@options.directory_option
@options.embedder_options
def mcp_command(
    path: Path | None,
    installed: str | None,
    uninstalled: str | None,
    name: str,
    yes: bool,
    text_only: bool,
    rev: str | None,
    directory: Path,
    **flags: Any,
) -> None:
    """Serve agents: search and reading as MCP tools, over standard input and output.

    A client starts this command by itself once it is set up: --install shows the change to its settings in this
    project and asks first. docs/mcp.md has the lines for other clients, and outcrop serve offers the same over HTTP.

    Examples:
        outcrop mcp --install claude-code
        outcrop mcp --install vscode --yes
        outcrop mcp --uninstall cursor
        outcrop mcp ~/project
        outcrop mcp --rev v2.1 ~/project
    """
    place = directory if path is None else directory / path
    if installed or uninstalled:
        if text_only or rev or any(flags.values()):
            raise UsageError("--install and --uninstall take no other settings", "Set them in outcrop.toml")
        _set_up(place, installed, uninstalled, name, yes)
        return
    _serve(place, rev, flags, structured=not text_only)


def _serve(place: Path, rev: str | None, flags: dict[str, Any], *, structured: bool) -> None:
    if not place.exists():
        raise UsageError(f"there is no {place}", "Name a folder or a repository")
    if place.resolve() in (Path("/"), Path.home()):
        # Clients start servers here when no folder is set. Without an index every file would be read.
        raise UsageError(f"{place.resolve()} is no project folder", "Name the project's folder: outcrop mcp PATH")
    if is_terminal(sys.stdin):
        note("outcrop: this speaks JSON with the MCP client that starts it, on standard input. Ctrl-C ends it.")
        note("  → outcrop mcp --install sets a client up")
    from outcrop.surfaces.mcp.stdio import serve

    serve(
        lambda: options.open_index(place, flags, rev=rev),
        lambda index: _is_current(index, flags),
        structured=structured,
    )


def _is_current(index: Index, flags: dict[str, Any]) -> bool:
    from outcrop.config.settings import load_settings

    given = {name: value for name, value in flags.items() if name != "branch"}
    try:
        now = load_settings(index.source.root, given)
    except BadConfig:
        # The file is being edited.
        return True
    return now == index.settings


def _set_up(place: Path, installed: str | None, uninstalled: str | None, name: str, yes: bool) -> None:
    from outcrop.sources.discover import find_root
    from outcrop.surfaces.cli.install_prompt import confirm_and_apply

    if installed and uninstalled:
        raise UsageError("--install and --uninstall exclude each other", "Use one of them")
    root = find_root(place).root
    client = CLIENTS[installed or uninstalled or ""]
    plan = (install_client if installed else uninstall_client)(root, client, name)
    if not plan.changes:
        done = "is set up already" if installed else "is not set up"
        show(f"{client.title} {done} ({harmless_line(str(root / client.file))})")
        return
    confirm_and_apply(plan, yes=yes)
    then = f"is set up. {client.then}" if installed else "is no longer set up."
    note(f"outcrop: {client.title} {then}")

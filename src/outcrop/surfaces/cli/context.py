"""``outcrop context``: the passages that go before an agent's turn."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from outcrop import pre_turn
from outcrop.errors import UsageError
from outcrop.reports import Context
from outcrop.surfaces.cli.options import (
    Command,
    directory_option,
    embedder_options,
    json_option,
    readable,
    show_json,
)
from outcrop.surfaces.cli.remarks import show_warnings
from outcrop.surfaces.cli.terminal import show
from outcrop.surfaces.render import harmless

LONGEST_CALL = 4 << 20
"""Bytes of a hook's JSON; what is longer is no prompt."""

HOOK_EVENT = "UserPromptSubmit"

EXAMPLES = """
outcrop context "why are sessions not saved behind the proxy"
outcrop context -k 5 --tokens 3000 "how are retries configured"
outcrop context --json "release checklist" | jq -r '.sources[].path'
outcrop context --hook < call.json
"""


@dataclass(frozen=True, slots=True)
class _Call:
    """What is asked, and where; the event is the one that an agent's hook names."""

    prompt: str
    directory: Path
    event: str


@click.command(
    "context", cls=Command, examples=EXAMPLES, short_help="Print the passages that bear on a prompt, for an agent."
)
@click.argument("prompt", nargs=-1)
@click.option("-k", type=int, default=3, show_default=True, metavar="N", help="How many passages at most.")
@click.option("--tokens", type=int, metavar="N", help="Length of the block at most.  [default: 1500]")
@click.option(
    "--timeout",
    type=float,
    default=pre_turn.SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Return by then with what there is.",
)
@click.option("--min-score", type=float, metavar="SCORE", help="Only passages whose vectors are this near (0 to 1).")
@click.option("--hook", is_flag=True, help="Read the JSON of an agent's pre-prompt hook from stdin.")
@json_option
@directory_option
@embedder_options
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
    """Print the passages that bear on a prompt, for an agent.

    They are a quoted block, to be put before the agent's turn. Nothing is printed where there is no index, or nothing
    in it has to do with the prompt. It never asks whether text may leave the machine: a prompt goes only to an address
    that was allowed before.
    """
    if bool(prompt) == hook:
        raise UsageError("context takes a prompt, or --hook and a hook's JSON on stdin", "outcrop context --help")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # see options.open_index
    show_warnings()
    began = time.monotonic()
    typed = _Call(" ".join(map(readable, prompt)), directory, "")
    call = pre_turn.within(timeout, lambda: _read_call(directory)) if hook else typed
    if call is None:
        return
    if flags.get("store") is not None:
        flags["store"] = flags["store"].absolute()
    found = pre_turn.related(
        call.prompt,
        k,
        directory=call.directory,
        tokens=tokens,
        timeout=timeout - (time.monotonic() - began),
        min_score=min_score,
        settings=flags,
    )
    if as_json and not hook:
        show_json(_with_sources(found))
    elif as_json and found.text:
        inner = {"hookEventName": call.event, "additionalContext": harmless(found.text)}
        show_json({"hookSpecificOutput": inner})
    elif found.text:
        show(harmless(found.text))


def _read_call(directory: Path) -> _Call | None:
    """A hook's JSON from stdin; None where that is not what stands there."""
    if sys.stdin is None:
        return None
    data = sys.stdin.buffer.read(LONGEST_CALL + 1)
    if len(data) > LONGEST_CALL:
        return None
    try:
        call = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("prompt"), str):
        return None
    where, event = call.get("cwd"), call.get("hook_event_name")
    if directory == Path() and isinstance(where, str) and where and "\0" not in where:
        directory = Path(where)
    return _Call(call["prompt"], directory, event if isinstance(event, str) and event else HOOK_EVENT)


def _with_sources(found: Context) -> dict[str, Any]:
    fields = ("path", "lines", "kind", "project", "hash", "name", "score", "mode")
    return {
        "context": found.text,
        "tokens": found.tokens,
        "mode": found.mode,
        "reason": found.reason,
        "sources": [{field: getattr(hit, field) for field in fields} for hit in found.hits],
    }

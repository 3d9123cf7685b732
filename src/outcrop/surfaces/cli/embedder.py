"""``outcrop embedder``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.surfaces.cli.options import Command, directory_option, embedder_options, json_option, open_index, show_json
from outcrop.surfaces.cli.terminal import show
from outcrop.surfaces.render import columns, duration

if TYPE_CHECKING:
    from outcrop.embedder_check import EmbedderStatus, EmbedderTest

EXAMPLES = """
outcrop embedder status
outcrop embedder test
outcrop embedder test --embedder ollama --model nomic-embed-text
"""


@click.command(
    "embedder", cls=Command, examples=EXAMPLES, short_help="Show which embedder is set, or try it with one real call."
)
@click.argument("action", type=click.Choice(["status", "test"]))
@json_option
@directory_option
@embedder_options
def embedder_command(action: str, as_json: bool, directory: Path, **flags: Any) -> None:
    """Show which embedder is set, or try it with one real call.

    status sends nothing. test embeds four sentences of its own, none of your text, and tells whether two that mean the
    same come out nearer than two that do not.
    """
    with open_index(directory, flags) as index:
        # Imported here because it brings numpy: `--help` and shell completion do without.
        from outcrop import embedder_check

        found = (embedder_check.status if action == "status" else embedder_check.test)(index.embedder)
    if as_json:
        show_json(found)
        return
    lines = _status(found) if isinstance(found, embedder_check.EmbedderStatus) else _test(found)
    for line in lines:
        show(line)


def _status(status: EmbedderStatus) -> Iterator[str]:
    rows = [
        ("space", status.space),
        ("model", status.model),
        ("length", f"{status.dim:,}"),
        ("reads", f"{status.max_tokens:,} word pieces of a text"),
        ("address", status.address or "none: text stays in this process"),
    ]
    if status.address is not None:
        rows.append(("leaves", _leaves(status)))
        rows.append(("token", f"the one named {status.token}" if status.token else "none"))
        rows.append(("proxy", "yes" if status.proxy else "none"))
    yield from columns(rows)


def _leaves(status: EmbedderStatus) -> str:
    if status.leaves is None:
        return "unknown: the name cannot be looked up"
    if not status.leaves:
        return "no, the address is this machine"
    return "yes, allowed by allow_remote" if status.allowed else "yes, after asking (or with --allow-remote)"


def _test(test: EmbedderTest) -> Iterator[str]:
    verdict = (
        "sentences that mean the same are nearer: it understands meaning"
        if test.understands
        else "sentences that mean the same are not nearer: it matches words, not meaning"
    )
    yield from columns(
        [
            ("space", test.space),
            ("address", test.address or "none: text stayed in this process"),
            ("took", duration(test.seconds)),
            ("length", f"{test.dim:,}"),
            ("norm", f"{test.norm:.6f}"),
            ("near", f"{test.near:.3f}"),
            ("far", f"{test.far:.3f}"),
        ]
    )
    yield verdict

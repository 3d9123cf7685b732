"""``outcrop config``, ``outcrop embedder`` and ``outcrop completion``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from outcrop.config.settings import NAMES, REPOSITORY_FILE, user_file
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.program import COMPLETION_VARIABLE
from outcrop.surfaces.cli.report_view import settings_lines
from outcrop.surfaces.cli.terminal import choose_paint, show
from outcrop.surfaces.render import columns, duration, harmless_line

if TYPE_CHECKING:
    from outcrop.embedders.check import EmbedderStatus, EmbedderTest


@options.command("config")
@options.color_option
@options.listing_options
@options.result_options
def config_command(as_json: bool, color: str, directory: Path, **flags: Any) -> None:
    """Show every setting and where its value comes from.

    Of these the last one wins: defaults, outcrop.toml in the repository, your own file, OUTCROP_* variables, options.

    Examples:
        outcrop config
        outcrop config --json | jq .settings.embedder
        OUTCROP_EMBEDDER=hash outcrop config
    """
    with options.open_index(directory, flags) as index:
        settings, root = index.settings, index.source.root
    files = {"repository": root / REPOSITORY_FILE, "user": user_file()}
    where = [
        f"{name} file  {harmless_line(str(path))}{'' if path.exists() else '  (none)'}" for name, path in files.items()
    ]
    values = {name: {"value": getattr(settings, name), "origin": settings.origins[name]} for name in NAMES}
    options.show_result(
        {"settings": values, "files": files}, as_json, [*settings_lines(settings, choose_paint(color)), "", *where]
    )


@options.command("embedder")
@click.argument("action", type=click.Choice(["status", "test"]))
@options.result_options
def embedder_command(action: str, as_json: bool, directory: Path, **flags: Any) -> None:
    """Show the embedder, or test it with one real call.

    status sends nothing. test embeds four sentences of its own, none of your text, and shows whether two that mean the
    same are nearer than two that do not.

    Examples:
        outcrop embedder status
        outcrop embedder test
        outcrop embedder test --embedder ollama --model nomic-embed-text
    """
    with options.open_index(directory, flags) as index:
        from outcrop.embedders import check

        found = (check.status if action == "status" else check.test)(index.embedder)
    lines = _status_lines(found) if isinstance(found, check.EmbedderStatus) else _test_lines(found)
    options.show_result(found, as_json, lines)


def _status_lines(status: EmbedderStatus) -> Iterator[str]:
    rows = [
        ("space", status.space),
        ("model", status.model),
        ("length", f"{status.dim:,}"),
        ("reads", f"{status.max_tokens:,} tokens of a text"),
        ("address", status.address or "none: text stays in this process"),
    ]
    if status.address is not None:
        rows.append(("leaves", _leaves(status)))
        rows.append(("token", f"from {status.token}" if status.token else "none"))
        rows.append(("proxy", "yes" if status.proxy else "none"))
    yield from columns(rows)


def _leaves(status: EmbedderStatus) -> str:
    if status.leaves is None:
        return "unknown: the host has no address"
    if not status.leaves:
        return "no, the address is this machine"
    return "yes, allowed by allow_remote" if status.allowed else "yes, after asking (or with --allow-remote)"


def _test_lines(test: EmbedderTest) -> Iterator[str]:
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


@options.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete commands, options and values of outcrop.

    Examples:
        outcrop completion bash >> ~/.bashrc
        outcrop completion zsh >> ~/.zshrc
        outcrop completion fish > ~/.config/fish/completions/outcrop.fish
    """
    complete_class = get_completion_class(shell)
    assert complete_class is not None
    complete = complete_class(ctx.find_root().command, {}, "outcrop", COMPLETION_VARIABLE)
    show((complete.source_template % complete.source_vars()).rstrip())

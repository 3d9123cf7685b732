"""Opening an index for a command: warnings on stderr, and a question before text leaves the machine.

It imports everything heavy, so ``options.open_index`` imports it only when a command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.app import index
from outcrop.surfaces.cli.logging import show_warnings
from outcrop.surfaces.cli.terminal import is_terminal, note
from outcrop.surfaces.render import harmless_line

if TYPE_CHECKING:
    from outcrop.embedders.http.consent import Consent, Disclosure


def open_here(
    directory: Path, flags: dict[str, Any], *, rev: str | None, before_asking: Callable[[], None]
) -> index.Index:
    """See ``options.open_index``."""
    show_warnings()
    settings = dict(flags)
    branch = settings.pop("branch", None)
    if settings.get("store") is not None:
        settings["store"] = settings["store"].absolute()
    return index.open(directory, settings=settings, rev=rev, branch=branch, consent=_consent(before_asking))


def _consent(before_asking: Callable[[], None]) -> Consent | None:
    """Asks the person at the terminal; None where there is no terminal."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None
    # Imported here because it takes as long as a search in a small index, and pipes do not need it.
    from outcrop.embedders.http.consent import Consent

    def ask(disclosure: Disclosure) -> bool:
        before_asking()
        for line in disclosure.lines():
            note(harmless_line(line))
        return click.confirm("Send?", err=True)

    return Consent(ask)

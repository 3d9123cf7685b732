"""Opening an index for a command: warnings on stderr, and a question before text leaves the machine."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.surfaces.cli.terminal import is_terminal, note
from outcrop.surfaces.render import harmless_line

if TYPE_CHECKING:
    from outcrop.app.index import Index
    from outcrop.embedders.http.consent import Consent, Disclosure


class _StderrHandler(logging.Handler):
    """Writes above a progress bar where one is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"outcrop: {harmless_line(self.format(record))}")


def show_warnings() -> None:
    """From now on show the library's warnings, and with OUTCROP_DEBUG every message."""
    log = logging.getLogger("outcrop")
    log.handlers = [_StderrHandler()]
    log.propagate = False
    log.setLevel(logging.DEBUG if os.environ.get("OUTCROP_DEBUG") else logging.WARNING)


def open_here(directory: Path, flags: dict[str, Any], *, rev: str | None, before_asking: Callable[[], None]) -> Index:
    from outcrop.app import index

    show_warnings()
    settings = dict(flags)
    branch = settings.pop("branch", None)
    return index.open(directory, settings=settings, rev=rev, branch=branch, consent=_consent(before_asking))


def _consent(before_asking: Callable[[], None]) -> Consent | None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None
    from outcrop.embedders.http.consent import Consent

    def ask(disclosure: Disclosure) -> bool:
        before_asking()
        for line in disclosure.lines():
            note(harmless_line(line))
        return click.confirm("Send?", err=True)

    return Consent(ask)

"""What opening an index may show: warnings on stderr, and a question before text leaves the machine."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from outcrop.surfaces.cli.terminal import is_terminal, note
from outcrop.surfaces.render import harmless_line

if TYPE_CHECKING:
    from outcrop.embedders.http.consent import Consent, Disclosure


class _StderrHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(f"outcrop: {harmless_line(self.format(record))}")


def show_warnings() -> None:
    """From now on show the library's warnings, and with OUTCROP_DEBUG every message."""
    log = logging.getLogger("outcrop")
    log.handlers = [_StderrHandler()]
    log.propagate = False
    log.setLevel(logging.DEBUG if os.environ.get("OUTCROP_DEBUG") else logging.WARNING)


def make_consent(before_asking: Callable[[], None]) -> Consent | None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None
    from outcrop.embedders.http.consent import Consent

    def ask(disclosure: Disclosure) -> bool:
        before_asking()
        for line in disclosure.lines():
            note(harmless_line(line))
        return click.confirm("Send?", err=True)

    return Consent(ask)

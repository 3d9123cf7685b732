"""Asking the person at the terminal before text leaves the machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from outcrop.surfaces.cli.terminal import is_terminal, note
from outcrop.surfaces.render import harmless_line

if TYPE_CHECKING:
    from outcrop.egress import Disclosure


def can_ask() -> bool:
    """Whether a person reads standard error and can answer on standard input."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def ask(disclosure: Disclosure) -> bool:
    """Show what would be sent and where to, and wait for a yes. Everything else is a no."""
    for line in disclosure.lines():
        note(harmless_line(line))
    note(f'To agree for good: allow_remote = ["{harmless_line(disclosure.address)}"] in your own settings.')
    sys.stderr.write("Send it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")

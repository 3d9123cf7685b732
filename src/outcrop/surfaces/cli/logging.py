"""The library's log messages on stderr."""

from __future__ import annotations

import logging
import os

from outcrop.surfaces.cli.terminal import note
from outcrop.surfaces.render import harmless_line


class _StderrHandler(logging.Handler):
    """Writes above a progress bar where one is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"outcrop: {harmless_line(self.format(record))}")


def show_warnings() -> None:
    """From now on show warnings, and with OUTCROP_DEBUG every message."""
    log = logging.getLogger("outcrop")
    log.handlers = [_StderrHandler()]
    log.propagate = False
    log.setLevel(logging.DEBUG if os.environ.get("OUTCROP_DEBUG") else logging.WARNING)

"""What the library logs, as remarks on stderr."""

from __future__ import annotations

import logging
import os

from outcrop.surfaces.cli.terminal import note
from outcrop.surfaces.render import harmless_line


class _Notes(logging.Handler):
    """Writes what the library logs as remarks, above a progress bar where one is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"outcrop: {harmless_line(self.format(record))}")


def show_warnings() -> None:
    """From now on show what is worth a warning; with OUTCROP_DEBUG everything."""
    log = logging.getLogger("outcrop")
    log.handlers = [_Notes()]
    log.propagate = False
    log.setLevel(logging.DEBUG if os.environ.get("OUTCROP_DEBUG") else logging.WARNING)

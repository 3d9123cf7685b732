"""Where both commands begin: Ctrl-C while Python still imports ends them quietly, as it ends any program.

Everything after the imports has its own way of stopping, which keeps what was done.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress


def outcrop() -> int:
    """The command ``outcrop``; returns its exit code."""
    _die_quietly()
    # Imported here, and below: a traceback of somebody's interrupted import helps nobody.
    from outcrop.surfaces.cli.program import main

    _raise_again()
    return _leave(main())


def agent_tool() -> int:
    """The command ``agent-tool``; returns its exit code."""
    _die_quietly()
    from outcrop.surfaces.cli.agent_tool import main

    _raise_again()
    return main()


def _leave(code: int) -> int:
    """End at once if ``outcrop context`` left a thread behind, which could make Python's own ending hang or fail."""
    context = sys.modules.get("outcrop.app.rag_context")
    if context is not None and context.is_under_way():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def _die_quietly() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) not in (
        signal.SIG_IGN,
        None,
    ):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _raise_again() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)

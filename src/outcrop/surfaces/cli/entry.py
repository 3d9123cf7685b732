"""Where both programs begin. Ctrl-C while Python still imports ends them quietly."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress


def outcrop() -> int:
    """The program ``outcrop``; returns its exit code."""
    _end_quietly_on_interrupt()
    # Imported here, and below: an interrupted import shows no traceback.
    from outcrop.surfaces.cli.program import main

    _raise_on_interrupt()
    return _leave(main())


def agent_tool() -> int:
    """The program ``agent-tool``; returns its exit code."""
    _end_quietly_on_interrupt()
    from outcrop.surfaces.cli.agent_tool import main

    _raise_on_interrupt()
    return main()


def _leave(code: int) -> int:
    """End at once if ``outcrop context`` left a thread behind, which can make Python's own exit hang or fail."""
    context = sys.modules.get("outcrop.app.rag_context")
    if context is not None and context.is_under_way():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def _end_quietly_on_interrupt() -> None:
    if _is_main_thread() and signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _raise_on_interrupt() -> None:
    if _is_main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

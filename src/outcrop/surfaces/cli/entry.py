"""Where both programs begin. Ctrl-C while Python still imports ends them quietly."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from contextlib import suppress


def outcrop() -> int:
    code = _run("outcrop.surfaces.cli.program")
    context = sys.modules.get("outcrop.app.rag_context")
    if context is not None and context.is_under_way():
        # A thread that `outcrop context` left behind can make Python's own exit hang or fail.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def agent_tool() -> int:
    return _run("outcrop.surfaces.cli.agent_tool")


def _run(module: str) -> int:
    is_main_thread = threading.current_thread() is threading.main_thread()
    if is_main_thread and signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Imported here: an interrupted import shows no traceback.
    program = importlib.import_module(module)
    if is_main_thread and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code: int = program.main()
    return code

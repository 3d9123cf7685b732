"""Where both commands begin: Ctrl-C while Python still imports ends them quietly, as it ends any program.

Everything after the imports has its own way of stopping, which keeps what was done.
"""

from __future__ import annotations

import signal
import threading


def outcrop() -> int:
    """The command ``outcrop``; returns its exit code."""
    _die_quietly()
    # Imported here, and below: a traceback of somebody's interrupted import helps nobody.
    from outcrop.surfaces.cli import main

    _raise_again()
    return main()


def agent_tool() -> int:
    """The command ``agent-tool``; returns its exit code."""
    _die_quietly()
    from outcrop.surfaces.agent_tool import main

    _raise_again()
    return main()


def _die_quietly() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) not in (
        signal.SIG_IGN,
        None,
    ):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _raise_again() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)

"""MCP over standard input and output, for a client that starts this process.

Nothing but the protocol reaches descriptor 1: before anything else is loaded, both standard descriptors are moved, and
what a library or a child process prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, cast

from outcrop.app.warm_index import WarmIndex
from outcrop.errors import UsageError
from outcrop.surfaces.mcp.early_answers import EarlyResponder

if TYPE_CHECKING:
    from outcrop.app.index import Index

END = b""

# Seconds in which running calls may still be answered after the client closed its end: requests from a pipe get their
# answers, and a server whose client died ends soon.
DRAIN_TIMEOUT = 10.0


class Connection:
    """The client's end of standard input and output, as two text files that the SDK can use."""

    def __init__(self, early: EarlyResponder) -> None:
        self._early = early
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._changed = threading.Condition()
        self._open: set[str] = set()
        self._answered: list[str] = []
        self._sending = threading.Lock()
        try:
            self._in, self._out = _move(0, os.O_RDONLY), _move(1, os.O_WRONLY)
        except OSError as error:
            raise UsageError(
                "outcrop mcp speaks with a client over standard input and output, and one of them is closed",
                "Let an MCP client start it; outcrop mcp --install sets one up",
            ) from error

    def listen(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def disconnect(self) -> None:
        """Behave as if the client had closed its end."""
        self._lines.put(END)

    def _listen(self) -> None:
        try:
            with os.fdopen(self._in, "rb") as source:
                for line in source:
                    self._receive(line)
        except OSError:
            # A terminal that was closed, which is like the end of a file.
            pass
        finally:
            with self._changed:
                self._changed.wait_for(lambda: not self._open, DRAIN_TIMEOUT)
            self.disconnect()

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        answer = self._early.answer(message)
        with self._changed:
            if answer is not None:
                self._answered.append(_key(message))
            method = message.get("method") if isinstance(message, dict) else None
            if method is not None and "id" in message:
                self._open.add(_key(message))
            elif method == "notifications/cancelled":
                params = message.get("params")
                self._open.discard(repr(params.get("requestId")) if isinstance(params, dict) else "")
        if answer is not None:
            self._send(answer)
        if message is not None and rb"\ud" in line.lower():
            # Half of a character that a client cut in two: the SDK would drop the message without an answer.
            line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        # The SDK gets the request only now, so that of two answers its own is always the second.
        self._lines.put(line)

    def _send(self, text: str) -> None:
        left = memoryview(text.encode("utf-8", "backslashreplace"))
        with self._sending:
            try:
                while left:
                    left = left[os.write(self._out, left) :]
            except OSError:
                self.disconnect()

    def readline(self) -> str:
        """The next line, once there is one; empty after the client closed its end."""
        line = self._lines.get()
        if line == END:
            self._lines.put(END)
        return line.decode("utf-8", "replace")

    def write(self, text: str) -> int:
        """Send one message, unless it was answered early."""
        message = json.loads(text)
        key = _key(message)
        is_answer = "method" not in message
        with self._changed:
            was_answered = is_answer and key in self._answered
            if was_answered:
                self._answered.remove(key)
        if not was_answered:
            self._send(text)
        if is_answer:
            with self._changed:
                self._open.discard(key)
                self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Nothing is buffered."""


def _key(message: Any) -> str:
    """An id as a key: 1 and "1" are two."""
    return repr(message.get("id"))


def _move(descriptor: int, flags: int) -> int:
    """Move a standard descriptor; it then reads nothing, or writes to standard error."""
    kept = os.dup(descriptor)
    try:
        left = os.dup(2) if flags == os.O_WRONLY else os.open(os.devnull, flags)
    except OSError:
        left = os.open(os.devnull, flags)
    os.dup2(left, descriptor)
    os.close(left)
    return kept


def serve(open_index: Callable[[], Index], is_current: Callable[[Index], bool], *, structured: bool = True) -> None:
    """Serve one client until it closes its end.

    ``is_current``: whether an open index still is what ``open_index`` would give. ``structured``: with an object beside
    the text of an answer.
    """
    early = EarlyResponder(structured=structured)
    connection = Connection(early)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: connection.disconnect())
    connection.listen()
    service = WarmIndex(open_index, is_current=is_current)
    service.start()
    # Imported here: while this takes its second, the first answers are sent and the model loads.
    import anyio
    from mcp.server.stdio import stdio_server

    from outcrop.surfaces.mcp.server import make_server

    server = make_server(service, structured=structured)

    async def run() -> None:
        text = cast("IO[str]", connection)
        async with stdio_server(anyio.wrap_file(text), anyio.wrap_file(text)) as (incoming, outgoing):
            early.stop()
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        service.close()

"""Runs the application: a socket, uvicorn, bounds of its connections, and a quick end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from outcrop.errors import OutcropError
from outcrop.surfaces.web.connections import ACCEPTED_AT_ONCE, BoundedConnection, end_overdue

# Default of ``outcrop serve``, unless another program uses it.
PORT = 8719

# Seconds for running requests when the server ends.
SHUTDOWN_TIMEOUT = 1

# Seconds after which it ends whatever still runs: a thread cannot be stopped, and nothing here writes.
LAST_TIMEOUT = 5.0

# Connections that the system keeps until they are accepted.
BACKLOG = 1024

# Seconds between two warnings that no connection can be accepted.
_WARNING_INTERVAL = 60.0

_log = logging.getLogger("outcrop.surfaces.web.server")


@dataclass(frozen=True, slots=True)
class Listening:
    """A listening socket; ``host`` is an IP address, ``loopback`` means that only this machine can connect."""

    socket: socket.socket
    host: str
    port: int
    loopback: bool

    @property
    def address(self) -> str:
        number = ipaddress.ip_address(self.host)
        if number.is_unspecified:
            number = ipaddress.ip_address("127.0.0.1" if number.version == 4 else "::1")
        shown = f"[{number}]" if number.version == 6 else str(number)
        return f"http://{shown}:{self.port}"


def listen(host: str, port: int | None) -> Listening:
    """Open a socket at a host's first address; port 0 is any, None the default, or any where that is in use."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise OutcropError(f"there is no host {host!r}", "Use an address of this machine, such as 127.0.0.1") from None
    family, number = found[0][0], str(found[0][4][0])
    for attempt in (PORT, 0) if port is None else (port,):
        opened = socket.socket(family, socket.SOCK_STREAM)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((number, attempt))
            opened.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            opened.close()
            if port is None and attempt == PORT:
                continue
            reason = error.strerror if isinstance(error, OSError) else "no such port"
            raise OutcropError(
                f"cannot listen on {host} port {attempt} ({reason})", "Choose another one with --port, or 0 for any"
            ) from None
        loopback = ipaddress.ip_address(number.partition("%")[0]).is_loopback
        return Listening(opened, number.partition("%")[0], opened.getsockname()[1], loopback)
    raise OutcropError(f"{host} has no free port", "Choose another host with --host")


def own_names(host: str) -> list[str]:
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    return [each for each in dict.fromkeys((host, name, short, f"{short}.local")) if each]


def run(app: ASGIApp, listening: Listening, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until Ctrl-C or SIGTERM, then close the socket. Calls ``ready`` when requests are answered."""
    config = uvicorn.Config(
        app,
        http=BoundedConnection,
        backlog=ACCEPTED_AT_ONCE,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        h11_max_incomplete_event_size=65_536,
    )
    # Both report what clients do, a client that leaves with a traceback.
    for name in ("uvicorn.error", "mcp"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    server = _Server(config, ready)
    if threading.current_thread() is threading.main_thread():
        # uvicorn raises the signal again at its end; SIGTERM then ends like Ctrl-C, with exit code 0.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), listening.socket:
        asyncio.run(server.serve(sockets=[listening.socket]))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._next_warning = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._on_error)
        await super().startup(sockets)
        for each in sockets or ():
            # uvicorn's setting is also how many asyncio accepts at once, so it is a small one.
            each.listen(BACKLOG)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            end_overdue(self.server_state.connections)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            watchdog = threading.Timer(LAST_TIMEOUT, _end_now)
            watchdog.daemon = True
            watchdog.start()
        super().handle_exit(sig, frame)

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Without descriptors asyncio reports every connection that it cannot accept, again and again."""
        if not isinstance(context.get("exception"), OSError) or "socket" not in context:
            loop.default_exception_handler(context)
        elif loop.time() >= self._next_warning:
            self._next_warning = loop.time() + _WARNING_INTERVAL
            _log.warning("no connection can be accepted: %s", context["exception"])


def _end_now() -> None:
    sys.stderr.write("outcrop: ended; a request was still running\n")
    sys.stderr.flush()
    os._exit(0)

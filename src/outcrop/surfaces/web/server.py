"""Runs the application: a socket, uvicorn, and a quick end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from outcrop.errors import OutcropError

# Default of ``outcrop serve``, unless another program uses it.
PORT = 8719

# Seconds for running requests when the server ends.
SHUTDOWN_TIMEOUT = 1


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
            opened.listen(128)
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
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

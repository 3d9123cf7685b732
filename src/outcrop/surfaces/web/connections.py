"""Bounds of a server's connections that uvicorn does not have: how many there are, and how long a slow client may take.

uvicorn itself bounds the header, and ends a connection that is idle after an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds in which a client sends a request whole, from when it connects or has its last answer, and in which it takes
# at least a part of an answer.
CLIENT_TIMEOUT = 20.0

MOST_CONNECTIONS = 512

# Descriptors for everything but connections: the index, the repository, programs that are called.
_OTHER_DESCRIPTORS = 64

# Connections that asyncio accepts in one turn. Some four turns pass until the oldest ones are closed for them.
ACCEPTED_AT_ONCE = 16


class BoundedConnection(H11Protocol):
    """A connection that knows since when it waits for its client."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._since = self.loop.time()
        self._unsent = 0
        self._is_ended = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        others = [each for each in _bounded(self.connections) if each is not self and not each._is_ended]
        if len(others) >= most_connections():
            # Silent connections, however many, keep nobody out.
            waiting = [each for each in others if each.waits_for_client]
            min(waiting, key=lambda each: each._since, default=self)._end()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def waits_for_client(self) -> bool:
        is_answering = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return not is_answering or self.transport.get_write_buffer_size() > 0

    def end_if_overdue(self, now: float) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent:
            self._since = now
        self._unsent = unsent
        if self.waits_for_client and now - self._since > CLIENT_TIMEOUT:
            self._end()

    def _end(self) -> None:
        self._is_ended = True
        self.transport.abort()


def end_overdue(connections: Iterable[asyncio.Protocol]) -> None:
    """End every connection whose client is too slow."""
    now = asyncio.get_running_loop().time()
    for connection in _bounded(connections):
        connection.end_if_overdue(now)


def most_connections() -> int:
    """Few enough that the process has descriptors left."""
    try:
        import resource
    except ImportError:
        return MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else soft - 4 * ACCEPTED_AT_ONCE - _OTHER_DESCRIPTORS
    return max(1, min(MOST_CONNECTIONS, free))


def _bounded(connections: Iterable[asyncio.Protocol]) -> list[BoundedConnection]:
    return [each for each in connections if isinstance(each, BoundedConnection)]

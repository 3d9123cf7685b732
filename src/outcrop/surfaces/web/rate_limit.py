"""How many requests one client may send, and how many are accepted at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

# Client addresses that are remembered; the least recent one is forgotten first.
MAX_CLIENTS = 4096


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a server."""

    # Requests of one client: a second, and at once.
    rate: float = 20.0
    burst: int = 80
    # Requests that run or wait at once.
    waiting: int = 256
    # Seconds that a request waits for its turn; nobody waits much longer for an answer.
    queue: float = 30.0
    # Bytes of a request.
    body: int = 65_536


class RateLimiter:
    """A token bucket for each client."""

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def acquire(self, client: str) -> float:
        """Take one token, and return the seconds until it is there; where these are more than ``queue``, take none."""
        now = self._clock()
        with self._lock:
            left, then = self._buckets.pop(client, (float(self._bounds.burst), now))
            left = min(float(self._bounds.burst), left + (now - then) * self._bounds.rate) - 1
            wait = max(0.0, -left / self._bounds.rate)
            self._buckets[client] = (left if wait <= self._bounds.queue else left + 1, now)
            if len(self._buckets) > MAX_CLIENTS:
                self._buckets.popitem(last=False)
        return wait

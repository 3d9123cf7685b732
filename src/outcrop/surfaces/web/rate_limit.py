"""How much one visitor may ask, and how many at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

# Addresses that are remembered; the one that was quiet for longest is forgotten first.
VISITORS = 4096


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server puts up with.

    Attributes:
        rate: Requests a second that one address may keep up.
        burst: Requests that it may send at once.
        waiting: Requests that may be in work or wait their turn at once.
        body: Bytes of a request.
    """

    rate: float = 20.0
    burst: int = 80
    waiting: int = 64
    body: int = 65_536


class Rate:
    """A bucket of tokens for each visitor.

    Args:
        bounds: Rate and burst.
        clock: Seconds, going forward only.
    """

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, visitor: str) -> float:
        """Take one token. 0 when there was one, else the seconds until there is one."""
        now = self._clock()
        with self._lock:
            left, then = self._buckets.pop(visitor, (float(self._bounds.burst), now))
            left = min(float(self._bounds.burst), left + (now - then) * self._bounds.rate)
            allowed = left >= 1
            self._buckets[visitor] = (left - 1 if allowed else left, now)
            if len(self._buckets) > VISITORS:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._bounds.rate

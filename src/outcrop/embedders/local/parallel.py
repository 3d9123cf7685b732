"""Texts one by one on every processor that this process may use."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(count: int, work: Callable[[int], None], threads: int) -> None:
    """Call ``work`` with each number below ``count``, on so many threads at once.

    After an error or Ctrl-C, the others stop at the end of the call in hand.
    """
    waiting = deque(range(count))

    def take() -> None:
        while True:
            try:
                number = waiting.popleft()
            except IndexError:
                return
            work(number)

    workers = min(threads, count)
    if workers == 1:
        take()
        return
    with ThreadPoolExecutor(workers, "embed") as pool:
        try:
            for done in [pool.submit(take) for _ in range(workers)]:
                done.result()
        finally:
            waiting.clear()

"""One call an item, on several threads at once."""

from __future__ import annotations

import os
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Seconds that an interrupted call waits for its threads; each ends after the call in hand.
STOP_TIMEOUT = 5.0


def usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threaded(
    function: Callable[[Item], Result], items: Sequence[Item], threads: int, stop: Callable[[], None] = lambda: None
) -> list[Result]:
    """Call a function with each item, on several threads at once; the results are in the items' order.

    After an error or Ctrl-C no further call begins; `stop` is called to end those that run.
    """
    workers = min(threads, len(items))
    if workers == 1:
        return list(map(function, items))
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    waiting = deque(enumerate(items))
    finished: list[int] = []
    wake: SimpleQueue[None] = SimpleQueue()

    def work() -> None:
        try:
            while True:
                try:
                    at, item = waiting.popleft()
                except IndexError:
                    return
                results[at] = function(item)
        except BaseException as error:
            errors.append(error)
            waiting.clear()
            stop()
        finally:
            finished.append(1)
            wake.put(None)

    # Ctrl-C inside of an executor, or of Thread.start, can leave a lock taken, on which everything then waits for ever.
    # Starting a bare thread and waiting at a SimpleQueue take no lock that Python code holds.
    begun = 0
    try:
        for _ in range(workers):
            start_new_thread(work, ())
            begun += 1
        for _ in range(workers):
            wake.get()
    except BaseException:
        waiting.clear()
        stop()
        deadline = time.monotonic() + STOP_TIMEOUT
        while len(finished) < begun and time.monotonic() < deadline:
            time.sleep(0.005)
        raise
    if errors:
        raise errors[0]
    return [results[at] for at in range(len(items))]

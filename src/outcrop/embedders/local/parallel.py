"""Texts one by one on every processor that this process may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threaded(function: Callable[[str], Any], texts: Sequence[str], threads: int) -> list[Any]:
    """Call a function with each text, on several threads at once; the results are in the texts' order.

    After an error or Ctrl-C, every thread stops at the end of its current call.
    """
    workers = min(threads, len(texts))
    if workers == 1:
        return list(map(function, texts))
    pool = ThreadPoolExecutor(workers, "embed")
    try:
        return list(pool.map(function, texts))
    finally:
        pool.shutdown(cancel_futures=True)

"""Measuring in turns, and whole processes with their time and memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

OUTCROP = str(Path(sys.executable).with_name("outcrop"))

MEGABYTE = 1 << 20

T = TypeVar("T")

# A process of its own, and a small one: Linux counts what the parent used at the fork as the child's peak.
_LAUNCHER = """
import json, os, sys, time
nowhere = os.open(os.devnull, os.O_RDWR)
files = [(os.POSIX_SPAWN_DUP2, nowhere, 0), (os.POSIX_SPAWN_DUP2, nowhere, 1)]
started = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=files)
_, status, used = os.wait4(child, 0)
seconds = time.perf_counter() - started
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One process: seconds on the clock, seconds of processor, and its peak resident memory in bytes."""

    seconds: float
    processor: float
    peak: int


def run(*command: str | Path, **environment: str) -> Run:
    """Run a command to its end, its output thrown away.

    Raises:
        SystemExit: It failed; what it said on stderr is shown.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | environment
    launched = subprocess.run(
        [sys.executable, "-S", "-E", "-c", _LAUNCHER, *map(str, command)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    code, seconds, processor, kilobytes = json.loads(launched.stdout)
    if code:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {code}\n{launched.stderr}")
    return Run(seconds, processor, kilobytes * 1024)


def seconds_of(action: Callable[[], object]) -> float:
    """How long it takes, on the clock."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def in_turns(contenders: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Let each contender have one go a round, so that what else the machine does meets them all.

    One round more comes first and does not count.
    """
    results: dict[str, list[T]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, go in contenders.items():
            result = go()
            if number:
                results[name].append(result)
    return results


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def ratio(values: Sequence[float], against: Sequence[float]) -> float:
    """Median of the ratios of each round."""
    return statistics.median(one / other for one, other in zip(values, against, strict=True))

"""Writing into a database that belongs to another program without blocking that program.

A program that reads inside its transaction and then wants to write fails at once while another process writes: that is
how ``fossil commit`` ends while an index is written. So a write begins only when no process reads or writes; a process
that comes later waits at its first read, which every program does with a timeout, and not at its first write.
"""

from __future__ import annotations

import random
import sqlite3
import time

from outcrop.core.sqlite_errors import is_locked

# Seconds of waiting for an idle moment; a server whose pages are viewed without a pause has none.
IDLE_TIMEOUT = 15.0

# Seconds between two attempts, on average; each blocks the others for some microseconds.
PAUSE = 0.03


def begin_when_idle(database: sqlite3.Connection) -> None:
    """Begin a write transaction when no process has one, not even for reading.

    After ``IDLE_TIMEOUT`` it waits like any other writer, as long as the connection's own timeout says.
    """
    (timeout,) = database.execute("PRAGMA busy_timeout").fetchone()
    database.execute("PRAGMA busy_timeout = 0")
    try:
        until = time.monotonic() + IDLE_TIMEOUT
        while time.monotonic() < until:
            try:
                database.execute("BEGIN EXCLUSIVE")
                return
            except sqlite3.OperationalError as error:
                if not is_locked(error):
                    raise
            time.sleep(random.uniform(0.5, 1.5) * PAUSE)
    finally:
        database.execute(f"PRAGMA busy_timeout = {timeout}")
    database.execute("BEGIN IMMEDIATE")

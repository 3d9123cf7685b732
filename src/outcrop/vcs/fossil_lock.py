"""Writing into a database that belongs to another program without ever being in that program's way.

A program that read inside its transaction and now wants to write fails at once when somebody else is writing: that is
how ``fossil commit`` ends while an index is written. So a write begins only at a moment when nobody reads or writes;
whoever comes later waits for their first read, which every program does patiently, and not for their first write.
"""

from __future__ import annotations

import random
import sqlite3
import time

from outcrop.core.sqlite_errors import is_locked

# Seconds of looking for a quiet moment; where pages are viewed without a pause there is none.
PATIENCE = 15.0

# Seconds between two looks, on average; each of them is in the way for some microseconds.
PAUSE = 0.03


def begin_when_idle(database: sqlite3.Connection) -> None:
    """Begin a write transaction when nobody has one, not even for reading.

    After ``PATIENCE`` it takes its turn like anybody else, waiting as long as the connection's time-out says.

    Args:
        database: With no transaction open.
    """
    (timeout,) = database.execute("PRAGMA busy_timeout").fetchone()
    database.execute("PRAGMA busy_timeout = 0")
    try:
        until = time.monotonic() + PATIENCE
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

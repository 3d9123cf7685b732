"""One database file: its connection, its turns and transactions, and the lock of the one process that builds."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from outcrop.errors import IndexMissing, StoreDamaged, StoreLocked
from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.connection import (
    connect,
    connect_in_memory,
    count_change,
    enlarge_cache,
    explained,
    meta,
    set_meta,
    transaction,
)
from outcrop.text import terms

FREE_SHARE = 0.25
# Free pages (8 MiB, and a quarter of the file) from which a build gives them back: that copies the whole file once.
FEWEST_FREE_PAGES = 1024


class DatabaseFile:
    """A database and who may do what with it now.

    Args:
        path: The file. Reading never creates it. None keeps everything in memory, for this process only.
        guest: It belongs to another program (a Fossil repository): no file is ever put beside it, its pages and journal
            are left alone, and it is never deleted. It is opened through SQLite only, since closing any other
            descriptor of it would drop this process's locks.
        read_only: It is another repository's, and nothing in it is changed.
    """

    def __init__(self, path: Path | None, guest: bool, read_only: bool = False) -> None:
        self.path = path or Path(":memory:")
        self.guest = guest
        self._read_only = read_only
        self.database: sqlite3.Connection | None = None
        self._in_memory = path is None
        self._opened: tuple[int, int] | None = None
        # One connection serves every thread of the process; statements take turns.
        self._turn = threading.RLock()

    @contextmanager
    def reading(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection, in turn."""
        with self._turn, explained(self.path, self.guest):
            if self.database is not None and not self.database.in_transaction and self._opened != self._identity():
                # Somebody removed or replaced the file; what this connection still sees is nobody's index any more.
                self.close()
            if self.database is None:
                self.database = (
                    connect_in_memory() if self._in_memory else connect(self.path, create, self.guest, self._read_only)
                )
                self._opened = self._identity()
            yield self.database

    def _identity(self) -> tuple[int, int] | None:
        """Which file stands at the path now; asked of the folder, so that the file itself is never opened."""
        if self._in_memory:
            return None
        try:
            about = self.path.stat()
        except FileNotFoundError:
            return None
        return about.st_dev, about.st_ino

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Reads inside see one moment of the database."""
        with self.reading() as database:
            if database.in_transaction:
                yield database
                return
            database.execute("BEGIN")
            try:
                yield database
            finally:
                database.execute("COMMIT")

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction."""
        with self.reading(create=True) as database, self.transaction(database):
            yield database

    @contextmanager
    def transaction(self, database: sqlite3.Connection) -> Iterator[None]:
        """One write transaction on a connection of this file."""
        with transaction(database, self.guest):
            count_change(database)
            yield

    @contextmanager
    def apart(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for one large write, which is made ready on it before the transaction begins."""
        with self.reading(create=True) as shared:
            if self._in_memory:
                yield shared
                return
            database = connect(self.path, create=False, guest=self.guest)
            try:
                enlarge_cache(database, self.guest)
                yield database
            finally:
                database.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the one writer, across processes."""
        if self._in_memory:
            yield
            return
        if self.path.exists():
            # A file that is no index is refused before a lock is left beside it.
            with suppress(IndexMissing), self.reading():
                pass
        with self._locked():
            with self.reading(create=True) as database:
                enlarge_cache(database, self.guest)
                outdated = meta(database, "terms") != str(terms.VERSION)
            if outdated:
                self._index_words_again()
            yield
            if self._is_mostly_free():
                # Another process that reads just now is no failure; the next build tries again.
                with suppress(StoreLocked):
                    self.shrink()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Imported here: a search never writes.
        from filelock import FileLock, Timeout

        place = self.beside(".lock")
        with explained(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(place, timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise StoreLocked(
                    f"another process is building the index at {self.path}", "Wait for it, or search meanwhile"
                ) from None
        try:
            yield
        finally:
            lock.release()

    def _is_mostly_free(self) -> bool:
        if self.guest:
            return False
        with self.reading() as database:
            (free,) = database.execute("PRAGMA freelist_count").fetchone()
            (pages,) = database.execute("PRAGMA page_count").fetchone()
        return bool(free > FEWEST_FREE_PAGES and free > FREE_SHARE * pages)

    def is_being_written(self) -> bool:
        """Whether another process is building right now."""
        place = self.beside(".lock")
        if not place.exists():
            return False
        from filelock import FileLock, Timeout

        try:
            with FileLock(place, timeout=0):
                return False
        except Timeout:
            return True
        except OSError:
            # Nobody can be told from a folder that this user may not write.
            return False

    def shrink(self) -> None:
        """Give free pages back to the disk; another program's pages are its own business."""
        if self.guest:
            return
        with self.reading() as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let go of the database."""
        with self._turn:
            if self.database is not None:
                self.database.close()
            self.database = None

    def remove(self) -> None:
        """Delete our own file with everything that belongs to it, whatever state it is in, and its folder when
        empty.
        """
        if self.guest:
            raise StoreDamaged(
                f"{self.path} is damaged, and is left alone since it is more than an index",
                "Look at: fossil test-integrity, and restore a copy",
            )
        self.close()
        with self._locked(), explained(self.path):
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        with suppress(OSError):
            for suffix in (".lock", ".next", ".turn"):
                self.beside(suffix).unlink(missing_ok=True)
            if self.path.parent.name == ".outcrop":
                (self.path.parent / ".gitignore").unlink(missing_ok=True)
            if self.path.parent.name in (".outcrop", "outcrop"):
                self.path.parent.rmdir()

    def beside(self, suffix: str) -> Path:
        """A file that belongs to this one.

        Beside our own file; for another program's in the user's cache, under what the file is on its disk.

        Args:
            suffix: What its name ends in, with a dot.
        """
        if not self.guest:
            return self.path.with_name(self.path.name + suffix)
        # Imported here: only builds and status ask.
        from platformdirs import user_cache_path

        about = self.path.stat()
        return user_cache_path("outcrop") / "locks" / f"{about.st_dev:x}-{about.st_ino:x}{suffix}"

    def _index_words_again(self) -> None:
        """Make the keyword index anew, after ``terms.VERSION`` moved."""
        with self.apart() as database:
            rows = keywords.rows_of_chunks(database)
            database.execute("ATTACH ':memory:' AS aside")
            keywords.stage(database, rows, "aside")
            with self.transaction(database):
                keywords.empty(database)
                if not keywords.append(database, "aside"):
                    keywords.insert(database, rows)
                set_meta(database, "terms", str(terms.VERSION))

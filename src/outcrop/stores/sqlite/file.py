"""One database file: its connection, its transactions, and the lock of the one process that builds."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from outcrop.errors import IndexMissing, StoreFull, StoreLocked
from outcrop.stores.sqlite import connection, keywords
from outcrop.text import terms

if TYPE_CHECKING:
    from filelock import FileLock

# A build gives free pages back, which copies the whole file, from 8 MiB and a quarter of the file.
MIN_FREE_PAGES = 1024
MIN_FREE_SHARE = 0.25

# Seconds that a build waits for the lock, which another process may be testing.
LOCK_TIMEOUT = 0.2


class DatabaseFile:
    """The database and its locks.

    Args:
        path: The file. Reading never creates it. None keeps everything in memory, for this process only.
        shared: Another program owns it (a Fossil repository): no file is ever put beside it, its pages and journal are
            left alone, and it is never deleted. It is opened through SQLite only, since closing any other descriptor
            of it would drop this process's locks.
        read_only: It is another repository's, and nothing in it is changed.
    """

    def __init__(self, path: Path | None, shared: bool, read_only: bool = False) -> None:
        self.path = path or Path(":memory:")
        self.shared = shared
        self._read_only = read_only
        self.database: sqlite3.Connection | None = None
        self._in_memory = path is None
        self._opened: tuple[int, int] | None = None
        self._file_lock: FileLock | None = None
        # One connection serves every thread of the process.
        self._lock = threading.RLock()

    @contextmanager
    def reading(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone."""
        with self._lock, connection.explained(self.path, self.shared):
            if self.database is not None and not self.database.in_transaction and self._opened != self._identity():
                # The file was removed or replaced; what this connection still sees is no longer the index.
                self.close()
            if self.database is None:
                self.database = (
                    connection.connect_in_memory()
                    if self._in_memory
                    else connection.connect(self.path, create, self.shared, self._read_only)
                )
                self._opened = self._identity()
            yield self.database

    def _identity(self) -> tuple[int, int] | None:
        """Which file is at the path now; asked of the folder, so that the file itself is never opened."""
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
        with self.reading(create=True) as database, connection.transaction(database, self.shared):
            connection.count_change(database)
            yield database

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        """Be the one writer, across processes."""
        if self._in_memory:
            yield
            return
        if self.path.exists():
            # A file that is no index is refused before a lock is left beside it.
            with suppress(IndexMissing), self.reading():
                pass
        with self.locked(LOCK_TIMEOUT):
            with self.reading(create=True) as database:
                connection.prepare_for_build(database, self.shared)
                self._remove_unfinished()
                outdated = connection.meta(database, "terms") != str(terms.VERSION)
            if outdated:
                self.rebuild_keywords()
            yield
            if self._is_mostly_free():
                # Another process reads just now; the next build tries again.
                with suppress(StoreLocked):
                    self.shrink()

    @contextmanager
    def locked(self, timeout: float = 0) -> Iterator[None]:
        """Keep other processes from building; may be nested."""
        if self._in_memory:
            yield
            return
        # Imported here: a search never writes.
        from filelock import FileLock, Timeout

        lock_path = self.beside(".lock")
        with connection.explained(lock_path):
            lock_path.parent.mkdir(parents=True, exist_ok=True)
            lock = self._file_lock = self._file_lock or FileLock(lock_path)
            try:
                lock.acquire(timeout=timeout)
            except Timeout:
                raise StoreLocked(
                    f"another process is building the index at {self.path}", "Wait for it, or search meanwhile"
                ) from None
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def replacement(self) -> Iterator[DatabaseFile]:
        """An empty database that takes this one's place, at once, when the block ends without an error.

        It is a file beside this one; for a shared database it is in memory, so that no file is put anywhere.
        """
        with self.locked():
            if self.shared:
                with connection.explained(self.path, shared=True):
                    connection.refuse_damaged_tables(self.path)
            self._remove_unfinished()
            new = DatabaseFile(None if self.shared else self._unfinished, shared=False)
            try:
                yield new
                with new.reading(create=True) as database, connection.explained(self.path, self.shared):
                    self.close()
                    if self.shared:
                        connection.replace_tables(self.path, database)
                    else:
                        connection.replace_database(self.path, database)
            finally:
                new.close()
                self._remove_unfinished()

    @property
    def _unfinished(self) -> Path:
        return self.path.with_name(self.path.name + ".new")

    def _remove_unfinished(self) -> None:
        """Remove what a rebuild that was killed left."""
        with connection.explained(self.path, self.shared):
            if self.shared:
                connection.drop_tables(self.path, connection.STAGED)
            else:
                connection.remove_file(self._unfinished)
                self._unfinished.with_name(self._unfinished.name + ".lock").unlink(missing_ok=True)

    def _is_mostly_free(self) -> bool:
        if self.shared:
            return False
        with self.reading() as database:
            (free,) = database.execute("PRAGMA freelist_count").fetchone()
            (pages,) = database.execute("PRAGMA page_count").fetchone()
        return bool(free > MIN_FREE_PAGES and free > MIN_FREE_SHARE * pages)

    def is_being_written(self) -> bool:
        if not self.beside(".lock").exists():
            return False
        # A folder that this user may not write says nothing of who else writes in it.
        with suppress(StoreFull):
            try:
                # With a lock of its own: this process may be the one that builds.
                with DatabaseFile(self.path, self.shared).locked():
                    return False
            except StoreLocked:
                return True
        return False

    def shrink(self) -> None:
        """Give free pages back to the disk, except in a shared database."""
        if self.shared:
            return
        with self.reading() as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        with self._lock:
            if self.database is not None:
                self.database.close()
            self.database = None

    def remove(self) -> None:
        """Delete our own file, whatever state it is in, with what belongs to it, and its folder when empty.

        From a shared database only our tables go.
        """
        self.close()
        with self.locked(), connection.explained(self.path, self.shared):
            if self.shared:
                connection.drop_tables(self.path)
                return
            connection.remove_file(self.path)
            self._remove_unfinished()
        with suppress(OSError):
            for suffix in (".lock", ".next", ".turn"):
                self.beside(suffix).unlink(missing_ok=True)
            if self.path.parent.name == ".outcrop":
                (self.path.parent / ".gitignore").unlink(missing_ok=True)
            if self.path.parent.name in (".outcrop", "outcrop"):
                self.path.parent.rmdir()

    def beside(self, suffix: str) -> Path:
        """A file that belongs to this one; of a shared database it is in the user's cache."""
        if not self.shared:
            return self.path.with_name(self.path.name + suffix)
        # Imported here: only builds and status ask.
        from platformdirs import user_cache_path

        about = self.path.stat()
        return user_cache_path("outcrop") / "locks" / f"{about.st_dev:x}-{about.st_ino:x}{suffix}"

    def rebuild_keywords(self) -> None:
        """Make the keyword index anew, beside the old one, which answers meanwhile."""
        with self.changing() as database:
            keywords.create_next(database)
        # What is damaged is made again after this.
        with self.reading() as database, connection.lenient(database):
            for batch in keywords.batches_of_chunks(database):
                with self.changing():
                    for table, rows in batch.items():
                        keywords.insert(database, rows, f"{table}_next")
        with self.changing() as database:
            keywords.use_next(database)
            connection.set_meta(database, "terms", str(terms.VERSION))

"""What is changed in other programs, step by step: shown before it is applied, and undone by a plan of its own.

An uninstall looks at what is there, so that nothing about an installation has to be remembered.
"""

from __future__ import annotations

import difflib
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcrop.errors import SourceError, SourceLocked, StoreFull
from outcrop.text.files import write_atomically
from outcrop.vcs.fossil_lock import begin_when_idle


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Changes in the order in which they are applied, and what the reader should know besides."""

    changes: tuple[PlannedChange, ...] = ()
    remarks: tuple[str, ...] = ()

    def __add__(self, other: ChangePlan) -> ChangePlan:
        return ChangePlan(self.changes + other.changes, self.remarks + other.remarks)

    def lines(self) -> Iterator[str]:
        for change in self.changes:
            yield from change.lines()

    def apply(self) -> None:
        for change in self.changes:
            change.apply()


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file gets other content; None is no file. ``mode`` is for a new file: an old one keeps its own."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = 0o755

    def lines(self) -> Iterator[str]:
        verb = "create" if self.before is None else "delete" if self.after is None else "change"
        yield f"{verb} {self.path}"
        old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (self.before, self.after))
        for line in list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]:
            yield f"  {line}"

    def apply(self) -> None:
        try:
            if self.after is None:
                self.path.unlink()
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = self.mode if self.before is None else self.path.stat().st_mode & 0o7777
            write_atomically(self.path, self.after, mode)
        except OSError as error:
            raise StoreFull(f"{self.path} cannot be written ({error.strerror})", "Check its permissions") from error


@dataclass(frozen=True, slots=True)
class FileMove:
    """A file is renamed."""

    old: Path
    new: Path

    def lines(self) -> Iterator[str]:
        yield f"rename {self.old} to {self.new.name}"

    def apply(self) -> None:
        try:
            self.old.rename(self.new)
        except OSError as error:
            raise StoreFull(f"{self.old} cannot be renamed ({error.strerror})", "Check its permissions") from error


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A value in a Fossil repository's own configuration; None is no row."""

    repository: Path
    name: str
    before: str | None
    after: str | None

    def lines(self) -> Iterator[str]:
        yield f"change the setting {self.name!r} of {self.repository}"
        for sign, value in (("-", self.before), ("+", self.after)):
            if value is not None:
                yield f"  {sign}{value}"

    def apply(self) -> None:
        """Write it in one transaction, unless another program has changed it."""
        try:
            with closing(sqlite3.connect(self.repository, isolation_level=None)) as database:
                begin_when_idle(database)
                if read_setting(database, self.name) != self.before:
                    database.execute("ROLLBACK")
                    raise SourceError(
                        f"another program has changed the setting {self.name!r}", "Run the same command again"
                    )
                if self.after is None:
                    database.execute("DELETE FROM config WHERE name = ?", (self.name,))
                elif self.before is None:
                    database.execute(
                        "INSERT INTO config(name, value, mtime) VALUES (?, ?, strftime('%s', 'now'))",
                        (self.name, self.after),
                    )
                else:
                    database.execute("UPDATE config SET value = ? WHERE name = ?", (self.after, self.name))
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise SourceLocked(f"{self.repository} cannot be written ({error})", "Try again in a moment") from error


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A program is run; one that is optional may fail."""

    command: tuple[str, ...]
    optional: bool = False

    def lines(self) -> Iterator[str]:
        yield f"run {shlex.join(self.command)}"

    def apply(self) -> None:
        try:
            done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise StoreFull(f"{self.command[0]} cannot be run ({error.strerror})") from error
        if done.returncode and not self.optional:
            reason = (done.stderr or done.stdout).strip().splitlines() or ["it gives no reason"]
            raise StoreFull(
                f"{shlex.join(self.command)} failed: {reason[-1]}", "Undo the rest: outcrop watch --uninstall"
            )


PlannedChange = FileChange | FileMove | SettingChange | ProgramRun


def read_setting(database: sqlite3.Connection, name: str) -> str | None:
    row = database.execute("SELECT value FROM config WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def command_line(*arguments: str, flags: Mapping[str, Any]) -> list[str]:
    """The command line that starts this very installation from any folder, with settings by name."""
    # -P: a file named like one of our modules in the current folder must not be run.
    return [sys.executable, "-P", "-m", "outcrop", *arguments, *_options(flags)]


def _options(flags: Mapping[str, Any]) -> Iterator[str]:
    for name, value in flags.items():
        values: Sequence[Any] = value if isinstance(value, tuple) else () if value is None else (value,)
        for each in values:
            yield f"--{name.replace('_', '-')}={each}"

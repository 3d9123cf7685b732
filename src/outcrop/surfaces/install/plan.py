"""Having an index kept current without anybody at it: what would be changed where, shown before it is done.

A plan is a list of changes. Each can say what it would do and do it; undoing is a plan of its own, made by looking at
what is there, so that nothing has to be remembered.
"""

from __future__ import annotations

import difflib
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from outcrop.errors import SourceError, SourceLocked, StoreFull
from outcrop.vcs.fossil_lock import begin_when_idle


class Change(Protocol):
    """One step of a plan."""

    def lines(self) -> Iterator[str]:
        """What it would do, for a person."""

    def apply(self) -> None:
        """Do it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be changed, and what has to be said besides."""

    changes: tuple[Change, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """A file gets new content; None for no file. A file that is there keeps its mode."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = 0o755

    def lines(self) -> Iterator[str]:
        """The difference."""
        verb = "create" if self.before is None else "delete" if self.after is None else "change"
        yield f"{verb} {self.path}"
        old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (self.before, self.after))
        for line in list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]:
            yield f"  {line}"

    def apply(self) -> None:
        """Write a copy and put it in the place of the old one, so that nobody runs half of it."""
        try:
            if self.after is None:
                self.path.unlink()
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = self.mode if self.before is None else self.path.stat().st_mode & 0o7777
            draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            draft.write_bytes(self.after)
            draft.chmod(mode)
            draft.replace(self.path)
        except OSError as error:
            raise StoreFull(f"{self.path} cannot be written ({error.strerror})", "Check its permissions") from error


@dataclass(frozen=True, slots=True)
class Move:
    """A file is renamed, as it is."""

    old: Path
    new: Path

    def lines(self) -> Iterator[str]:
        """From where to where."""
        yield f"rename {self.old} to {self.new.name}"

    def apply(self) -> None:
        """Rename it."""
        try:
            self.old.rename(self.new)
        except OSError as error:
            raise StoreFull(f"{self.old} cannot be renamed ({error.strerror})", "Check its permissions") from error


@dataclass(frozen=True, slots=True)
class Setting:
    """A value in a Fossil repository's own configuration; None for no row."""

    repository: Path
    name: str
    before: str | None
    after: str | None

    def lines(self) -> Iterator[str]:
        """The difference."""
        yield f"change the setting {self.name!r} of {self.repository}"
        for sign, value in (("-", self.before), ("+", self.after)):
            if value is not None:
                yield f"  {sign}{value}"

    def apply(self) -> None:
        """Write it in one transaction, unless somebody changed it meanwhile."""
        try:
            database = sqlite3.connect(self.repository, isolation_level=None)
            try:
                begin_when_idle(database)
                if setting_of(database, self.name) != self.before:
                    database.execute("ROLLBACK")
                    raise SourceError(f"the setting {self.name!r} changed meanwhile", "Run the same command again")
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
            finally:
                database.close()
        except sqlite3.Error as error:
            raise SourceLocked(f"{self.repository} cannot be written ({error})", "Try again in a moment") from error


@dataclass(frozen=True, slots=True)
class Run:
    """A program is run."""

    command: tuple[str, ...]
    optional: bool = False

    def lines(self) -> Iterator[str]:
        """Its command line."""
        yield f"run {shlex.join(self.command)}"

    def apply(self) -> None:
        """Run it; one that is optional may fail."""
        try:
            done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise StoreFull(f"{self.command[0]} cannot be run ({error.strerror})") from error
        if done.returncode and not self.optional:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise StoreFull(
                f"{shlex.join(self.command)} failed: {said[-1]}", "outcrop watch --uninstall undoes the rest"
            )


def setting_of(database: sqlite3.Connection, name: str) -> str | None:
    """A row of a Fossil repository's configuration."""
    row = database.execute("SELECT value FROM config WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def program(*arguments: str, flags: Mapping[str, Any] | None = None) -> list[str]:
    """The command line that starts this very installation, wherever it is called from.

    Args:
        arguments: What follows its name.
        flags: Settings that were given on the command line, by name.
    """
    # -P: a file named like one of our modules in the folder that it is called from must not be run.
    return [sys.executable, "-P", "-m", "outcrop", *arguments, *_options(flags or {})]


def _options(flags: Mapping[str, Any]) -> Iterator[str]:
    for name, value in flags.items():
        option = f"--{name.replace('_', '-')}"
        values: Sequence[Any] = value if isinstance(value, tuple) else () if value is None else (value,)
        for each in values:
            yield f"{option}={each.absolute() if isinstance(each, Path) else each}"

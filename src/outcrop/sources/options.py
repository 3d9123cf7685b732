"""The user's settings of a source. Ignore files are not settings: they are part of the material."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from outcrop.core.model import DEFAULT_HISTORY, History, Kind

# A notebook's bulk is its outputs (images, tables), which are dropped: it may be this many times the limit.
NOTEBOOK_ALLOWANCE = 32

_STORE_SUFFIXES = ("", "-wal", "-shm", "-journal", ".lock")


def exclude_store(store: Path | None, root: Path) -> tuple[str, ...]:
    """Patterns that exclude an index (None: in its usual place) which the user keeps among the files that it covers.

    Otherwise each build would change what it lists, and the index would always be stale.
    """
    if store is None:
        return ()
    place = store.absolute().parent.resolve() / store.name
    if not place.is_relative_to(root):
        return ()
    name = re.sub(r"([\\*?\[\]!# ])", r"\\\1", place.relative_to(root).as_posix())
    return tuple(f"/{name}{suffix}" for suffix in _STORE_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that decide what a source lists. Patterns are in gitignore syntax, anchored at the root of the source.

    ``kinds`` are ``(glob, kind)`` pairs that override the kind decided from the path. ``history`` is how many commits
    are listed. No source reads ``raw_cells``; it is part of ``mark``.
    """

    max_bytes: int = 1 << 20
    exclude: tuple[str, ...] = ()
    include_secrets: tuple[str, ...] = ()
    kinds: tuple[tuple[str, Kind], ...] = ()
    raw_cells: bool = False
    history: History = DEFAULT_HISTORY

    @property
    def mark(self) -> str:
        """Empty for the defaults, else a digest of the settings: an index made under others is stale."""
        if self == Options():
            return ""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def rules(self) -> str:
        """The settings that decide whether a file is read."""
        return f"{self.max_bytes}/{'|'.join(self.include_secrets)}"

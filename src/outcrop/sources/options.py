"""What a user may set about a source. Ignore files are not settings: they are part of the material."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from outcrop.core.model import Kind

DEFAULT_MAX_BYTES = 1 << 20

# A notebook's bulk is its outputs (images, tables), which are dropped: it may be this many times the limit.
NOTEBOOK_ALLOWANCE = 32


_STORE_SUFFIXES = ("", "-wal", "-shm", "-journal", ".lock")


def own_files(store: Path | None, root: Path) -> tuple[str, ...]:
    """Patterns that leave an index out of itself, for who keeps it among the files that it is of.

    Otherwise every build would change what it lists, and no index would ever be current.

    Args:
        store: The file that somebody named; None where the index is in its usual place.
        root: What paths are relative to.
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
    """Settings that decide what a source lists.

    Attributes:
        max_bytes: Larger files are skipped as ``OVERSIZE`` without being read (notebooks: 32 times as large).
        exclude: Patterns in gitignore syntax, anchored at the root of the source, of what to leave out.
        include_secrets: Patterns in the same syntax that bring in files which would be skipped as ``SECRET``.
        kinds: ``(glob, kind)`` pairs that override the kind decided from the path.
        raw_cells: Whether raw cells of notebooks are documents too. No source asks; an index made otherwise is behind.
    """

    max_bytes: int = DEFAULT_MAX_BYTES
    exclude: tuple[str, ...] = ()
    include_secrets: tuple[str, ...] = ()
    kinds: tuple[tuple[str, Kind], ...] = ()
    raw_cells: bool = False

    @property
    def mark(self) -> str:
        """Empty for the defaults, else the same for the same settings: an index made under others is behind."""
        if self == Options():
            return ""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def rules(self) -> str:
        """The settings that decide whether a file is read, in words; other rules, another verdict on known files."""
        return f"{self.max_bytes}/{'|'.join(self.include_secrets)}"

    def limit(self, path: str) -> int:
        """The most bytes that a file at ``path`` may have."""
        return self.max_bytes * NOTEBOOK_ALLOWANCE if path.endswith(".ipynb") else self.max_bytes

"""Whether an index is behind its source, and what of it may still be shown."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from outcrop.core.model import Stale
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.core.protocols import IndexState, Source, Withholding
from outcrop.errors import OutcropError


class Indexed(Protocol):
    """Anything that comes from an artifact of the index."""

    @property
    def project(self) -> str: ...

    @property
    def hash(self) -> str: ...

    @property
    def version(self) -> str | None: ...


T = TypeVar("T", bound=Indexed)


def compare(revisions: Mapping[str, str | None], current: str, *, has_members: bool = True) -> Stale | None:
    """The revision of the first build that is behind the source, None where no build is.

    Args:
        has_members: Whether any build put anything in. Records alone have no source, so they are never stale.
    """
    behind = {name: revision for name, revision in revisions.items() if revision != current}
    if not revisions and has_members:
        behind = dict.fromkeys(DEFAULT_BUILDERS)
    return Stale(next(iter(behind.values())), current, tuple(behind)) if behind else None


def update_commands(behind: Iterable[str], listed: Collection[str]) -> str:
    """What brings these corpora up to date; ``listed`` are the custom ones whose paths the settings name."""
    names = list(behind)
    unlisted = [name for name in names if name not in DEFAULT_BUILDERS and name not in listed]
    commands = [] if unlisted and len(unlisted) == len(names) else ["outcrop index"]
    return "; ".join([*commands, *(f"outcrop index --corpus {name} PATH..." for name in unlisted)])


def visible(source: Source, items: Iterable[T]) -> list[T]:
    """Without those whose artifact was withdrawn from the public since it was indexed."""
    items = list(items)
    if not isinstance(source, Withholding):
        return items
    hidden = source.withheld({item.hash: item.version for item in items if item.version and not item.project})
    return [item for item in items if item.project or item.hash not in hidden]


class StalenessCheck:
    """Finds out, in the background, whether the source changed since the index was built."""

    def __init__(self, index: IndexState, source: Source) -> None:
        self._revisions = index.revisions()
        self._has_members = bool(self._revisions) or index.has_members()
        self._seen = index.seen()
        self._source = source
        self._current = ""
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self._current = self._source.revision(self._seen)
        except (OutcropError, OSError) as error:
            self._current = f"unknown: {error}"

    def result(self) -> Stale | None:
        self._thread.join()
        return compare(self._revisions, self._current, has_members=self._has_members)

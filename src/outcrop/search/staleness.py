"""Whether an index is behind its source, and what of it may still be shown."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from outcrop.core.model import Stale
from outcrop.core.names import COMMITS, DEFAULT_BUILDERS
from outcrop.core.protocols import Historied, IndexState, Source, Withholding
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

# Before the reason, where the source's revision cannot be read.
UNREADABLE = "unknown: "


def expected_builders(source: Source) -> tuple[str, ...]:
    """The builders of the two usual corpora, without that of commits where the source has none to index."""
    has_history = isinstance(source, Historied) and source.has_history
    return tuple(builder for builder in DEFAULT_BUILDERS if has_history or builder != COMMITS)


def expected_revisions(index: IndexState, source: Source) -> Mapping[str, str | None]:
    """Per builder of a view, the revision of its last complete build; None for each of the usual ones without one.

    An index of records, imported projects or custom corpora alone is not expected to hold the usual ones.
    """
    built = index.revisions()
    is_special = built.keys().isdisjoint(DEFAULT_BUILDERS) if built else _holds_others_alone(index)
    return built if is_special else {**dict.fromkeys(expected_builders(source)), **built}


def _holds_others_alone(index: IndexState) -> bool:
    return index.holds_others() and not index.has_members()


def missing(revisions: Mapping[str, str | None]) -> tuple[str, ...]:
    """The corpora without a build. An index of an older version has no commits yet: it is behind, and misses none."""
    return tuple(name for name, revision in revisions.items() if revision is None and name != COMMITS)


def compare(revisions: Mapping[str, str | None], current: str) -> Stale | None:
    """What is behind the source, with the revision of the first such build; None where no build is."""
    behind = {name: revision for name, revision in revisions.items() if revision != current}
    return Stale(next(iter(behind.values())), current, corpora_of(behind)) if behind else None


def corpora_of(builders: Iterable[str]) -> tuple[str, ...]:
    """The corpora that builders are known by: commits are in ``docs``."""
    return tuple(dict.fromkeys("docs" if builder == COMMITS else builder for builder in builders))


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
        self._revisions = expected_revisions(index, source)
        self._seen = index.seen()
        self._source = source
        self._current = ""
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self._current = self._source.revision(self._seen)
        except (OutcropError, OSError) as error:
            self._current = f"{UNREADABLE}{error}"

    def result(self) -> Stale | None:
        self._thread.join()
        return compare(self._revisions, self._current)

"""Whether an index is older than its source."""

from __future__ import annotations

import threading

from outcrop.core.model import Stale
from outcrop.core.protocols import IndexState, Source
from outcrop.errors import OutcropError


class Freshness:
    """Finds out, in the background, whether the source changed since the index was built."""

    def __init__(self, index: IndexState, source: Source) -> None:
        self._indexed = index.revisions()
        # Records alone have no source, so they cannot be stale.
        self._built = bool(self._indexed) or index.has_members()
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

    def stale(self) -> Stale | None:
        self._thread.join()
        # Each corpus has its own build; the index is as old as the oldest.
        if not self._built:
            return None
        outdated = [revision for revision in self._indexed.values() if revision != self._current]
        if self._indexed and not outdated:
            return None
        return Stale(outdated[0] if outdated else None, self._current)

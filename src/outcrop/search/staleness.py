"""Whether an index is behind its source."""

from __future__ import annotations

import threading

from outcrop.core.model import Stale
from outcrop.core.protocols import Source, VectorStore
from outcrop.errors import OutcropError


class Freshness:
    """Finds out, in the background, whether the source moved on since the index was built."""

    def __init__(self, store: VectorStore, source: Source) -> None:
        self._indexed = store.revisions()
        # Records alone come from nowhere, so they cannot be behind it.
        self._built = bool(self._indexed) or store.has_members()
        self._seen = store.seen()
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
        """Both revisions when they differ."""
        self._thread.join()
        # Each corpus has its own build; the index is as old as the oldest.
        if not self._built:
            return None
        behind = [revision for revision in self._indexed.values() if revision != self._current]
        if self._indexed and not behind:
            return None
        return Stale(behind[0] if behind else None, self._current)

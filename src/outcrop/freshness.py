"""Whether an index is behind its source."""

from __future__ import annotations

import threading

from outcrop.errors import OutcropError
from outcrop.model import Stale
from outcrop.ports import Source, VectorStore


class Freshness:
    """Finds out, in the background, whether the source moved on since the index was built."""

    def __init__(self, store: VectorStore, source: Source) -> None:
        self._indexed = store.built()
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
        return None if self._indexed == self._current else Stale(self._indexed, self._current)

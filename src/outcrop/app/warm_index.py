"""One index, open as long as the server runs, whose model loads in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from outcrop.core.model import Answer, Mode
from outcrop.errors import OutcropError

if TYPE_CHECKING:
    from outcrop.app.index import Index

# Seconds that a question waits for the model, which loads in half a second. Words at once serve an agent better than
# meaning that comes late.
MODEL_TIMEOUT = 2.0

LOADING = "the model is still loading, so the words decided; ask again in a moment for hits by meaning"

# Embedders whose model loads before the first question. Others may fetch a model from the network, or send a text to a
# server, which the user has not asked for yet.
LOADED_AT_START = ("local", "hash")


class WarmIndex:
    """An index for many threads, opened when it is first needed.

    Args:
        is_current: Whether an open index still is what ``open_index`` would give; asked before every call.
        closes: Whether the index is closed with this object. False where others use it too.
    """

    def __init__(
        self,
        open_index: Callable[[], Index],
        *,
        is_current: Callable[[Index], bool] = lambda _: True,
        closes: bool = True,
        timeout: float = MODEL_TIMEOUT,
    ) -> None:
        self._open = open_index
        self._is_current = is_current
        self._closes = closes
        self._timeout = timeout
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._ready = threading.Event()
        self._starter: threading.Thread | None = None
        self._loader: threading.Thread | None = None

    def start(self) -> None:
        self._starter = threading.Thread(target=self._start, daemon=True)
        self._starter.start()

    def _start(self) -> None:
        try:
            index = self.index()
            if index.settings.embedder in LOADED_AT_START:
                self._load(index)
        except OutcropError:
            # The next call meets the same error, and reports it.
            return

    def index(self) -> Index:
        """The open index; another one once the settings changed."""
        with self._lock:
            if self._index is not None and not self._is_current(self._index):
                self._forget(self._index)
            if self._index is None:
                self._index, self._ready = self._open(), threading.Event()
                self._loader = None
                if self._index.embedder.address is not None:
                    # A server keeps that model, and nothing is sent there before there is a question.
                    self._ready.set()
            return self._index

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    def search(self, query: str, *, mode: str, **wanted: Any) -> Answer:
        """What ``Index.search`` answers; by words, and saying so, while the model loads."""
        # Imported here: it imports numpy, which the first answers of MCP do not need.
        from outcrop.search.query import mode_of

        index = self.index()
        if mode_of(mode) is Mode.KEYWORD or self._is_model_ready(index):
            return index.search(query, mode=mode, **wanted)
        answer = index.search(query, mode=Mode.KEYWORD, **wanted)
        return replace(answer, reason=answer.reason or LOADING)

    def _is_model_ready(self, index: Index) -> bool:
        ready = self._ready
        if not ready.is_set():
            self._load(index)
        return ready.wait(self._timeout)

    def _load(self, index: Index) -> None:
        with self._lock:
            if self._loader is None and index is self._index:
                self._loader = threading.Thread(target=_warm, args=(index, self._ready), daemon=True)
                self._loader.start()

    def close(self) -> None:
        """Close the index once no model is loading: its engine must not be torn down meanwhile."""
        if self._starter is not None:
            self._starter.join()
        with self._lock:
            loader = self._loader
        if loader is not None:
            loader.join()
        with self._lock:
            if self._index is not None:
                self._forget(self._index)

    def _forget(self, index: Index) -> None:
        self._index = None
        if self._closes:
            index.close()


def _warm(index: Index, ready: threading.Event) -> None:
    try:
        index.embedder.embed_queries(["ready"])
    except OutcropError:
        # The question meets the same error, and its answer names it.
        pass
    finally:
        ready.set()

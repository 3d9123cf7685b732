"""Related context within a strict time limit: work that hangs is left behind, and nothing is ever raised.

Everything that can take long (imports, the model, a locked database, a slow network) runs in threads that end with the
process at the latest. When the model takes too long there is time left to search by words.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, TypeVar

from outcrop.core.reports import NO_CONTEXT, Context

if TYPE_CHECKING:
    from outcrop.app.index import Index
    from outcrop.config.settings import Settings
    from outcrop.core.model import Answer, Mode
    from outcrop.search.query import Query

# Seconds that a turn may be held up.
TIMEOUT = 2.0

# Share of the time that the model gets before a search by words begins beside it.
MODEL_SHARE = 0.6

# Name of the threads that may be left behind.
THREAD = "outcrop-context"

# With so many threads left behind nothing more is tried: what blocks them would block the next one too.
MOST_THREADS = 8

log = logging.getLogger(__name__)

T = TypeVar("T")
_Queue = queue.SimpleQueue[tuple[Callable[[], T], T | None]]


def rag_context(
    prompt: str,
    k: int = 3,
    *,
    index: Index | None = None,
    directory: str | os.PathLike[str] = ".",
    tokens: int | None = None,
    timeout: float = TIMEOUT,
    min_score: float | None = None,
    settings: Settings | Mapping[str, object] | None = None,
) -> str:
    """A block of Markdown with the passages that are about a prompt, to be put before an agent's turn.

    It is empty where there are none, and when something failed, which is logged; nothing is raised. A prompt goes only
    to an address that was allowed before.

    Args:
        index: An open index, whose model is then warm; None to open the one of ``directory``, with ``settings``.
        tokens: Length of the block at most, as the bundled tokenizer counts; None for 1,500.
        timeout: Seconds after which it returns with what there is, even nothing.
        min_score: Dot product that a passage must reach; None for what was measured for the default model.
    """
    return related(ContextRequest(prompt, k, index, directory, tokens, timeout, min_score, settings)).text


def related(request: ContextRequest) -> Context:
    """What :func:`rag_context` returns, with its length, mode and sources."""
    try:
        if not request.prompt.strip():
            return NO_CONTEXT
        return within(request.timeout, request.by_meaning, request.by_words) or NO_CONTEXT
    except Exception as error:  # no error may stop the turn
        _log(error)
        return NO_CONTEXT


def within(timeout: float, first: Callable[[], T], second: Callable[[], T] | None = None) -> T | None:
    """What ``first`` returns; where that fails or takes long, what ``second`` returns; None when neither ends in time.

    ``second`` begins after a failure, or after ``MODEL_SHARE`` of the time; ``first`` still wins if it ends in time.
    Failures are logged. What still runs after ``timeout`` seconds is left behind in its thread.
    """
    began = time.monotonic()
    ended: _Queue[T] = queue.SimpleQueue()
    if not timeout > 0 or not _start(ended, first):
        return None
    came = _next(ended, began + (timeout if second is None else MODEL_SHARE * timeout))
    if second is None or (came is not None and came[1] is not None):
        return None if came is None else came[1]
    running = {first} if came is None else set()
    if _start(ended, second):
        running.add(second)
    made: T | None = None
    while running and (came := _next(ended, began + timeout)) is not None:
        work, result = came
        running.discard(work)
        if work is first and result is not None:
            return result
        if work is second:
            made = result
    return made


def is_under_way() -> bool:
    return any(thread.name == THREAD for thread in threading.enumerate())


def _next(ended: _Queue[T], until: float) -> tuple[Callable[[], T], T | None] | None:
    try:
        return ended.get(timeout=max(0.0, until - time.monotonic()))
    except queue.Empty:
        return None


def _start(ended: _Queue[T], work: Callable[[], T]) -> bool:
    if sum(thread.name == THREAD for thread in threading.enumerate()) >= MOST_THREADS:
        log.warning("no related context: %d searches before this one have not come back", MOST_THREADS)
        return False

    def run() -> None:
        try:
            ended.put((work, work()))
        except Exception as error:  # no error may stop the turn
            _log(error)
            ended.put((work, None))

    threading.Thread(target=run, name=THREAD, daemon=True).start()
    return True


def _log(error: Exception) -> None:
    log.warning("no related context: %s", str(error) or type(error).__name__)


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The arguments of :func:`rag_context`."""

    prompt: str
    k: int = 3
    index: Index | None = None
    directory: str | os.PathLike[str] = "."
    tokens: int | None = None
    timeout: float = TIMEOUT
    min_score: float | None = None
    settings: Settings | Mapping[str, object] | None = None

    def by_meaning(self) -> Context:
        # Imported here, as below: importing takes time, which the caller limits.
        from outcrop.core.model import Answer, Mode
        from outcrop.search.engine import search

        def nothing(query: Query, reason: str | None) -> Answer:
            if reason is not None:
                log.warning("no related context: %s", reason)
            return Answer(Mode.KEYWORD, reason, None, None, ())

        with self._opened() as index:
            embedder = index.embedder
            if embedder.address is not None:
                from outcrop.embedders.http.consent import without_asking

                embedder = without_asking(embedder)
            query = self._query(Mode.HYBRID)
            return self._compose(query, search(query, index.store, index.source, embedder, nothing), index)

    def by_words(self) -> Context:
        """Search by words alone, on another connection: the first may be blocked."""
        from outcrop.core.model import Mode
        from outcrop.errors import IndexMissing
        from outcrop.search.context import find_by_words
        from outcrop.stores.sqlite.store import SqliteStore

        with self._opened() as index:
            shared = index.store
            store = SqliteStore(shared.path, shared.worktree, shared=shared.is_shared)
            reason = "the search by meaning did not come back in time"
            query = self._query(Mode.KEYWORD)
            try:
                answer = find_by_words(query, store, index.source, reason)
            except IndexMissing:
                return NO_CONTEXT
            finally:
                store.close()
            return self._compose(query, answer, index)

    def _query(self, mode: Mode) -> Query:
        from outcrop.search.context import CANDIDATES, essence
        from outcrop.search.parse import parse

        return parse(essence(self.prompt), mode, max(CANDIDATES, self.k))

    def _compose(self, query: Query, answer: Answer, index: Index) -> Context:
        from outcrop.search.context import TOKENS, compose

        limit = TOKENS if self.tokens is None else self.tokens
        return compose(query, answer, self.k, limit, self.min_score, index.source.project)

    @contextmanager
    def _opened(self) -> Iterator[Index]:
        if self.index is not None:
            yield self.index
            return
        from outcrop.app import index as app
        from outcrop.config.settings import Settings

        # A request must not outlive its caller by minutes.
        seconds = max(1, ceil(self.timeout))
        if isinstance(self.settings, Settings):
            settings: Settings | Mapping[str, object] = replace(self.settings, timeout=seconds)
        else:
            settings = {**(self.settings or {}), "timeout": seconds}
        with app.open(self.directory, settings=settings) as index:
            yield index

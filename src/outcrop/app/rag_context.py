"""Related context within a time that is really bounded: whatever hangs is left behind, and nothing is ever raised.

Everything that can take long (imports, the model, a locked database, a slow network) happens in threads that end with
the process at the latest. When the model takes too long there is time left to search by words.
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

# How long a turn may be held up.
SECONDS = 2.0

# Share of the time that is given to the model before a search by words begins beside it.
PATIENCE = 0.6

# Name of the threads that may be left behind.
THREAD = "outcrop-context"

# Threads left behind in a process, from which on nothing is tried any more: whatever they hang on hangs still.
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
    timeout: float = SECONDS,
    min_score: float | None = None,
    settings: Settings | Mapping[str, object] | None = None,
) -> str:
    """A block of the passages that bear on a prompt, to be put before an agent's turn.

    Args:
        prompt: What the agent was asked.
        k: How many passages at most.
        index: An open index, whose model is then warm; None to open the one of ``directory``.
        directory: The repository or folder to look in.
        tokens: Length of the block at most, as the bundled tokenizer counts; None for 1,500.
        timeout: Seconds after which it returns with what there is, be it nothing.
        min_score: Dot product that a passage must reach; None for what was measured for the default model.
        settings: As for :func:`outcrop.open`; used with ``directory``.

    Returns:
        Markdown; empty without an index, without a passage that bears on the prompt, or when it failed, which is
        logged. It never raises, and never asks anybody whether text may leave the machine: a prompt is sent to an
        address only where that was allowed before.
    """
    return related(
        prompt,
        k,
        index=index,
        directory=directory,
        tokens=tokens,
        timeout=timeout,
        min_score=min_score,
        settings=settings,
    ).text


def related(
    prompt: str,
    k: int = 3,
    *,
    index: Index | None = None,
    directory: str | os.PathLike[str] = ".",
    tokens: int | None = None,
    timeout: float = SECONDS,
    min_score: float | None = None,
    settings: Settings | Mapping[str, object] | None = None,
) -> Context:
    """What :func:`rag_context` returns, with its length, mode and sources."""
    try:
        if not prompt.strip():
            return NO_CONTEXT
        task = _Task(prompt, k, tokens, min_score, index, directory, settings, timeout)
        return within(timeout, task.by_meaning, task.by_words) or NO_CONTEXT
    except Exception as error:  # whatever it is, the turn goes on without
        _say(error)
        return NO_CONTEXT


def within(timeout: float, first: Callable[[], T], second: Callable[[], T] | None = None) -> T | None:
    """What ``first`` returns; where that fails or takes long, what ``second`` returns, which is the quicker way.

    Failures are logged. Whatever still runs at the end of the time is left behind in its thread.

    Args:
        timeout: Seconds after which it returns, always.
        first: The better way.
        second: Begins after a failure, or after ``PATIENCE`` of the time; the better way still wins if it ends in time.

    Returns:
        None when neither came back.
    """
    began = time.monotonic()
    ended: _Queue[T] = queue.SimpleQueue()
    if not timeout > 0 or not _start(ended, first):
        return None
    came = _next(ended, began + (timeout if second is None else PATIENCE * timeout))
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
    """Whether a thread was left behind and still runs."""
    return any(thread.name == THREAD for thread in threading.enumerate())


def _next(ended: _Queue[T], until: float) -> tuple[Callable[[], T], T | None] | None:
    try:
        return ended.get(timeout=max(0.0, until - time.monotonic()))
    except queue.Empty:
        return None


def _start(ended: _Queue[T], work: Callable[[], T]) -> bool:
    """Run in a thread that keeps no process alive. Returns False where too many of them hang already."""
    if sum(thread.name == THREAD for thread in threading.enumerate()) >= MOST_THREADS:
        log.warning("no related context: %d searches before this one have not come back", MOST_THREADS)
        return False

    def run() -> None:
        try:
            ended.put((work, work()))
        except Exception as error:  # as above
            _say(error)
            ended.put((work, None))

    threading.Thread(target=run, name=THREAD, daemon=True).start()
    return True


def _say(error: Exception) -> None:
    log.warning("no related context: %s", str(error) or type(error).__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    """What to find, and where."""

    prompt: str
    k: int
    tokens: int | None
    min_score: float | None
    index: Index | None
    directory: str | os.PathLike[str]
    settings: Settings | Mapping[str, object] | None
    timeout: float

    def by_meaning(self) -> Context:
        """Ask as every surface does."""
        # Imported here, as what follows: importing takes time too, and time is what this is about.
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
        """Ask for words alone, on a connection of its own: the other may wait for something."""
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
        from outcrop.app.index import open
        from outcrop.config.settings import Settings

        # A request that nobody waits for any more should not go on for minutes.
        seconds = max(1, ceil(self.timeout))
        if isinstance(self.settings, Settings):
            settings: Settings | Mapping[str, object] = replace(self.settings, timeout=seconds)
        else:
            settings = {**(self.settings or {}), "timeout": seconds}
        with open(self.directory, settings=settings) as index:
            yield index

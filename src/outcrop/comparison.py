"""Measuring an index, and embedders beside the one it was made with, on questions of its user's own.

An embedder whose vectors the index holds is measured where it is; every other gets a copy of the passages in memory,
embeds them there, and the copy is thrown away. The index is only read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from outcrop.app import Index
from outcrop.choice import make_embedder, other
from outcrop.config import Settings
from outcrop.errors import IndexMissing, SpaceMismatch, UsageError
from outcrop.evaluate import Contestant, evaluate
from outcrop.figures import Evaluation
from outcrop.judged import read
from outcrop.metrics import require
from outcrop.model import Mode
from outcrop.ports import Embedder
from outcrop.reports import Progress
from outcrop.request import mode_of
from outcrop.stores.spots import spots
from outcrop.stores.twin import twin

MODES = (Mode.HYBRID, Mode.SEMANTIC, Mode.KEYWORD)
"""The one that answers unless another is asked for, first: the others are compared with it."""


def compare(
    index: Index,
    file: str | os.PathLike[str],
    *,
    topics: str | os.PathLike[str] | None = None,
    embedders: Sequence[str] = (),
    modes: Sequence[str] = MODES,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Evaluation:
    """Measure how well an index answers questions whose answers are known.

    Args:
        index: An open index.
        file: The questions: JSON Lines, or TREC qrels (see docs/cli.md, ``outcrop eval``).
        topics: The questions of qrels.
        embedders: Each ``NAME`` or ``NAME=MODEL``; none for the one that is set. What the index has no vectors of is
            embedded for this, and nothing of it is kept.
        modes: ``hybrid``, ``semantic`` and ``keyword``, or some of them.
        progress: Told how far it is.

    Returns:
        Figures of every embedder and mode, and of every question.

    Raises:
        UsageError: Something is named that does not exist, the index holds no answer to any question, or the extra
            ``eval`` is not installed.
        FormatError: A line of a file says nothing sensible.
        StoreError: There is no index, or it has no vectors of the embedder that is set.
    """
    require()
    chosen = [mode for mode in MODES if mode in {mode_of(name) for name in modes}]
    if not chosen:
        raise UsageError("no mode is named", f"There is: {', '.join(Mode)}")
    judged = read(Path(file), None if topics is None else Path(topics))
    if not index.store.exists:
        raise IndexMissing("nothing is indexed yet", "Run: outcrop index")
    state = index.store.state()
    held = None if state is None else state.space

    def contestant(name: str, embedder: Embedder) -> Contestant:
        return Contestant(
            name, embedder, None if embedder.space == held else partial(twin, index.store, embedder.space)
        )

    if embedders:
        contestants = [contestant(name, _made(index, name)) for name in dict.fromkeys(embedders)]
    else:
        contestants = [contestant(index.settings.embedder, index.embedder)]
        if contestants[0].twin is not None and chosen != [Mode.KEYWORD]:
            # Nobody asked for a whole index to be embedded.
            there = "no model" if held is None else held.id
            raise SpaceMismatch(
                f"the index holds vectors of {there}, but the embedder is {index.embedder.space.id}",
                f"Run: outcrop index, or measure it on a copy: --embedder {index.settings.embedder}",
            )
    return evaluate(judged, contestants, chosen, index.source, index.store, partial(spots, index.store), progress)


def _made(index: Index, named: str) -> Embedder:
    settings = settings_of(index.settings, named)
    return index.embedder if settings is index.settings else make_embedder(settings, index.consent)


def settings_of(settings: Settings, named: str) -> Settings:
    """The settings of an embedder that is named as ``NAME`` or ``NAME=MODEL``."""
    name, _, model = named.partition("=")
    return other(settings, name.strip(), model.strip() or None)

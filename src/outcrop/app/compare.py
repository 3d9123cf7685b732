"""Evaluating an index, and embedders beside the one it was made with, on questions of the user. It is only read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from outcrop.app.index import Index
from outcrop.core.model import Mode
from outcrop.core.protocols import Embedder
from outcrop.core.reports import Progress
from outcrop.embedders.factory import make_embedder, other
from outcrop.errors import IndexMissing, SpaceMismatch, UsageError
from outcrop.evaluation.evaluate import EvaluatedEmbedder, evaluate
from outcrop.evaluation.judgements import read
from outcrop.evaluation.metrics import require
from outcrop.evaluation.results import Evaluation
from outcrop.search.fallback import build_command
from outcrop.search.query import mode_of

# The default first: the others are compared with it.
MODES = (Mode.HYBRID, Mode.SEMANTIC, Mode.KEYWORD)

_EMBEDDER = re.compile(r"(?P<name>[^=]*)(?:=(?P<model>.*?)(?:@(?P<dim>[1-9][0-9]{0,5}))?)?", re.DOTALL)


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
        file: JSON Lines, or TREC qrels with ``topics`` as their questions (see docs/cli.md, ``outcrop eval``).
        embedders: Each ``NAME``, ``NAME=MODEL`` or ``NAME=MODEL@DIM``; none for the one that is set. Vectors that the
            index does not hold are made for this, and not kept.

    Raises:
        UsageError: Something named does not exist, nothing can be scored, or the extra ``eval`` is not installed.
        FormatError: A line of a file cannot be understood.
        StoreError: There is no index, or it has no vectors of the embedder that is set.
    """
    require()
    chosen = [mode for mode in MODES if mode in {mode_of(name) for name in modes}]
    if not chosen:
        raise UsageError("no mode is named", f"There is: {', '.join(Mode)}")
    judgements = read(Path(file), None if topics is None else Path(topics))
    store = index.store
    if not store.exists:
        raise IndexMissing("nothing is indexed yet", f"Run: {build_command(index.source)}")
    state = store.state()
    held = None if state is None else state.space

    def prepared(name: str, embedder: Embedder) -> EvaluatedEmbedder:
        return EvaluatedEmbedder(
            name, embedder, None if embedder.space == held else partial(store.clone, embedder.space)
        )

    if embedders:
        evaluated = [prepared(name, _made(index, name)) for name in dict.fromkeys(embedders)]
    else:
        evaluated = [prepared(index.settings.embedder, index.embedder)]
        if evaluated[0].clone is not None and chosen != [Mode.KEYWORD]:
            # Embedding a whole index takes long, so it has to be asked for.
            there = "no model" if held is None else held.id
            raise SpaceMismatch(
                f"the index holds vectors of {there}, but the embedder is {index.embedder.space.id}",
                f"Run: outcrop index, or measure it on a copy: --embedder {index.settings.embedder}",
            )
    return evaluate(
        judgements,
        evaluated,
        chosen,
        index.source,
        store,
        store.passage_refs,
        store.text_of,
        _paths_of([file, topics], index.source.root),
        progress,
    )


def _paths_of(files: Sequence[str | os.PathLike[str] | None], root: Path) -> frozenset[str]:
    """Paths of those of these files that are in the source, as it names them."""
    root = root.resolve()
    paths = [Path(file).resolve() for file in files if file is not None]
    return frozenset(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root))


def _made(index: Index, written: str) -> Embedder:
    settings = other(index.settings, *parse(written))
    return index.embedder if settings is index.settings else make_embedder(settings, index.consent)


def parse(written: str) -> tuple[str, str | None, int | None]:
    """An embedder's name, its model and the length of its vectors, from ``NAME[=MODEL[@DIM]]``."""
    match = _EMBEDDER.fullmatch(written.strip())
    assert match is not None, "every string matches"
    return match["name"], match["model"] or None, int(match["dim"]) if match["dim"] else None

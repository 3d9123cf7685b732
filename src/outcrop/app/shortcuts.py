"""Open, do one thing, close: for programs that ask once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from outcrop.app.index import open
from outcrop.core.model import Answer
from outcrop.search.query import Choice

if TYPE_CHECKING:
    from outcrop.search.match import Matches


def semantic_search(
    query: str,
    *,
    directory: str | os.PathLike[str] = ".",
    k: int = 10,
    kind: Choice = None,
    project: Choice = None,
    corpus: Choice = None,
    path: Choice = None,
    mode: str = "hybrid",
    min_score: float | None = None,
) -> Answer:
    """Open, search once, close: :meth:`Index.search` for the repository that ``directory`` is in."""
    with open(directory) as index:
        return index.search(
            query, k=k, kind=kind, project=project, corpus=corpus, path=path, mode=mode, min_score=min_score
        )


def match(
    documents: Sequence[str], queries: Sequence[str], *, directory: str | os.PathLike[str] = ".", k: int = 1
) -> Matches:
    """:meth:`Index.match` with the embedder that is set for ``directory``. No index is needed."""
    with open(directory) as index:
        return index.match(documents, queries, k=k)

"""Open, do one thing, close: for programs that ask once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from outcrop.app import index as app
from outcrop.app.index import SearchOptions
from outcrop.core.model import Answer

if TYPE_CHECKING:
    from outcrop.search.match import Matches


def semantic_search(query: str, *, directory: str | os.PathLike[str] = ".", **options: Unpack[SearchOptions]) -> Answer:
    """:meth:`Index.search` for the repository that ``directory`` is in."""
    with app.open(directory) as index:
        return index.search(query, **options)


def match(
    documents: Sequence[str], queries: Sequence[str], *, directory: str | os.PathLike[str] = ".", k: int = 1
) -> Matches:
    """:meth:`Index.match` with the embedder that is set for ``directory``. No index is needed."""
    with app.open(directory) as index:
        return index.match(documents, queries, k=k)

"""Keyword search over the files themselves, for a source without a usable index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from outcrop.core.model import Answer, Artifact, Filter, Kind, Ref
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.core.protocols import ChunkStore, Source
from outcrop.core.rows import Names, View
from outcrop.indexing import ingest
from outcrop.indexing.scope import Scope, corpus_of
from outcrop.search import engine
from outcrop.search.query import Query, hits_of, resolve

# Files that are cut into passages; the rest is only counted.
MAX_FILES = 40

# How fast the default model embeds, for the estimate.
CHARACTERS_A_SECOND = 60_000

# Digits of a commit in a message.
SHORT_COMMIT = 12


def search_files(
    query: Query, source: Source, scratch: ChunkStore, scopes: Sequence[Scope], reason: str | None = None
) -> Answer:
    """Answer from the source's files by words alone, ranked like an index; ``scratch`` is an empty store."""
    wants_commits = Kind.COMMIT in query.where.kinds or (query.asks_for_change and not query.where.kinds)
    refs = (ingest.list_all(source, {}) if wants_commits else source.artifacts({})).refs
    custom = tuple(scope.corpus for scope in scopes if scope.corpus is not None)
    names = Names(
        frozenset([*(corpus_of(ref.kind) for ref in refs), *custom]),
        frozenset(ref.kind for ref in refs),
        frozenset({""}),
    )
    where = hits_of(query, resolve(query.where, names, source.project) if refs else query.where)
    best, characters = _best(source, [ref for ref in refs if _may_answer(ref, where, scopes)], query.words)
    with scratch.writing():
        members = ingest.store_some(source, scratch, best, scopes)
        scratch.replace(View((*DEFAULT_BUILDERS, *custom), members, {}, (), frozenset({source.worktree})))
        found = scratch.keyword(query.words, max(engine.POOL, query.k), where)
        passages = scratch.passages([item.id for item in found], where)
    why = _reason(source, refs, characters) if reason is None else f"{reason}. The files were searched by words instead"
    return engine.keyword_answer(query, passages, found, why, None)


def _may_answer(ref: Ref, where: Filter, scopes: Sequence[Scope]) -> bool:
    # Paths are left to the store's filter; corpora and kinds of a notebook are only known once it is cut.
    mixed = ref.path is not None and ref.path.endswith(".ipynb")
    if where.kinds and ref.kind not in where.kinds and not mixed:
        return False
    usual = frozenset(DEFAULT_BUILDERS) if mixed else frozenset({corpus_of(ref.kind)})
    return (
        not where.corpora
        or not usual.isdisjoint(where.corpora)
        or any(scope.corpus in where.corpora and scope.names(ref.path or "") for scope in scopes)
    )


def _best(source: Source, refs: Sequence[Ref], words: Sequence[str]) -> tuple[list[Ref], int]:
    """The files that hold most of the rarest words, and how many characters all files have."""
    counts: list[tuple[Ref, Mapping[str, int]]] = []
    characters = 0
    for outcome in source.read(refs):
        if isinstance(outcome, Artifact):
            characters += len(outcome.text)
            folded = f"{outcome.ref.path}\n{outcome.text}".lower()
            held = {word: folded.count(word) for word in words if word in folded}
            if held:
                counts.append((outcome.ref, held))
    rarity = {word: math.log(1 + len(refs) / max(1, sum(word in held for _, held in counts))) for word in words}

    def worth(held: Mapping[str, int]) -> float:
        return sum(rarity[word] * (1 + math.log(count)) for word, count in held.items())

    counts.sort(key=lambda item: (-worth(item[1]), item[0].path or ""))
    return [ref for ref, _ in counts[:MAX_FILES]], characters


def build_command(source: Source) -> str:
    kind, _, commit = source.worktree.partition(":")
    return f"outcrop index --rev {commit[:SHORT_COMMIT]}" if kind == "rev" else "outcrop index"


def _reason(source: Source, refs: Sequence[Ref], characters: int) -> str:
    if not refs:
        return "there is no index, and there are no files to search"
    seconds = characters / CHARACTERS_A_SECOND
    about = f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
    return f"there is no index yet, so the files were searched by words. Run: {build_command(source)} (about {about})"

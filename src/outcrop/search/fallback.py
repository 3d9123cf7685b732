"""Keyword search over the files themselves, for a source that has no index yet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from outcrop.core.model import Answer, Artifact, Filter, Ref
from outcrop.core.protocols import Source, VectorStore
from outcrop.core.rows import DEFAULT_BUILDERS, Names, View
from outcrop.indexing import ingest
from outcrop.indexing import scope as corpora
from outcrop.indexing.scope import Scope
from outcrop.search import engine, query
from outcrop.search.query import Question
from outcrop.text import terms

# Files that are cut into passages; the rest is only counted.
BEST_FILES = 40

# What a first index with the default model gets through, for the estimate.
CHARACTERS_A_SECOND = 60_000

# Digits by which a person is told of a commit.
SHORT_COMMIT = 12


def search_files(
    question: Question, source: Source, scratch: VectorStore, scopes: Sequence[Scope], reason: str | None = None
) -> Answer:
    """Answer from the source's files by words alone.

    Args:
        question: What was asked.
        source: What to read.
        scratch: An empty store that is thrown away afterwards; gives the same passages and ranking as an index.
        scopes: Corpora of one's own that the settings name.
        reason: Why the index that there is cannot be used; None where there is none.
    """
    refs = source.artifacts({}).refs
    own = tuple(scope.corpus for scope in scopes if scope.corpus is not None)
    names = Names(
        frozenset([*(corpora.corpus_of(ref.kind) for ref in refs), *own]),
        frozenset(ref.kind for ref in refs),
        frozenset({""}),
    )
    wanted = query.resolve(question.filter, names, source.project) if refs else question.filter
    words = terms.query_words(question.text)
    best, characters = _best(source, [ref for ref in refs if _may_answer(ref, wanted, scopes)], words)
    with scratch.writing():
        members = ingest.store_some(source, scratch, best, scopes)
        scratch.replace(View((*DEFAULT_BUILDERS, *own), members, {}, (), frozenset({source.worktree})))
        found = scratch.keyword(words, max(engine.POOL, question.k), wanted)
        passages = scratch.passages([item.id for item in found], wanted)
    why = _reason(source, refs, characters) if reason is None else f"{reason}. The files were searched by words instead"
    return engine.keyword_answer(question, passages, found, words, why, None)


def _may_answer(ref: Ref, wanted: Filter, scopes: Sequence[Scope]) -> bool:
    # Paths are left to the store's filter; corpora and kinds of a notebook are only known once it is cut.
    mixed = ref.path is not None and ref.path.endswith(".ipynb")
    if wanted.kinds and ref.kind not in wanted.kinds and not mixed:
        return False
    usual = frozenset(DEFAULT_BUILDERS) if mixed else frozenset({corpora.corpus_of(ref.kind)})
    return (
        not wanted.corpora
        or not usual.isdisjoint(wanted.corpora)
        or any(scope.corpus in wanted.corpora and scope.names(ref.path or "") for scope in scopes)
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
    return [ref for ref, _ in counts[:BEST_FILES]], characters


def build_command(source: Source) -> str:
    """What makes the index of what a source looks at: the working tree, or one commit."""
    kind, _, commit = source.worktree.partition(":")
    return f"outcrop index --rev {commit[:SHORT_COMMIT]}" if kind == "rev" else "outcrop index"


def _reason(source: Source, refs: Sequence[Ref], characters: int) -> str:
    if not refs:
        return "there is no index, and there are no files to search"
    seconds = characters / CHARACTERS_A_SECOND
    about = f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
    return f"there is no index yet, so the files were searched by words. Run: {build_command(source)} (about {about})"

"""From a question to an Answer: embed, find the nearest, find the words, rank; or the fallback, labelled as such.

The mode says what was really done, and the reason why it is not what was asked. No list is empty because an index, a
model or a network is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from outcrop.core.model import Answer, Copy, Filter, Kind, Mode, Space, Stale
from outcrop.core.protocols import ChunkIndex, Embedder, Source, Vector
from outcrop.core.rows import Passage, ScoredChunk, State
from outcrop.errors import BadEmbedding, EmbedderError, IndexMissing, SpaceMismatch, StoreDamaged, StoreError
from outcrop.search import ranking, spelling
from outcrop.search.hits import make_hit
from outcrop.search.near_duplicates import dedupe
from outcrop.search.parse import with_words_replaced
from outcrop.search.query import Query, check, hits_of, resolve
from outcrop.search.ranking import Ranked
from outcrop.search.staleness import StalenessCheck, visible
from outcrop.text import terms

# Candidates that the search by meaning and the search by words each give to the ranking.
POOL = 100

# Names of a question that are looked up, and definitions of each that are taken.
MAX_NAMES = 5
MAX_DEFINITIONS = 20

# Keyword candidates without a vector that are embedded at once while a first build runs: under half a second.
MAX_EMBEDDED_NOW = 48

# What to do about damage that a search meets.
REPAIR = "Run: outcrop check --repair"

# As ``ChunkIndex.damaged``.
FindDamaged = Callable[[Sequence[int], bool], frozenset[int]]

# Keyword search over the source's files, for when there is no index, or one that cannot be used and why.
Fallback = Callable[[Query, str | None], Answer]


def _none_damaged(_: Sequence[int], __: bool) -> frozenset[int]:
    return frozenset()


def search(query: Query, index: ChunkIndex, source: Source, embedder: Embedder, fallback: Fallback) -> Answer:
    """Answer a question; the source is asked only whether it changed since the build, and what it withholds."""
    check(query)
    try:
        return _from_index(query, index, source, embedder)
    except StoreError as error:
        # The files themselves can still be searched.
        reason = None if isinstance(error, IndexMissing) else str(error)
    return fallback(query, reason)


@dataclass(frozen=True, slots=True)
class _Findings:
    """What the index holds for a question at one moment; ``percent`` of it is embedded, None for all."""

    nearest: Sequence[ScoredChunk]
    by_words: Sequence[ScoredChunk]
    products: Mapping[int, float]
    passages: Mapping[int, Passage]
    percent: int | None


def _from_index(query: Query, index: ChunkIndex, source: Source, embedder: Embedder) -> Answer:
    # The model runs outside of any snapshot: in a Fossil repository a reader keeps every commit waiting.
    with index.snapshot():
        names = index.names()
        if not names.corpora:
            raise IndexMissing("nothing is indexed yet", "Run: outcrop index")
        where = hits_of(query, resolve(query.where, names, source.project))
        state = index.state()
        # Asking for the source's revision takes as long as the search; they run side by side.
        staleness = StalenessCheck(index, source)
        fixes = spelling.corrections(query, index, tuple(Kind) if where.commits and not where.kinds else where.kinds)
    if fixes:
        query = with_words_replaced(query, fixes)
    reason: str | None = None
    vector: Vector | None = None
    if query.mode is not Mode.KEYWORD:
        try:
            vector = _embed_question(query, state, embedder)
        except (EmbedderError, SpaceMismatch) as error:
            reason = str(error)
    with index.snapshot():
        now = index.state()
        if vector is not None and (now is None or now.space != embedder.space):
            vector, reason = None, "the index changed to another space meanwhile"
        try:
            found = _find(query, vector, index, embedder.space, where)
        except StoreDamaged as error:
            if vector is None:
                raise
            # The vectors cannot be compared; the words still answer.
            vector, reason = None, str(error)
            found = _find(query, None, index, embedder.space, where)
    passages = without_withheld(source, found.passages)
    if vector is None:
        answer = keyword_answer(query, passages, found.by_words, reason, staleness.result(), index.damaged)
        return replace(answer, corrected=fixes)
    scores = dict(found.products)
    if found.percent is not None:
        reason = f"index {found.percent} % complete"
        late = [passages[item.id] for item in found.by_words if item.id not in scores and item.id in passages]
        scores |= _embed_now(embedder, vector, late[:MAX_EMBEDDED_NOW])
    if query.mode is Mode.SEMANTIC:
        ranked = [Ranked(key, scores[key], ()) for key in sorted(scores, key=lambda key: (-scores[key], key))]
        modes: Mapping[int, Mode] = dict.fromkeys(scores, Mode.SEMANTIC)
    else:
        ranked = _rank(query, passages, scores, found.by_words)
        modes = _modes(found.nearest, found.by_words)
    return _answer(
        query,
        passages,
        ranked,
        scores,
        modes,
        reason=reason,
        stale=staleness.result(),
        space=embedder.space,
        fixes=fixes,
        find_damaged=index.damaged,
    )


def _find(query: Query, vector: Vector | None, index: ChunkIndex, space: Space, where: Filter) -> _Findings:
    """Candidates by meaning and by words, or by words alone where there is no vector to compare with."""
    pool = max(POOL, query.k)
    if vector is None:
        by_words = _by_words(query, index, pool, where)
        return _Findings((), by_words, {}, index.passages([item.id for item in by_words], where), None)
    nearest = index.nearest(vector, pool, where)
    embedded, chunks = index.progress(space)
    complete = embedded == chunks
    by_words = _by_words(query, index, pool, where) if query.mode is Mode.HYBRID or not complete else ()
    products = {item.id: item.score for item in nearest}
    products |= {key: float(each @ vector) for key, each in index.vectors([item.id for item in by_words]).items()}
    passages = index.passages(sorted(products.keys() | {item.id for item in by_words}), where)
    return _Findings(nearest, by_words, products, passages, None if complete else 100 * embedded // chunks)


def _by_words(query: Query, index: ChunkIndex, k: int, where: Filter) -> Sequence[ScoredChunk]:
    """Chunks that hold the words, and those that define a name of the question, which are lost among its uses."""
    # A phrase is asked for as the run of its terms, first, since only so many terms are.
    phrases = (" ".join(terms.words(phrase)) for phrase in query.phrases)
    found = list(index.keyword([*phrases, *query.words], k, where))
    there = {item.id for item in found}
    for name in sorted(query.identifiers | ({query.symbol} if query.symbol else set()))[:MAX_NAMES]:
        found += [ScoredChunk(key, 0.0) for key in index.defining(name, MAX_DEFINITIONS, where) if key not in there]
        there = {item.id for item in found}
    return found


def without_withheld(source: Source, passages: Mapping[int, Passage]) -> Mapping[int, Passage]:
    return {item.id: item for item in visible(source, passages.values())}


def _rank(
    query: Query, passages: Mapping[int, Passage], products: Mapping[int, float], by_words: Sequence[ScoredChunk]
) -> list[Ranked]:
    keyword_scores = {item.id: item.score for item in by_words}
    candidates = [
        ranking.ScoredPassage(
            id=key,
            dense=products.get(key),
            keyword=keyword_scores.get(key),
            # Each commit is a file of its own; what else has no path is not.
            path=passage.paths[0] if passage.paths else passage.hash if passage.kind is Kind.COMMIT else "",
            name=passage.chunk.name,
            text=passage.chunk.text,
            kind=passage.kind,
            siblings=passage.siblings,
        )
        for key, passage in passages.items()
    ]
    return ranking.rank(query, candidates)


def _embed_question(query: Query, state: State | None, embedder: Embedder) -> Vector:
    if state is None or state.space != embedder.space:
        held = "none" if state is None else state.space.id
        raise SpaceMismatch(
            f"the index holds vectors of {held}, but the embedder is {embedder.space.id}", "Run: outcrop index"
        )
    if isinstance(query.vector, EmbedderError):
        raise query.vector
    vector: Vector = embedder.embed_queries([query.text])[0] if query.vector is None else query.vector
    return vector


def keyword_answer(
    query: Query,
    passages: Mapping[int, Passage],
    found: Sequence[ScoredChunk],
    reason: str | None,
    stale: Stale | None,
    find_damaged: FindDamaged = _none_damaged,
) -> Answer:
    """Hits by words alone, scored against the best of them."""
    if query.min_score is not None:
        ignored = "min_score was ignored: it applies to vectors only"
        reason = f"{reason}; {ignored}" if reason else ignored
    ranked = _rank(query, passages, {}, found)
    best = ranked[0].points if ranked else 1.0
    scores = {item.id: item.points / best if best > 0 else 1.0 for item in ranked}
    modes = dict.fromkeys(scores, Mode.KEYWORD)
    return _answer(
        replace(query, min_score=None),
        passages,
        ranked,
        scores,
        modes,
        reason=reason,
        stale=stale,
        find_damaged=find_damaged,
    )


def _modes(nearest: Sequence[ScoredChunk], by_words: Sequence[ScoredChunk]) -> Mapping[int, Mode]:
    near, worded = {found.id for found in nearest}, {found.id for found in by_words}
    return {
        key: Mode.HYBRID if key in near and key in worded else Mode.SEMANTIC if key in near else Mode.KEYWORD
        for key in near | worded
    }


def _embed_now(embedder: Embedder, vector: Vector, passages: Sequence[Passage]) -> Mapping[int, float]:
    if not passages or embedder.address is not None:
        return {}
    # Imported here: only an unfinished index needs it, and every other search should start without it.
    from outcrop import chunking

    try:
        products = embedder.embed_passages([chunking.passage(passage.chunk) for passage in passages]) @ vector
    except EmbedderError:
        # They are ranked by their words, as before they have a vector.
        return {}
    return {passage.id: float(product) for passage, product in zip(passages, products, strict=True)}


def _answer(
    query: Query,
    passages: Mapping[int, Passage],
    ranked: Sequence[Ranked],
    scores: Mapping[int, float],
    modes: Mapping[int, Mode],
    *,
    reason: str | None,
    stale: Stale | None,
    space: Space | None = None,
    fixes: Mapping[str, str] | None = None,
    find_damaged: FindDamaged,
) -> Answer:
    """The best of a ranking as an answer; one without a space is a keyword answer."""
    floor = query.min_score
    chosen = [item for item in ranked if item.id in passages and (floor is None or scores.get(item.id, 0.0) >= floor)]
    left_out = 0
    while True:
        if query.mode is Mode.SEMANTIC:
            # The order of the scores is what was asked for.
            best: list[tuple[Ranked, tuple[Copy, ...]]] = [(item, ()) for item in chosen[: query.k]]
        else:
            best = dedupe(chosen, passages, query.k)
        damaged = find_damaged([item.id for item, _ in best], space is not None)
        if not damaged:
            break
        left_out += len(damaged)
        chosen = [item for item in chosen if item.id not in damaged]
    if left_out:
        what = f"{left_out} damaged {'passage was' if left_out == 1 else 'passages were'} left out of the answer"
        reason = f"{reason}; {what}. {REPAIR}" if reason else f"{what}. {REPAIR}"
    hits = tuple(
        make_hit(
            passages[item.id],
            scores.get(item.id, 0.0),
            modes[item.id],
            query.words,
            copies,
            item.explained() if query.explain else (),
        )
        for item, copies in best
    )
    mode = Mode.KEYWORD if space is None else query.mode
    return Answer(mode, reason, stale, space.id if space else None, hits, fixes or {})


def search_all(
    queries: Sequence[Query], index: ChunkIndex, source: Source, embedder: Embedder, fallback: Fallback
) -> list[Answer]:
    for query in queries:
        check(query)
    if _needs_vectors(queries, index, embedder):
        queries = _embedded(queries, embedder)
    return [search(query, index, source, embedder, fallback) for query in queries]


def _needs_vectors(queries: Sequence[Query], index: ChunkIndex, embedder: Embedder) -> bool:
    """Whether vectors are of use; nothing is sent anywhere for an index that cannot answer by meaning."""
    if len(queries) < 2 or all(query.mode is Mode.KEYWORD for query in queries):
        return False
    try:
        state = index.state()
    except IndexMissing:
        return False
    return state is not None and state.space == embedder.space


def _embedded(queries: Sequence[Query], embedder: Embedder) -> Sequence[Query]:
    texts = list(dict.fromkeys(query.text for query in queries))
    try:
        vectors = dict(zip(texts, embedder.embed_queries(texts), strict=True))
    except BadEmbedding:
        # Usually the fault of one text: each is asked by itself, so that it spoils no other.
        return queries
    except EmbedderError as error:
        return [replace(query, vector=error) for query in queries]
    return [replace(query, vector=vectors[query.text]) for query in queries]

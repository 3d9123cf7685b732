"""From a question to an Answer: embed, find the nearest, find the words, rank; or the labelled fallback.

The mode says what was really done, and the reason why it is not what was asked. Nothing here fails into an empty list
because an index, a model or a network is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from outcrop.core.model import Answer, Copy, Filter, Hit, Mode, Space, Stale
from outcrop.core.protocols import Embedder, Source, Vector, VectorStore
from outcrop.core.rows import Passage, ScoredChunk, State
from outcrop.errors import BadEmbedding, EmbedderError, IndexMissing, SpaceMismatch, StoreError
from outcrop.search import parse, query, ranking, spelling
from outcrop.search import query as request
from outcrop.search.hits import make_hit
from outcrop.search.near_duplicates import fold
from outcrop.search.parse import Reading
from outcrop.search.query import Question
from outcrop.search.ranking import Ranked
from outcrop.search.staleness import StalenessCheck, visible
from outcrop.text import terms

# Candidates that each half brings to the ranking.
POOL = 100

NAMES = 5
# Names of a question that are looked up, and definitions that are taken of each.
NAMED = 20

# Keyword candidates without a vector that are embedded on the spot while a first build runs: under half a second.
EARLY_TEXTS = 48

# Keyword search over the source's files, for when there is no index, or one that cannot be used and why.
Fallback = Callable[[Question, str | None], Answer]


def search(question: Question, store: VectorStore, source: Source, embedder: Embedder, fallback: Fallback) -> Answer:
    """Answer a question.

    Args:
        question: What was asked.
        store: The view that answers.
        source: Where the material comes from, asked only whether it moved on.
        embedder: What turns the question into a vector.
        fallback: What answers when there is no index.
    """
    request.check(question)
    try:
        return _from_index(question, store, source, embedder)
    except StoreError as error:
        # A message with no hits helps nobody while the files themselves are there to be searched.
        reason = None if isinstance(error, IndexMissing) else str(error)
    return fallback(question, reason)


@dataclass(frozen=True, slots=True)
class _Findings:
    """What the store knows about a question, read at one moment.

    Attributes:
        dense: The nearest passages.
        by_words: The passages that hold its words.
        products: Dot product of each of them that has a vector.
        passages: All of them.
        percent: How much of the index is embedded, where that is not all.
    """

    dense: Sequence[ScoredChunk]
    by_words: Sequence[ScoredChunk]
    products: Mapping[int, float]
    passages: Mapping[int, Passage]
    percent: int | None


def _from_index(question: Question, store: VectorStore, source: Source, embedder: Embedder) -> Answer:
    # A model thinks outside of any snapshot: in a Fossil repository nobody can commit while somebody reads.
    with store.snapshot():
        names = store.names()
        if not names.corpora:
            raise IndexMissing("nothing is indexed yet", "Run: outcrop index")
        wanted = request.resolve(question.filter, names, source.project)
        state = store.state()
        # Asking where the source is now takes as long as the search; they run side by side.
        staleness = StalenessCheck(store, source)
        fixes = spelling.corrections(question.text, store, wanted.kinds)
    if fixes:
        text = spelling.corrected(question.text, fixes)
        failed = question.vector if isinstance(question.vector, EmbedderError) else None
        question = replace(question, text=text, vector=failed)
    words = terms.query_words(question.text)
    reason: str | None = None
    query: Vector | None = None
    if question.mode is not Mode.KEYWORD:
        try:
            query = _embed_question(question, state, embedder)
        except (EmbedderError, SpaceMismatch) as error:
            reason = str(error)
    with store.snapshot():
        now = store.state()
        if query is not None and (now is None or now.space != embedder.space):
            query, reason = None, "the index changed to another space meanwhile"
        found = _find(question, query, store, embedder.space, wanted, words)
    passages = shown(source, found.passages)
    if query is None:
        answer = keyword_answer(question, passages, found.by_words, words, reason, staleness.result())
        return replace(answer, corrected=fixes)
    scores = dict(found.products)
    if found.percent is not None:
        reason = f"index {found.percent} % complete"
        late = [passages[item.id] for item in found.by_words if item.id not in scores and item.id in passages]
        scores |= _embed_now(embedder, query, late[:EARLY_TEXTS])
    if question.mode is Mode.SEMANTIC:
        ranked = [Ranked(id, scores[id], ()) for id in sorted(scores, key=lambda id: (-scores[id], id))]
        ways: Mapping[int, Mode] = dict.fromkeys(scores, Mode.SEMANTIC)
    else:
        ranked = _rank(question, passages, scores, {item.id: item.score for item in found.by_words})
        ways = _ways(found.dense, found.by_words)
    hits = _hits(question, passages, ranked, words, scores, ways)
    return Answer(question.mode, reason, staleness.result(), embedder.space.id, tuple(hits), fixes)


def _find(
    question: Question, query: Vector | None, store: VectorStore, space: Space, wanted: Filter, words: Sequence[str]
) -> _Findings:
    """Candidates of both halves, or of the words alone where there is no vector to compare with."""
    pool = max(POOL, question.k)
    reading = parse.read(question.text)
    # A phrase is asked for as the run of terms that it gives, first, since only so many terms are.
    sought = [*(" ".join(terms.words(phrase)) for phrase in reading.phrases), *words]
    if query is None:
        by_words = _by_words(store, sought, reading, pool, wanted)
        return _Findings((), by_words, {}, store.passages([item.id for item in by_words], wanted), None)
    dense = store.nearest(query, pool, wanted)
    embedded, chunks = store.progress(space)
    whole = embedded == chunks
    worded = question.mode is Mode.HYBRID or not whole
    by_words = _by_words(store, sought, reading, pool, wanted) if worded else ()
    products = {item.id: item.score for item in dense}
    products |= {id: float(vector @ query) for id, vector in store.vectors([item.id for item in by_words]).items()}
    passages = store.passages(sorted(products.keys() | {item.id for item in by_words}), wanted)
    return _Findings(dense, by_words, products, passages, None if whole else 100 * embedded // chunks)


def _by_words(
    store: VectorStore, words: Sequence[str], reading: Reading, k: int, wanted: Filter
) -> Sequence[ScoredChunk]:
    """What holds the words; and what is named as the question says, which is lost among its uses where it is famous."""
    found = list(store.keyword(words, k, wanted))
    there = {item.id for item in found}
    for name in sorted(reading.identifiers | ({reading.symbol} if reading.symbol else set()))[:NAMES]:
        found += [ScoredChunk(id, 0.0) for id in store.defining(name, NAMED, wanted) if id not in there]
        there = {item.id for item in found}
    return found


def shown(source: Source, passages: Mapping[int, Passage]) -> Mapping[int, Passage]:
    """Without those whose artifact was withdrawn from the public since it was indexed."""
    return {item.id: item for item in visible(source, passages.values())}


def _rank(
    question: Question,
    passages: Mapping[int, Passage],
    products: Mapping[int, float],
    worded: Mapping[int, float],
) -> list[Ranked]:
    """Candidates of both halves in the order that ranking gives them."""
    candidates = [
        ranking.Candidate(
            id=id,
            dense=products.get(id),
            keyword=worded.get(id),
            path=passage.paths[0] if passage.paths else "",
            name=passage.chunk.name,
            text=passage.chunk.text,
            kind=passage.kind,
            siblings=passage.siblings,
        )
        for id, passage in passages.items()
    ]
    return ranking.rank(question.text, candidates)


def _embed_question(question: Question, state: State | None, embedder: Embedder) -> Vector:
    if state is None or state.space != embedder.space:
        held = "none" if state is None else state.space.id
        raise SpaceMismatch(
            f"the index holds vectors of {held}, but the embedder is {embedder.space.id}", "Run: outcrop index"
        )
    if isinstance(question.vector, EmbedderError):
        raise question.vector
    query: Vector = embedder.embed_queries([question.text])[0] if question.vector is None else question.vector
    return query


def keyword_answer(
    question: Question,
    passages: Mapping[int, Passage],
    found: Sequence[ScoredChunk],
    words: Sequence[str],
    reason: str | None,
    stale: Stale | None,
) -> Answer:
    """Hits by words alone, scored against the best of them."""
    if question.min_score is not None:
        ignored = "min_score was ignored: it applies to vectors only"
        reason = f"{reason}; {ignored}" if reason else ignored
    ways = {item.id: Mode.KEYWORD for item in found}
    open_question = replace(question, min_score=None)
    ranked = _rank(question, passages, {}, {item.id: item.score for item in found})
    best = ranked[0].points if ranked else 1.0
    scores = {item.id: item.points / best if best > 0 else 1.0 for item in ranked}
    hits = _hits(open_question, passages, ranked, words, scores, ways)
    return Answer(Mode.KEYWORD, reason, stale, None, tuple(hits))


def _ways(dense: Sequence[ScoredChunk], by_words: Sequence[ScoredChunk]) -> Mapping[int, Mode]:
    """By which half each candidate was found."""
    near, worded = {found.id for found in dense}, {found.id for found in by_words}
    return {
        id: Mode.HYBRID if id in near and id in worded else Mode.SEMANTIC if id in near else Mode.KEYWORD
        for id in near | worded
    }


def _embed_now(embedder: Embedder, query: Vector, passages: Sequence[Passage]) -> Mapping[int, float]:
    """Dot products of passages that the build has not reached yet."""
    if not passages or embedder.address is not None:
        return {}
    # Imported here: only an unfinished index needs it, and every other search should start without it.
    from outcrop import chunking

    products = embedder.embed_passages([chunking.passage(passage.chunk) for passage in passages]) @ query
    return {passage.id: float(product) for passage, product in zip(passages, products, strict=True)}


def _hits(
    question: Question,
    passages: Mapping[int, Passage],
    ranked: Sequence[Ranked],
    words: Sequence[str],
    scores: Mapping[int, float],
    ways: Mapping[int, Mode],
) -> list[Hit]:
    floor = question.min_score
    chosen = [item for item in ranked if item.id in passages and (floor is None or scores.get(item.id, 0.0) >= floor)]
    if question.mode is Mode.SEMANTIC:
        # Who asks for the order of the scores gets just that.
        folded: list[tuple[Ranked, tuple[Copy, ...]]] = [(item, ()) for item in chosen[: question.k]]
    else:
        folded = fold(chosen, passages, question.k)
    return [
        make_hit(
            passages[item.id],
            scores.get(item.id, 0.0),
            ways[item.id],
            words,
            copies,
            item.explained() if question.explain else (),
        )
        for item, copies in folded
    ]


def search_all(
    questions: Sequence[Question], store: VectorStore, source: Source, embedder: Embedder, fallback: Fallback
) -> list[Answer]:
    """Answer questions, in order; each answer is what :func:`search` gives for its question alone."""
    for question in questions:
        query.check(question)
    if _needs_vectors(questions, store, embedder):
        questions = _embedded(questions, embedder)
    return [search(question, store, source, embedder, fallback) for question in questions]


def _needs_vectors(questions: Sequence[Question], store: VectorStore, embedder: Embedder) -> bool:
    """Whether embedding is of any use; nothing is sent anywhere for an index that cannot answer by meaning."""
    if len(questions) < 2 or all(question.mode is Mode.KEYWORD for question in questions):
        return False
    try:
        state = store.state()
    except IndexMissing:
        return False
    return state is not None and state.space == embedder.space


def _embedded(questions: Sequence[Question], embedder: Embedder) -> list[Question]:
    texts = list(dict.fromkeys(question.text for question in questions))
    try:
        vectors = dict(zip(texts, embedder.embed_queries(texts), strict=True))
    except BadEmbedding:
        # The fault of one text, as a rule: each is asked by itself, so that it spoils no other.
        return list(questions)
    except EmbedderError as error:
        return [replace(question, vector=error) for question in questions]
    return [replace(question, vector=vectors[question.text]) for question in questions]

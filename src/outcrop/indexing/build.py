"""Building the index: update the passages, embed what has no vector yet, share the vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from outcrop import chunking
from outcrop.core.model import EVERYTHING, CommitListing, Filter, Kind, Skipped, Space
from outcrop.core.names import COMMITS
from outcrop.core.protocols import ChunkWriter, Embedder, IndexState, Matrix, Publisher, Source
from outcrop.core.reports import BuildReport, Plan, Progress, WordsOnly
from outcrop.core.rows import BuildOutcome, Completion, Digested, StoredArtifact, TransferCounts
from outcrop.embedders.base import InProcessEmbedder
from outcrop.embedders.http.consent import announce
from outcrop.errors import EmbedderError
from outcrop.indexing import ingest, refusals
from outcrop.indexing.ingest import WHOLE, Cutter, Report
from outcrop.indexing.refusals import Embedding
from outcrop.indexing.scope import Scope
from outcrop.text import tokenizer

# Texts of one call to the embedder: at most, in the first call (a fault should show at once), and at least.
EMBED_TEXTS = 256
FIRST_TEXTS = 32
MIN_TEXTS = 8

# How long one call should take, judged by the call before: Ctrl-C and the next progress wait for it.
EMBED_SECONDS = 2.0

# After this the first vectors are written, then after twice as long each time, since a partial index is useful early.
FIRST_FLUSH_SECONDS = 5.0

# How much embedding a killed process can lose.
FLUSH_SECONDS = 60.0

# Vectors of one transaction: more would lock a Fossil repository for longer than a fifth of a second.
FLUSH_TEXTS = 10_000

# Passages that the embedder refused before and a build tries again, each by one request.
TRIED_AGAIN = 16

# Least time between two progress reports of one phase.
REPORT_SECONDS = 0.1


@dataclass(slots=True)
class EmbeddingCounts:
    """What the model embedded: passages, characters, and passages longer than it reads."""

    embedded: int = 0
    characters: int = 0
    cut: int = 0


def build(
    source: Source,
    store: ChunkWriter,
    embedder: Embedder,
    progress: Report | None = None,
    publisher: Publisher | None = None,
    scope: Scope = WHOLE,
    *,
    keeps: bool = True,
) -> BuildReport:
    """Update this view of the store, or one corpus of it, from its source, and search the embedder's space from now on.

    ``progress`` is called at most ten times a second. A publisher is only for a build of everything. ``keeps`` says
    whether what is done stays when the build fails.
    """
    started = time.perf_counter()
    report = _throttled(progress or (lambda _: None))
    space = embedder.space
    with store.writing():
        before = None if store.interrupted() else store.built()
        hidden = 0 if publisher is None else publisher.withdraw_hidden()
        cutter = Cutter(source.rules)
        done = ingest.ingest(source, store, space, report, cutter, scope, lambda: _load_early(embedder))
        revision = done.listing.revision
        hashes = {ref.hash for ref in done.placed}
        try:
            completion = Completion(revision, scope.builders)
            counts = embed_pending(store, embedder, report, scope.filter, completion, keeps=keeps)
        except EmbedderError:
            if publisher is not None:
                # What is withdrawn must not stay public because a model failed.
                publisher.withdraw_others(hashes - done.added, space)
            raise
        moved = TransferCounts(0, 0)
        if publisher is not None:
            outcome = BuildOutcome(hashes, done.added, space, revision, before, has_new_vectors=counts.embedded > 0)
            moved = publisher.publish(outcome, lambda: report(Progress("writing", 0, 0)))
        embedded, chunks = store.progress(space, scope.filter)
    return BuildReport(
        revision=revision,
        added=len(done.added),
        unchanged=max(0, len(hashes) - len(done.added)),
        removed=done.removed,
        chunks=chunks,
        embedded=counts.embedded,
        reused=done.reused,
        characters=counts.characters,
        cut=counts.cut,
        skipped=tuple(done.skipped),
        seconds=time.perf_counter() - started,
        complete=embedded == chunks,
        shared=moved.added,
        withdrawn=hidden + moved.removed,
        cut_by_lines=tuple(done.cut_by_lines),
        words_only=words_only(store, space, scope.filter),
        commits=len({ref.hash for ref in done.placed if ref.kind is Kind.COMMIT}),
        history_note=done.history_note,
    )


def _load_early(embedder: Embedder) -> None:
    if isinstance(embedder, InProcessEmbedder):
        # What is wrong with a model is said when passages are stored and it is needed.
        with suppress(EmbedderError):
            embedder.load()


def words_only(store: IndexState, space: Space, where: Filter = EVERYTHING) -> tuple[WordsOnly, ...]:
    refused = store.refused(space, where)
    found = [WordsOnly(item.path, (item.chunk.first_line, item.chunk.last_line), item.reason) for item in refused]
    return tuple(sorted(found, key=lambda item: (item.path, item.lines)))


def plan(source: Source, store: ChunkWriter, embedder: Embedder, scope: Scope = WHOLE) -> Plan:
    """What :func:`build` would do; nothing is written or embedded."""
    exists = store.exists
    seen = store.seen() if exists else {}
    listing = source.artifacts(seen)
    history = ingest.commits_of(source, listing) if COMMITS in scope.builders else CommitListing()
    known = store.known() if exists else {}
    cutter = Cutter(source.rules)
    refs, left_out = scope.choose(listing)
    refs = [*refs, *history.refs]
    outdated = cutter.outdated(refs, known)
    again = {ref.hash for ref in outdated}
    fresh: dict[str, StoredArtifact] = {}
    lengths: dict[bytes, int] = {}
    skipped, new = [*left_out, *scope.unlisted(refs, left_out)], 0
    for ref, entry in cutter.entries(outdated, source.read(outdated)):
        if isinstance(entry, Skipped):
            skipped.append(entry)
        elif entry.skip is not None:
            skipped.append(Skipped(ref.path or ref.hash, entry.skip, entry.detail, ref.hash))
        else:
            fresh[ref.hash] = ingest.known_of(entry)
            parts = {member.part for member in scope.members(ref, fresh[ref.hash])}
            new += bool(parts)
            lengths |= {
                item.digest: len(chunking.passage(item.chunk)) for item in entry.chunks if item.chunk.part in parts
            }
    if exists:
        for digest in store.embedded(embedder.space, list(lengths)):
            del lengths[digest]
        lengths |= {
            item.digest: len(chunking.passage(item.chunk)) for item in store.pending(embedder.space, scope.filter)
        }
    there = {key: one for key, one in known.items() if key not in again} | fresh
    skipped += ingest.refused(refs, there, scope)
    refused = {item.path for item in skipped}
    artifacts = tuple(ref for ref in refs if (ref.path or ref.hash) not in refused)
    return Plan(
        artifacts=artifacts,
        new=new,
        texts=len(lengths),
        characters=sum(lengths.values()),
        space=embedder.space.id,
        address=embedder.address,
        skipped=tuple(sorted(skipped, key=lambda item: item.path)),
        cut_by_lines=tuple(ingest.cut_by_lines(artifacts, there)),
        commits=sum(ref.kind is Kind.COMMIT for ref in artifacts),
        history_note=history.note,
    )


def embed_pending(
    store: ChunkWriter,
    embedder: Embedder,
    report: Report,
    wanted: Filter,
    completion: Completion | None = None,
    *,
    keeps: bool = True,
) -> EmbeddingCounts:
    """Embed passages that have no vector, then store what that completes; what came before an error is kept.

    A passage that the embedder refuses is left to keyword search, and tried again once in each later call.
    """
    counts = EmbeddingCounts()
    again = store.refused(embedder.space, wanted)[:TRIED_AGAIN]
    pending = store.pending(embedder.space, wanted)
    announce(embedder, len(pending), sum(len(chunking.passage(item.chunk)) for item in pending))
    digests: list[bytes] = []
    vectors: list[Matrix] = []
    reasons: dict[bytes, str] = {}

    def keep(batch: Sequence[Digested], result: Embedding) -> None:
        vectors.extend(result.vectors)
        digests.extend(batch[at].digest for at in result.embedded)
        reasons.update((batch[at].digest, reason) for at, reason in result.refused.items())
        for item in (batch[at] for at in result.embedded):
            text = chunking.passage(item.chunk)
            counts.embedded += 1
            counts.characters += len(text)
            counts.cut += not item.is_commit and tokenizer.count(text) + tokenizer.FRAME > embedder.max_tokens

    def flush(completion: Completion | None = None) -> None:
        if reasons:
            store.refuse(embedder.space, reasons)
            reasons.clear()
        if digests:
            store.add_vectors(embedder.space, digests, np.concatenate(vectors), completion)
            digests.clear()
            vectors.clear()
        elif completion is not None:
            store.finish(completion.revision, completion.builders)

    flushed = time.monotonic()
    flush_after = FLUSH_SECONDS if store.is_shared else FIRST_FLUSH_SECONDS
    step = min(FIRST_TEXTS, EMBED_TEXTS)
    start = 0
    try:
        while start < len(pending):
            report(Progress("embedding", start, len(pending), counts.characters))
            batch = pending[start : start + step]
            texts = [chunking.passage(item.chunk) for item in batch]
            begun = time.monotonic()
            result = refusals.embed(embedder, texts)
            pace = len(texts) / max(time.monotonic() - begun, 1e-6)
            step = min(EMBED_TEXTS, max(MIN_TEXTS, int(pace * EMBED_SECONDS)))
            start += len(texts)
            keep(batch, result)
            if time.monotonic() - flushed > flush_after or len(digests) >= FLUSH_TEXTS:
                flush()
                flushed, flush_after = time.monotonic(), min(2 * flush_after, FLUSH_SECONDS)
        report(Progress("embedding", len(pending), len(pending), counts.characters))
        if again:
            keep(again, refusals.embed_again(embedder, [chunking.passage(item.chunk) for item in again]))
        flush(completion)
    except EmbedderError as error:
        if counts.embedded:
            outcome = "which are kept" if keeps else "which are dropped: the index is as it was"
            error.what += f" (after {counts.embedded:,} of {len(pending):,} passages, {outcome})"
        raise
    finally:
        flush()
    return counts


def _throttled(report: Report) -> Report:
    """Pass on the first and last progress of each phase, and in between one each ``REPORT_SECONDS`` at most."""
    last = 0.0
    phase = ""

    def throttled(progress: Progress) -> None:
        nonlocal last, phase
        now = time.monotonic()
        if progress.phase != phase or progress.done == progress.total or now - last >= REPORT_SECONDS:
            last, phase = now, progress.phase
            report(progress)

    return throttled

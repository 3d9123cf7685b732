"""Building the index: update the passages, embed what has no vector yet, share the vectors."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from outcrop import chunking
from outcrop.core.model import Filter, Skipped
from outcrop.core.protocols import ChunkWriter, Embedder, Matrix, Publisher, Source
from outcrop.core.reports import BuildReport, Plan, Progress
from outcrop.core.rows import BuildOutcome, Completion, StoredArtifact, TransferCounts
from outcrop.embedders.http.consent import announce
from outcrop.errors import EmbedderError
from outcrop.indexing import ingest
from outcrop.indexing.ingest import WHOLE, Cutter, Report
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
        done = ingest.ingest(source, store, space, report, Cutter(source.rules), scope)
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
    )


def plan(source: Source, store: ChunkWriter, embedder: Embedder, scope: Scope = WHOLE) -> Plan:
    """What :func:`build` would do; nothing is written or embedded."""
    exists = store.exists
    listing = source.artifacts(store.seen() if exists else {})
    known = store.known() if exists else {}
    cutter = Cutter(source.rules)
    refs, left_out = scope.choose(listing)
    outdated = cutter.outdated(refs, known)
    again = {ref.hash for ref in outdated}
    fresh: dict[str, StoredArtifact] = {}
    lengths: dict[bytes, int] = {}
    skipped, new = [*left_out, *scope.unlisted(refs, left_out)], 0
    for ref, outcome in zip(outdated, source.read(outdated), strict=True):
        entry = cutter.entry(ref, outcome)
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
    skipped += ingest.refused(refs, {key: one for key, one in known.items() if key not in again} | fresh, scope)
    refused = {item.path for item in skipped}
    return Plan(
        artifacts=tuple(ref for ref in refs if (ref.path or ref.hash) not in refused),
        new=new,
        texts=len(lengths),
        characters=sum(lengths.values()),
        space=embedder.space.id,
        address=embedder.address,
        skipped=tuple(sorted(skipped, key=lambda item: item.path)),
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
    """Embed passages that have no vector, then store what that completes; what came before an error is kept."""
    counts = EmbeddingCounts()
    pending = store.pending(embedder.space, wanted)
    announce(embedder, len(pending), sum(len(chunking.passage(item.chunk)) for item in pending))
    digests: list[bytes] = []
    vectors: list[Matrix] = []

    def flush(completion: Completion | None = None) -> None:
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
            vectors.append(embedder.embed_passages(texts))
            pace = len(texts) / max(time.monotonic() - begun, 1e-6)
            step = min(EMBED_TEXTS, max(MIN_TEXTS, int(pace * EMBED_SECONDS)))
            start += len(texts)
            digests.extend(item.digest for item in batch)
            counts.embedded += len(texts)
            counts.characters += sum(map(len, texts))
            counts.cut += sum(tokenizer.count(text) + tokenizer.FRAME > embedder.max_tokens for text in texts)
            if time.monotonic() - flushed > flush_after or len(digests) >= FLUSH_TEXTS:
                flush()
                flushed, flush_after = time.monotonic(), min(2 * flush_after, FLUSH_SECONDS)
        report(Progress("embedding", len(pending), len(pending), counts.characters))
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

"""Building the index: list, read what is new, chunk, store, embed what has no vector yet, prune what is gone.

Chunks are stored before anything is embedded, so keywords and the vectors made so far answer while a first build runs,
and a build that was stopped goes on where it was: what lacks a vector is all that is left to do.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from outcrop import chunking, decoding, tokens
from outcrop.egress import announce
from outcrop.errors import EmbedderError, FormatError
from outcrop.model import Artifact, Chunk, Kind, Part, Ref, Skipped, SkipReason
from outcrop.ports import Embedder, Matrix, Source, VectorStore
from outcrop.records import Digested, Entry, Known, Member, Pending, View
from outcrop.reports import BuildReport, Plan, Progress

WRITE_CHARACTERS = 16_000_000
"""Text gathered before it is written: a large transaction, yet a bounded memory."""

EMBED_TEXTS = 256
"""Texts handed to the embedder at a time, at most."""

FIRST_TEXTS = 32
"""The first time fewer: a fault, and how fast it goes, should show at once."""

FEWEST_TEXTS = 8

EMBED_SECONDS = 2.0
"""Work that is handed over at a time, as far as the last time tells: how long Ctrl-C and the next progress may take."""

FLUSH_SECONDS = 60.0
"""How much embedding a killed process can lose at most."""

REPORT_SECONDS = 0.1
"""Progress is told no more often than this."""

CODE_KINDS = frozenset({Kind.CODE, Kind.API})

UNSETTLED = frozenset({SkipReason.VANISHED, SkipReason.UNREADABLE})
"""Verdicts that hold for one build only: chance decides them, not the bytes."""

Report = Callable[[Progress], None]


@dataclass(slots=True)
class _Tally:
    added: int = 0
    reused: int = 0
    embedded: int = 0
    characters: int = 0
    cut: int = 0
    skipped: list[Skipped] = field(default_factory=list)


def build(source: Source, store: VectorStore, embedder: Embedder, progress: Report | None = None) -> BuildReport:
    """Bring this view of the store up to date with its source.

    Args:
        source: What to index.
        store: Where to.
        embedder: What makes the vectors; from now on its space is the one that is searched.
        progress: Told how far it is, at most ten times a second.

    Returns:
        What was done.

    Raises:
        StoreLocked: Another process is building.
        EmbedderError: Chunks are stored and vectors made so far are kept; the next build goes on.
    """
    started = time.perf_counter()
    report = _throttled(progress or (lambda _: None))
    tally = _Tally()
    with store.writing():
        report(Progress("listing", 0, 0))
        store.set_space(embedder.space)
        listing = source.artifacts(store.seen())
        refs = _store_new(source, store, listing.refs, tally, report)
        known = store.known()
        placed = [ref for ref in refs if ref.hash in known and known[ref.hash].skip is None]
        skipped = sorted([*listing.skipped, *tally.skipped, *_refused(refs, known)], key=lambda item: item.path)
        replaced = store.replace(
            View(
                builders=("code", "docs"),
                members=[member for ref in placed for member in _members(ref, known[ref.hash])],
                seen=listing.seen,
                skipped=skipped,
                worktrees=source.worktrees(),
            )
        )
        _embed_pending(store, embedder, tally, report)
        store.finish(listing.revision)
        embedded, chunks = store.progress(embedder.space)
    return BuildReport(
        revision=listing.revision,
        added=tally.added,
        unchanged=max(0, len({ref.hash for ref in placed}) - tally.added),
        removed=replaced.artifacts,
        chunks=chunks,
        embedded=tally.embedded,
        reused=tally.reused,
        characters=tally.characters,
        cut=tally.cut,
        skipped=tuple(skipped),
        seconds=time.perf_counter() - started,
        complete=embedded == chunks,
    )


def plan(source: Source, store: VectorStore, embedder: Embedder) -> Plan:
    """What :func:`build` would do. Reads, but writes and embeds nothing."""
    there = store.exists
    listing = source.artifacts(store.seen() if there else {})
    known = store.known() if there else {}
    outdated = _outdated(listing.refs, known, source.rules)
    lengths: dict[bytes, int] = {}
    skipped, new = list(listing.skipped), 0
    for ref, outcome in zip(outdated, source.read(outdated), strict=True):
        entry = _entry(ref, outcome, source.rules)
        if isinstance(entry, Skipped):
            skipped.append(entry)
        elif entry.skip is not None:
            skipped.append(Skipped(ref.path or ref.hash, entry.skip, entry.detail, ref.hash))
        else:
            new += 1
            lengths |= {item.digest: len(chunking.passage(item.chunk)) for item in entry.chunks}
    if there:
        for digest in store.embedded(embedder.space, list(lengths)):
            del lengths[digest]
        lengths |= {item.digest: len(chunking.passage(item.chunk)) for item in store.pending(embedder.space)}
    fresh = {ref.hash for ref in outdated}
    skipped += _refused([ref for ref in listing.refs if ref.hash not in fresh], known)
    left_out = {item.path for item in skipped}
    return Plan(
        artifacts=tuple(ref for ref in listing.refs if (ref.path or ref.hash) not in left_out),
        new=new,
        texts=len(lengths),
        characters=sum(lengths.values()),
        space=embedder.space.id,
        address=embedder.address,
        skipped=tuple(sorted(skipped, key=lambda item: item.path)),
    )


def corpus_of(kind: Kind) -> str:
    """Which of the two default corpora a kind belongs to."""
    return "code" if kind in CODE_KINDS else "docs"


def _recipe(ref: Ref, rules: str) -> str:
    """What decides whether an artifact is read and how it is cut: under another recipe it is cut again."""
    return f"{chunking.VERSION}/{decoding.VERSION}/{chunking.format_of(ref.path, ref.kind)}/{rules}"


def _refusal(ref: Ref, rules: str) -> str:
    """The recipe of an artifact that is left out; its path can be why."""
    return f"{_recipe(ref, rules)}/{ref.path}"


def _outdated(refs: Iterable[Ref], known: Mapping[str, Known], rules: str) -> list[Ref]:
    """One ref per artifact that the store does not have, or has in another form."""
    first: dict[str, Ref] = {}
    for ref in refs:
        first.setdefault(ref.hash, ref)
    return [ref for ref in first.values() if not _is_current(ref, known.get(ref.hash), rules)]


def _is_current(ref: Ref, known: Known | None, rules: str) -> bool:
    if known is None or known.version != ref.version:
        return False
    return known.recipe == (_recipe(ref, rules) if known.skip is None else _refusal(ref, rules))


def _entry(ref: Ref, outcome: Artifact | Skipped, rules: str) -> Entry | Skipped:
    """Cut one artifact that was read. ``Skipped`` means that the verdict is not to be remembered."""
    if isinstance(outcome, Artifact):
        ref = outcome.ref
        try:
            chunks = chunking.chunk(outcome.text, ref.path, ref.kind)
        except FormatError as error:
            return Entry(ref, _refusal(ref, rules), (), SkipReason.BROKEN, error.what)
        return Entry(ref, _recipe(ref, rules), [Digested(chunk, _digest(chunk)) for chunk in chunks])
    if outcome.reason in UNSETTLED:
        return outcome
    return Entry(ref, _refusal(ref, rules), (), outcome.reason, outcome.detail)


def _digest(chunk: Chunk) -> bytes:
    return hashlib.sha256(chunking.passage(chunk).encode("utf-8", "surrogatepass")).digest()


def _store_new(source: Source, store: VectorStore, refs: Sequence[Ref], tally: _Tally, report: Report) -> Sequence[Ref]:
    """Read, cut and store what the store does not have. Returns the refs as they were read."""
    outdated = _outdated(refs, store.known(), source.rules)
    batch: list[Entry] = []
    gathered = characters = 0
    moved: dict[tuple[str, str | None], Ref] = {}
    for done, (ref, outcome) in enumerate(zip(outdated, source.read(outdated), strict=True), start=1):
        entry = _entry(ref, outcome, source.rules)
        if isinstance(entry, Skipped):
            tally.skipped.append(entry)
        else:
            if entry.ref.hash != ref.hash:
                moved[ref.hash, ref.path] = entry.ref
            tally.added += entry.skip is None
            size = sum(len(item.chunk.text) for item in entry.chunks)
            batch.append(entry)
            gathered += size
            characters += size
            if gathered >= WRITE_CHARACTERS:
                tally.reused += store.write(batch).reused
                batch, gathered = [], 0
        report(Progress("chunking", done, len(outdated), characters))
    if batch:
        tally.reused += store.write(batch).reused
    return [moved.get((ref.hash, ref.path), ref) for ref in refs] if moved else refs


def store_some(source: Source, store: VectorStore, refs: Sequence[Ref]) -> list[Member]:
    """Read, cut and store just these artifacts, embedding nothing. Returns where they belong."""
    read = _store_new(source, store, refs, _Tally(), lambda _: None)
    known = store.known()
    return [member for ref in read if ref.hash in known for member in _members(ref, known[ref.hash])]


def _refused(refs: Iterable[Ref], known: Mapping[str, Known]) -> Iterator[Skipped]:
    """What is left out by a verdict that the store remembers."""
    for ref in refs:
        verdict = known.get(ref.hash)
        if verdict is not None and verdict.skip is not None:
            yield Skipped(ref.path or ref.hash, verdict.skip, verdict.detail, ref.hash)


def _members(ref: Ref, known: Known) -> Iterator[Member]:
    """Where an artifact belongs. A notebook's Markdown cells are documents, its code cells code, its raw cells none."""
    for part in known.parts:
        if part is Part.WHOLE:
            corpus = corpus_of(ref.kind)
            yield Member(corpus, corpus, ref.hash, part, ref.path, ref.kind)
        elif part is Part.CODE:
            yield Member("code", "code", ref.hash, part, ref.path, Kind.CODE)
        elif part is Part.DOC:
            yield Member("docs", "code", ref.hash, part, ref.path, Kind.DOC)


def _embed_pending(store: VectorStore, embedder: Embedder, tally: _Tally, report: Report) -> None:
    """Give every passage of this view a vector; keep what was made when it ends early."""
    pending = store.pending(embedder.space)
    announce(embedder, len(pending), sum(len(chunking.passage(item.chunk)) for item in pending))
    digests: list[bytes] = []
    vectors: list[Matrix] = []

    def flush() -> None:
        if digests:
            store.add_vectors(embedder.space, digests, np.concatenate(vectors))
            digests.clear()
            vectors.clear()

    flushed = time.monotonic()
    step = min(FIRST_TEXTS, EMBED_TEXTS)
    start = 0
    try:
        while start < len(pending):
            report(Progress("embedding", start, len(pending), tally.characters))
            batch: Sequence[Pending] = pending[start : start + step]
            texts = [chunking.passage(item.chunk) for item in batch]
            begun = time.monotonic()
            vectors.append(embedder.embed_passages(texts))
            pace = len(texts) / max(time.monotonic() - begun, 1e-6)
            step = min(EMBED_TEXTS, max(FEWEST_TEXTS, int(pace * EMBED_SECONDS)))
            start += len(texts)
            digests.extend(item.digest for item in batch)
            tally.embedded += len(texts)
            tally.characters += sum(map(len, texts))
            tally.cut += sum(tokens.count(text) + tokens.FRAME > embedder.max_tokens for text in texts)
            if time.monotonic() - flushed > FLUSH_SECONDS:
                flush()
                flushed = time.monotonic()
        report(Progress("embedding", len(pending), len(pending), tally.characters))
    except EmbedderError as error:
        if tally.embedded:
            error.what += f" (after {tally.embedded:,} of {len(pending):,} passages, which are kept)"
        raise
    finally:
        flush()


def _throttled(report: Report) -> Report:
    """Pass on the first and last of each phase, and in between no more than one each ``REPORT_SECONDS``."""
    last = 0.0
    phase = ""

    def throttled(progress: Progress) -> None:
        nonlocal last, phase
        now = time.monotonic()
        if progress.phase != phase or progress.done == progress.total or now - last >= REPORT_SECONDS:
            last, phase = now, progress.phase
            report(progress)

    return throttled

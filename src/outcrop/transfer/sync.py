"""Vectors that travel: tables → blobs, blobs → tables without a model, and older blobs into their present form."""

from __future__ import annotations

import hashlib
import logging
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from outcrop import chunking
from outcrop.core.model import Artifact, Chunk, Filter, Ref, Skipped, SkipReason, Space
from outcrop.core.protocols import Source, TransferStore, Vector, VectorStore
from outcrop.core.reports import ImportReport, NormaliseReport
from outcrop.core.rows import Embedded, StoredArtifact, TransferCounts
from outcrop.errors import BlobError, SpaceMismatch, StoreError
from outcrop.indexing.ingest import Cutter, Report, ingest
from outcrop.transfer import blob
from outcrop.transfer.blob import Note, Record

# What the note says about who cut the texts.
CHUNKER = f"outcrop/{chunking.VERSION}"

# Artifacts read from the tables at a time.
BATCH_ARTIFACTS = 500

# Blobs handed over at a time: some 25,000 chunks; the store cuts that smaller where it has to.
BATCH_BYTES = 64 << 20

# Vectors of one transaction.
VECTORS_AT_ONCE = 10_000

# How far a vector's length may be from 1 without being written anew.
EVEN = 1e-6

_log = logging.getLogger("outcrop.transfer.sync")


def current(transfer: TransferStore) -> tuple[Space, str] | None:
    """The space of the blobs and the revision that they are current to, or None where that is not said."""
    note = note_of(transfer)
    return None if note is None else (note.space, note.revision)


def export(
    store: VectorStore,
    transfer: TransferStore,
    hashes: Collection[str],
    space: Space,
    revision: str,
    changed: Collection[str] | None = None,
    keep: Collection[str] = (),
) -> TransferCounts:
    """Lay out one blob per artifact, and withdraw all others.

    Args:
        store: Where chunks and vectors are.
        transfer: Where to.
        hashes: Artifacts that everybody may see; nothing else is ever exported.
        space: The space that is scanned.
        revision: What the store is current to.
        changed: The artifacts that changed since all blobs were current; None when that is not known.
        keep: Artifacts whose blobs stay where they are there, although the store has nothing for them.
    """
    wanted = set(hashes)
    there = transfer.names()
    stay = wanted.union(keep)
    gone = {name for name in there if (hash := blob.hash_of(name)) is not None and hash not in stay}
    # Another copy's blob of the same texts is as good as ours: rewriting it would only make both copies sync for ever.
    kept = {} if changed is not None else _fingerprints(transfer, space)
    fresh = sorted(hash for hash in wanted if changed is None or hash in changed or blob.name_of(hash) not in there)
    moved = TransferCounts(0, 0)
    adds: dict[str, bytes] = {}
    for start in range(0, len(fresh), BATCH_ARTIFACTS):
        for hash, chunks in store.embedded_chunks(space, fresh[start : start + BATCH_ARTIFACTS]).items():
            name = blob.name_of(hash)
            if kept and kept.get(name) == _fingerprint((item.seq, item.text) for item in chunks):
                continue
            data = _encoded(hash, chunks, space)
            if data is not None:
                adds[name] = data
            elif hash not in keep:
                gone.add(name)
        if sum(map(len, adds.values())) >= BATCH_BYTES:
            moved = _plus(moved, transfer.replace(adds, ()))
            adds = {}
    # Last, so that an export that was stopped does not look complete.
    note = blob.encode_note(Note(space, CHUNKER, revision=revision))
    noted = transfer.read(blob.NOTE) == note
    last = transfer.replace({**adds, blob.NOTE: note}, gone & there)
    return _plus(moved, TransferCounts(last.added - (not noted), last.removed))


def withdraw(transfer: TransferStore, hashes: Collection[str]) -> None:
    """Take back the blobs of all artifacts but these."""
    keep = set(map(blob.name_of, hashes))
    gone = [name for name in transfer.names() if blob.hash_of(name) is not None and name not in keep]
    if gone:
        transfer.replace({}, gone)


def bring_in(
    source: Source, store: VectorStore, transfer: TransferStore, expected: Space, report: Report
) -> ImportReport:
    """Fill the tables from blobs. Nothing is embedded.

    Texts, kinds, paths and lines come from the source itself; a blob gives the vector of each chunk that it has word
    for word. Blobs that another chunker cut are taken as they are, until the next build cuts them anew.

    Args:
        source: What the blobs were made of.
        store: Where to.
        transfer: Where the blobs are.
        expected: The embedder's space: questions are asked in it, so the blobs have to be of it.
        report: Told how far it is.
    """
    started = time.perf_counter()
    note = note_of(transfer)
    with store.writing():
        listed = {ref.hash for ref in source.artifacts(store.seen()).refs}
        contents, stale, refused = _contents(transfer, listed)
        if not contents and not stale and not refused:
            raise StoreError(
                "there are no vectors to import here",
                "Get them first: outcrop pull (a Fossil clone: fossil clone --unversioned)",
            )
        space = space_of(note, contents.values(), expected)
        records: dict[str, Sequence[Record]] = {}
        for hash, data in contents.items():
            try:
                records[hash] = _own(blob.decode(data, space.dim).records, source.project)
            except BlobError as error:
                refused.append(Skipped(blob.name_of(hash), SkipReason.BROKEN, error.what))
        foreign = records if note is None or note.chunker != CHUNKER else {}
        done = ingest(source, store, space, report, _BlobCutter(source.rules, foreign))
        imported = _place(store, space, records)
        embedded, chunks = store.progress(space, Filter(imported=False))
        if embedded == chunks and not foreign:
            store.finish(done.listing.revision)
    return ImportReport(
        revision=done.listing.revision,
        space=space.id,
        artifacts=len({ref.hash for ref in done.placed}),
        chunks=chunks,
        imported=imported,
        missing=chunks - embedded,
        stale=stale,
        refused=tuple(refused),
        seconds=time.perf_counter() - started,
    )


def normalise(store: VectorStore, transfer: TransferStore | None, expected: Space) -> NormaliseReport:
    """Bring stored vectors to length 1 in place, and every blob to the present form. No model is asked.

    Args:
        store: Whose vectors.
        transfer: Whose blobs, with or without the header; None where there are none.
        expected: The embedder's space, which blobs without a note are taken to be of.
    """
    started = time.perf_counter()
    vectors = dropped = written = fine = 0
    refused: list[Skipped] = []
    with store.writing():
        if store.state() is not None:
            vectors, dropped = store.normalise()
        if transfer is not None:
            written, fine, refused = _normalise_blobs(transfer, expected)
    return NormaliseReport(vectors, dropped, written, fine, tuple(refused), time.perf_counter() - started)


class _BlobCutter(Cutter):
    """Takes artifacts as blobs cut them, where another chunker made these.

    Args:
        rules: The source's.
        foreign: Records by hash of the artifact.
    """

    def __init__(self, rules: str, foreign: Mapping[str, Sequence[Record]]) -> None:
        super().__init__(rules)
        self._foreign = foreign

    def is_current(self, ref: Ref, known: StoredArtifact | None) -> bool:
        """Also what was imported before; and what was cut here stays so."""
        if super().is_current(ref, known):
            return True
        return known is not None and known.version == ref.version and known.recipe == self._recipe_of(ref)

    def recipe(self, ref: Ref) -> str:
        """That of the next build, or one that it will not take for its own."""
        return self._recipe_of(ref) or super().recipe(ref)

    def cut(self, artifact: Artifact) -> Sequence[Chunk]:
        """The texts of the blob, found again in the artifact."""
        records = self._foreign.get(artifact.ref.hash)
        return super().cut(artifact) if records is None else list(_found(artifact.text, records))

    def _recipe_of(self, ref: Ref) -> str | None:
        records = self._foreign.get(ref.hash)
        if records is None:
            return None
        return f"blob/{_fingerprint((item.seq, item.text) for item in records).hex()[:16]}"


def _found(text: str, records: Sequence[Record]) -> Iterator[Chunk]:
    """Chunks of foreign records, each with its lines where its text stands in the artifact."""
    newlines = list(accumulate(len(line) + 1 for line in text.split("\n")))
    at = 0
    for record in sorted(records, key=lambda item: item.seq):
        start = text.find(record.text, at)
        if start < 0:
            start = max(0, text.find(record.text))
        end = min(len(text), start + len(record.text))
        first = bisect_right(newlines, start) + 1
        last = max(first, bisect_right(newlines, max(start, end - 1)) + 1)
        yield Chunk(record.seq, record.text, start, end, first, last)
        at = start


def _contents(transfer: TransferStore, listed: Collection[str]) -> tuple[dict[str, bytes], int, list[Skipped]]:
    """Blobs of artifacts that are listed, by hash; how many there are of others; and damaged ones."""
    contents: dict[str, bytes] = {}
    stale = 0
    refused: list[Skipped] = []
    for name, data in transfer.read_all():
        hash = blob.hash_of(name)
        if hash is None:
            continue
        if isinstance(data, Skipped):
            refused.append(data)
        elif hash in listed:
            contents[hash] = data
        else:
            stale += 1
    return contents, stale, refused


def _own(records: Sequence[Record], project: str) -> Sequence[Record]:
    """Those of this repository; a peer's come in by other ways."""
    return [record for record in records if record.project in ("", project)]


def _place(store: VectorStore, space: Space, records: Mapping[str, Sequence[Record]]) -> int:
    """Give each chunk without a vector the one that its blob has for the same text at the same place."""
    digests: list[bytes] = []
    vectors: list[Vector] = []
    placed = 0

    def flush() -> None:
        nonlocal placed
        if digests:
            store.add_vectors(space, digests, np.stack(vectors))
            placed += len(digests)
            digests.clear()
            vectors.clear()

    hashes = list(records)
    for start in range(0, len(hashes), BATCH_ARTIFACTS):
        for hash, chunks in store.embedded_chunks(space, hashes[start : start + BATCH_ARTIFACTS]).items():
            there = {(record.seq, record.text): record.vector for record in records[hash]}
            for chunk in chunks:
                vector = there.get((chunk.seq, chunk.text)) if chunk.vector is None else None
                if vector is not None:
                    digests.append(chunk.digest)
                    vectors.append(vector)
        if len(digests) >= VECTORS_AT_ONCE:
            flush()
    flush()
    return placed


def space_of(note: Note | None, contents: Iterable[bytes], expected: Space) -> Space:
    """The space of blobs: what the note says, or the embedder's if their vectors are as long as its."""
    found = note.space if note is not None else Space(expected.model, _dim(contents, expected.dim))
    if found != expected:
        raise SpaceMismatch(
            f"the blobs hold vectors of {found.id}, but the embedder is {expected.id}",
            "Choose that embedder with --embedder and --model, or make them anew: outcrop index",
        )
    return found


def _dim(contents: Iterable[bytes], expected: int) -> int:
    """The embedder's dim where the blobs can be read by it; else the only one by which they can."""
    some = list(contents)
    try:
        for data in some:
            blob.decode(data, expected, normalise=True)
    except BlobError:
        return blob.infer_dim(some)
    return expected


def note_of(transfer: TransferStore) -> Note | None:
    """The note, or None where there is none that can be read."""
    data = transfer.read(blob.NOTE)
    if isinstance(data, Skipped):
        _log.warning("%s is damaged and was passed over: %s", blob.NOTE, data.detail)
    return blob.decode_note(data) if isinstance(data, bytes) else None


def _encoded(hash: str, chunks: Sequence[Embedded], space: Space) -> bytes | None:
    """An artifact's blob; None where it has no chunk, or not all of them have a vector, or it does not fit."""
    records = [Record(item.seq, "", item.text, item.vector) for item in chunks if item.vector is not None]
    if not records or len(records) < len(chunks):
        return None
    try:
        return blob.encode(records, space.dim)
    except BlobError as error:
        _log.warning("%s is indexed here but not shared: %s", hash[:12], error.what)
        return None


def _fingerprints(transfer: TransferStore, space: Space) -> dict[str, bytes]:
    """Per blob of this space, what its texts are; blobs that cannot be read are missing."""
    note = note_of(transfer)
    if note is None or note.space != space:
        return {}
    found: dict[str, bytes] = {}
    for name, data in transfer.read_all():
        if isinstance(data, bytes) and data.startswith(blob.HEADER) and blob.hash_of(name) is not None:
            try:
                records = blob.decode(data, space.dim).records
            except BlobError:
                continue
            if all(record.project == "" for record in records):
                found[name] = _fingerprint((record.seq, record.text) for record in records)
    return found


def _fingerprint(chunks: Iterable[tuple[int, str]]) -> bytes:
    digest = hashlib.sha256()
    for seq, text in chunks:
        digest.update(f"{seq}:{len(text)}:{text}".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _normalise_blobs(transfer: TransferStore, expected: Space) -> tuple[int, int, list[Skipped]]:
    """Write anew what is not in the present form. Returns how many that were, how many were fine, and the bad ones."""
    note = note_of(transfer)
    found = {name: data for name, data in transfer.read_all() if blob.hash_of(name) is not None}
    space = space_of(
        note, [data for data in found.values() if isinstance(data, bytes)], note.space if note else expected
    )
    adds: dict[str, bytes] = {}
    refused: list[Skipped] = []
    fine = 0
    for name, data in found.items():
        if isinstance(data, Skipped):
            refused.append(data)
            continue
        try:
            if _is_fine(data, space.dim):
                fine += 1
            else:
                adds[name] = blob.encode(blob.decode(data, space.dim, normalise=True).records, space.dim)
        except BlobError as error:
            refused.append(Skipped(name, SkipReason.BROKEN, error.what))
    if note is None and adds:
        adds[blob.NOTE] = blob.encode_note(Note(space))
    moved = transfer.replace(adds, ())
    return moved.added - (blob.NOTE in adds), fine, refused


def _is_fine(data: bytes, dim: int) -> bool:
    if not data.startswith(blob.HEADER):
        return False
    try:
        records = blob.decode(data, dim).records
    except BlobError:
        return False
    return all(abs(float(np.linalg.norm(record.vector)) - 1) <= EVEN for record in records)


def _plus(one: TransferCounts, other: TransferCounts) -> TransferCounts:
    return TransferCounts(one.added + other.added, one.removed + other.removed)

"""Vectors that travel: tables → blobs, blobs → tables without a model, and older blobs into their present form."""

from __future__ import annotations

import hashlib
import logging
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice

import numpy as np

from outcrop import chunking
from outcrop.core.batches import WRITE_CHUNKS, in_batches, slices
from outcrop.core.model import Artifact, Chunk, Filter, Ref, Skipped, SkipReason, Space
from outcrop.core.protocols import Source, TransferStore, Vector, VectorStore
from outcrop.core.reports import ImportReport, NormaliseReport
from outcrop.core.rows import Embedded, StoredArtifact, TransferCounts
from outcrop.errors import BlobError, SpaceMismatch, StoreError
from outcrop.indexing.ingest import Cutter, Report, ingest, list_all
from outcrop.transfer import blob
from outcrop.transfer.blob import BlobRecord, SpaceNote

# The chunker in the note of our blobs.
CHUNKER = f"outcrop/{chunking.VERSION}"

# Artifacts read from the tables at a time.
BATCH_ARTIFACTS = 500

# Blobs handed over at a time: some 25,000 chunks; the store cuts that smaller where it has to.
BATCH_BYTES = 64 << 20

# How far a vector's length may be from 1 without being written anew.
EVEN = 1e-6

# Least dot product of two vectors that the same model made of the same text, on whatever machine.
SAME = 0.99

_log = logging.getLogger("outcrop.transfer.sync")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What of an index may leave: only artifacts that everybody may see.

    Attributes:
        versions: Per artifact, the objects of the source that it was read from.
        paths: The artifact at each path that everybody may know; None where all may be known.
    """

    space: Space
    revision: str
    hashes: Collection[str]
    versions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    paths: Mapping[str, str] | None = None


def export(
    store: VectorStore,
    transfer: TransferStore,
    outgoing: Outgoing,
    changed: Collection[str] | None = None,
    keep: Collection[str] = (),
) -> TransferCounts:
    """Write one blob per artifact, and withdraw all others but those of ``keep``.

    ``changed`` are the artifacts that changed since all blobs were current; None when that is not known.
    """
    space = outgoing.space
    wanted = set(outgoing.hashes)
    there = transfer.names()
    gone = {blob.name_of(artifact) for artifact in blob.hashes_of(there) - wanted.union(keep)}
    # Another copy's blob of the same texts is as good as ours: rewriting it would only make both copies sync for ever.
    kept = {} if changed is not None else _fingerprints(transfer, space)
    fresh = sorted(item for item in wanted if changed is None or item in changed or blob.name_of(item) not in there)
    added = removed = 0
    adds: dict[str, bytes] = {}
    for some in slices(fresh, BATCH_ARTIFACTS):
        for artifact, chunks in store.embedded_chunks(space, some).items():
            name = blob.name_of(artifact)
            if kept and kept.get(name) == _fingerprint(chunks):
                continue
            data = _encoded(artifact, chunks, space)
            if data is not None:
                adds[name] = data
            elif artifact not in keep:
                gone.add(name)
        if sum(map(len, adds.values())) >= BATCH_BYTES:
            counts = transfer.replace(adds, ())
            added, removed, adds = added + counts.added, removed + counts.removed, {}
    # Last, so that an export that was stopped does not look complete.
    note = blob.encode_note(SpaceNote(space, CHUNKER, outgoing.revision))
    is_new_note = transfer.read(blob.NOTE) != note
    counts = transfer.replace({**adds, blob.NOTE: note}, gone & there)
    return TransferCounts(added + counts.added - is_new_note, removed + counts.removed)


def import_blobs(
    source: Source, store: VectorStore, transfer: TransferStore, expected: Space, report: Report
) -> ImportReport:
    """Fill the tables from blobs. Nothing is embedded.

    Texts, kinds, paths and lines come from the source itself; a blob gives the vector of each chunk that it has word
    for word. Blobs of another chunker are imported with their own chunks, until the next build cuts them anew.
    """
    started = time.perf_counter()
    note = note_of(transfer)
    refused: list[Skipped] = []
    imported = stale = 0
    with store.writing():
        listed = {ref.hash for ref in list_all(source, store.seen()).refs}
        names = blob.hashes_of(transfer.names())
        if not names:
            raise StoreError(
                "there are no vectors to import here",
                "Get them first: outcrop pull (a Fossil clone: fossil clone --unversioned)",
            )
        foreign: dict[str, Sequence[BlobRecord]] = {}
        if note is None or note.chunker != CHUNKER:
            # Their texts are needed before any other: all of them are held.
            contents = dict(_wanted(_bounded(transfer.read_all()), listed, refused))
            space = space_of(note, contents.values(), expected)
            foreign = dict(_decoded(contents.items(), space, source, refused))
            parts: Iterable[Mapping[str, Sequence[BlobRecord]]] = [foreign]
        else:
            space = space_of(note, (), expected)
            sized = ((item, len(item[1])) for item in _wanted(transfer.read_all(), listed, refused))
            # A few at a time, however many there are.
            parts = (dict(_decoded(some, space, source, refused)) for some in in_batches(sized, BATCH_BYTES))
        done = ingest(source, store, space, report, _BlobCutter(source.rules, foreign))
        for records in parts:
            vectors = _missing_vectors(store, space, records)
            while batch := list(islice(vectors, WRITE_CHUNKS)):
                store.add_vectors(space, [digest for digest, _ in batch], np.stack([vector for _, vector in batch]))
                imported += len(batch)
        stale = len(names - listed)
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

    Blobs without a note are taken to be of the embedder's space.
    """
    started = time.perf_counter()
    vectors = dropped = written = unchanged = 0
    refused: list[Skipped] = []
    with store.writing():
        if store.state() is not None:
            vectors, dropped = store.normalise()
        if transfer is not None:
            written, unchanged, refused = _normalise_blobs(transfer, expected)
    return NormaliseReport(vectors, dropped, written, unchanged, tuple(refused), time.perf_counter() - started)


def find_damaged(store: VectorStore, transfer: TransferStore, *, compare: bool) -> tuple[int, list[Skipped]]:
    """How many blobs there are, and those that cannot be read, or (``compare``) have another vector than the tables."""
    damaged: list[Skipped] = []
    note: SpaceNote | None = None
    try:
        note = note_of(transfer)
    except BlobError as error:
        damaged.append(Skipped(blob.NOTE, SkipReason.BROKEN, error.what))
    state = store.state()
    known = store.known() if compare and note is not None and state is not None and note.space == state.space else {}
    count = 0
    for name, data in transfer.read_all():
        artifact = blob.hash_of(name)
        if artifact is None:
            continue
        count += 1
        fault = data.detail if isinstance(data, Skipped) else ""
        if note is not None and not isinstance(data, Skipped):
            fault = _fault(store, note.space, artifact, data, compare=artifact in known)
        if fault:
            damaged.append(Skipped(name, SkipReason.BROKEN, fault))
    return count, damaged


def _fault(store: VectorStore, space: Space, artifact: str, data: bytes, *, compare: bool) -> str:
    try:
        records = blob.decode(data, space.dim)
    except BlobError as error:
        return error.what
    chunks = store.embedded_chunks(space, [artifact])[artifact] if compare else ()
    stored = {(chunk.seq, chunk.text): chunk.vector for chunk in chunks if chunk.vector is not None}
    for record in records:
        vector = stored.get((record.seq, record.text)) if record.project == "" else None
        if vector is not None and float(vector @ record.vector) < SAME:
            return f"record {record.seq} has another vector than the index"
    return ""


def note_of(transfer: TransferStore) -> SpaceNote | None:
    """The note, or None where there is none that can be read."""
    data = transfer.read(blob.NOTE)
    if isinstance(data, Skipped):
        _log.warning("%s is damaged and was ignored: %s", blob.NOTE, data.detail)
    return blob.decode_note(data) if isinstance(data, bytes) else None


def space_of(note: SpaceNote | None, contents: Iterable[bytes], expected: Space) -> Space:
    """The space of blobs: what the note says, or the embedder's if their vectors are as long as its."""
    found = note.space if note is not None else Space(expected.model, _dim(list(contents), expected.dim))
    if found != expected:
        raise SpaceMismatch(
            f"the blobs hold vectors of {found.id}, but the embedder is {expected.id}",
            "Choose that embedder with --embedder and --model, or make them anew: outcrop index",
        )
    return found


def _wanted(
    found: Iterable[tuple[str, bytes | Skipped]], listed: Collection[str], refused: list[Skipped]
) -> Iterator[tuple[str, bytes]]:
    """The blobs of these artifacts; ``refused`` takes what cannot be read."""
    for name, data in found:
        artifact = blob.hash_of(name)
        if artifact is None:
            continue
        if isinstance(data, Skipped):
            refused.append(data)
        elif artifact in listed:
            yield artifact, data


def _decoded(
    contents: Iterable[tuple[str, bytes]], space: Space, source: Source, refused: list[Skipped]
) -> Iterator[tuple[str, Sequence[BlobRecord]]]:
    """The records of blobs that are the source's own; those of a peer are imported with the peer."""
    for artifact, data in contents:
        try:
            decoded = blob.decode(data, space.dim)
        except BlobError as error:
            refused.append(Skipped(blob.name_of(artifact), SkipReason.BROKEN, error.what))
        else:
            yield artifact, [record for record in decoded if record.project in ("", source.project)]


def _bounded(found: Iterable[tuple[str, bytes | Skipped]]) -> Iterator[tuple[str, bytes | Skipped]]:
    """The same, as long as all of it together can be held in memory."""
    held = 0
    for name, data in found:
        held += len(data) if isinstance(data, bytes) else 0
        if held > blob.MOST_HELD:
            raise BlobError(
                f"the blobs are of another version or without {blob.NOTE}, and more than {blob.MOST_HELD >> 20:,} MiB",
                "Make the vectors anew: outcrop index",
            )
        yield name, data


class _BlobCutter(Cutter):
    """Takes the chunks of blobs that another chunker made (``foreign``, by hash of the artifact)."""

    def __init__(self, rules: str, foreign: Mapping[str, Sequence[BlobRecord]]) -> None:
        super().__init__(rules)
        self._foreign = foreign

    def is_current(self, ref: Ref, known: StoredArtifact | None) -> bool:
        """Also what was imported before; and what was cut here stays so."""
        if super().is_current(ref, known):
            return True
        return known is not None and known.version == ref.version and known.recipe == self._blob_recipe(ref)

    def recipe(self, ref: Ref) -> str:
        """Of a foreign blob, one that the next build does not take for its own."""
        return self._blob_recipe(ref) or super().recipe(ref)

    def given(self, artifact: Artifact) -> Sequence[Chunk] | None:
        """The texts of the blob, found again in the artifact."""
        records = self._foreign.get(artifact.ref.hash)
        return None if records is None else list(_locate(artifact.text, records))

    def _blob_recipe(self, ref: Ref) -> str | None:
        records = self._foreign.get(ref.hash)
        return None if records is None else f"blob/{_fingerprint(records).hex()[:16]}"


def _locate(text: str, records: Sequence[BlobRecord]) -> Iterator[Chunk]:
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


def _missing_vectors(
    store: VectorStore, space: Space, records: Mapping[str, Sequence[BlobRecord]]
) -> Iterator[tuple[bytes, Vector]]:
    """Per chunk without a vector, its digest and the vector that its blob has for the same text at the same place."""
    for some in slices(list(records), BATCH_ARTIFACTS):
        for artifact, chunks in store.embedded_chunks(space, some).items():
            there = {(record.seq, record.text): record.vector for record in records[artifact]}
            for chunk in chunks:
                vector = there.get((chunk.seq, chunk.text)) if chunk.vector is None else None
                if vector is not None:
                    yield chunk.digest, vector


def _dim(contents: Sequence[bytes], expected: int) -> int:
    """The embedder's dim where the blobs can be read by it; else the only one by which they can."""
    try:
        for data in contents:
            blob.decode(data, expected, normalise=True)
    except BlobError:
        return blob.infer_dim(contents)
    return expected


def _encoded(artifact: str, chunks: Sequence[Embedded], space: Space) -> bytes | None:
    """An artifact's blob; None where it has no chunk, or not all of them have a vector, or it does not fit."""
    records = [BlobRecord(item.seq, "", item.text, item.vector) for item in chunks if item.vector is not None]
    if not records or len(records) < len(chunks):
        return None
    try:
        return blob.encode(records, space.dim)
    except BlobError as error:
        _log.warning("%s is indexed here but not shared: %s", artifact[:12], error.what)
        return None


def _fingerprints(transfer: TransferStore, space: Space) -> dict[str, bytes]:
    """A digest of the texts of each blob of this space; blobs that cannot be read are missing."""
    note = note_of(transfer)
    if note is None or note.space != space:
        return {}
    found: dict[str, bytes] = {}
    for name, data in transfer.read_all():
        records = _records(data, space.dim) if blob.hash_of(name) is not None else None
        if records is not None and all(record.project == "" for record in records):
            found[name] = _fingerprint(records)
    return found


def _fingerprint(chunks: Iterable[BlobRecord | Embedded]) -> bytes:
    digest = hashlib.sha256()
    for item in chunks:
        digest.update(f"{item.seq}:{len(item.text)}:{item.text}".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _normalise_blobs(transfer: TransferStore, expected: Space) -> tuple[int, int, list[Skipped]]:
    """Write anew what is not in the present form. Returns how many were written and unchanged, and the bad ones."""
    note = note_of(transfer)
    found: Iterable[tuple[str, bytes | Skipped]] = transfer.read_all()
    space = expected
    if note is not None:
        space = note.space
    else:
        found = list(_bounded(found))
        contents = [data for name, data in found if isinstance(data, bytes) and blob.hash_of(name) is not None]
        space = space_of(note, contents, expected)
    adds: dict[str, bytes] = {}
    refused: list[Skipped] = []
    written = unchanged = 0
    for name, data in found:
        if blob.hash_of(name) is None:
            continue
        records = _records(data, space.dim)
        if isinstance(data, Skipped):
            refused.append(data)
        elif records is not None and all(abs(float(np.linalg.norm(record.vector)) - 1) <= EVEN for record in records):
            unchanged += 1
        else:
            try:
                adds[name] = blob.encode(blob.decode(data, space.dim, normalise=True), space.dim)
            except BlobError as error:
                refused.append(Skipped(name, SkipReason.BROKEN, error.what))
        if sum(map(len, adds.values())) >= BATCH_BYTES:
            written, adds = written + transfer.replace(adds, ()).added, {}
    written += transfer.replace(adds, ()).added
    if note is None and written:
        transfer.replace({blob.NOTE: blob.encode_note(SpaceNote(space))}, ())
    return written, unchanged, refused


def _records(data: bytes | Skipped, dim: int) -> Sequence[BlobRecord] | None:
    if isinstance(data, Skipped) or not data.startswith(blob.HEADER):
        return None
    try:
        return blob.decode(data, dim)
    except BlobError:
        return None

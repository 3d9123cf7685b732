"""Exports that stand for themselves: vectors together with where their texts stand, and back without the source."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outcrop.core.model import Kind, Part, Ref, Skipped, SkipReason, Space
from outcrop.core.protocols import Matrix, Source, TransferStore, VectorStore
from outcrop.core.reports import ImportReport, Progress
from outcrop.core.rows import DEFAULT_BUILDERS, Digested, Entry, Member, TransferCounts, View
from outcrop.errors import BlobError
from outcrop.indexing.ingest import Report, digest
from outcrop.indexing.scope import DOCS, corpus_of
from outcrop.transfer import blob, members, sync
from outcrop.transfer.blob import Note
from outcrop.transfer.members import Listed, Location, Members

# Of artifacts that were taken as an export has them; a build of their source cuts them anew.
RECIPE = "export"

# Passages of one transaction, roughly.
WRITE_CHUNKS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """One artifact of an export.

    Attributes:
        entry: Its passages, as a store takes them; ``entry.ref`` has its hash, and the first place where it stands.
        locations: Every place.
        vectors: float32 ``[n, dim]``, L2-normalised, one row a passage.
    """

    entry: Entry
    locations: Sequence[Location]
    vectors: Matrix


def write(
    source: Source,
    store: VectorStore,
    transfer: TransferStore,
    hashes: Collection[str],
    space: Space,
    revision: str,
    places: Mapping[str, str] | None = None,
) -> TransferCounts:
    """Lay out blobs and the file that says where their artifacts stand.

    An export that is stopped on the way has no ``members.json``, and its blobs are all of the space that it names.

    Args:
        source: What was indexed.
        store: Where passages and vectors are.
        transfer: Where to.
        hashes: What may leave.
        space: The space of the vectors.
        revision: What the store is current to.
        places: The artifact at each path that everybody may know; None where all may be known.
    """
    locations = _standings(store, hashes, places)
    encoded = members.encode(_members(source, store, locations, space, revision))
    # What did not change is left alone, so that the folder's own history and backups stay small.
    before = transfer.read(members.NAME)
    there = sync.current(transfer)
    if there is not None and there[0] != space:
        transfer.replace({}, transfer.names())
    elif before != encoded:
        transfer.replace({}, [members.NAME])
    if there is None or there[0] != space:
        transfer.replace({blob.NOTE: blob.encode_note(Note(space, sync.CHUNKER))}, ())
    moved = sync.export(store, transfer, hashes, space, revision)
    transfer.replace({members.NAME: encoded}, ())
    return moved


def members_of(store: VectorStore) -> list[Member]:
    """What builds of this source put into this view, records of callers left out."""
    builders = dict.fromkeys((*DEFAULT_BUILDERS, *store.revisions()))
    return [member for builder in builders for member in store.members(builder)]


def read_members(transfer: TransferStore) -> Members | None:
    """Where the artifacts of an export stand, or None where it does not say so."""
    data = transfer.read(members.NAME)
    if isinstance(data, Skipped):
        raise BlobError(f"{members.NAME} cannot be read: {data.detail or data.reason}")
    return None if data is None else members.decode(data)


def read(transfer: TransferStore, listed: Mapping[str, Listed], space: Space) -> Iterator[Exported | Skipped]:
    """Every artifact that is listed and has a blob. A bad one comes as ``Skipped``, never raised.

    Args:
        transfer: Where the blobs are.
        listed: What ``members.json`` says of them.
        space: The space of the vectors.
    """
    for name, data in transfer.read_all():
        hash = blob.hash_of(name)
        if hash is None or hash not in listed:
            continue
        if isinstance(data, Skipped):
            yield data
            continue
        try:
            yield _exported(listed[hash], data, space)
        except BlobError as error:
            yield Skipped(name, SkipReason.BROKEN, error.what)


def bring_in(
    source: Source, store: VectorStore, transfer: TransferStore, expected: Space, report: Report
) -> ImportReport:
    """Fill the tables of a source that holds nothing from an export alone. Nothing is embedded.

    Args:
        source: The empty place that the index is for.
        store: Where to.
        transfer: Where the export is.
        expected: The embedder's space.
        report: Told how far it is.
    """
    started = time.perf_counter()
    found = read_members(transfer)
    if found is None:
        raise BlobError(
            f"the export has no {members.NAME}, which says where its texts stand",
            "It was not finished, or another tool made it: import it where the files themselves are",
        )
    space = sync.space_of(sync.note_of(transfer), (), expected)
    refused = list(found.refused)
    batch: list[Exported] = []
    placed: list[Member] = []
    chunks = 0

    def flush() -> None:
        store.write([item.entry for item in batch], space)
        digests = [chunk.digest for item in batch for chunk in item.entry.chunks]
        if digests:
            store.add_vectors(space, digests, np.concatenate([item.vectors for item in batch]))
        batch.clear()

    with store.writing():
        for done, item in enumerate(read(transfer, found.artifacts, space), start=1):
            if isinstance(item, Skipped):
                refused.append(item)
                continue
            batch.append(item)
            placed += _placed(item)
            chunks += len(item.entry.chunks)
            if sum(len(each.entry.chunks) for each in batch) >= WRITE_CHUNKS:
                flush()
            report(Progress("writing", done, len(found.artifacts)))
        flush()
        store.replace(View(DEFAULT_BUILDERS, placed, {}, (), source.worktrees()))
        revision = source.revision({})
        store.finish(revision)
    return ImportReport(
        revision=revision,
        space=space.id,
        artifacts=len({member.hash for member in placed}),
        chunks=chunks,
        imported=chunks,
        missing=0,
        stale=0,
        refused=tuple(refused),
        seconds=time.perf_counter() - started,
    )


def _standings(
    store: VectorStore, hashes: Collection[str], places: Mapping[str, str] | None
) -> dict[str, set[Location]]:
    """Where each artifact stands, as far as that may be known.

    The same content may stand at other paths too, that are nobody's business: those of untracked copies.
    """
    found: dict[str, set[Location]] = {}
    hidden: dict[str, set[Location]] = {}
    for member in members_of(store):
        if member.hash in hashes:
            known = places is None or member.path is None or member.path in places
            side = found if known else hidden
            side.setdefault(member.hash, set()).add(Location(member.path, member.kind, member.part))
    for path, hash in (places or {}).items():
        # TransferCounts in the working tree alone: it stands where it stood.
        if hash in hidden and hash not in found:
            found[hash] = {replace(standing, path=path) for standing in hidden[hash]}
    return found


def _members(
    source: Source, store: VectorStore, locations: Mapping[str, Collection[Location]], space: Space, revision: str
) -> Members:
    artifacts: dict[str, Listed] = {}
    wanted = sorted(locations)
    for start in range(0, len(wanted), sync.BATCH_ARTIFACTS):
        some = store.embedded_chunks(space, wanted[start : start + sync.BATCH_ARTIFACTS])
        for hash, chunks in some.items():
            if chunks and all(item.vector is not None for item in chunks):
                at = sorted(locations[hash], key=lambda item: (item.path or "", item.part, item.kind))
                passages = [replace(item.chunk, text="") for item in chunks]
                artifacts[hash] = Listed(hash, at, passages, chunks[0].media)
    return Members(source.type, source.project, revision, artifacts)


def _exported(listed: Listed, data: bytes, space: Space) -> Exported:
    """An artifact put together from its blob and what is said of it."""
    records = sorted(
        (record for record in blob.decode(data, space.dim).records if record.project == ""),
        key=lambda record: record.seq,
    )
    if not records or [record.seq for record in records] != [chunk.seq for chunk in listed.chunks]:
        raise BlobError(f"its passages are not those that {members.NAME} lists")
    chunks = [replace(chunk, text=record.text) for chunk, record in zip(listed.chunks, records, strict=True)]
    first = listed.locations[0]
    return Exported(
        Entry(
            Ref(listed.hash, first.kind, first.path, listed.hash),
            RECIPE,
            [Digested(chunk, digest(chunk)) for chunk in chunks],
            media=listed.media,
        ),
        listed.locations,
        np.stack([record.vector for record in records]),
    )


def _placed(item: Exported) -> Iterator[Member]:
    """Where an artifact belongs, as a build would say."""
    for standing in item.locations:
        if standing.part is Part.WHOLE:
            corpus = builder = corpus_of(standing.kind)
        else:
            corpus, builder = ("code" if standing.kind is Kind.CODE else DOCS), "code"
        yield Member(corpus, builder, item.entry.ref.hash, standing.part, standing.path, standing.kind)

"""Exports that need no source: vectors together with the places of their texts, and back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from outcrop.chunking import digest
from outcrop.core.batches import WRITE_CHUNKS, in_batches, slices
from outcrop.core.model import Kind, Part, Ref, Skipped, SkipReason, Space
from outcrop.core.names import COMMITS, DEFAULT_BUILDERS
from outcrop.core.protocols import Matrix, Source, TransferStore, VectorStore
from outcrop.core.reports import ImportReport, Progress
from outcrop.core.rows import Digested, Entry, Member, TransferCounts, View
from outcrop.errors import BlobError
from outcrop.indexing.ingest import Report
from outcrop.indexing.scope import DOCS, corpus_of
from outcrop.transfer import blob, members, sync
from outcrop.transfer.blob import SpaceNote
from outcrop.transfer.members import ExportedArtifact, Location, MembersFile
from outcrop.transfer.sync import Outgoing

# Of artifacts that were imported as an export has them; a build of their source cuts them anew.
RECIPE = "export"


@dataclass(frozen=True, slots=True, eq=False)
class ImportedArtifact:
    """An artifact of an export for a store; vectors are float32 ``[n, dim]``, L2-normalised, a row a passage."""

    entry: Entry
    members: list[Member]
    vectors: Matrix


def export(source: Source, store: VectorStore, transfer: TransferStore, outgoing: Outgoing) -> TransferCounts:
    """Write blobs, and the file with the places of their artifacts.

    An export that is stopped on the way has no ``members.json``, and its blobs are all of the space that it names.
    """
    encoded = members.encode(_members(source, store, outgoing))
    before = sync.note_of(transfer)
    if before is None or before.space != outgoing.space:
        transfer.replace({}, [members.NAME] if before is None else transfer.names())
        transfer.replace({blob.NOTE: blob.encode_note(SpaceNote(outgoing.space, sync.CHUNKER))}, ())
    elif transfer.read(members.NAME) != encoded:
        # What did not change is left alone, so that the folder's own history and backups stay small.
        transfer.replace({}, [members.NAME])
    counts = sync.export(store, transfer, outgoing)
    transfer.replace({members.NAME: encoded}, ())
    return counts


def members_of(store: VectorStore) -> list[Member]:
    """What builds of this source put into this view, records of callers left out."""
    builders = dict.fromkeys((*DEFAULT_BUILDERS, *store.revisions()))
    return [member for builder in builders for member in store.members(builder)]


def read_members(transfer: TransferStore) -> MembersFile | None:
    data = transfer.read(members.NAME)
    if isinstance(data, Skipped):
        raise BlobError(f"{members.NAME} cannot be read: {data.detail or data.reason}")
    return None if data is None else members.decode(data)


def import_export(
    source: Source, store: VectorStore, transfer: TransferStore, expected: Space, report: Report
) -> ImportReport:
    """Fill the tables of an empty source from an export of the embedder's space alone. Nothing is embedded."""
    started = time.perf_counter()
    found = read_members(transfer)
    if found is None:
        raise BlobError(
            f"the export has no {members.NAME}, which says where its texts are",
            "It was not finished, or another tool made it: import it where the files themselves are",
        )
    space = sync.space_of(sync.note_of(transfer), (), expected)
    refused = list(found.refused)
    placed: list[Member] = []
    chunks = 0
    with store.writing():
        artifacts = _read_artifacts(transfer, found.artifacts, space, refused, report)
        for batch in in_batches(((item, len(item.entry.chunks)) for item in artifacts), WRITE_CHUNKS, WRITE_CHUNKS):
            store.write([item.entry for item in batch], space)
            digests = [chunk.digest for item in batch for chunk in item.entry.chunks]
            store.add_vectors(space, digests, np.concatenate([item.vectors for item in batch]))
            placed += [member for item in batch for member in item.members]
            chunks += len(digests)
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


def _members(source: Source, store: VectorStore, outgoing: Outgoing) -> MembersFile:
    locations = _locations(store, outgoing)
    artifacts: dict[str, ExportedArtifact] = {}
    for some in slices(sorted(locations), sync.BATCH_ARTIFACTS):
        for artifact, chunks in store.embedded_chunks(outgoing.space, some).items():
            if chunks and all(item.vector is not None for item in chunks):
                at = sorted(locations[artifact], key=lambda item: (item.path or "", item.part, item.kind))
                passages = [replace(item.chunk, text="") for item in chunks]
                artifacts[artifact] = ExportedArtifact(artifact, at, passages, chunks[0].media)
    return MembersFile(source.type, source.project, outgoing.revision, artifacts)


def _locations(store: VectorStore, outgoing: Outgoing) -> dict[str, set[Location]]:
    """The places of each artifact, as far as everybody may know them: untracked copies of it stay private."""
    found: dict[str, set[Location]] = {}
    hidden: dict[str, set[Location]] = {}
    paths = outgoing.paths
    for member in members_of(store):
        if member.hash in outgoing.hashes:
            known = paths is None or member.path is None or member.path in paths
            side = found if known else hidden
            side.setdefault(member.hash, set()).add(Location(member.path, member.kind, member.part))
    for path, artifact in (paths or {}).items():
        # Moved in the working tree alone: it is where it was.
        if artifact in hidden and artifact not in found:
            found[artifact] = {replace(location, path=path) for location in hidden[artifact]}
    return found


def _read_artifacts(
    transfer: TransferStore,
    artifacts: Mapping[str, ExportedArtifact],
    space: Space,
    refused: list[Skipped],
    report: Report,
) -> Iterator[ImportedArtifact]:
    """Every artifact that has a blob; ``refused`` takes the bad ones."""
    done = 0
    for name, data in transfer.read_all():
        exported = artifacts.get(blob.hash_of(name) or "")
        if exported is None:
            continue
        done += 1
        if isinstance(data, Skipped):
            refused.append(data)
            continue
        try:
            yield _to_artifact(exported, data, space)
        except BlobError as error:
            refused.append(Skipped(name, SkipReason.BROKEN, error.what))
        report(Progress("writing", done, len(artifacts)))


def _to_artifact(exported: ExportedArtifact, data: bytes, space: Space) -> ImportedArtifact:
    records = sorted(
        (record for record in blob.decode(data, space.dim) if record.project == ""),
        key=lambda record: record.seq,
    )
    if not records or [record.seq for record in records] != [chunk.seq for chunk in exported.chunks]:
        raise BlobError(f"its passages are not those that {members.NAME} lists")
    chunks = [replace(chunk, text=record.text) for chunk, record in zip(exported.chunks, records, strict=True)]
    first = exported.locations[0]
    entry = Entry(
        Ref(exported.hash, first.kind, first.path, exported.hash),
        RECIPE,
        [Digested(chunk, digest(chunk)) for chunk in chunks],
        media=exported.media,
    )
    placed = [_member(exported.hash, location) for location in exported.locations]
    return ImportedArtifact(entry, placed, np.stack([record.vector for record in records]))


def _member(artifact: str, location: Location) -> Member:
    if location.kind is Kind.COMMIT:
        corpus, builder = DOCS, COMMITS
    elif location.part is Part.WHOLE:
        corpus = builder = corpus_of(location.kind)
    else:
        corpus, builder = ("code" if location.kind is Kind.CODE else DOCS), "code"
    return Member(corpus, builder, artifact, location.part, location.path, location.kind)

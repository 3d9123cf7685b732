"""A Fossil repository as a source: files at the tip of a branch, wiki, technotes, tickets and forum posts.

Everything is read in this process, and every content is checked against its hash. No ``fossil`` program is needed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from outcrop.core.batches import in_batches, slices
from outcrop.core.model import Artifact, CommitListing, FileState, Kind, Listing, Ref, Skipped, SkipReason
from outcrop.core.protocols import Historied, Withholding, override
from outcrop.errors import ArtifactUnreadable, NotARepository
from outcrop.sources.file_state import refuse_size
from outcrop.sources.fossil import listing
from outcrop.sources.fossil.capabilities import ReportWriter, report_writers
from outcrop.sources.fossil.listing import PublicArtifacts, Structured, read_public
from outcrop.sources.ignore import PathFilter, Rules, compile_globs, compile_rules
from outcrop.sources.options import Options
from outcrop.sources.paths import IGNORE_FILE, to_slug, to_text
from outcrop.sources.selection import Collector, FileSource
from outcrop.vcs.fossil import (
    FossilBlob,
    FossilLocation,
    find_blobs,
    is_repository,
    open_fossil,
    read_content,
    read_setting,
)
from outcrop.vcs.fossil_artifacts import FileCard

# Contents of files read before the first of them is handed on.
_SLICE_BYTES = 8 << 20
_SLICE = 1024

# Pages and posts are judged as prose, whatever their names end in: their paragraphs are single long lines.
_PROSE_SUFFIX = ".md"


class FossilSource(FileSource, Withholding, Historied):
    """Implements :class:`outcrop.core.protocols.Source`. Without a branch, the files are of the main branch."""

    type = "fossil"

    def __init__(self, location: FossilLocation, options: Options | None = None, branch: str | None = None) -> None:
        super().__init__(options)
        if not location.repository.is_file() or not is_repository(location.repository):
            raise NotARepository(
                f"{location.repository} is not a Fossil repository", "Name a repository file or a folder of a checkout"
            )
        self._location = location
        self._path = location.repository
        self._branch = branch
        self._settings = hashlib.sha256(repr((self._options, branch)).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    @override
    def root(self) -> Path:
        return self._location.checkout or self._path.parent

    @override
    @cached_property
    def project(self) -> str:
        with open_fossil(self._path) as database:
            return to_slug(read_setting(database, "project-name") or self._path.stem)

    @override
    def store_path(self) -> Path:
        return self._path

    @override
    def revision(self, seen: Mapping[str, FileState]) -> str:
        with open_fossil(self._path) as database:
            return self._revision(self._public(database))

    @override
    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        with open_fossil(self._path) as database:
            public = self._public(database)
            files = self._collect(database, public.tip)
        found = files.listing(self._revision(public), self._read_files)
        refs = [*found.refs, *public.refs()]
        refs.sort(key=lambda ref: (ref.path is None, ref.path or "", ref.kind, ref.hash))
        return replace(found, refs=refs)

    @override
    def _read_files(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        public: PublicArtifacts | None = None
        for some in in_batches([(ref, ref.size or 4096) for ref in refs], _SLICE_BYTES, _SLICE):
            with open_fossil(self._path) as database:
                if public is None and any(map(_is_structured, some)):
                    public = self._public(database)
                blobs = find_blobs(database, [ref.hash for ref in some])
                outcomes = [self._read(database, ref, blobs.get(ref.hash), public) for ref in some]
            yield from outcomes

    @property
    @override
    def has_history(self) -> bool:
        return self._options.history != 0

    @override
    def commits(self, revision: str) -> CommitListing:
        with open_fossil(self._path) as database:
            public = self._public(database)
        return CommitListing([Ref(uuid, Kind.COMMIT, None, version) for uuid, version in public.checkins.items()])

    @override
    def _read_commits(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        for some in slices(refs, _SLICE):
            with open_fossil(self._path) as database:
                found = [listing.read_checkin(database, ref) for ref in some]
            for ref, read in zip(some, found, strict=True):
                yield Skipped(ref.hash, SkipReason.VANISHED) if read is None else self._selection.to_commit(*read)

    @override
    def withheld(self, versions: Mapping[str, str]) -> frozenset[str]:
        with open_fossil(self._path) as database:
            return listing.withheld(database, versions)

    @override
    def foreign_artifacts(self, hashes: Collection[str]) -> frozenset[str]:
        with open_fossil(self._path) as database:
            return listing.foreign_artifacts(database, hashes)

    def report_writers(self, kinds: Collection[Kind]) -> list[ReportWriter]:
        with open_fossil(self._path) as database:
            return report_writers(database, kinds)

    def _public(self, database: sqlite3.Connection) -> PublicArtifacts:
        return read_public(database, self._branch, self._options.history)

    def _revision(self, public: PublicArtifacts) -> str:
        rest = hashlib.sha256(f"{public.digest}\n{self._settings}".encode()).hexdigest()[:16]
        return f"{public.tip.uuid if public.tip else ''}+{rest}"

    def _collect(self, database: sqlite3.Connection, tip: Structured | None) -> Collector:
        collector = Collector(self._selection)
        files = listing.tip_files(database, tip) if tip else []
        blobs = find_blobs(database, [file.uuid for file in files])
        keep = PathFilter(_rules(database, files, blobs), compile_globs(self._options.exclude))
        for file in files:
            name, blob = to_text(file.name), blobs.get(file.uuid)
            link = Skipped(name, SkipReason.SYMLINK) if file.link else None
            path = collector.accept(file.name, keep, link, _refuse_blob(name, blob, self._selection.limit(name)))
            if path is not None and blob is not None:
                collector.add(path, file.uuid, blob.size)
        return collector

    def _read(
        self, database: sqlite3.Connection, ref: Ref, blob: FossilBlob | None, public: PublicArtifacts | None
    ) -> Artifact | Skipped:
        name = ref.path or ref.hash
        try:
            if public is None or not _is_structured(ref):
                refusal = _refuse_blob(name, blob, self._selection.limit(name))
                if refusal is not None or blob is None:
                    return refusal or Skipped(name, SkipReason.VANISHED)
                return self._selection.to_artifact(ref, name, read_content(database, ref.hash, blob.rid))
            found = listing.read_structured(database, ref, public)
        except ArtifactUnreadable as error:
            return Skipped(name, SkipReason.UNREADABLE, error.what, ref.hash)
        if found is None:
            return Skipped(name, SkipReason.VANISHED)
        ref, data = found
        oversize = refuse_size(name, len(data), self._options.max_bytes)
        if oversize:
            return oversize
        outcome = self._selection.to_artifact(ref, name + _PROSE_SUFFIX, data)
        return replace(outcome, path=name) if isinstance(outcome, Skipped) else outcome


def _is_structured(ref: Ref) -> bool:
    # Only of a file is the size known before it is read.
    return ref.size is None


def _refuse_blob(path: str, blob: FossilBlob | None, limit: int) -> Skipped | None:
    if blob is None or blob.size < 0:
        return Skipped(path, SkipReason.UNREADABLE, "its content never arrived in this copy of the repository")
    if blob.private or blob.shunned:
        return Skipped(path, SkipReason.EXCLUDED, "private" if blob.private else "shunned")
    return refuse_size(path, blob.size, limit)


def _rules(
    database: sqlite3.Connection, files: Sequence[FileCard], blobs: Mapping[str, FossilBlob]
) -> Mapping[bytes, Rules]:
    """The check-in's own ignore files, by folder."""
    rules: dict[bytes, Rules] = {}
    for file in files:
        folder, _, name = file.name.rpartition(b"/")
        blob = blobs.get(file.uuid)
        if name == IGNORE_FILE and blob is not None and not file.link:
            try:
                rules[folder] = compile_rules(read_content(database, file.uuid, blob.rid))
            except ArtifactUnreadable:
                continue
    return rules

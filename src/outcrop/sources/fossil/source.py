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

from outcrop.core.model import Artifact, FileState, Kind, Listing, Ref, Skipped, SkipReason
from outcrop.core.protocols import Guard, Source, override
from outcrop.errors import ArtifactUnreadable, NotARepository
from outcrop.sources import media
from outcrop.sources.file_state import oversize
from outcrop.sources.fossil.capabilities import ReportWriter, report_writers
from outcrop.sources.fossil.listing import (
    Snapshot,
    Stored,
    page_bytes,
    post_bytes,
    take,
    technote_bytes,
    ticket_bytes,
    ticket_version,
    tip_files,
    unseen,
    withheld,
)
from outcrop.sources.ignore import PathFilter, Rules, compile_globs, compile_rules
from outcrop.sources.options import Options
from outcrop.sources.paths import to_slug, to_text
from outcrop.sources.selection import IGNORE_FILE, Selection
from outcrop.vcs.fossil import Blob, FossilLocation, content, is_repository, look_up, opened, setting
from outcrop.vcs.fossil_artifacts import FileCard

# Contents of files read before the first of them is handed on.
_SLICE_BYTES = 8 << 20

# Pages and posts are judged as prose, whatever their names end in: their paragraphs are single long lines.
_PROSE_SUFFIX = ".md"


class FossilSource(Source, Guard):
    """Implements :class:`outcrop.core.protocols.Source`.

    Args:
        location: Where the repository is.
        options: The user's settings.
        branch: Whose tip gives the files; None for the repository's main branch.
    """

    def __init__(self, location: FossilLocation, options: Options | None = None, branch: str | None = None) -> None:
        if not location.repository.is_file() or not is_repository(location.repository):
            raise NotARepository(
                f"{location.repository} is not a Fossil repository", "Name a repository file or a folder of a checkout"
            )
        self._location = location
        self._path = location.repository
        self._options = options or Options()
        self._branch = branch
        self._selection = Selection(self._options)
        self._settings = hashlib.sha256(repr((self._options, branch)).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    @override
    def type(self) -> str:
        return "fossil"

    @property
    @override
    def root(self) -> Path:
        return self._location.checkout or self._path.parent

    @override
    @cached_property
    def project(self) -> str:
        with opened(self._path) as database:
            return to_slug(setting(database, "project-name") or self._path.stem)

    @property
    @override
    def worktree(self) -> str:
        return ""

    @property
    @override
    def rules(self) -> str:
        return self._options.rules

    def with_options(self, options: Options) -> FossilSource:
        """The same repository and branch under other settings."""
        return FossilSource(self._location, options, self._branch)

    @override
    def worktrees(self) -> frozenset[str]:
        return frozenset({""})

    @override
    def store_path(self) -> Path:
        return self._path

    @override
    def revision(self, seen: Mapping[str, FileState]) -> str:
        with opened(self._path) as database:
            return self._revision(take(database, self._branch))

    @override
    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        with opened(self._path) as database:
            snapshot = take(database, self._branch)
            refs, skipped = self._files(database, snapshot.tip)
        refs, skipped = media.resolve(refs, skipped, self._read_all)
        refs += [Ref(item.uuid, Kind.WIKI, to_text(name.encode()), item.uuid) for name, item in snapshot.wiki.items()]
        refs += [Ref(item.uuid, Kind.TECHNOTE, id, item.uuid) for id, item in snapshot.technotes.items()]
        refs += [Ref(id, Kind.TICKET, None, ticket_version(changes)) for id, changes in snapshot.tickets.items()]
        refs += [Ref(uuid, Kind.FORUM, None, post.version) for uuid, post in snapshot.posts.items()]
        refs.sort(key=lambda ref: (ref.path is None, ref.path or "", ref.kind, ref.hash))
        return Listing(self._revision(snapshot), refs, skipped)

    @override
    def read(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        return media.assembled(refs, self._read_all)

    def _read_all(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        snapshot: Snapshot | None = None
        for first, stop in _slices(refs):
            some = refs[first:stop]
            with opened(self._path) as database:
                if snapshot is None and any(map(_is_carried, some)):
                    snapshot = take(database, self._branch)
                blobs = look_up(database, [ref.hash for ref in some])
                outcomes = [self._read(database, ref, blobs.get(ref.hash), snapshot) for ref in some]
            yield from outcomes

    @override
    def withheld(self, versions: Mapping[str, str]) -> frozenset[str]:
        with opened(self._path) as database:
            return withheld(database, versions)

    @override
    def foreign_artifacts(self, hashes: Collection[str]) -> frozenset[str]:
        with opened(self._path) as database:
            return unseen(database, hashes)

    def report_writers(self, kinds: Collection[Kind]) -> list[ReportWriter]:
        """Users who can read the index through ticket reports, though Fossil withholds one of these kinds from them."""
        with opened(self._path) as database:
            return report_writers(database, kinds)

    def _revision(self, snapshot: Snapshot) -> str:
        rest = hashlib.sha256(f"{snapshot.digest}\n{self._settings}".encode()).hexdigest()[:16]
        return f"{snapshot.tip.uuid if snapshot.tip else ''}+{rest}"

    def _files(self, database: sqlite3.Connection, tip: Stored | None) -> tuple[list[Ref], list[Skipped]]:
        if tip is None:
            return [], []
        files = tip_files(database, tip)
        blobs = look_up(database, [file.uuid for file in files])
        keep = PathFilter(_rules(database, files, blobs), compile_globs(self._options.exclude))
        refs: list[Ref] = []
        skipped: dict[str, Skipped] = {}
        for file in files:
            path = to_text(file.name)
            blob = blobs.get(file.uuid)
            refusal = self._refuse(file, path, blob, keep)
            if refusal is not None:
                skipped[refusal.path] = refusal
            elif blob is not None:
                refs.append(Ref(file.uuid, self._selection.kind(path), path, file.uuid, blob.size))
        return refs, sorted(skipped.values(), key=lambda item: item.path)

    def _refuse(self, file: FileCard, path: str, blob: Blob | None, keep: PathFilter) -> Skipped | None:
        out = keep.ignored_by(file.name)
        if out is not None:
            return Skipped(to_text(out), SkipReason.EXCLUDED, "by a setting or .outcropignore")
        if file.link:
            return Skipped(path, SkipReason.SYMLINK)
        return self._selection.refuse_name(path) or _refuse_blob(path, blob, self._selection.limit(path))

    def _read(
        self, database: sqlite3.Connection, ref: Ref, blob: Blob | None, snapshot: Snapshot | None
    ) -> Artifact | Skipped:
        name = ref.path or ref.hash
        try:
            if snapshot is None or not _is_carried(ref):
                refusal = _refuse_blob(name, blob, self._selection.limit(name))
                if refusal is not None or blob is None:
                    return refusal or Skipped(name, SkipReason.VANISHED)
                return self._selection.to_artifact(ref, name, content(database, ref.hash, blob.rid))
            found = _carried(database, ref, snapshot)
        except ArtifactUnreadable as error:
            return Skipped(name, SkipReason.UNREADABLE, error.what, ref.hash)
        if found is None:
            return Skipped(name, SkipReason.VANISHED)
        ref, data = found
        if len(data) > self._options.max_bytes:
            return oversize(name, len(data), self._options.max_bytes)
        outcome = self._selection.to_artifact(ref, name + _PROSE_SUFFIX, data)
        return replace(outcome, path=name) if isinstance(outcome, Skipped) else outcome


def _is_carried(ref: Ref) -> bool:
    """Whether a structured artifact carries the text: only of a file is the size known before it is read."""
    return ref.size is None


def _carried(database: sqlite3.Connection, ref: Ref, snapshot: Snapshot) -> tuple[Ref, bytes] | None:
    """A page, ticket or post as it is now, with its true version; None where it is not public any more."""
    if ref.kind is Kind.TICKET:
        changes = snapshot.tickets.get(ref.hash)
        if changes is None:
            return None
        return replace(ref, version=ticket_version(changes)), ticket_bytes(database, changes)
    if ref.kind is Kind.FORUM:
        post = snapshot.posts.get(ref.hash)
        return None if post is None else (replace(ref, version=post.version), post_bytes(database, post))
    page = snapshot.pages.get(ref.hash)
    if page is None:
        return None
    return ref, (page_bytes if ref.kind is Kind.WIKI else technote_bytes)(database, page)


def _refuse_blob(path: str, blob: Blob | None, limit: int) -> Skipped | None:
    """Why the content of a file cannot or must not be read, or None."""
    if blob is None or blob.size < 0:
        return Skipped(path, SkipReason.UNREADABLE, "its content never arrived in this copy of the repository")
    if blob.private or blob.shunned:
        return Skipped(path, SkipReason.EXCLUDED, "private" if blob.private else "shunned")
    return oversize(path, blob.size, limit) if blob.size > limit else None


def _rules(database: sqlite3.Connection, files: Sequence[FileCard], blobs: Mapping[str, Blob]) -> Mapping[bytes, Rules]:
    """The check-in's own ignore files, by folder."""
    rules: dict[bytes, Rules] = {}
    for file in files:
        folder, _, name = file.name.rpartition(b"/")
        blob = blobs.get(file.uuid)
        if name == IGNORE_FILE and blob is not None and not file.link:
            try:
                rules[folder] = compile_rules(content(database, file.uuid, blob.rid))
            except ArtifactUnreadable:
                continue
    return rules


def _slices(refs: Sequence[Ref]) -> Iterator[tuple[int, int]]:
    """Where to cut the refs so that no slice holds much more than ``_SLICE_BYTES``."""
    first, size = 0, 0
    for place, ref in enumerate(refs):
        if place > first and (size >= _SLICE_BYTES or place - first >= 1024):
            yield first, place
            first, size = place, 0
        size += ref.size or 4096
    if first < len(refs):
        yield first, len(refs)

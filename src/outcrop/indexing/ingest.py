"""Updating a view's passages, without a model: list, read what is new, cut, store, drop what is gone.

Everything is stored before anything is embedded, so keywords and the vectors made so far answer while a first build
runs, and the next build continues one that was stopped by embedding what lacks a vector.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from outcrop import chunking
from outcrop.chunking.workers import pool
from outcrop.chunking.workers.pool import Cut, Text
from outcrop.core.batches import WRITE_CHUNKS
from outcrop.core.model import (
    Artifact,
    Chunk,
    CommitListing,
    FileState,
    Kind,
    Listing,
    MediaNote,
    Part,
    Ref,
    Skipped,
    SkipReason,
    Space,
)
from outcrop.core.names import COMMITS
from outcrop.core.protocols import ChunkWriter, Historied, Source, override
from outcrop.core.reports import CutByLines, Progress
from outcrop.core.rows import Digested, Entry, Member, StoredArtifact, View
from outcrop.errors import FormatError, WorkerUnavailable
from outcrop.indexing.scope import Scope
from outcrop.text import decoding

# Text that is written at a time: large transactions in bounded memory.
WRITE_CHARACTERS = 16_000_000

# Seconds of cutting after which it is written too: texts that stop their parsers are remembered by a build that is
# stopped.
WRITE_SECONDS = 10.0

# Reasons that hold for one build only: they do not depend on the bytes.
TRANSIENT = frozenset({SkipReason.VANISHED, SkipReason.UNREADABLE})

# Ends the revision of a build during which the source changed; no source has such a revision.
UNSURE = "?"

# Of a notebook without any cell that is code or prose.
ONLY_RAW = "raw cells only, which --raw-cells takes"

# The two corpora that every index has, with everything there is.
WHOLE = Scope()

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What the store holds now."""

    listing: Listing
    placed: Sequence[Ref]  # The refs of what is indexed, as they were read
    skipped: Sequence[Skipped]
    cut_by_lines: Sequence[CutByLines]
    added: frozenset[str]  # Hashes of artifacts that are new or were cut again
    reused: int  # New chunks whose vector was already there
    removed: int  # Artifacts that are gone from this build's corpora
    history_note: str  # Why there are fewer commits than were asked for; empty for no such reason


class Cutter:
    """Decides what has to be cut again, and cuts it; ``rules`` as in ``Source.rules``."""

    def __init__(self, rules: str) -> None:
        self._rules = rules

    def outdated(self, refs: Iterable[Ref], known: Mapping[str, StoredArtifact]) -> list[Ref]:
        """One ref per artifact that the store does not have, or has in another form."""
        first: dict[str, Ref] = {}
        for ref in refs:
            first.setdefault(ref.hash, ref)
        return [ref for ref in first.values() if not self.is_current(ref, known.get(ref.hash))]

    def is_current(self, ref: Ref, known: StoredArtifact | None) -> bool:
        if known is None or known.version != ref.version:
            return False
        return known.recipe == (self.recipe(ref) if known.skip is None else self._refusal(ref))

    def entries(
        self, refs: Sequence[Ref], outcomes: Iterable[Artifact | Skipped]
    ) -> Generator[tuple[Ref, Entry | Skipped]]:
        """Cut what was read for these refs; ``Skipped`` where the reason is not to be stored."""
        read = zip(refs, outcomes, strict=True)
        for (ref, outcome), cut in pool.cut_all((each, self._text(each[1])) for each in read):
            yield ref, self._entry(ref, outcome, cut)

    def _text(self, outcome: Artifact | Skipped) -> Text | None:
        if isinstance(outcome, Skipped) or self.given(outcome) is not None:
            return None
        return Text(outcome.text, outcome.ref.path, outcome.ref.kind)

    def _entry(self, ref: Ref, outcome: Artifact | Skipped, cut: Cut | None) -> Entry | Skipped:
        if isinstance(outcome, Artifact):
            ref = outcome.ref
            cut = cut or Cut(self.given(outcome) or ())
            if cut.error is not None:
                return Entry(ref, self._refusal(ref), (), SkipReason.BROKEN, cut.error.what)
            chunks = [Digested(chunk, chunking.digest(chunk)) for chunk in cut.chunks]
            return Entry(ref, self.recipe(ref), chunks, detail=cut.by_lines, media=_media(outcome))
        if outcome.reason in TRANSIENT:
            return outcome
        return Entry(ref, self._refusal(ref), (), outcome.reason, outcome.detail)

    def given(self, _artifact: Artifact) -> Sequence[Chunk] | None:
        """The chunks of an artifact that is not cut here."""
        return None

    def recipe(self, ref: Ref) -> str:
        """What decides whether an artifact is read and how it is cut: under another recipe it is cut again."""
        return f"{chunking.VERSION}/{decoding.VERSION}/{chunking.format_of(ref.path, ref.kind)}/{self._rules}"

    def _refusal(self, ref: Ref) -> str:
        # The path can be why an artifact is left out.
        return f"{self.recipe(ref)}/{ref.path}"


class LineCutter(Cutter):
    """Cuts everything by lines, in this process."""

    @override
    def given(self, artifact: Artifact) -> Sequence[Chunk]:
        # Imported here: every other build leaves cutting to other processes.
        from outcrop.chunking.artifact import chunk_by_lines

        try:
            return chunk_by_lines(artifact.text, artifact.ref.path, artifact.ref.kind)
        except FormatError:
            return []


def ingest(
    source: Source,
    store: ChunkWriter,
    space: Space,
    report: Report,
    cutter: Cutter,
    scope: Scope = WHOLE,
    meanwhile: Callable[[], None] = lambda: None,
) -> Ingested:
    """Make this view of the store hold and search what its source holds; the caller has the write lock.

    ``meanwhile`` is called when there is something to cut, which processes that only start will do.
    """
    report(Progress("listing", 0, 0))
    known = dict(store.known())
    if not known:
        pool.prepare()
    listing = source.artifacts(store.seen())
    refs, left_out = scope.choose(listing)
    builders = scope.builders
    history = CommitListing()
    kept = _kept_commits(store, listing, known, cutter) if COMMITS in builders else None
    if kept is not None:
        builders = tuple(builder for builder in builders if builder != COMMITS)
    elif COMMITS in builders:
        history = commits_of(source, listing)
        refs = [*refs, *history.refs]
    outdated = cutter.outdated(refs, known)
    if outdated:
        if any(ref.kind is not Kind.COMMIT for ref in outdated):
            pool.prepare()
        meanwhile()
    batch: list[Entry] = []
    transient: list[Skipped] = []
    reread: dict[tuple[str, str | None], Ref] = {}
    added: set[str] = set()
    gathered = characters = reused = chunks = 0
    written_at = time.monotonic()
    with closing(cutter.entries(outdated, source.read(outdated))) as entries:
        for done, (ref, entry) in enumerate(entries, start=1):
            is_late = time.monotonic() - written_at > WRITE_SECONDS
            if gathered >= WRITE_CHARACTERS or chunks >= WRITE_CHUNKS or (batch and is_late):
                reused += store.write(batch, space).reused
                batch, gathered, chunks, written_at = [], 0, 0, time.monotonic()
            if isinstance(entry, Skipped):
                transient.append(entry)
            else:
                if entry.ref.hash != ref.hash:
                    reread[ref.hash, ref.path] = entry.ref
                known[entry.ref.hash] = known_of(entry)
                if entry.skip is None and scope.takes(known[entry.ref.hash]):
                    added.add(entry.ref.hash)
                size = sum(len(item.chunk.text) for item in entry.chunks)
                batch.append(entry)
                gathered += size
                characters += size
                chunks += len(entry.chunks)
            report(Progress("chunking", done, len(outdated), characters))
    if reread or any(item.reason is SkipReason.VANISHED for item in transient):
        # What was read is not what was listed, and the source may go back to how it was listed: only another build can
        # tell the revision.
        listing = replace(listing, revision=f"{listing.revision}{UNSURE}")
    if reread:
        refs = [reread.get((ref.hash, ref.path), ref) for ref in refs]
    # What is left out of the commits stands under its hash, as it has no path.
    as_before = () if kept is None else (item for item in store.skipped() if item.path == item.hash)
    skipped = sorted({*left_out, *transient, *refused(refs, known, scope), *as_before}, key=lambda item: item.path)
    readable = [ref for ref in refs if ref.hash in known and known[ref.hash].skip is None]
    placed = [ref for ref in readable if scope.takes(known[ref.hash])]
    members = [member for ref in placed for member in scope.members(ref, known[ref.hash])]
    seen = View(builders, members, listing.seen, skipped, source.worktrees())
    if scope.corpus is None:
        written = store.write(batch, space, seen)
        removed = written.dropped.artifacts
    else:
        before = store.members(scope.corpus)
        retained = scope.kept(before)
        # What other builds left out is still left out.
        others = [item for item in store.skipped() if not scope.names(item.path)]
        written = store.write(batch, space, replace(seen, members=[*members, *retained], skipped=[*skipped, *others]))
        skipped += scope.unlisted(refs, skipped)
        now = {member.hash for member in (*members, *retained)}
        there = {member.hash for member in before}
        removed = len(there - now)
        added |= {member.hash for member in members} - there
    placed = [*placed, *(kept or ())]
    by_lines = cut_by_lines(placed, known)
    reused += written.reused
    return Ingested(listing, placed, skipped, by_lines, frozenset(added), reused, removed, history.note)


def _kept_commits(
    store: ChunkWriter, listing: Listing, known: Mapping[str, StoredArtifact], cutter: Cutter
) -> Sequence[Ref] | None:
    """The commits that are stored, where they are those of the listing: a revision's commits do not change."""
    if store.revisions().get(COMMITS) != listing.revision:
        return None
    kept = [
        Ref(each.hash, each.kind, None, known[each.hash].version)
        for each in store.members(COMMITS)
        if each.hash in known
    ]
    recipe = cutter.recipe(kept[0]) if kept else ""
    return kept if all(known[ref.hash].recipe == recipe for ref in kept) else None


def commits_of(source: Source, listing: Listing) -> CommitListing:
    """The commits that belong to a listing; none where the source has no history."""
    return source.commits(listing.revision) if isinstance(source, Historied) else CommitListing()


def list_all(source: Source, seen: Mapping[str, FileState]) -> Listing:
    """Everything that a build of the two corpora that every index has would read."""
    listing = source.artifacts(seen)
    return replace(listing, refs=[*listing.refs, *commits_of(source, listing).refs])


def store_some(source: Source, store: ChunkWriter, refs: Sequence[Ref], scopes: Sequence[Scope]) -> list[Member]:
    """Read, cut and store just these artifacts; returns their members in the default corpora and in these scopes."""
    try:
        entries = _entries(source, refs, Cutter(source.rules))
    except WorkerUnavailable:
        # Who asks gets an answer, if one without the structure of code.
        entries = _entries(source, refs, LineCutter(source.rules))
    store.write(list(entries.values()))
    return [
        member
        for ref in refs
        if ref.hash in entries
        for scope in (WHOLE, *scopes)
        if scope.names(ref.path or "")
        for member in scope.members(replace(ref, hash=entries[ref.hash].ref.hash), known_of(entries[ref.hash]))
    ]


def _entries(source: Source, refs: Sequence[Ref], cutter: Cutter) -> dict[str, Entry]:
    outdated = cutter.outdated(refs, {})
    cut = cutter.entries(outdated, source.read(outdated))
    return {ref.hash: entry for ref, entry in cut if isinstance(entry, Entry) and entry.skip is None}


def _media(artifact: Artifact) -> MediaNote | None:
    manifest, transcript = artifact.manifest, artifact.ref.transcript
    return None if manifest is None or transcript is None else MediaNote(manifest.uri, transcript.path or "")


def refused(refs: Iterable[Ref], known: Mapping[str, StoredArtifact], scope: Scope) -> Iterator[Skipped]:
    """What is left out for a stored reason, or because this build indexes no part of it."""
    for ref in refs:
        stored = known.get(ref.hash)
        if stored is None:
            continue
        if stored.skip is not None:
            yield Skipped(ref.path or ref.hash, stored.skip, stored.detail, ref.hash)
        elif not scope.takes(stored):
            # Listed with its hash, it stays stored; otherwise it would be dropped and read again.
            yield Skipped(ref.path or ref.hash, SkipReason.EXCLUDED, ONLY_RAW, ref.hash)


def cut_by_lines(refs: Iterable[Ref], known: Mapping[str, StoredArtifact]) -> list[CutByLines]:
    stored = ((ref, known[ref.hash]) for ref in refs)
    return [CutByLines(ref.path or ref.hash, each.detail) for ref, each in stored if each.detail]


def known_of(entry: Entry) -> StoredArtifact:
    parts = frozenset(item.chunk.part for item in entry.chunks) - {Part.WHOLE}
    return StoredArtifact(entry.ref.version, entry.recipe, entry.skip, entry.detail, parts or frozenset({Part.WHOLE}))

"""Updating a view's passages, without a model: list, read what is new, cut, store, drop what is gone.

Everything is stored before anything is embedded, so keywords and the vectors made so far answer while a first build
runs, and the next build continues one that was stopped by embedding what lacks a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from outcrop import chunking
from outcrop.core.batches import WRITE_CHUNKS
from outcrop.core.model import Artifact, Chunk, Listing, MediaNote, Part, Ref, Skipped, SkipReason, Space
from outcrop.core.protocols import ChunkWriter, Source
from outcrop.core.reports import Progress
from outcrop.core.rows import Digested, Entry, Member, StoredArtifact, View
from outcrop.errors import FormatError
from outcrop.indexing.scope import Scope
from outcrop.text import decoding

# Text that is written at a time: large transactions in bounded memory.
WRITE_CHARACTERS = 16_000_000

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
    added: frozenset[str]  # Hashes of artifacts that are new or were cut again
    reused: int  # New chunks whose vector was already there
    removed: int  # Artifacts that are gone from this build's corpora


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

    def entry(self, ref: Ref, outcome: Artifact | Skipped) -> Entry | Skipped:
        """Cut one artifact that was read; ``Skipped`` where the reason is not to be stored."""
        if isinstance(outcome, Artifact):
            ref = outcome.ref
            try:
                chunks = self.cut(outcome)
            except FormatError as error:
                return Entry(ref, self._refusal(ref), (), SkipReason.BROKEN, error.what)
            cut = [Digested(chunk, chunking.digest(chunk)) for chunk in chunks]
            return Entry(ref, self.recipe(ref), cut, media=_media(outcome))
        if outcome.reason in TRANSIENT:
            return outcome
        return Entry(ref, self._refusal(ref), (), outcome.reason, outcome.detail)

    def cut(self, artifact: Artifact) -> Sequence[Chunk]:
        return chunking.chunk(artifact.text, artifact.ref.path, artifact.ref.kind)

    def recipe(self, ref: Ref) -> str:
        """What decides whether an artifact is read and how it is cut: under another recipe it is cut again."""
        return f"{chunking.VERSION}/{decoding.VERSION}/{chunking.format_of(ref.path, ref.kind)}/{self._rules}"

    def _refusal(self, ref: Ref) -> str:
        # The path can be why an artifact is left out.
        return f"{self.recipe(ref)}/{ref.path}"


def ingest(
    source: Source, store: ChunkWriter, space: Space, report: Report, cutter: Cutter, scope: Scope = WHOLE
) -> Ingested:
    """Make this view of the store hold and search what its source holds; the caller has the write lock."""
    report(Progress("listing", 0, 0))
    listing = source.artifacts(store.seen())
    known = dict(store.known())
    refs, left_out = scope.choose(listing)
    outdated = cutter.outdated(refs, known)
    batch: list[Entry] = []
    transient: list[Skipped] = []
    reread: dict[tuple[str, str | None], Ref] = {}
    added: set[str] = set()
    gathered = characters = reused = chunks = 0
    for done, (ref, outcome) in enumerate(zip(outdated, source.read(outdated), strict=True), start=1):
        if gathered >= WRITE_CHARACTERS or chunks >= WRITE_CHUNKS:
            reused += store.write(batch, space).reused
            batch, gathered, chunks = [], 0, 0
        entry = cutter.entry(ref, outcome)
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
    skipped = sorted([*left_out, *transient, *refused(refs, known, scope)], key=lambda item: item.path)
    readable = [ref for ref in refs if ref.hash in known and known[ref.hash].skip is None]
    placed = [ref for ref in readable if scope.takes(known[ref.hash])]
    members = [member for ref in placed for member in scope.members(ref, known[ref.hash])]
    seen = View(scope.builders, members, listing.seen, skipped, source.worktrees())
    if scope.corpus is None:
        written = store.write(batch, space, seen)
        removed = written.dropped.artifacts
    else:
        before = store.members(scope.corpus)
        kept = scope.kept(before)
        # What other builds left out is still left out.
        others = [item for item in store.skipped() if not scope.names(item.path)]
        written = store.write(batch, space, replace(seen, members=[*members, *kept], skipped=[*skipped, *others]))
        skipped += scope.unlisted(refs, skipped)
        now = {member.hash for member in (*members, *kept)}
        there = {member.hash for member in before}
        removed = len(there - now)
        added |= {member.hash for member in members} - there
    return Ingested(listing, placed, skipped, frozenset(added), reused + written.reused, removed)


def store_some(source: Source, store: ChunkWriter, refs: Sequence[Ref], scopes: Sequence[Scope]) -> list[Member]:
    """Read, cut and store just these artifacts; returns their members in the default corpora and in these scopes."""
    cutter = Cutter(source.rules)
    outdated = cutter.outdated(refs, {})
    cut = {ref.hash: cutter.entry(ref, outcome) for ref, outcome in zip(outdated, source.read(outdated), strict=True)}
    entries = {key: entry for key, entry in cut.items() if isinstance(entry, Entry) and entry.skip is None}
    store.write(list(entries.values()))
    return [
        member
        for ref in refs
        if ref.hash in entries
        for scope in (WHOLE, *scopes)
        if scope.names(ref.path or "")
        for member in scope.members(replace(ref, hash=entries[ref.hash].ref.hash), known_of(entries[ref.hash]))
    ]


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


def known_of(entry: Entry) -> StoredArtifact:
    parts = frozenset(item.chunk.part for item in entry.chunks) - {Part.WHOLE}
    return StoredArtifact(entry.ref.version, entry.recipe, entry.skip, entry.detail, parts or frozenset({Part.WHOLE}))

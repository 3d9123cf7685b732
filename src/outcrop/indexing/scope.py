"""Corpora: which files a build reads, and which corpus each of their parts belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from outcrop.core.model import WITHOUT_FILES, Filter, Kind, Listing, Part, Ref, Skipped, SkipReason
from outcrop.core.names import COMMITS, DEFAULT_BUILDERS, check_corpus
from outcrop.core.rows import Member, StoredArtifact
from outcrop.errors import UsageError
from outcrop.text.globs import compile_patterns

# The corpus of every notebook's Markdown cells: in one ranking with code, two-line notes win unrelated questions.
DOCS = "docs"

CODE_KINDS = frozenset({Kind.CODE, Kind.API})

_RAW_ALONE = frozenset({Part.RAW})
_WILD = re.compile(r"[*?\[]")


def corpus_of(kind: Kind) -> str:
    return "code" if kind in CODE_KINDS else DOCS


@dataclass(frozen=True)
class Scope:
    """What one build reads."""

    corpus: str | None = None  # A custom corpus; None for the two that every index has
    paths: tuple[str, ...] = ()  # Files, folders and patterns (``notes/**/*.ipynb``) from the root, of a custom corpus
    prune: bool = True  # Whether to remove what an earlier build of this corpus added and the list no longer names
    raw_cells: bool = False  # Whether raw cells of notebooks are documents too

    @property
    def builders(self) -> tuple[str, ...]:
        return DEFAULT_BUILDERS if self.corpus is None else (self.corpus,)

    @property
    def filter(self) -> Filter:
        """What this build added; for the default one, everything but imported projects, records included."""
        return Filter(imported=False) if self.corpus is None else Filter(builders=(self.corpus,))

    def names(self, path: str) -> bool:
        return self.corpus is None or self._covers(path)

    def choose(self, listing: Listing) -> tuple[Sequence[Ref], Sequence[Skipped]]:
        """What of a listing this build reads, and what of it is left out."""
        if self.corpus is None:
            return listing.refs, listing.skipped
        refs = [ref for ref in listing.refs if ref.path and ref.kind not in WITHOUT_FILES and self._covers(ref.path)]
        skipped = [item for item in listing.skipped if self._covers(item.path)]
        return refs, skipped

    def unlisted(self, refs: Iterable[Ref], skipped: Iterable[Skipped]) -> list[Skipped]:
        """Entries of the list that name nothing: no error, since a file may have been deleted just now."""
        there = [*(ref.path or "" for ref in refs), *(item.path for item in skipped)]
        named = {above for path in there for above in _above(path)} | ({""} if there else set())
        return [
            Skipped(entry or ".", SkipReason.UNLISTED)
            for entry in self.paths
            if entry not in named and not (_WILD.search(entry) and any(map(_covering([entry]), there)))
        ]

    def takes(self, known: StoredArtifact) -> bool:
        return self.raw_cells or known.parts != _RAW_ALONE

    def members(self, ref: Ref, known: StoredArtifact) -> Iterator[Member]:
        """An artifact's parts with their corpora: a notebook's Markdown cells are documents of every index."""
        own = self.corpus
        for part in known.parts:
            if ref.kind is Kind.COMMIT:
                yield Member(DOCS, COMMITS, ref.hash, part, None, ref.kind)
            elif part is Part.WHOLE:
                corpus = own or corpus_of(ref.kind)
                yield Member(corpus, corpus, ref.hash, part, ref.path, ref.kind)
            elif part is Part.CODE:
                yield Member(own or "code", own or "code", ref.hash, part, ref.path, Kind.CODE)
            elif part is Part.DOC or self.raw_cells:
                yield Member(DOCS, own or "code", ref.hash, part, ref.path, Kind.DOC)

    def kept(self, before: Iterable[Member]) -> list[Member]:
        """What an earlier build added and this one keeps."""
        return [] if self.prune else [member for member in before if not self._covers(member.path or "")]

    @cached_property
    def _covers(self) -> Callable[[str], bool]:
        return _covering(self.paths)


def custom_scope(
    corpus: str, paths: Iterable[str | os.PathLike[str]], root: Path, prune: bool, raw_cells: bool
) -> Scope:
    """Its paths are absolute or from the root."""
    return Scope(
        check_corpus(corpus),
        tuple(dict.fromkeys(_from_root(os.fspath(path), root) for path in paths)),
        prune,
        raw_cells,
    )


def _from_root(path: str, root: Path) -> str:
    """A path or pattern as the listing writes paths; empty for the root itself."""
    whole = os.path.normpath(root / path)
    if whole != str(root) and not whole.startswith(str(root).rstrip(os.sep) + os.sep):
        raise UsageError(f"{path} is outside of {root}", "A corpus holds files of one repository or folder")
    relative = os.path.relpath(whole, root)
    return "" if relative == "." else relative.replace(os.sep, "/")


def _covering(entries: Sequence[str]) -> Callable[[str], bool]:
    """Whether any of these names a path: as itself, as a folder above it, or as a pattern from the root."""
    if "" in entries:
        return lambda path: True
    literal = frozenset(entries)
    matches = compile_patterns(f"/{entry}" for entry in entries if _WILD.search(entry))

    def covers(path: str) -> bool:
        return not literal.isdisjoint(_above(path)) or matches(path)

    return covers


def _above(path: str) -> Iterator[str]:
    return accumulate(path.split("/"), lambda whole, part: f"{whole}/{part}")

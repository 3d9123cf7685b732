"""A plain folder as a source: every text file that is not ignored, keyed by SHA3-256 of its bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from outcrop.core.model import Artifact, FileState, Listing, Ref, Skipped, SkipReason
from outcrop.core.protocols import override
from outcrop.errors import NotARepository, SourceError
from outcrop.sources.file_state import read_file, refuse_error
from outcrop.sources.ignore import NO_RULES, Levels, Rules, add_level, compile_globs, compile_rules, verdict
from outcrop.sources.options import Options
from outcrop.sources.paths import IGNORE_FILE, INTERNAL, to_slug, to_text
from outcrop.sources.selection import BY_RULE, DEFAULT_FOLDERS, Collector, FileSource
from outcrop.sources.store_place import checked_store
from outcrop.sources.watch_paths import WatchPaths

RULES_LIMIT = 1 << 20
# First bytes of a CACHEDIR.TAG file (https://bford.info/cachedir/).
_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"


def digest(data: bytes) -> str:
    """SHA3-256 in lower-case hex: the content address of a file in a folder."""
    return hashlib.sha3_256(data).hexdigest()


class FolderSource(FileSource):
    """Implements :class:`outcrop.core.protocols.Source`."""

    type = "folder"

    def __init__(self, root: Path, options: Options | None = None) -> None:
        super().__init__(options)
        self._root = root.resolve()
        if not self._root.is_dir():
            raise NotARepository(f"{root} is not a folder", "Name a folder or a repository")
        self._base = os.fsencode(self._root).rstrip(b"/") + b"/"
        settings = compile_globs(self._options.exclude)
        self._settings: Levels = ((0, settings),) if settings else ()

    @property
    @override
    def root(self) -> Path:
        return self._root

    @property
    @override
    def project(self) -> str:
        return to_slug(self._root.name)

    @override
    def store_path(self) -> Path:
        return checked_store(self._root / ".outcrop")

    def watch_paths(self) -> WatchPaths:
        entered: list[bytes] = []
        for _ in self._walk(Collector(self._selection), entered):
            pass
        return WatchPaths(frozenset(os.fsdecode((self._base + folder).rstrip(b"/") or b"/") for folder in entered))

    @override
    def revision(self, seen: Mapping[str, FileState]) -> str:
        return self._revision(self._collect(seen, thorough=False))

    @override
    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        files = self._collect(seen, thorough=True)
        return files.listing(self._revision(files), self._read_files)

    @override
    def _read_files(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        return (self._selection.read_disk(self._base, ref, digest) for ref in refs)

    def _collect(self, seen: Mapping[str, FileState], thorough: bool) -> Collector:
        files = Collector(self._selection)
        for path, name in self._walk(files):
            files.observed(path, self._selection.observe(name, path, seen.get(path), digest, thorough))
        return files

    def _revision(self, files: Collector) -> str:
        lines = sorted([f"{path}\0{item}\n" for path, item in files.items.items()])
        if self._options.mark:
            lines.append(f"\0settings\0{self._options.mark}\n")
        return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()[:16]

    def _walk(self, files: Collector, entered: list[bytes] | None = None) -> Iterator[tuple[str, bytes]]:
        """Path and name on disk of everything that rules let through but folders; ignored folders are not entered.

        ``entered`` takes the folders that were entered, from the root and with a slash at the end.
        """
        root = self._base
        fixed = len(self._settings)
        pending: list[tuple[bytes, str, Levels, Levels]] = [(b"", "", (), self._settings)]
        while pending:
            folder, prefix, git, own = pending.pop()
            try:
                with os.scandir(root + folder) as found:
                    entries = {entry.name: entry for entry in found}
            except OSError as error:
                if not folder:
                    raise SourceError(f"{self._root} cannot be read: {error.strerror}") from error
                files.skip(refuse_error(error, prefix.removesuffix("/")))
                continue
            generated = _generated_by(root + folder, entries) if folder else None
            if generated is not None:
                files.skip(Skipped(prefix.removesuffix("/"), SkipReason.EXCLUDED, generated))
                continue
            if entered is not None:
                entered.append(folder)
            for rules in _git_rules(root + folder, entries):
                git = add_level(git, 0, len(folder), rules)
            if IGNORE_FILE in entries:
                own = add_level(own, fixed, len(folder), _load_rules(root + folder + IGNORE_FILE))
            for name, entry in entries.items():
                if name in INTERNAL:
                    continue
                inside = folder + name
                is_folder = entry.is_dir(follow_symlinks=False)
                if git and verdict(git, inside, name, is_folder):
                    continue
                excluded = verdict(own, inside, name, is_folder) if own else None
                path = prefix + to_text(name)
                if excluded:
                    files.skip(Skipped(path, SkipReason.EXCLUDED, BY_RULE))
                elif not is_folder:
                    yield path, entry.path
                elif excluded is None and name in DEFAULT_FOLDERS:
                    files.skip(Skipped(path, SkipReason.EXCLUDED, "left out by default"))
                else:
                    pending.append((inside + b"/", path + "/", git, own))


def _load_rules(name: bytes) -> Rules:
    content = read_file(name, to_text(name), RULES_LIMIT)
    return NO_RULES if isinstance(content, Skipped) else compile_rules(content.data)


def _git_rules(folder: bytes, entries: Mapping[bytes, os.DirEntry[bytes]]) -> Iterator[Rules]:
    """A folder's rules for git, the weaker first."""
    if b".git" in entries and entries[b".git"].is_dir(follow_symlinks=False):
        yield _load_rules(folder + b".git/info/exclude")
    if b".gitignore" in entries:
        yield _load_rules(folder + b".gitignore")


def _generated_by(folder: bytes, entries: Mapping[bytes, os.DirEntry[bytes]]) -> str | None:
    """What program filled the folder, by the mark that the program leaves, or None."""
    if b"pyvenv.cfg" in entries:
        return "a Python virtual environment"
    if b"CACHEDIR.TAG" in entries:
        content = read_file(folder + b"CACHEDIR.TAG", "CACHEDIR.TAG", 1 << 16)
        if not isinstance(content, Skipped) and content.data.startswith(_CACHE_SIGNATURE):
            return "a cache (CACHEDIR.TAG)"
    return None

"""A plain folder as a source: every text file that is not ignored, keyed by SHA3-256 of its bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from outcrop.core.model import Artifact, FileState, Listing, Ref, Skipped, SkipReason
from outcrop.core.protocols import Source, override
from outcrop.errors import NotARepository, SourceError
from outcrop.sources import media
from outcrop.sources.file_state import (
    is_untouched,
    not_a_file,
    oversize,
    read_file,
    read_inside,
    reason_of,
    remember,
    time_of,
)
from outcrop.sources.ignore import NO_RULES, Levels, Rules, compile_globs, compile_rules, nearer, verdict
from outcrop.sources.options import Options
from outcrop.sources.paths import to_slug, to_text
from outcrop.sources.selection import DEFAULT_FOLDERS, IGNORE_FILE, INTERNAL, Selection
from outcrop.sources.watch_paths import Places

_RULES_LIMIT = 1 << 20
# First bytes of a CACHEDIR.TAG file (https://bford.info/cachedir/).
_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"

Candidate = tuple[str, bytes, os.stat_result]


def digest(data: bytes) -> str:
    """SHA3-256 in lower-case hex: the content address of a file in a folder."""
    return hashlib.sha3_256(data).hexdigest()


class FolderSource(Source):
    """Implements :class:`outcrop.core.protocols.Source`.

    Args:
        root: The folder.
        options: The user's settings.
    """

    def __init__(self, root: Path, options: Options | None = None) -> None:
        self._root = root.resolve()
        if not self._root.is_dir():
            raise NotARepository(f"{root} is not a folder", "Name a folder or a repository")
        self._base = os.fsencode(self._root).rstrip(b"/") + b"/"
        self._options = options or Options()
        self._selection = Selection(self._options)
        settings = compile_globs(self._options.exclude)
        self._settings: Levels = ((0, settings),) if settings else ()

    @property
    @override
    def type(self) -> str:
        return "folder"

    @property
    @override
    def root(self) -> Path:
        return self._root

    @property
    @override
    def project(self) -> str:
        return to_slug(self._root.name)

    @property
    @override
    def worktree(self) -> str:
        return ""

    @property
    @override
    def rules(self) -> str:
        return self._options.rules

    def with_options(self, options: Options) -> FolderSource:
        """The same folder under other settings."""
        return FolderSource(self._root, options)

    @override
    def worktrees(self) -> frozenset[str]:
        return frozenset({""})

    @override
    def store_path(self) -> Path:
        return self._root / ".outcrop" / "index.sqlite"

    def places(self) -> Places:
        """The folder and every folder in it that is entered."""
        entered: list[bytes] = []
        for _ in self._walk([], {}, entered):
            pass
        return Places(frozenset(os.fsdecode((self._base + folder).rstrip(b"/") or b"/") for folder in entered))

    @override
    def revision(self, seen: Mapping[str, FileState]) -> str:
        items: dict[str, str] = {}
        for path, name, status in self._walk([], seen):
            known = seen.get(path)
            if known is not None and is_untouched(known, status):
                items[path] = known.hash
                continue
            items[path] = _surrogate(status)
            if known is not None and known.size == status.st_size:
                outcome = read_file(name, path, self._selection.limit(path))
                if not isinstance(outcome, Skipped):
                    items[path] = digest(outcome[0])
        return _revision(items, self._options.mark)

    @override
    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        skipped: list[Skipped] = []
        refs: list[Ref] = []
        states: dict[str, FileState] = {}
        items: dict[str, str] = {}
        for path, name, status in self._walk(skipped, {}):
            state = seen.get(path)
            if state is None or not is_untouched(state, status):
                outcome = read_file(name, path, self._selection.limit(path))
                if isinstance(outcome, Skipped):
                    skipped.append(outcome)
                    if outcome.reason is SkipReason.UNREADABLE:
                        items[path] = _surrogate(status)
                    continue
                data, status, looked_ns = outcome
                state = remember(status, digest(data), looked_ns)
            states[path] = state
            items[path] = state.hash
            refs.append(Ref(state.hash, self._selection.kind(path), path, state.hash, state.size))
        refs.sort(key=lambda ref: ref.path or "")
        refs, skipped = media.resolve(refs, skipped, self._read_files)
        skipped.sort(key=lambda item: item.path)
        return Listing(_revision(items, self._options.mark), refs, skipped, states)

    @override
    def read(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        return media.assembled(refs, self._read_files)

    def _read_files(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        for ref in refs:
            path = ref.path or ""
            outcome = self._selection.refuse_name(path) or read_inside(self._base, path, self._selection.limit(path))
            if isinstance(outcome, Skipped):
                yield outcome
                continue
            data = outcome[0]
            hash = digest(data)
            if hash != ref.hash:
                ref = Ref(hash, ref.kind, ref.path, hash, len(data))
            yield self._selection.to_artifact(ref, path, data)

    def _walk(
        self, skipped: list[Skipped], accepted: Mapping[str, FileState], entered: list[bytes] | None = None
    ) -> Iterator[Candidate]:
        """Every regular file that rules and names let through. Ignored folders are not entered, links not followed.

        Args:
            skipped: Takes what is left out.
            accepted: Untouched files in here are not judged by their names again.
            entered: Takes the folders that were entered, from the root and with a slash at the end.
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
                skipped.append(reason_of(error, prefix.removesuffix("/")))
                continue
            left_out = _environment(root + folder, entries) if folder else None
            if left_out is not None:
                skipped.append(Skipped(prefix.removesuffix("/"), SkipReason.EXCLUDED, left_out))
                continue
            if entered is not None:
                entered.append(folder)
            for rules in _git_rules(root + folder, entries):
                git = nearer(git, 0, len(folder), rules)
            if IGNORE_FILE in entries:
                own = nearer(own, fixed, len(folder), _load_rules(root + folder + IGNORE_FILE))
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
                    skipped.append(Skipped(path, SkipReason.EXCLUDED, "by a setting or .outcropignore"))
                elif not is_folder:
                    status = self._look(path, entry, skipped, accepted.get(path))
                    if status is not None:
                        yield path, entry.path, status
                elif excluded is None and name in DEFAULT_FOLDERS:
                    skipped.append(Skipped(path, SkipReason.EXCLUDED, "left out by default"))
                else:
                    pending.append((inside + b"/", path + "/", git, own))

    def _look(
        self, path: str, entry: os.DirEntry[bytes], skipped: list[Skipped], known: FileState | None
    ) -> os.stat_result | None:
        """The status of a file that may be read, or None after noting why it may not."""
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            skipped.append(reason_of(error, path))
            return None
        if known is not None and is_untouched(known, status):
            return status
        refusal = not_a_file(status.st_mode, path) or self._selection.refuse_name(path)
        limit = self._selection.limit(path)
        if refusal is None and status.st_size > limit:
            refusal = oversize(path, status.st_size, limit)
        if refusal is None:
            return status
        skipped.append(refusal)
        return None


def _load_rules(name: bytes) -> Rules:
    """An ignore file's rules; none where it is not a readable regular file."""
    outcome = read_file(name, to_text(name), _RULES_LIMIT)
    return NO_RULES if isinstance(outcome, Skipped) else compile_rules(outcome[0])


def _git_rules(folder: bytes, entries: Mapping[bytes, os.DirEntry[bytes]]) -> Iterator[Rules]:
    """Rules for git that stand in a folder, the weaker first."""
    if b".git" in entries and entries[b".git"].is_dir(follow_symlinks=False):
        yield _load_rules(folder + b".git/info/exclude")
    if b".gitignore" in entries:
        yield _load_rules(folder + b".gitignore")


def _environment(folder: bytes, entries: Mapping[bytes, os.DirEntry[bytes]]) -> str | None:
    """What program filled the folder, by the marks that such programs leave, or None."""
    if b"pyvenv.cfg" in entries:
        return "a Python virtual environment"
    if b"CACHEDIR.TAG" in entries:
        outcome = read_file(folder + b"CACHEDIR.TAG", "CACHEDIR.TAG", 1 << 16)
        if not isinstance(outcome, Skipped) and outcome[0].startswith(_CACHE_SIGNATURE):
            return "a cache (CACHEDIR.TAG)"
    return None


def _surrogate(status: os.stat_result) -> str:
    """Stands for the hash of a file that is not read: equal only while the file stays as it is."""
    return f"?{status.st_size}-{time_of(status)}"


def _revision(items: Mapping[str, str], settings: str) -> str:
    lines = sorted([f"{path}\0{hash}\n" for path, hash in items.items()])
    if settings:
        lines.append(f"\0settings\0{settings}\n")
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()[:16]

"""The files of a git working tree: clean ones as git knows them, changed and untracked ones from disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from outcrop.core.model import FileState, Ref, Skipped, SkipReason
from outcrop.sources.file_state import is_untouched, not_a_file, oversize, read_file, reason_of, remember, time_of
from outcrop.sources.git.snapshot import Snapshot
from outcrop.sources.ignore import PathFilter, Rules, compile_globs, compile_rules
from outcrop.sources.options import Options
from outcrop.sources.paths import to_text
from outcrop.sources.selection import DEFAULT_FOLDERS, IGNORE_FILE, INTERNAL, Selection
from outcrop.vcs.git import blob_id

_IGNORE_FILES = re.compile(rb"\t((?:[^\0]*/)?\.outcropignore)\0")
_RULES_LIMIT = 1 << 20

GONE = "gone"


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """A file that git does not vouch for. ``path`` is relative to the outermost working tree."""

    path: bytes
    text: str
    tracked: bool
    object_format: str


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found: the item for the revision, the state behind a hash, or why there is none."""

    item: str | None
    state: FileState | None = None
    refusal: Skipped | None = None


class WorkingFiles:
    """One look at the files of a working tree and its submodules.

    Args:
        snapshots: As git sees them.
        options: The user's settings.
        selection: Decides about single files.
    """

    def __init__(self, snapshots: Sequence[Snapshot], options: Options, selection: Selection) -> None:
        self._snapshots = snapshots
        self._selection = selection
        self._base = os.fsencode(snapshots[0].repository.top).rstrip(b"/") + b"/"
        self._rule_hashes: dict[bytes, str] = {}
        rules = self._rules()
        strongest = compile_globs(options.exclude)
        self._keep_tracked = PathFilter(rules, strongest)
        self._keep_untracked = PathFilter(rules, strongest, DEFAULT_FOLDERS)

    def states(self, seen: Mapping[str, FileState]) -> dict[bytes, str]:
        """What is on disk at each path that git does not vouch for: a hash, or a word that stands for one.

        Reads a file only where its time moved and its size did not. Equal to the first part of :meth:`listing` when
        nothing changed since the listing that gave ``seen``.
        """
        items = self._rule_items()
        for file in self._on_disk({}):
            item = self._look(file, seen.get(file.text), False).item
            if item is not None:
                items[file.path] = item
        return items

    def listing(
        self, seen: Mapping[str, FileState]
    ) -> tuple[dict[bytes, str], list[Ref], list[Skipped], dict[str, FileState]]:
        """Everything: as in :meth:`states`, the refs, what is left out, and the states of files on disk."""
        items = self._rule_items()
        skipped: dict[str, Skipped] = {}
        refs = [self._ref(path, hash, None) for path, hash in self._clean(skipped)]
        states: dict[str, FileState] = {}
        for file in self._on_disk(skipped):
            look = self._look(file, seen.get(file.text), True)
            if look.item is not None:
                items[file.path] = look.item
            if look.refusal is not None:
                skipped[file.text] = look.refusal
            if look.state is not None:
                states[file.text] = look.state
                refs.append(self._ref(file.text, look.state.hash, look.state.size))
        refs.sort(key=lambda ref: ref.path or "")
        return items, refs, sorted(skipped.values(), key=lambda item: item.path), states

    def _ref(self, path: str, hash: str, size: int | None) -> Ref:
        return Ref(hash, self._selection.kind(path), path, hash, size)

    def _clean(self, skipped: dict[str, Skipped]) -> Iterator[tuple[str, str]]:
        """Path and blob id of every tracked file that is on disk as the index has it."""
        keep = self._keep_tracked
        sparse: dict[str, int] = {}
        for snapshot in self._snapshots:
            changed, prefix = snapshot.changed, snapshot.prefix
            for entry in snapshot.entries():
                if entry.path in changed:
                    continue
                name = prefix + entry.path
                if entry.sparse and not self._exists(name):
                    top = to_text(name).partition("/")[0]
                    sparse[top] = sparse.get(top, 0) + 1
                    continue
                path = self._judge(name, entry.mode, keep, skipped)
                if path is not None:
                    yield path, entry.hash
            for link in snapshot.absent_submodules:
                if self._judge(prefix + link, b"160000", keep, skipped):
                    path = to_text(prefix + link)
                    skipped[path] = Skipped(path, SkipReason.SUBMODULE)
        for top, count in sparse.items():
            skipped[top] = Skipped(top, SkipReason.EXCLUDED, f"{count} files outside the sparse checkout")

    def _on_disk(self, skipped: dict[str, Skipped]) -> Iterator[_OnDisk]:
        """Every file that is changed, in conflict or untracked, and that rules and names let through."""
        for snapshot in self._snapshots:
            prefix, object_format = snapshot.prefix, snapshot.repository.object_format
            for inside in sorted(snapshot.changed):
                path = self._judge(prefix + inside, b"100644", self._keep_tracked, skipped)
                if path is not None:
                    yield _OnDisk(prefix + inside, path, True, object_format)
            for inside in snapshot.untracked:
                name = prefix + inside
                if not INTERNAL.isdisjoint(name.split(b"/")):
                    continue
                path = self._judge(name.rstrip(b"/"), b"100644", self._keep_untracked, skipped)
                if path is None:
                    continue
                if name.endswith(b"/"):
                    skipped[path] = Skipped(path, SkipReason.EXCLUDED, "a repository of its own, and no submodule")
                else:
                    yield _OnDisk(name, path, False, object_format)

    def _judge(self, name: bytes, mode: bytes, keep: PathFilter, skipped: dict[str, Skipped]) -> str | None:
        """The path as text if rules, mode and name let it through; else None, and the reason is noted."""
        path = to_text(name)
        out = keep.ignored_by(name) if keep else None
        if out is not None:
            where = to_text(out)
            skipped[where] = Skipped(where, SkipReason.EXCLUDED, "by default, a setting or .outcropignore")
            return None
        refusal = Skipped(path, SkipReason.SYMLINK) if mode == b"120000" else self._selection.refuse_name(path)
        if refusal is None:
            return path
        skipped[path] = refusal
        return None

    def _look(self, file: _OnDisk, known: FileState | None, thorough: bool) -> _Look:
        """Find out what is at a path, reading it only where that is needed.

        Args:
            file: Where to look.
            known: Its state when it was last hashed.
            thorough: Whether to read a file that certainly changed, too.
        """
        nothing = GONE if file.tracked else None
        limit = self._selection.limit(file.text)
        try:
            status = os.lstat(self._base + file.path)
        except (FileNotFoundError, NotADirectoryError):
            return _Look(nothing)
        except OSError as error:
            return _Look(nothing, refusal=reason_of(error, file.text))
        refusal = not_a_file(status.st_mode, file.text)
        if refusal is None and status.st_size > limit:
            refusal = oversize(file.text, status.st_size, limit)
        if refusal is not None:
            return _Look(nothing, refusal=refusal)
        if known is not None and is_untouched(known, status):
            return _Look(known.hash, known)
        surrogate = f"?{status.st_size}-{time_of(status)}"
        if not thorough and (known is None or known.size != status.st_size):
            return _Look(surrogate)
        outcome = read_file(self._base + file.path, file.text, limit)
        if isinstance(outcome, Skipped):
            return _Look(surrogate, refusal=outcome)
        data, status, looked_ns = outcome
        state = remember(status, blob_id(data, file.object_format), looked_ns)
        return _Look(state.hash, state)

    def _exists(self, name: bytes) -> bool:
        try:
            os.lstat(self._base + name)
        except OSError:
            return False
        return True

    def _rules(self) -> dict[bytes, Rules]:
        """The ignore files that git lists, and the outermost one even where git ignores it, by folder."""
        files = {IGNORE_FILE: False}
        for snapshot in self._snapshots:
            tracked = _IGNORE_FILES.findall(snapshot.index) if IGNORE_FILE + b"\0" in snapshot.index else []
            for path in tracked:
                files[snapshot.prefix + path] = path not in snapshot.changed
            for path in snapshot.untracked:
                if path.rpartition(b"/")[2] == IGNORE_FILE:
                    files[snapshot.prefix + path] = False
        rules = {}
        for path, is_clean in files.items():
            outcome = read_file(self._base + path, to_text(path), _RULES_LIMIT)
            if not isinstance(outcome, Skipped):
                rules[path.rpartition(b"/")[0]] = compile_rules(outcome[0])
                if not is_clean:
                    self._rule_hashes[path] = blob_id(outcome[0], "sha1")
        return rules

    def _rule_items(self) -> dict[bytes, str]:
        """Ignore files count even where they keep themselves out."""
        return {b"rules\0" + path: hash for path, hash in self._rule_hashes.items()}

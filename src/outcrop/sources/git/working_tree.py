"""The files of a git working tree: clean ones as git knows them, changed and untracked ones from disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from outcrop.core.model import FileState, Skipped, SkipReason
from outcrop.sources.file_state import read_file
from outcrop.sources.folder import RULES_LIMIT
from outcrop.sources.git.snapshot import Snapshot
from outcrop.sources.ignore import PathFilter, Rules, compile_globs, compile_rules
from outcrop.sources.options import Options
from outcrop.sources.paths import IGNORE_FILE, INTERNAL, to_text
from outcrop.sources.selection import DEFAULT_FOLDERS, Collector, Selection
from outcrop.vcs.git import blob_id

_IGNORE_FILES = re.compile(rb"\t((?:[^\0]*/)?\.outcropignore)\0")


@dataclass(frozen=True, slots=True)
class _DiskFile:
    """A file whose content git does not know. ``path`` is relative to the outermost working tree."""

    name: bytes
    path: str
    tracked: bool
    object_format: str


class WorkingFiles:
    """The files of a working tree and its submodules, as ``snapshots`` have them."""

    def __init__(self, snapshots: Sequence[Snapshot], options: Options, selection: Selection) -> None:
        self._snapshots = snapshots
        self._selection = selection
        self._base = os.fsencode(snapshots[0].repository.top).rstrip(b"/") + b"/"
        self._rule_items: dict[bytes, str] = {}
        rules = self._rules()
        strongest = compile_globs(options.exclude)
        self._keep_tracked = PathFilter(rules, strongest)
        self._keep_untracked = PathFilter(rules, strongest, DEFAULT_FOLDERS)

    def disk_items(self, seen: Mapping[str, FileState]) -> dict[bytes, str]:
        """What is on disk at each path whose content git does not know: a hash, or a word in place of one.

        Reads a file only where its time changed and its size did not. Equal to the items of :meth:`collect` when
        nothing changed since the listing that gave ``seen``.
        """
        return self._observe_disk(Collector(self._selection), seen, thorough=False)

    def collect(self, seen: Mapping[str, FileState]) -> tuple[dict[bytes, str], Collector]:
        files = Collector(self._selection)
        self._collect_clean(files)
        return self._observe_disk(files, seen, thorough=True), files

    def _observe_disk(self, files: Collector, seen: Mapping[str, FileState], thorough: bool) -> dict[bytes, str]:
        # Ignore files count even where they exclude themselves.
        items = dict(self._rule_items)
        for file in self._disk_files(files):
            digest = partial(blob_id, object_format=file.object_format)
            found = self._selection.observe(self._base + file.name, file.path, seen.get(file.path), digest, thorough)
            files.observed(file.path, found)
            item = found.item or ("gone" if file.tracked else None)
            if item is not None:
                items[file.name] = item
        return items

    def _collect_clean(self, files: Collector) -> None:
        """Every tracked file that is on disk as the index has it."""
        sparse: dict[str, int] = {}
        for snapshot in self._snapshots:
            for entry in snapshot.entries():
                if entry.path in snapshot.changed:
                    continue
                name = snapshot.prefix + entry.path
                if entry.sparse and not os.path.lexists(self._base + name):
                    top = to_text(name).partition("/")[0]
                    sparse[top] = sparse.get(top, 0) + 1
                    continue
                link = Skipped(to_text(name), SkipReason.SYMLINK) if entry.mode == b"120000" else None
                path = files.accept(name, self._keep_tracked, link)
                if path is not None:
                    files.add(path, entry.hash, None)
            for submodule in snapshot.absent_submodules:
                path = files.accept(snapshot.prefix + submodule, self._keep_tracked)
                if path is not None:
                    files.skip(Skipped(path, SkipReason.SUBMODULE))
        for top, count in sparse.items():
            files.skip(Skipped(top, SkipReason.EXCLUDED, f"{count} files outside the sparse checkout"))

    def _disk_files(self, files: Collector) -> Iterator[_DiskFile]:
        """Every file that is changed, in conflict or untracked, and that rules and names let through."""
        for snapshot in self._snapshots:
            prefix, object_format = snapshot.prefix, snapshot.repository.object_format
            for inside in sorted(snapshot.changed):
                path = files.accept(prefix + inside, self._keep_tracked)
                if path is not None:
                    yield _DiskFile(prefix + inside, path, True, object_format)
            for inside in snapshot.untracked:
                name = prefix + inside
                if not INTERNAL.isdisjoint(name.split(b"/")):
                    continue
                path = files.accept(name.rstrip(b"/"), self._keep_untracked)
                if path is None:
                    continue
                if name.endswith(b"/"):
                    files.skip(Skipped(path, SkipReason.EXCLUDED, "a repository of its own, and no submodule"))
                else:
                    yield _DiskFile(name, path, False, object_format)

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
            content = read_file(self._base + path, to_text(path), RULES_LIMIT)
            if not isinstance(content, Skipped):
                rules[path.rpartition(b"/")[0]] = compile_rules(content.data)
                if not is_clean:
                    self._rule_items[b"rules\0" + path] = blob_id(content.data, "sha1")
        return rules

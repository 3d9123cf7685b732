"""Ignore rules with git's own semantics: what ``gitignore(5)`` documents and ``git check-ignore`` answers.

A rule file is compiled once. Names without wildcards are looked up in a dictionary and all wildcard patterns of the
file are tried as one regular expression, so that the usual path, which no rule names, costs two look-ups.

Names are bytes here, because git matches bytes (``?`` is one byte). A pattern is matched against the path itself only,
never through its parents, which differs from git as soon as a negated pattern names a directory: :class:`PathFilter`,
or a walk that does not enter ignored directories, takes care of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from outcrop.text.globs import has_wildcard, translate, trim


@dataclass(frozen=True, slots=True)
class _Rule:
    order: int
    ignores: bool
    folders_only: bool
    whole_path: bool
    regex: re.Pattern[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled patterns of one ignore file. Paths are relative to the file's folder."""

    literals: Mapping[bytes, tuple[_Rule, ...]] = field(default_factory=dict)
    wildcards: tuple[_Rule, ...] = ()
    any_name: re.Pattern[bytes] | None = None
    any_path: re.Pattern[bytes] | None = None

    def __bool__(self) -> bool:
        return bool(self.literals or self.wildcards)

    def verdict(self, path: bytes, name: bytes, is_folder: bool) -> bool | None:
        """What the last matching rule says: True to ignore, False to keep, None when no rule matches.

        The path, whose last part is ``name``, is relative to the rules' folder. A symbolic link is no folder.
        """
        best: _Rule | None = None
        for key in (name, b"/" + path):
            for rule in self.literals.get(key, ()):
                if (is_folder or not rule.folders_only) and (best is None or rule.order > best.order):
                    best = rule
        if (self.any_name and self.any_name.fullmatch(name)) or (self.any_path and self.any_path.fullmatch(path)):
            for rule in reversed(self.wildcards):
                if best is not None and rule.order < best.order:
                    break
                if rule.folders_only and not is_folder:
                    continue
                if rule.regex is not None and rule.regex.fullmatch(path if rule.whole_path else name):
                    best = rule
                    break
        return None if best is None else best.ignores


NO_RULES = Rules()


def compile_rules(data: bytes) -> Rules:
    """Compile the content of an ignore file. A pattern that git would never match is dropped, as git does."""
    literals: dict[bytes, list[_Rule]] = {}
    wildcards: list[_Rule] = []
    names: list[bytes] = []
    paths: list[bytes] = []
    # A character for each byte: so a pattern for characters is one for bytes.
    for order, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")):
        pattern = trim(line.removesuffix("\r").partition("\0")[0])
        if not pattern or pattern.startswith("#"):
            continue
        ignores = not pattern.startswith("!")
        pattern = pattern.removeprefix("!")
        folders_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        whole_path = "/" in pattern
        pattern = pattern.removeprefix("/")
        if not pattern:
            continue
        if not has_wildcard(pattern):
            key = (f"/{pattern}" if whole_path else pattern).encode("latin-1")
            literals.setdefault(key, []).append(_Rule(order, ignores, folders_only, whole_path))
            continue
        translated = translate(pattern)
        if translated is None:
            continue
        source = translated.encode("latin-1")
        (paths if whole_path else names).append(source)
        regex = re.compile(source, re.DOTALL)
        wildcards.append(_Rule(order, ignores, folders_only, whole_path, regex))
    return Rules(
        literals={key: tuple(rules) for key, rules in literals.items()},
        wildcards=tuple(wildcards),
        any_name=re.compile(b"|".join(names), re.DOTALL) if names else None,
        any_path=re.compile(b"|".join(paths), re.DOTALL) if paths else None,
    )


def compile_globs(patterns: Iterable[str]) -> Rules:
    return compile_rules("\n".join(patterns).encode("utf-8", "surrogateescape"))


# Rule files that apply in a folder, the nearest first, each with the length of its folder's path and slash.
Levels = tuple[tuple[int, Rules], ...]


def verdict(levels: Levels, path: bytes, name: bytes, is_folder: bool) -> bool | None:
    """What the nearest rule file with a matching rule says about ``path`` (relative to the root), or None."""
    for base, rules in levels:
        answer = rules.verdict(path[base:] if base else path, name, is_folder)
        if answer is not None:
            return answer
    return None


def add_level(levels: Levels, fixed: int, base: int, rules: Rules) -> Levels:
    """The levels with one more, nearer than all but the first ``fixed`` ones."""
    return (*levels[:fixed], (base, rules), *levels[fixed:])


class PathFilter:
    """Nested rule files (by folder) applied to whole paths, for a source that lists files without walking folders.

    The ``strongest`` rules are asked first; ``default_folders`` are names that are ignored where no rule matches.
    """

    def __init__(
        self, rules: Mapping[bytes, Rules], strongest: Rules = NO_RULES, default_folders: frozenset[bytes] = frozenset()
    ) -> None:
        self._rules = {folder: found for folder, found in rules.items() if found}
        self._outermost: Levels = ((0, strongest),) if strongest else ()
        self._default_folders = default_folders
        self.has_defaults = bool(default_folders)
        self._folders: dict[bytes, tuple[bytes | None, Levels]] = {}

    def ignored_by(self, path: bytes) -> bytes | None:
        """What keeps ``path`` out: its outermost ignored folder, or itself; None if it stays."""
        if not (self._rules or self._outermost or self._default_folders):
            return None
        parent, _, name = path.rpartition(b"/")
        out, levels = self._folder(parent)
        if out is not None:
            return out
        return path if verdict(levels, path, name, False) else None

    def _folder(self, path: bytes) -> tuple[bytes | None, Levels]:
        # From the outermost folder on, and not by recursion: paths of a repository are as deep as their writer likes.
        unknown = []
        while path not in self._folders:
            unknown.append(path)
            if not path:
                break
            path = path.rpartition(b"/")[0]
        for folder in reversed(unknown):
            self._folders[folder] = self._look_into(folder)
        return self._folders[unknown[0] if unknown else path]

    def _look_into(self, folder: bytes) -> tuple[bytes | None, Levels]:
        """The same for a folder whose parent is known."""
        out: bytes | None = None
        levels = self._outermost
        if folder:
            parent, _, name = folder.rpartition(b"/")
            out, levels = self._folders[parent]
            if out is None:
                answer = verdict(levels, folder, name, True)
                if answer or (answer is None and name in self._default_folders):
                    out = folder
        own = self._rules.get(folder)
        if own is not None and out is None:
            levels = add_level(levels, len(self._outermost), len(folder) + 1 if folder else 0, own)
        return out, levels

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

_SPECIAL = re.compile(rb"[*?\[\\]")
_CLASSES: Mapping[bytes, bytes] = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb"\t-\r ",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
_NEVER = rb"(?!)"
_STAR = rb"[^/]*"


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
    for order, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n")):
        pattern = _trim(line.removesuffix(b"\r").split(b"\0", 1)[0])
        if not pattern or pattern.startswith(b"#"):
            continue
        ignores = not pattern.startswith(b"!")
        pattern = pattern.removeprefix(b"!")
        folders_only = pattern.endswith(b"/")
        pattern = pattern.removesuffix(b"/")
        whole_path = b"/" in pattern
        pattern = pattern.removeprefix(b"/")
        if not pattern:
            continue
        if not _SPECIAL.search(pattern):
            key = b"/" + pattern if whole_path else pattern
            literals.setdefault(key, []).append(_Rule(order, ignores, folders_only, whole_path))
            continue
        source = _translate(pattern)
        if source is None:
            continue
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
        known = self._folders.get(path)
        if known is not None:
            return known
        levels = self._outermost
        out: bytes | None = None
        if path:
            parent, _, name = path.rpartition(b"/")
            out, levels = self._folder(parent)
            if out is None:
                answer = verdict(levels, path, name, True)
                if answer or (answer is None and name in self._default_folders):
                    out = path
        own = self._rules.get(path)
        if own is not None and out is None:
            levels = add_level(levels, len(self._outermost), len(path) + 1 if path else 0, own)
        self._folders[path] = (out, levels)
        return out, levels


def _trim(line: bytes) -> bytes:
    """Drop trailing spaces, except one that a backslash protects."""
    end = position = 0
    while position < len(line):
        if line[position] == 0x5C:
            position += 2
            end = min(position, len(line))
        else:
            position += 1
            if line[position - 1] != 0x20:
                end = position
    return line[:end]


def _translate(pattern: bytes) -> bytes | None:
    """The pattern as a regular expression for ``fullmatch``; None when it can never match.

    Follows git's ``wildmatch``: ``**`` crosses folders only where it stands alone between slashes. git cuts off the
    part before the first wildcard and matches it literally, so that ``a**/b`` counts as such a place too.
    """
    first = _SPECIAL.search(pattern)
    start = first.start() if first else len(pattern)
    glue = b""
    parts = [re.escape(pattern[:start])]
    pieces: list[bytes] = []
    position = start
    while position < len(pattern):
        char = pattern[position : position + 1]
        if char == b"*":
            end = position
            while pattern[end : end + 1] == b"*":
                end += 1
            rest = pattern[end : end + 2]
            alone = (position == start or pattern[position - 1 : position] == b"/") and (
                not rest or rest[:1] == b"/" or rest == b"\\/"
            )
            if end - position == 1 or not alone:
                parts.append(_STAR)
            else:
                pieces.append(glue + _join(parts))
                parts = []
                glue = b"(?:.*?/)??" if rest[:1] == b"/" else b".*?/" if rest else b".*"
                end += 1 if rest[:1] == b"/" else len(rest)
            position = end
        elif char == b"?":
            parts.append(b"[^/]")
            position += 1
        elif char == b"[":
            found = _translate_set(pattern, position + 1)
            if found is None:
                return None
            source, position = found
            parts.append(source)
        elif char == b"\\":
            if position + 1 == len(pattern):
                return None
            parts.append(re.escape(pattern[position + 1 : position + 2]))
            position += 2
        else:
            parts.append(re.escape(char))
            position += 1
    pieces.append(glue + _join(parts))
    # The earliest place for a piece between two ``**`` is as good as any later one. Saying so (an atomic group) keeps
    # a hostile pattern from taking exponential time; so does the group in ``_join``.
    return pieces[0] + b"".join(b"(?>%s)" % piece for piece in pieces[1:-1]) + b"".join(pieces[1:][-1:])


def _join(parts: list[bytes]) -> bytes:
    """Expressions for single bytes, with ``_STAR`` between them, as one expression."""
    out = bytearray()
    open_star = -1
    for part in parts:
        if part == _STAR:
            if open_star >= 0:
                out[open_star:] = b"(?>[^/]*?%s)" % bytes(out[open_star + len(_STAR) :])
            open_star = len(out)
        elif part == b"/":
            open_star = -1
        out += part
    return bytes(out)


def _translate_set(pattern: bytes, position: int) -> tuple[bytes, int] | None:
    """A bracket expression from just after its ``[``: its regular expression and where it ends; None if broken."""
    negated = pattern[position : position + 1] in (b"!", b"^")
    position += negated
    members = bytearray()
    previous: int | None = None
    first = True
    while first or pattern[position : position + 1] != b"]":
        first = False
        if position >= len(pattern):
            return None
        char = pattern[position]
        if char == 0x5C:
            position += 1
            if position >= len(pattern):
                return None
            members += b"\\x%02x" % pattern[position]
            previous = pattern[position]
        elif char == 0x2D and previous and position + 1 < len(pattern) and pattern[position + 1] != 0x5D:
            position += 1
            if pattern[position] == 0x5C:
                position += 1
                if position >= len(pattern):
                    return None
            if previous <= pattern[position]:
                members += b"\\x%02x-\\x%02x" % (previous, pattern[position])
            previous = None
        elif pattern[position : position + 2] == b"[:":
            close = pattern.find(b"]", position + 2)
            if close < 0:
                return None
            if close == position + 2 or pattern[close - 1] != 0x3A:
                members += b"\\x5b"
                previous = char
            else:
                named = _CLASSES.get(pattern[position + 2 : close - 1])
                if named is None:
                    return None
                members += named
                previous = None
                position = close
        else:
            members += b"\\x%02x" % char
            previous = char
        position += 1
    if negated:
        return b"[^/%s]" % bytes(members), position + 1
    return (b"(?!/)[%s]" % bytes(members) if members else _NEVER), position + 1

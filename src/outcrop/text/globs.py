"""Patterns in the syntax of ``.gitignore``: their translation, and which paths they choose.

However a pattern is written, matching takes no more steps than a small power of the lengths: see :func:`translate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from outcrop.errors import UsageError

_SPECIAL = re.compile(r"[\\*?\[ ]")
_OTHER_BLANKS = re.compile(r"[^\S ]")
_ONE = re.compile(r"(?:\\.|[^ ])+")
_WILD = re.compile(r"[*?\[\\]")

_ROOT = frozenset({".", "./", "/"})

_CLASSES: Mapping[str, str] = {
    "alnum": r"0-9A-Za-z",
    "alpha": r"A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": r"0-9",
    "graph": r"\x21-\x7e",
    "lower": r"a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": r"A-Z",
    "xdigit": r"0-9A-Fa-f",
}
_NEVER = r"(?!)"
_STAR = r"[^/]*"


def compile_patterns(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether any pattern matches a file's path or a folder above it. A pattern with ``!`` matches nothing."""
    sources = [source for pattern in patterns if (source := _translate_whole(pattern)) is not None]
    return _matching(re.compile("|".join(sources), re.DOTALL)) if sources else lambda path: False


def _matching(regex: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda path: regex.fullmatch(path) is not None


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Match like the lines of a .gitignore: ``*.py`` at any depth, ``src/`` and ``src/**`` for all below.

    Paths that match a pattern with ``!`` are left out; if all patterns have ``!``, out of all paths.
    """
    if not patterns:
        return lambda path: True
    wanted = [_from_root(each) for each in patterns if not each.startswith("!")] or ["**"]
    chosen = compile_patterns(wanted)
    left_out = compile_patterns(_from_root(each[1:]) for each in patterns if each.startswith("!"))
    return lambda path: chosen(path) and not left_out(path)


def _from_root(pattern: str) -> str:
    # A shell writes ``./src``; no indexed path begins so.
    if pattern in _ROOT:
        return "**"
    return pattern[1:] if pattern.startswith("./") else pattern


def escape_path(path: str) -> str:
    """A pattern that matches only a path and what is below it."""
    # A blank at the end of a pattern is removed unless it is in brackets.
    return "/" + _OTHER_BLANKS.sub(r"[\g<0>]", _SPECIAL.sub(r"\\\g<0>", path))


def split_patterns(text: str) -> tuple[str, ...]:
    """Patterns of one line, divided by spaces; a space inside a pattern has a backslash before it."""
    return tuple(_ONE.findall(text))


def _translate_whole(line: str) -> str | None:
    """A pattern as an expression for the whole path of a file in or below what it names; None for a comment."""
    pattern = trim(line)
    if pattern.startswith(("#", "!")):
        return None
    below = "/.*" if pattern.endswith("/") else "(?:/.*)?"
    pattern = pattern.removesuffix("/")
    above = "" if "/" in pattern else "(?:.*/)?"
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    source = translate(pattern, lone_bracket=True)
    if source is None:
        raise UsageError(
            f"{line!r} is not a pattern", r"Write it as in a .gitignore: src/** or *.md; write \\ for a backslash"
        )
    return above + source + below


def has_wildcard(pattern: str) -> bool:
    return _WILD.search(pattern) is not None


def trim(line: str) -> str:
    """Drop trailing spaces, except one that a backslash protects."""
    end = position = 0
    while position < len(line):
        if line[position] == "\\":
            position += 2
            end = min(position, len(line))
        else:
            position += 1
            if line[position - 1] != " ":
                end = position
    return line[:end]


def translate(pattern: str, lone_bracket: bool = False) -> str | None:
    """The pattern as a regular expression for ``fullmatch``; None when it can never match.

    Follows git's ``wildmatch``: ``**`` crosses folders only where it stands alone between slashes. git cuts off the
    part before the first wildcard and matches it literally, so that ``a**/b`` counts as such a place too. With
    ``lone_bracket`` a ``[`` that nothing closes is a character.

    What it gives is in Latin-1 where the pattern is, so that its bytes are an expression for bytes.
    """
    first = _WILD.search(pattern)
    start = first.start() if first else len(pattern)
    glue = ""
    parts = [re.escape(pattern[:start])]
    pieces: list[str] = []
    position = start
    closed = True
    while position < len(pattern):
        char = pattern[position]
        if char == "*":
            end = position
            while pattern[end : end + 1] == "*":
                end += 1
            rest = pattern[end : end + 2]
            alone = (position == start or pattern[position - 1] == "/") and (
                not rest or rest[:1] == "/" or rest == "\\/"
            )
            if end - position == 1 or not alone:
                parts.append(_STAR)
            else:
                pieces.append(glue + _join(parts))
                parts = []
                glue = "(?:.*?/)??" if rest[:1] == "/" else ".*?/" if rest else ".*"
                end += 1 if rest[:1] == "/" else len(rest)
            position = end
        elif char == "?":
            parts.append("[^/]")
            position += 1
        elif char == "[" and closed:
            found = _translate_set(pattern, position + 1)
            if found is not None:
                source, position = found
                parts.append(source)
            elif lone_bracket:
                closed = False
            else:
                return None
        elif char == "\\":
            if position + 1 == len(pattern):
                return None
            parts.append(re.escape(pattern[position + 1]))
            position += 2
        else:
            parts.append(re.escape(char))
            position += 1
    pieces.append(glue + _join(parts))
    # The earliest place for a piece between two ``**`` is as good as any later one. Saying so (an atomic group) keeps
    # a hostile pattern from taking exponential time; so does the group in ``_join``.
    return pieces[0] + "".join(f"(?>{piece})" for piece in pieces[1:-1]) + "".join(pieces[1:][-1:])


def _join(parts: list[str]) -> str:
    """Expressions for single characters, with ``_STAR`` between them, as one expression."""
    out: list[str] = []
    open_star = -1
    for part in parts:
        if part == _STAR:
            if open_star >= 0:
                out[open_star:] = ["(?>[^/]*?", *out[open_star + 1 :], ")"]
            open_star = len(out)
        elif part == "/":
            open_star = -1
        out.append(part)
    return "".join(out)


def _translate_set(pattern: str, position: int) -> tuple[str, int] | None:
    """A bracket expression from just after its ``[``: its regular expression and where it ends; None if broken."""
    negated = pattern[position : position + 1] in {"!", "^"}
    position += negated
    members: list[str] = []
    previous = ""
    first = True
    while first or pattern[position : position + 1] != "]":
        first = False
        if position >= len(pattern):
            return None
        char = pattern[position]
        if char == "\\":
            position += 1
            if position >= len(pattern):
                return None
            previous = pattern[position]
            members.append(_member(previous))
        elif char == "-" and previous and position + 1 < len(pattern) and pattern[position + 1] != "]":
            position += 1
            if pattern[position] == "\\":
                position += 1
                if position >= len(pattern):
                    return None
            if previous <= pattern[position]:
                members.append(f"{_member(previous)}-{_member(pattern[position])}")
            previous = ""
        elif pattern.startswith("[:", position):
            close = pattern.find("]", position + 2)
            if close < 0:
                return None
            if close == position + 2 or pattern[close - 1] != ":":
                members.append(_member("["))
                previous = char
            else:
                named = _CLASSES.get(pattern[position + 2 : close - 1])
                if named is None:
                    return None
                members.append(named)
                previous = ""
                position = close
        else:
            members.append(_member(char))
            previous = char
        position += 1
    if negated:
        return f"[^/{''.join(members)}]", position + 1
    return (f"(?!/)[{''.join(members)}]" if members else _NEVER), position + 1


def _member(char: str) -> str:
    return f"\\U{ord(char):08x}" if ord(char) > 0xFF else f"\\x{ord(char):02x}"

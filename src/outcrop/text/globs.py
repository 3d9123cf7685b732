"""Patterns in the syntax of ``.gitignore``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from outcrop.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_SPECIAL = re.compile(r"[\\*?\[ ]")
_OTHER_BLANKS = re.compile(r"[^\S ]")
_ONE = re.compile(r"(?:\\.|[^ ])+")

_ROOT = frozenset({".", "./", "/"})


def compile_patterns(patterns: Iterable[str]) -> GitIgnoreSpec:
    """A matcher in which the last pattern that matches decides."""
    # Imported here for start-up time: most commands have no pattern.
    from pathspec import GitIgnoreSpec

    lines = list(patterns)
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        if len(lines) > 1:
            for line in lines:
                compile_patterns([line])
        raise UsageError(
            f"{lines[0]!r} is not a pattern", r"Write it as in a .gitignore: src/** or *.md; write \\ for a backslash"
        ) from None


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Match like the lines of a .gitignore: ``*.py`` at any depth, ``src/`` and ``src/**`` for all below.

    Paths that match a pattern with ``!`` are left out; if all patterns have ``!``, out of all paths.
    """
    if not patterns:
        return lambda path: True
    wanted = [_from_root(each) for each in patterns if not each.startswith("!")] or ["**"]
    chosen = compile_patterns(wanted)
    left_out = compile_patterns(_from_root(each[1:]) for each in patterns if each.startswith("!"))
    return lambda path: chosen.match_file(path) and not left_out.match_file(path)


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

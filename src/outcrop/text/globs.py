"""Patterns that somebody wrote, as in a ``.gitignore``: which paths they match, and what is said when one is wrong."""

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


def compiled(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Patterns, ready to be matched; of several the last that matches decides."""
    # Imported here because most commands name no pattern, and start-up time is felt at each of them.
    from pathspec import GitIgnoreSpec

    written = list(patterns)
    try:
        return GitIgnoreSpec.from_lines(written)
    except ValueError:
        wrong = next((each for each in written if not _is_valid(each)), "")
        raise UsageError(
            f"{wrong!r} is not a pattern", r"Write it as in a .gitignore: src/** or *.md; \\ stands for a backslash"
        ) from None


def _is_valid(pattern: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([pattern])
    except ValueError:
        return False
    return True


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Match like the lines of a .gitignore: ``*.py`` at any depth, ``src/`` and ``src/**`` for all below.

    What matches one that begins with ``!`` is left out; where all of them do, out of everything.
    """
    if not patterns:
        return lambda path: True
    wanted = [_from_root(each) for each in patterns if not each.startswith("!")] or ["**"]
    chosen = compiled(wanted)
    left_out = compiled(_from_root(each[1:]) for each in patterns if each.startswith("!"))
    return lambda path: chosen.match_file(path) and not left_out.match_file(path)


def _from_root(pattern: str) -> str:
    """``./src`` as people write it who think of a shell, which no path of ours begins with."""
    if pattern in _ROOT:
        return "**"
    return pattern[1:] if pattern.startswith("./") else pattern


def literal(path: str) -> str:
    """A pattern that matches a path and what is below it, and nothing else."""
    # At the end of a pattern every blank is taken off unless it is such a set.
    return "/" + _OTHER_BLANKS.sub(r"[\g<0>]", _SPECIAL.sub(r"\\\g<0>", path))


def split(text: str) -> tuple[str, ...]:
    """Patterns of one line, with spaces between them; a space that belongs to one has a backslash before it."""
    return tuple(_ONE.findall(text))

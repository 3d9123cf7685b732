"""Rules for the names that users give."""

from __future__ import annotations

import re

from outcrop.errors import UsageError

# Builder of commits, which are in the corpus ``docs``: they change only with the revision, so that a build at the same
# revision leaves them as they are. No corpus can have this name.
COMMITS = "@commits"

# The builders of the two corpora that every index has; they are built together.
DEFAULT_BUILDERS = ("code", "docs", COMMITS)

_CORPUS = re.compile(r"\w[\w.-]{0,63}")
_PROJECT = re.compile(r"[^\W_A-Z][\w.-]{0,63}")


def check_project(name: str) -> str:
    if not _PROJECT.fullmatch(name) or name != name.lower():
        raise UsageError(
            f"a project cannot be named {name!r}",
            "Use lower-case letters, digits, dots, dashes and underscores, at most 64",
        )
    return name


def check_corpus(name: str) -> str:
    if not _CORPUS.fullmatch(name):
        raise UsageError(
            f"a corpus cannot be named {name!r}", "Use letters, digits, dots, dashes and underscores, at most 64"
        )
    return name

"""What part a file plays, read off its path: the thing itself, or something around it."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Role(StrEnum):
    """Part that a file plays in a repository."""

    SOURCE = "source"
    TEST = "test"
    EXAMPLE = "example"
    VENDORED = "vendored or legacy"
    CHANGELOG = "changelog"
    INSTRUCTIONS = "instructions for agents"
    EXPORTS = "package exports"


_TEST = re.compile(
    r"(^|/)(tests?|__tests__|specs?|testing|e2e|testdata|fixtures?)/"
    r"|(^|/)(test_[^/]*|conftest\.py|[^/]*[_.-](test|tests|spec|specs)\.[^/]+)$"
    r"|(^|/)[^/]*(Test|Tests|Spec|Suite)\.(java|kt|kts|cs|php|swift|scala|groovy|dart)$"
)
# A notebook among examples is documentation: it explains what it shows.
_EXAMPLE = re.compile(r"(^|/)(_?examples?|samples?|demos?|docs?_src|benchmarks?)/(?!.*\.ipynb$)", re.I)
_VENDORED = re.compile(r"(^|/)(_?vendor(ed)?|third[-_]?party|node_modules|external|_?compat|legacy)/", re.I)
_CHANGELOG = re.compile(
    r"(^|/)(change(log|s)?|history|news|whats[-_]?new|releases?|release[-_]?notes)([./-][^/]*)?$", re.I
)
_INSTRUCTIONS = re.compile(
    r"(^|/)\.(agents?|claude|cursor|windsurf|gemini|github/(agents|prompts|instructions))/", re.I
)
_EXPORTS = re.compile(r"(^|/)(__init__\.py|package-info\.java|index\.d\.ts)$")


@lru_cache(maxsize=65536)
def role_of(path: str) -> Role:
    """The part that the file at a path plays; the first that fits, in the order of this list."""
    for pattern, role in (
        (_TEST, Role.TEST),
        (_EXAMPLE, Role.EXAMPLE),
        (_VENDORED, Role.VENDORED),
        (_CHANGELOG, Role.CHANGELOG),
        (_INSTRUCTIONS, Role.INSTRUCTIONS),
        (_EXPORTS, Role.EXPORTS),
    ):
        if pattern.search(path):
            return role
    return Role.SOURCE

"""The role of a file in its repository, read off its path."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class FileRole(StrEnum):
    """What explanations call a file."""

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
def file_role(path: str) -> FileRole:
    """The role of the file at a path; the first that fits, in the order of this list."""
    for pattern, role in (
        (_TEST, FileRole.TEST),
        (_EXAMPLE, FileRole.EXAMPLE),
        (_VENDORED, FileRole.VENDORED),
        (_CHANGELOG, FileRole.CHANGELOG),
        (_INSTRUCTIONS, FileRole.INSTRUCTIONS),
        (_EXPORTS, FileRole.EXPORTS),
    ):
        if pattern.search(path):
            return role
    return FileRole.SOURCE

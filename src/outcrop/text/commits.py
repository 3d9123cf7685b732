"""The text of a commit: its message, a blank line, author and date, and the files it touched, one a line.

It is the whole record: what is stored, embedded (its beginning, which is the message), searched by words and shared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Characters of a message that are kept.
LONGEST_MESSAGE = 4000

# Characters of an author's name that are kept.
LONGEST_NAME = 100

# Characters of a subject that stand in a heading.
LONGEST_SUBJECT = 200

# Files that are named. A commit that touched more says little about any of them.
MOST_FILES = 30

_NO_MESSAGE = "(no message)"
_NO_AUTHOR = "unknown"
_NO_DATE = "no date"

_BOT = re.compile(
    r".*\[bot\]|(?:dependabot|renovate|github[ -]?actions?|pre-commit-ci|greenkeeper|snyk|mergify|allcontributors"
    r"|weblate|crowdin|imgbot|codecov|semantic-release)\b.*|.*[ _-]bot",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[^\S\n]?<[^<>\s@]{1,128}+@[^<>\s]{1,255}+>")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def commit_text(message: str, author: str, date: str, files: Sequence[str], count: int) -> str:
    """``files`` are the first of ``count`` paths, as the index writes them; none where they are not known."""
    name = _one_line(author.partition("@")[0])[:LONGEST_NAME] or _NO_AUTHOR
    lines = [f"{name}, {date or _NO_DATE}", *files[:MOST_FILES]]
    if count > MOST_FILES:
        lines.append(f"and {count - MOST_FILES:,} more")
    return "\n".join([_clean(message) or _NO_MESSAGE, "", *lines])


def touched_files(text: str) -> tuple[str, ...]:
    """The paths of the files that a commit touched; none of a bot's commit, nor of one with too many files."""
    author, *files = _trailer(text)
    if len(files) > MOST_FILES or _BOT.fullmatch(author.rpartition(", ")[0]):
        return ()
    return tuple(files)


def subject(text: str) -> str:
    return text.partition("\n")[0]


def heading(text: str) -> str:
    """Subject and date on one line."""
    title = subject(text)
    if len(title) > LONGEST_SUBJECT:
        title = f"{title[: LONGEST_SUBJECT - 1]}…"
    return f"{title} · {_trailer(text)[0].rpartition(', ')[2]}"


def _trailer(text: str) -> list[str]:
    return text.rpartition("\n\n")[2].split("\n")


def _clean(message: str) -> str:
    """Without e-mail addresses, control characters and blank edges, and not too long."""
    text = _ADDRESS.sub("", _UNPRINTABLE.sub("", message.replace("\r\n", "\n").replace("\r", "\n")))
    lines = [line.rstrip() for line in text.split("\n")]
    text = "\n".join(lines).strip("\n")
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1].rstrip()}…"


def _one_line(name: str) -> str:
    return " ".join(_UNPRINTABLE.sub("", name).split())

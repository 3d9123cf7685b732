"""A text made fit to be sent: without what no server takes, and no longer than the model reads."""

from __future__ import annotations

from bisect import bisect_right

from outcrop.text import tokenizer

# Sent in place of a text without any character to read: many servers refuse those, and it has to have a vector.
NOTHING = "."

# No tokenizer makes fewer tokens of a text than this. Ours counts a long word without spaces as one, theirs do not.
CHARACTERS_A_TOKEN = 16


def presentable(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which are no Unicode, and for zero bytes, which end a text in C."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")
    return whole if whole.strip() else NOTHING


def head(text: str, limit: int) -> str:
    """As much of the beginning of a text as has at most ``limit`` tokens, by our own count.

    Another model's tokenizer may count more; whether its server then refuses is for the caller to see.

    Args:
        text: Any text.
        limit: Tokens, at least 1.

    Returns:
        The text itself where it fits, else a beginning of at least one character.
    """
    if len(text) <= limit or _weight(text) <= limit:
        return text
    return text[: max(1, bisect_right(range(len(text)), limit, key=lambda end: _weight(text[:end])) - 1)]


def _weight(text: str) -> int:
    return max(tokenizer.count(text), len(text) // CHARACTERS_A_TOKEN)

"""Text as a server takes it: clean Unicode, and no longer than the model reads."""

from __future__ import annotations

from bisect import bisect_right

from outcrop.text import tokenizer

# In place of a text without any character to read: many servers refuse those, and it needs a vector.
BLANK = "."

# No tokenizer makes fewer tokens of a text than this. Ours counts a long word without spaces as one, others do not.
CHARACTERS_PER_TOKEN = 16


def sanitize(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which are no Unicode, and for zero bytes, which end a text in C."""
    clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")
    return clean if clean.strip() else BLANK


def truncate(text: str, limit: int) -> str:
    """The longest beginning of a text that has at most ``limit`` tokens by our own count; at least one character.

    Another model's tokenizer may count more; the caller handles a server's refusal.
    """
    if len(text) <= limit or _count(text) <= limit:
        return text
    return text[: max(1, bisect_right(range(len(text)), limit, key=lambda end: _count(text[:end])) - 1)]


def _count(text: str) -> int:
    return max(tokenizer.count(text), len(text) // CHARACTERS_PER_TOKEN)

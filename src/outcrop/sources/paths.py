r"""Names on disk are bytes; paths in the index are text. This is the one place that converts.

A path in the index is valid UTF-8 with ``/`` between its parts. Whatever could not be stored, or would break a
terminal line, is written as ``\xNN`` (lower-case hex, one per byte): bytes that are not UTF-8, and control characters.
A backslash that stands before ``xNN`` in the real name is itself written as ``\x5c``, so the real name can always be
had back: replace every ``\xNN`` by its byte. All other names are stored as they are.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]|\\(?=x[0-9a-f]{2})")
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
_NOT_SLUG = re.compile(r"[^\w.-]+")


def to_text(name: bytes) -> str:
    r"""The path as the index stores it: reversible, valid UTF-8, no control characters.

    Args:
        name: The path as the file system or git has it, with ``/``.
    """
    text = name.decode("utf-8", "surrogateescape")
    if "\\" not in text and text.isprintable():
        return text
    return _UNSAFE.sub(_escape, text)


def to_bytes(path: str) -> bytes:
    """The path as the file system has it: the inverse of :func:`to_text`."""
    name = path.encode("utf-8")
    if b"\\x" not in name:
        return name
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), name)


def to_slug(name: str) -> str:
    """A project's short name: lower case, words joined by ``-``; ``project`` where nothing is left."""
    return _NOT_SLUG.sub("-", name.lower()).strip("-.") or "project"


def _escape(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode("utf-8", "surrogateescape"))

r"""Names on disk are bytes, paths in the index are text: the one place that converts between them.

A path in the index is valid UTF-8 with ``/`` between its parts. Bytes that are not UTF-8, control characters, and a
backslash before ``xNN`` are written as ``\xNN`` (lower-case hex, one per byte), so that every name can be restored.
"""

from __future__ import annotations

import re

# What version control systems and this program keep for themselves. Never part of the material.
INTERNAL = frozenset({b".git", b".hg", b".svn", b".bzr", b".outcrop", b".fslckout", b"_FOSSIL_", b".jj", b".sl"})

IGNORE_FILE = b".outcropignore"

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]|\\(?=x[0-9a-f]{2})")
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
_NOT_SLUG = re.compile(r"[^\w.-]+")


def to_text(name: bytes) -> str:
    """The path as the index stores it; :func:`to_bytes` is the inverse."""
    text = name.decode("utf-8", "surrogateescape")
    return text if "\\" not in text and text.isprintable() else _UNSAFE.sub(_escape, text)


def to_bytes(path: str) -> bytes:
    """The path as the file system has it."""
    name = path.encode("utf-8")
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), name) if b"\\x" in name else name


def to_slug(name: str) -> str:
    """A project's short name: lower case, words joined by ``-``; ``project`` where nothing is left."""
    return _NOT_SLUG.sub("-", name.lower()).strip("-.") or "project"


def _escape(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode("utf-8", "surrogateescape"))

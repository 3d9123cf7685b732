"""One check a setting: it returns the value in its own type, or raises what the setting takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from outcrop.core.model import History, Kind
from outcrop.core.names import check_corpus
from outcrop.errors import BadConfig, UsageError

# The most that can be asked for by number.
MOST_COMMITS = 1_000_000

# What a file can be.
FILE_KINDS = tuple(kind for kind in Kind if kind is not Kind.COMMIT)

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"\s*+(\d{1,15})\s*+(?:([kmg])i?b?|b)?\s*+", re.ASCII | re.IGNORECASE)
_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SECRET_NAME = re.compile(r"[A-Za-z_][\w.:/@-]{0,199}", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_SECRET_HEADER = re.compile(r"key|token|secret|auth|passw|cookie", re.IGNORECASE)
_OWN_HEADERS = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "accept-encoding", "upgrade", "te"}
)


class _Expected(ValueError):
    """A value is wrong; the text says what its setting takes."""


def check(name: str, raw: object, origin: str) -> object:
    """The value of a setting in the type that ``Settings`` gives it; ``origin`` names its layer in the message."""
    try:
        return _CHECKS[name](raw)
    except _Expected as error:
        # The likely mistake there is a pasted token or password, which must not be printed.
        hidden = name in ("secret_ref", "headers") or (name == "endpoint_url" and "@" in str(raw))
        text = ascii(raw)
        shown = "this value" if hidden else text if len(text) <= 80 else f"{text[:77]}..."
        raise BadConfig(f"{origin}: {name} cannot be {shown}", f"It takes {error}.") from error


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip() or _UNPRINTABLE.search(raw):
        raise _Expected("one line of text")
    return raw.strip()


def _prefix(raw: object) -> str:
    if not isinstance(raw, str) or len(raw) > 1000 or "\0" in raw:
        raise _Expected("a text of at most 1000 characters; empty for none")
    return raw


def _between(low: int, high: int) -> Callable[[object], int]:
    def ranged(raw: object) -> int:
        number = _whole(raw)
        if not low <= number <= high:
            raise _Expected(f"a whole number from {low} to {high}")
        return number

    return ranged


def _whole(raw: object) -> int:
    if isinstance(raw, str) and re.fullmatch(r"\s*\d{1,15}\s*", raw, re.ASCII):
        return int(raw)
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise _Expected("a whole number")
    return raw


def _switch(raw: object) -> bool:
    word = str(raw).strip().lower()
    if not isinstance(raw, str | bool) or word not in _SWITCHES:
        raise _Expected("true or false")
    return _SWITCHES[word]


def _size(raw: object) -> int:
    if isinstance(raw, str) and (match := _SIZE.fullmatch(raw)):
        number = int(match[1]) * _UNITS[(match[2] or "").lower()]
    else:
        number = raw if isinstance(raw, int) and not isinstance(raw, bool) else 0
    if number < 1:
        raise _Expected("a number of bytes above 0, such as 1048576 or '2 MiB'")
    return number


def _url(raw: object) -> str:
    text = _text(raw)
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise _Expected("an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _Expected("an address without a name or password in it; secret_ref names the token")
    return text


def _secret(raw: object) -> str:
    if not isinstance(raw, str) or not _SECRET_NAME.fullmatch(raw):
        raise _Expected("the name of a token (a variable, or an entry of the keyring), not the token itself")
    return raw


def _headers(raw: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, Mapping):
        raise _Expected("a table of name = value")
    for name, value in raw.items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise _Expected("a table of name = value, without headers that belong to the connection itself")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise _Expected("a table of name = value, each value a line of ASCII text")
        if _SECRET_HEADER.search(name) and "{secret}" not in value:
            raise _Expected("a table of name = value, with {secret} in place of the token that secret_ref names")
    return tuple(raw.items())


def _texts(raw: object) -> tuple[str, ...]:
    items = [raw] if isinstance(raw, str) else raw
    if not isinstance(items, list | tuple):
        raise _Expected("a list of texts")
    return tuple(dict.fromkeys(_text(item) for item in items))


def _store(raw: object) -> Path:
    if not isinstance(raw, str | Path) or not str(raw) or "\0" in str(raw):
        raise _Expected("the path of a file")
    path = home(raw)
    if not path.is_absolute():
        raise _Expected("an absolute path")
    return path


def home(raw: str | Path) -> Path:
    """A path with ``~`` written out."""
    try:
        return Path(raw).expanduser()
    except RuntimeError:  # "~nobody": no such user, so it is a file name like any other
        return Path(raw)


def _history(raw: object) -> History:
    if isinstance(raw, str) and raw.strip().lower() == "all":
        return "all"
    try:
        return _between(0, MOST_COMMITS)(raw)
    except _Expected:
        raise _Expected(f"a whole number of commits from 0 to {MOST_COMMITS}, or all") from None


def _kinds(raw: object) -> tuple[tuple[str, Kind], ...]:
    if not isinstance(raw, Mapping):
        raise _Expected("a table of pattern = kind")
    pairs = []
    for pattern, kind in raw.items():
        if kind not in FILE_KINDS:
            raise _Expected(f"a table of pattern = kind, each kind one of {', '.join(FILE_KINDS)}")
        pairs.append((_text(pattern), Kind(kind)))
    return tuple(pairs)


def _corpora(raw: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(raw, Mapping):
        raise _Expected("a table of name = list of files, folders and patterns")
    for name in raw:
        try:
            check_corpus(name)
        except UsageError as error:
            raise _Expected(f"a table of name = list of paths, each name of {error.fix[4:]}") from error
    return tuple((name, _texts(paths)) for name, paths in raw.items())


_CHECKS: dict[str, Callable[[object], object]] = {
    "embedder": _text,
    "model": _text,
    "dim": _between(1, 65536),
    "endpoint_url": _url,
    "secret_ref": _secret,
    "headers": _headers,
    "query_prefix": _prefix,
    "passage_prefix": _prefix,
    "max_tokens": _between(16, 1_000_000),
    "batch": _between(1, 2048),
    "timeout": _between(1, 3600),
    "allow_remote": _texts,
    "store": _store,
    "max_bytes": _size,
    "exclude": _texts,
    "include_secrets": _texts,
    "kinds": _kinds,
    "raw_cells": _switch,
    "history": _history,
    "corpora": _corpora,
}

"""Requests and responses of the views, for an ASGI server and for a CGI.

Not Starlette's: its import takes 50 to 90 ms of processor time, a tenth of what the CGI imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from outcrop.core.model import Kind
from outcrop.errors import UsageError

# Of a query string: a question has at most 2,000 characters of up to twelve bytes.
MAX_QUERY_BYTES = 32_768

MAX_FIELDS = 1000

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reader:
    """What a reader may see: ``kinds`` (None for every kind) and, if ``local``, the paths of this machine."""

    kinds: frozenset[Kind] | None = None
    local: bool = False

    def may_see(self, kind: Kind) -> bool:
        return self.kinds is None or kind in self.kinds

    @property
    def sees_files(self) -> bool:
        """Whether the reader may see the repository's files, and so its check-ins."""
        return self.may_see(Kind.CODE)


# The user of ``outcrop serve``, or a client with its token.
OWNER = Reader(local=True)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a view, such as ``search`` or ``api/search``.

    ``params`` are in the order of the query string, ``base`` has no slash at its end, ``nonce`` is for scripts, and
    with ``skin`` the HTML goes into a page of Fossil.
    """

    path: str
    params: tuple[tuple[str, str], ...] = ()
    reader: Reader = OWNER
    base: str = "/ext"
    nonce: str = ""
    skin: bool = False

    def get(self, name: str) -> str:
        return next((value for key, value in reversed(self.params) if key == name), "")

    def all(self, name: str) -> tuple[str, ...]:
        """The values that are not blank, without duplicates."""
        return tuple(dict.fromkeys(value for key, value in self.params if key == name and value.strip()))

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number, clamped to its range; the default for any other text."""
        text = self.get(name)
        return max(low, min(high, int(text))) if text.isascii() and text.isdigit() and len(text) < 10 else default


@dataclass(frozen=True, slots=True)
class Response:
    """The answer of a view; ``headers`` are those beside Content-Type and Content-Length."""

    status: int
    body: bytes
    media_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)


def parse_query(query: str) -> tuple[tuple[str, str], ...]:
    """Names and values of a query string. Bytes that are not UTF-8 become replacement characters."""
    if len(query) > MAX_QUERY_BYTES:
        raise UsageError("the address is too long", f"At most {MAX_QUERY_BYTES:,} bytes after the ?")
    try:
        return tuple(parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise UsageError("the address has too many parts", f"At most {MAX_FIELDS:,} after the ?") from None

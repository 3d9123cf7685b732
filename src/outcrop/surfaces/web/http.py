"""What is asked of a view and what it answers, whatever carries it: an ASGI server or a CGI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from outcrop.core.model import Kind
from outcrop.errors import UsageError

# Of a query string: a question has at most 2,000 characters, and each takes up to twelve bytes there.
MAX_QUERY_BYTES = 32_768

MOST_FIELDS = 1000

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks, and so what may be shown.

    Attributes:
        kinds: Kinds that this reader may see, in hits, counts, catalog and messages alike; None for every kind.
        local: Whether they sit at this machine (or hold its token), so that its paths are theirs to know.
    """

    kinds: frozenset[Kind] | None = None
    local: bool = False

    def may_see(self, kind: Kind) -> bool:
        """Whether material of a kind is for this reader."""
        return self.kinds is None or kind in self.kinds

    @property
    def sees_files(self) -> bool:
        """Whether the repository's files, and so its check-ins, are for this reader."""
        return self.may_see(Kind.CODE)


# Whoever runs ``outcrop serve``, or was given its token.
OWNER = Reader(local=True)


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a view.

    Attributes:
        path: What follows the base: ``search``, ``view``, ``catalog``, ``api/search`` …
        params: Names and values of the query string, in order; a name may come several times.
        reader: Who looks.
        base: What every address of the page begins with, without a slash at its end.
        nonce: What the Content-Security-Policy lets scripts through by.
        skin: Whether the answer's HTML goes inside somebody else's page: only the content is rendered then.
    """

    path: str
    params: tuple[tuple[str, str], ...] = ()
    reader: Reader = OWNER
    base: str = "/ext"
    nonce: str = ""
    skin: bool = False

    def get(self, name: str, default: str = "") -> str:
        """The last value of a parameter."""
        return next((value for key, value in reversed(self.params) if key == name), default)

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a parameter that is not blank, each once."""
        return tuple(dict.fromkeys(value for key, value in self.params if key == name and value.strip()))

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number, brought into its range; the default where it is none."""
        text = self.get(name)
        return max(low, min(high, int(text))) if text.isascii() and text.isdigit() and len(text) < 10 else default


@dataclass(frozen=True, slots=True)
class Response:
    """A view's answer.

    Attributes:
        status: HTTP status code.
        body: Encoded.
        type: Media type.
        headers: Others than Content-Type and Content-Length.
    """

    status: int
    body: bytes
    type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> Iterator[tuple[str, str]]:
        """Every header."""
        yield "Content-Type", self.type
        yield from self.headers.items()


def parse_query(query: str) -> tuple[tuple[str, str], ...]:
    """Names and values of a query string. Bytes that are not UTF-8 become replacement characters."""
    if len(query) > MAX_QUERY_BYTES:
        raise UsageError("the address is too long", f"Keep what follows the ? within {MAX_QUERY_BYTES:,} bytes")
    try:
        return tuple(parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise UsageError("the address has too many parts", f"At most {MOST_FIELDS:,} after the ?") from None

"""The only place that makes addresses of the page's own views."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of the views; parameters that are None or ``""`` are left out.

    ``base`` is ``/ext``, or ``/ext/search`` where one CGI serves every view; it is then the address of the search page.
    """

    base: str

    def search(self, *pairs: tuple[str, object]) -> str:
        return _with_query(self.base if self.base.endswith("/search") else f"{self.base}/search", pairs)

    def view(self, *pairs: tuple[str, object]) -> str:
        return _with_query(f"{self.base}/view", pairs)

    def catalog(self) -> str:
        return f"{self.base}/catalog"

    def static(self, name: str, version: str) -> str:
        # A new version is a new address, so that browsers may keep the file forever.
        return f"{self.base}/static/{quote(name)}?v={version}"


def _with_query(address: str, pairs: Iterable[tuple[str, object]]) -> str:
    query = urlencode([(name, str(value)) for name, value in pairs if value is not None and value != ""])
    return f"{address}?{query}" if query else address

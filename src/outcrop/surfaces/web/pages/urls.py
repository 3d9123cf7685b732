"""Addresses of the page's own views. Nothing else writes one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

Pairs = Iterable[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the views are.

    Attributes:
        base: What every address begins with, without a slash at its end: ``/ext``, or ``/ext/search`` where one CGI of
            that name serves all of them; its own address is then the search page.
    """

    base: str

    def search(self, *pairs: tuple[str, object]) -> str:
        """The search page, with what is asked."""
        return _with(self.base if self.base.endswith("/search") else f"{self.base}/search", pairs)

    def view(self, *pairs: tuple[str, object]) -> str:
        """The viewer, with what is shown."""
        return _with(f"{self.base}/view", pairs)

    def catalog(self) -> str:
        """The catalog page."""
        return f"{self.base}/catalog"

    def api(self, name: str, *pairs: tuple[str, object]) -> str:
        """One operation of the JSON API."""
        return _with(f"{self.base}/api/{name}", pairs)

    def static(self, name: str, version: str) -> str:
        """A file of ours; another version has another address, so that it may be kept for ever."""
        return f"{self.base}/static/{quote(name)}?v={version}"


def _with(address: str, pairs: Pairs) -> str:
    """Without those that say nothing (None and ``""``)."""
    query = urlencode([(name, str(value)) for name, value in pairs if value is not None and value != ""])
    return f"{address}?{query}" if query else address

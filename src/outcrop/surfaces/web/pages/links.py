"""From a hit to the pages that show its artifact. The one room that makes such links.

Each maker is told every hit of an answer at once, because what git knows of their paths is asked in one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode

from outcrop.app.index import Index
from outcrop.core.model import Kind
from outcrop.sources.git.published import PublishedRemote
from outcrop.surfaces.web.pages.forges import forge_of
from outcrop.surfaces.web.pages.urls import Addresses


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a person sees it.

    Attributes:
        href: Where it leads.
        label: What it is called.
        outside: Whether it leaves this site.
    """

    href: str
    label: str
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """What a link has to know of an artifact.

    Attributes:
        kind: Its kind.
        project: Slug of its repository; empty for this one.
        path: Where it stands, or None.
        hash: Content address.
        lines: Lines to be shown, or None for all.
        cell: 0-based cell of a notebook, or None.
    """

    kind: Kind
    project: str
    path: str | None
    hash: str
    lines: tuple[int, int] | None = None
    cell: int | None = None

    @property
    def file_lines(self) -> tuple[int, int] | None:
        """The lines where they count in the file itself: those of a cell and of a transcript do not."""
        return None if self.cell is not None or self.kind is Kind.MEDIA else self.lines


class Links(Protocol):
    """Makes links for the hits of one answer."""

    def of(self, places: Sequence[Place], query: str = "", filters: str = "") -> Sequence[Sequence[Link]]:
        """The links of each place, the one that its title leads to first.

        Args:
            places: What is linked to.
            query: The question, where the page that is opened can mark its words and lead back.
            filters: What else the address of its answer said, as a query string, for the way back.
        """


class ViewerLinks:
    """The built-in viewer."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    def of(self, places: Sequence[Place], query: str = "", filters: str = "") -> Sequence[Sequence[Link]]:
        """One link each."""
        return [[Link(self.href(place, query, filters), "Open")] for place in places]

    def href(self, place: Place, query: str = "", filters: str = "") -> str:
        """The viewer at a place."""
        lines = None if place.lines is None else f"{place.lines[0]}-{place.lines[1]}"
        anchor = ""
        if place.lines is not None:
            cell = "" if place.cell is None else f"C{place.cell + 1}-"
            anchor = f"#{cell}L{place.lines[0]}"
        address = self._addresses.view(
            ("path", place.path),
            ("hash", place.hash),
            ("project", place.project),
            ("cell", None if place.cell is None else place.cell + 1),
            ("lines", lines),
            ("q", query),
            ("from", filters),
        )
        return address + anchor


class GitLinks:
    """The viewer, and the forge where the remote is known to have the very same file.

    Args:
        index: Whose source is a git repository.
        addresses: Of the viewer.
    """

    def __init__(self, index: Index, addresses: Addresses) -> None:
        self._viewer = ViewerLinks(addresses)
        view = index.source.worktree
        self._remote = PublishedRemote(
            index.source.root, view.removeprefix("rev:") if view.startswith("rev:") else "HEAD"
        )

    def of(self, places: Sequence[Place], query: str = "", filters: str = "") -> Sequence[Sequence[Link]]:
        """The viewer's, then the forge's for what is published word for word."""
        found = [list(links) for links in self._viewer.of(places, query, filters)]
        published = self._remote.published() if places else None
        forge = forge_of(published.url) if published is not None else None
        if published is None or forge is None:
            return found
        blobs = published.blobs([place.path for place in places if place.path and not place.project])
        for place, links in zip(places, found, strict=True):
            if not place.project and place.path and blobs.get(place.path) == place.hash:
                address = forge.blob(published.commit, place.path, place.file_lines)
                links.append(Link(address, forge.name, outside=True))
        return found


class FossilLinks:
    """Fossil's own pages, by the forms that were followed on a real server.

    Args:
        uri: Address of the repository there (``FOSSIL_URI``), without a slash at its end.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")

    def of(self, places: Sequence[Place], query: str = "", filters: str = "") -> Sequence[Sequence[Link]]:
        """One link each; none for what another repository holds."""
        return [
            [] if place.project else [Link(self._uri + _fossil_page(place), _PAGES[place.kind])] for place in places
        ]


_PAGES: Mapping[Kind, str] = dict.fromkeys(Kind, "File") | {
    Kind.WIKI: "Wiki page",
    Kind.TECHNOTE: "Technote",
    Kind.TICKET: "Ticket",
    Kind.FORUM: "Post",
}


def _fossil_page(place: Place) -> str:
    if place.kind is Kind.WIKI:
        return f"/wiki?{urlencode({'name': place.path or ''})}"
    if place.kind is Kind.TECHNOTE:
        return f"/technote/{quote(place.path or '', safe='')}"
    if place.kind is Kind.TICKET:
        return f"/tktview/{place.hash}"
    if place.kind is Kind.FORUM:
        return f"/forumpost/{place.hash}"
    # By its content: the passage's lines are right whatever happened to the file since.
    lines = "" if place.file_lines is None else f"?ln={place.file_lines[0]}-{place.file_lines[1]}"
    return f"/artifact/{place.hash}{lines}"


def links_for(index: Index, addresses: Addresses) -> Links:
    """What makes links for an index when the page is served on its own."""
    return GitLinks(index, addresses) if index.source.type == "git" else ViewerLinks(addresses)

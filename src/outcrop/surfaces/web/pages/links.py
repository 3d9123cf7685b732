"""Links from a hit to the pages that show its artifact; no other module makes such links.

Each maker gets every hit of an answer at once, so that git is asked once for all of their paths. The first link of a
hit is for its title; ``query`` and ``filters`` (a query string) lead back to the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from outcrop.app.index import Index
from outcrop.core.model import Kind
from outcrop.sources.git.published import PublishedRemote
from outcrop.surfaces.web.pages.forges import forge_of
from outcrop.surfaces.web.pages.urls import Addresses


@dataclass(frozen=True, slots=True)
class Link:
    """A link; ``outside`` means that it leaves this site."""

    href: str
    label: str
    outside: bool = False


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """An artifact to link to, with its first and last line (None for all) and 0-based cell in a notebook."""

    kind: Kind
    project: str
    path: str | None
    hash: str
    lines: tuple[int, int] | None = None
    cell: int | None = None

    @property
    def file_lines(self) -> tuple[int, int] | None:
        """None for a cell and a transcript, whose lines are not those of the file."""
        return None if self.cell is not None or self.kind is Kind.MEDIA else self.lines


class ViewerLinks:
    """The built-in viewer."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    def to(self, targets: Sequence[LinkTarget], query: str = "", filters: str = "") -> Sequence[Sequence[Link]]:
        found = []
        for target in targets:
            address = viewer_address(self._addresses, target, ("q", query), ("from", filters))
            cell = "" if target.cell is None else f"C{target.cell + 1}-"
            found.append([Link(address if target.lines is None else f"{address}#{cell}L{target.lines[0]}", "Open")])
        return found


def viewer_address(addresses: Addresses, target: LinkTarget, *pairs: tuple[str, object]) -> str:
    return addresses.view(
        ("path", target.path),
        ("hash", target.hash),
        ("project", target.project),
        ("cell", None if target.cell is None else target.cell + 1),
        ("lines", None if target.lines is None else "{}-{}".format(*target.lines)),
        *pairs,
    )


class GitLinks:
    """The viewer, and the forge where the remote is known to have the same file."""

    def __init__(self, index: Index, addresses: Addresses) -> None:
        self._viewer = ViewerLinks(addresses)
        view = index.source.worktree
        self._remote = PublishedRemote(
            index.source.root, view.removeprefix("rev:") if view.startswith("rev:") else "HEAD"
        )

    def to(self, targets: Sequence[LinkTarget], query: str = "", filters: str = "") -> Sequence[Sequence[Link]]:
        found = [list(links) for links in self._viewer.to(targets, query, filters)]
        published = self._remote.published() if targets else None
        forge = forge_of(published.url) if published is not None else None
        if published is None or forge is None:
            return found
        blobs = published.blobs([target.path for target in targets if target.path and not target.project])
        commits = published.ancestors([target.hash for target in targets if target.kind is Kind.COMMIT])
        for target, links in zip(targets, found, strict=True):
            if not target.project and target.kind is Kind.COMMIT and target.hash in commits:
                links.append(Link(forge.commit(target.hash), forge.name, outside=True))
            if not target.project and target.path and blobs.get(target.path) == target.hash:
                address = forge.blob(published.commit, target.path, target.file_lines)
                links.append(Link(address, forge.name, outside=True))
        return found


class FossilLinks:
    """Fossil's own pages below ``uri`` (``FOSSIL_URI``), in forms that were checked on a real server."""

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")

    def to(self, targets: Sequence[LinkTarget], query: str = "", filters: str = "") -> Sequence[Sequence[Link]]:
        # The repositories of other projects are not on this server.
        return [
            [] if target.project else [Link(self._uri + _fossil_page(target), _PAGES[target.kind])]
            for target in targets
        ]


_PAGES: Mapping[Kind, str] = dict.fromkeys(Kind, "File") | {
    Kind.WIKI: "Wiki page",
    Kind.TECHNOTE: "Technote",
    Kind.TICKET: "Ticket",
    Kind.FORUM: "Post",
    Kind.COMMIT: "Check-in",
}


def _fossil_page(target: LinkTarget) -> str:
    if target.kind is Kind.WIKI:
        return f"/wiki?{urlencode({'name': target.path or ''})}"
    if target.kind is Kind.TECHNOTE:
        return f"/technote/{quote(target.path or '', safe='')}"
    if target.kind is Kind.TICKET:
        return f"/tktview/{target.hash}"
    if target.kind is Kind.FORUM:
        return f"/forumpost/{target.hash}"
    if target.kind is Kind.COMMIT:
        return f"/info/{target.hash}"
    # By content, so that the lines stay right when the file changes.
    lines = "" if target.file_lines is None else f"?ln={target.file_lines[0]}-{target.file_lines[1]}"
    return f"/artifact/{target.hash}{lines}"


Links = ViewerLinks | GitLinks | FossilLinks


def links_for(index: Index, addresses: Addresses) -> Links:
    return GitLinks(index, addresses) if index.source.type == "git" else ViewerLinks(addresses)

"""What a Fossil repository shows to the public now: its tip, wiki pages, technotes, tickets and forum posts.

Whatever is private, waits for a moderator or was shunned is left out in every query. ``ticket``, ``ticketchng`` and
Fossil's own search index show pending text too and are not used.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from outcrop.errors import ArtifactUnreadable, SourceError
from outcrop.vcs.fossil import content, has_table, look_up, rows, setting
from outcrop.vcs.fossil_artifacts import (
    Card,
    FileCard,
    baseline_of,
    files_of,
    merge_files,
    parse_cards,
    post_text,
    technote_text,
    text_of,
    ticket_text,
    title_of,
)

_PUBLIC = "NOT IN (SELECT rid FROM private) AND b.uuid NOT IN (SELECT uuid FROM shun)"

_CHANGES = (
    "SELECT b.uuid, b.rid FROM tag t JOIN tagxref x USING(tagid) JOIN blob b ON b.rid = x.rid"
    f" WHERE t.tagname = ? AND b.rid {_PUBLIC} ORDER BY x.mtime, x.rid"
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A structured artifact: its hash and its number in this copy of the repository."""

    uuid: str
    rid: int


@dataclass(frozen=True, slots=True)
class Post:
    """The latest edit of a forum post, and of the post that its thread began with."""

    edit: Stored
    root: Stored

    @property
    def version(self) -> str:
        """Moves with the post and with the title of its thread."""
        if self.edit == self.root:
            return self.edit.uuid
        return _digest((self.edit.uuid, self.root.uuid))


@dataclass(frozen=True)
class Snapshot:
    """Everything public at one moment, by reference.

    Attributes:
        tip: The check-in that files are taken from, or None without any.
        wiki: Latest version by page name.
        technotes: Latest version by technote id.
        tickets: Changes, oldest first, by ticket uuid.
        posts: By hash of the latest edit.
    """

    tip: Stored | None
    wiki: Mapping[str, Stored]
    technotes: Mapping[str, Stored]
    tickets: Mapping[str, Sequence[Stored]]
    posts: Mapping[str, Post]

    @cached_property
    def pages(self) -> Mapping[str, Stored]:
        """Wiki pages and technotes by hash."""
        return {item.uuid: item for item in (*self.wiki.values(), *self.technotes.values())}

    @cached_property
    def digest(self) -> str:
        """Equal while the same wiki, technotes, tickets and posts are public."""
        return _digest(
            [f"wiki\0{name}\0{item.uuid}" for name, item in sorted(self.wiki.items())]
            + [f"technote\0{id}\0{item.uuid}" for id, item in sorted(self.technotes.items())]
            + [f"ticket\0{uuid}\0{ticket_version(items)}" for uuid, items in sorted(self.tickets.items())]
            + [f"post\0{uuid}\0{post.version}" for uuid, post in sorted(self.posts.items())]
        )


def ticket_version(changes: Iterable[Stored]) -> str:
    """Moves with each change of a ticket."""
    return _digest([item.uuid for item in changes])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def take(database: sqlite3.Connection, branch: str | None) -> Snapshot:
    """Look at everything once.

    Args:
        database: The repository.
        branch: Whose tip; None for the repository's main branch.
    """
    return Snapshot(
        tip=find_tip(database, branch),
        wiki=_latest(database, "wiki-"),
        technotes=_latest(database, "event-"),
        tickets=_tickets(database),
        posts=_posts(database),
    )


def find_tip(database: sqlite3.Connection, branch: str | None) -> Stored | None:
    """The latest public check-in of a branch; None in a repository without any public check-in."""
    name = branch or setting(database, "main-branch") or "trunk"
    found = rows(
        database,
        "SELECT b.uuid, b.rid FROM tag t JOIN tagxref x USING(tagid) JOIN event e ON e.objid = x.rid"
        " JOIN blob b ON b.rid = x.rid WHERE t.tagname = ? AND x.tagtype > 0 AND e.type = 'ci'"
        f" AND b.rid {_PUBLIC} ORDER BY e.mtime DESC, b.rid DESC LIMIT 1",
        (f"sym-{name}",),
    )
    if found:
        return Stored(*found[0])
    others = rows(
        database,
        "SELECT DISTINCT x.value FROM tag t JOIN tagxref x USING(tagid) JOIN event e ON e.objid = x.rid"
        " JOIN blob b ON b.rid = x.rid WHERE t.tagname = 'branch' AND x.tagtype > 0 AND e.type = 'ci'"
        f" AND b.rid {_PUBLIC} ORDER BY 1 LIMIT 20",
    )
    if others or branch:
        names = ", ".join(str(row[0]) for row in others) or "none"
        raise SourceError(f"the repository has no public check-in on a branch {name!r}", f"Branches: {names}")
    return None


def _latest(database: sqlite3.Connection, prefix: str) -> Mapping[str, Stored]:
    """The latest version of each page whose tag begins so. A page without text was deleted."""
    found = rows(
        database,
        "SELECT substr(t.tagname, ?), b.uuid, b.rid, x.value + 0 FROM tag t JOIN tagxref x USING(tagid)"
        f" JOIN blob b ON b.rid = x.rid WHERE t.tagname GLOB ? AND x.tagtype > 0 AND b.rid {_PUBLIC}"
        " ORDER BY x.mtime, x.rid",
        (len(prefix) + 1, f"{prefix}*"),
    )
    latest = {name: (Stored(uuid, rid), size) for name, uuid, rid, size in found}
    return {name: item for name, (item, size) in latest.items() if size}


def _tickets(database: sqlite3.Connection) -> Mapping[str, Sequence[Stored]]:
    found = rows(
        database,
        "SELECT substr(t.tagname, 5), b.uuid, b.rid FROM tag t JOIN tagxref x USING(tagid)"
        f" JOIN blob b ON b.rid = x.rid WHERE t.tagname GLOB 'tkt-*' AND b.rid {_PUBLIC} ORDER BY x.mtime, x.rid",
    )
    tickets: dict[str, list[Stored]] = {}
    for ticket, uuid, rid in found:
        tickets.setdefault(ticket, []).append(Stored(uuid, rid))
    return tickets


def _posts(database: sqlite3.Connection) -> Mapping[str, Post]:
    if not has_table(database, "forumpost"):
        return {}
    found = rows(
        database,
        f"WITH public AS (SELECT f.*, b.uuid FROM forumpost f JOIN blob b ON b.rid = f.fpid WHERE b.rid {_PUBLIC})"
        " SELECT p.fpid, p.uuid, p.froot, p.firt FROM public p"
        " WHERE NOT EXISTS(SELECT 1 FROM public n WHERE n.fprev = p.fpid) ORDER BY p.fmtime, p.fpid",
    )
    # The first post of a thread answers nothing; its latest edit carries the title.
    roots = {root: Stored(uuid, rid) for rid, uuid, root, answers in found if answers is None}
    posts = {}
    for rid, uuid, root, _ in found:
        edit = Stored(uuid, rid)
        posts[uuid] = Post(edit, roots.get(root, edit))
    return posts


def withheld(database: sqlite3.Connection, versions: Mapping[str, str]) -> frozenset[str]:
    """Of artifacts that were indexed, those that may not be shown any more: private, shunned, rejected or expunged.

    What was merely edited since is not among them; the index is then behind, which an answer says by itself.

    Args:
        database: The repository.
        versions: Indexed artifacts: version by hash. That of a media manifest ends with its transcript's hash.
    """
    transcripts = {hash: version.partition("+")[2] for hash, version in versions.items() if "+" in version}
    blobs = look_up(database, [*versions, *transcripts.values()])
    secret = {hash for hash, blob in blobs.items() if blob.private or blob.shunned}
    hidden = {hash for hash in versions if hash in secret or transcripts.get(hash) in secret}
    hidden |= {hash for hash, transcript in transcripts.items() if transcript not in blobs}
    unknown = {hash: version for hash, version in versions.items() if hash not in blobs}
    for hash, version in unknown.items():
        changes = [Stored(uuid, rid) for uuid, rid in rows(database, _CHANGES, (f"tkt-{hash}",))]
        # Comments are added at the end. Where no beginning of the ticket is what was indexed, one was taken out.
        if not any(ticket_version(changes[:count]) == version for count in range(1, len(changes) + 1)):
            hidden.add(hash)
    return frozenset(hidden)


def unseen(database: sqlite3.Connection, hashes: Collection[str]) -> frozenset[str]:
    """Those artifacts, tickets among them, that never arrived in this copy of the repository, and were not shunned."""
    known = {hash for hash, blob in look_up(database, hashes).items() if blob.size >= 0 or blob.private or blob.shunned}
    known |= {uuid for (uuid,) in rows(database, "SELECT uuid FROM shun")}
    known |= {ticket for (ticket,) in rows(database, "SELECT substr(tagname, 5) FROM tag WHERE tagname GLOB 'tkt-*'")}
    return frozenset(hashes) - known


def tip_files(database: sqlite3.Connection, tip: Stored) -> list[FileCard]:
    """The files of a check-in."""
    cards = _cards(database, tip, "check-in")
    files = files_of(cards)
    baseline = baseline_of(cards)
    if baseline is None:
        return files
    blob = look_up(database, [baseline]).get(baseline)
    if blob is None:
        raise ArtifactUnreadable(f"check-in {tip.uuid[:10]} builds on {baseline[:10]}, which is not in this repository")
    return merge_files(files_of(_cards(database, Stored(baseline, blob.rid), "check-in")), files)


def page_bytes(database: sqlite3.Connection, page: Stored) -> bytes:
    """The text of a wiki page, in whatever markup it was written."""
    return text_of(_cards(database, page, "wiki page"))


def technote_bytes(database: sqlite3.Connection, technote: Stored) -> bytes:
    """A technote: its title as a Markdown heading, then its text."""
    return technote_text(_cards(database, technote, "technote"))


def ticket_bytes(database: sqlite3.Connection, changes: Iterable[Stored]) -> bytes:
    """A ticket: its title, then one post per comment (see ``fossil_artifacts.post_text``)."""
    return ticket_text(_cards(database, change, "ticket change") for change in changes)


def post_bytes(database: sqlite3.Connection, post: Post) -> bytes:
    """A forum post: the title of its thread, then its text; empty where the post was deleted."""
    text = text_of(_cards(database, post.edit, "forum post"))
    if not text.strip():
        return b""
    title = title_of(_cards(database, post.root, "forum post"))
    return post_text(title, [text], titled=post.edit == post.root)


def _cards(database: sqlite3.Connection, item: Stored, what: str) -> list[Card]:
    try:
        return parse_cards(content(database, item.uuid, item.rid))
    except ArtifactUnreadable as error:
        raise ArtifactUnreadable(f"{what} {item.uuid[:10]}: {error.what}", error.fix) from error

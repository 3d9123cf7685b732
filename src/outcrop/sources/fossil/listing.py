"""What a Fossil repository shows to the public now: its tip, wiki pages, technotes, tickets and forum posts.

Every query leaves out what is private, waits for a moderator or was shunned. ``ticket``, ``ticketchng`` and Fossil's
own search index show pending text too and are not used.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from outcrop.core.model import History, Kind, Ref
from outcrop.errors import ArtifactUnreadable, SourceError
from outcrop.sources.paths import to_text
from outcrop.text.commits import MOST_FILES, commit_text
from outcrop.vcs import fossil_artifacts as artifacts
from outcrop.vcs.fossil import fetch_rows, find_blobs, has_table, read_content, read_setting

_PUBLIC = "NOT IN (SELECT rid FROM private) AND b.uuid NOT IN (SELECT uuid FROM shun)"
_TAGGED = "FROM tag t JOIN tagxref x USING(tagid) JOIN blob b ON b.rid = x.rid"
_CHECKED_IN = (
    "FROM tag t JOIN tagxref x USING(tagid) JOIN event e ON e.objid = x.rid JOIN blob b ON b.rid = x.rid"
    f" WHERE x.tagtype > 0 AND e.type = 'ci' AND b.rid {_PUBLIC} AND t.tagname"
)


_HIDDEN = "(SELECT x.rid FROM tag t JOIN tagxref x USING(tagid) WHERE t.tagname = 'hidden' AND x.tagtype > 0)"
_HIDDEN_CHECKINS = f"SELECT b.uuid FROM blob b WHERE b.rid IN {_HIDDEN}"
# A merge of a public check-in: what it brings is known from there.
_MERGES = "(SELECT p.cid FROM plink p WHERE NOT p.isprim AND p.pid NOT IN (SELECT rid FROM private))"
_VISIBLE_CHECKIN = f"e.type = 'ci' AND b.rid {_PUBLIC} AND b.rid NOT IN {_HIDDEN} AND b.rid NOT IN {_MERGES}"
# NULL unless comment, user or date was amended.
_AMENDED = (
    "CASE WHEN coalesce(e.ecomment, e.euser, e.omtime) IS NOT NULL"
    " THEN coalesce(e.ecomment, '') || char(10) || coalesce(e.euser, '') || char(10) || e.mtime END"
)


@dataclass(frozen=True, slots=True)
class Structured:
    """A structured artifact: its hash and its number in this copy of the repository."""

    uuid: str
    rid: int


@dataclass(frozen=True, slots=True)
class Post:
    """The latest edit of a forum post, and of the post that its thread began with."""

    edit: Structured
    root: Structured

    @property
    def version(self) -> str:
        """Changes with the post and with the title of its thread."""
        return self.edit.uuid if self.edit == self.root else _digest((self.edit.uuid, self.root.uuid))


@dataclass(frozen=True)
class PublicArtifacts:
    """Everything public at one moment, by reference.

    The tip is the check-in of the files. Latest versions of wiki pages and technotes are by name and id, changes of a
    ticket (oldest first) by its uuid, posts by the hash of their latest edit, versions of check-ins (newest first) by
    their hash.
    """

    tip: Structured | None
    wiki: Mapping[str, Structured]
    technotes: Mapping[str, Structured]
    tickets: Mapping[str, Sequence[Structured]]
    posts: Mapping[str, Post]
    checkins: Mapping[str, str]

    @cached_property
    def pages(self) -> Mapping[str, Structured]:
        return {item.uuid: item for item in (*self.wiki.values(), *self.technotes.values())}

    @cached_property
    def digest(self) -> str:
        """Equal while the same wiki, technotes, tickets, posts and check-ins are public."""
        return _digest(
            [f"wiki\0{name}\0{item.uuid}" for name, item in sorted(self.wiki.items())]
            + [f"technote\0{name}\0{item.uuid}" for name, item in sorted(self.technotes.items())]
            + [f"ticket\0{uuid}\0{ticket_version(items)}" for uuid, items in sorted(self.tickets.items())]
            + [f"post\0{uuid}\0{post.version}" for uuid, post in sorted(self.posts.items())]
            + [f"checkin\0{version}" for version in sorted(self.checkins.values())]
        )

    def refs(self) -> Iterator[Ref]:
        """Everything but the files."""
        for name, item in self.wiki.items():
            yield Ref(item.uuid, Kind.WIKI, to_text(name.encode()), item.uuid)
        for name, item in self.technotes.items():
            yield Ref(item.uuid, Kind.TECHNOTE, name, item.uuid)
        for uuid, changes in self.tickets.items():
            yield Ref(uuid, Kind.TICKET, None, ticket_version(changes))
        for uuid, post in self.posts.items():
            yield Ref(uuid, Kind.FORUM, None, post.version)


def ticket_version(changes: Iterable[Structured]) -> str:
    return _digest([item.uuid for item in changes])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def read_public(database: sqlite3.Connection, branch: str | None, history: History) -> PublicArtifacts:
    return PublicArtifacts(
        tip=find_tip(database, branch),
        wiki=_latest(database, "wiki-"),
        technotes=_latest(database, "event-"),
        tickets=_tickets(database),
        posts=_posts(database),
        checkins=_checkins(database, history) if history else {},
    )


def find_tip(database: sqlite3.Connection, branch: str | None) -> Structured | None:
    """The latest public check-in of a branch; None in a repository without any public check-in."""
    name = branch or read_setting(database, "main-branch") or "trunk"
    found = fetch_rows(
        database, f"SELECT b.uuid, b.rid {_CHECKED_IN} = ? ORDER BY e.mtime DESC, b.rid DESC LIMIT 1", (f"sym-{name}",)
    )
    if found:
        return Structured(*found[0])
    others = fetch_rows(database, f"SELECT DISTINCT x.value {_CHECKED_IN} = 'branch' ORDER BY 1 LIMIT 20")
    if others or branch:
        names = ", ".join(str(row[0]) for row in others) or "none"
        raise SourceError(f"the repository has no public check-in on a branch {name!r}", f"Branches: {names}")
    return None


def _latest(database: sqlite3.Connection, prefix: str) -> Mapping[str, Structured]:
    """The latest version of each page whose tag begins so. A page without text was deleted."""
    found = fetch_rows(
        database,
        f"SELECT substr(t.tagname, ?), b.uuid, b.rid, x.value + 0 {_TAGGED}"
        f" WHERE t.tagname GLOB ? AND x.tagtype > 0 AND b.rid {_PUBLIC} ORDER BY x.mtime, x.rid",
        (len(prefix) + 1, f"{prefix}*"),
    )
    latest = {name: (Structured(uuid, rid), size) for name, uuid, rid, size in found}
    return {name: item for name, (item, size) in latest.items() if size}


def _tickets(database: sqlite3.Connection, ticket: str | None = None) -> Mapping[str, Sequence[Structured]]:
    """Public changes, oldest first, of every ticket or of one."""
    found = fetch_rows(
        database,
        f"SELECT substr(t.tagname, 5), b.uuid, b.rid {_TAGGED}"
        f" WHERE t.tagname {'GLOB' if ticket is None else '='} ? AND b.rid {_PUBLIC} ORDER BY x.mtime, x.rid",
        (f"tkt-{ticket or '*'}",),
    )
    tickets: dict[str, list[Structured]] = {}
    for name, uuid, rid in found:
        tickets.setdefault(name, []).append(Structured(uuid, rid))
    return tickets


def _checkins(database: sqlite3.Connection, history: History) -> Mapping[str, str]:
    """Versions of the newest public check-ins, by hash, newest first."""
    found = fetch_rows(
        database,
        f"SELECT b.uuid, {_AMENDED} FROM event e JOIN blob b ON b.rid = e.objid"
        f" WHERE {_VISIBLE_CHECKIN} ORDER BY e.mtime DESC, e.objid DESC LIMIT ?",
        # In SQLite -1 is no limit.
        (-1 if history == "all" else history,),
    )
    return {uuid: uuid if amended is None else _digest((uuid, amended)) for uuid, amended in found}


def read_checkin(database: sqlite3.Connection, ref: Ref) -> tuple[Ref, str] | None:
    """A check-in as it is now, with its true version; None where it is not public any more."""
    found = fetch_rows(
        database,
        f"SELECT e.objid, {_AMENDED}, coalesce(e.ecomment, e.comment, ''), coalesce(e.euser, e.user, ''),"
        " coalesce(date(e.mtime), '')"
        f" FROM event e JOIN blob b ON b.rid = e.objid WHERE {_VISIBLE_CHECKIN} AND b.uuid = ?",
        (ref.hash,),
    )
    if not found:
        return None
    rid, amended, comment, user, date = found[0]
    version = ref.hash if amended is None else _digest((ref.hash, amended))
    # Rows of other parents of a merge are marked as auxiliary.
    changed = "FROM mlink m JOIN filename f USING(fnid) WHERE m.mid = ? AND NOT m.isaux"
    files = fetch_rows(database, f"SELECT DISTINCT f.name {changed} ORDER BY f.name LIMIT ?", (rid, MOST_FILES))
    count = fetch_rows(database, f"SELECT count(DISTINCT f.name) {changed}", (rid,))[0][0]
    names = [to_text(name.encode()) for (name,) in files]
    return replace(ref, version=version), commit_text(comment, user, date, names, count)


def _posts(database: sqlite3.Connection) -> Mapping[str, Post]:
    if not has_table(database, "forumpost"):
        return {}
    found = fetch_rows(
        database,
        f"WITH public AS (SELECT f.*, b.uuid FROM forumpost f JOIN blob b ON b.rid = f.fpid WHERE b.rid {_PUBLIC})"
        " SELECT p.fpid, p.uuid, p.froot, p.firt FROM public p"
        " WHERE NOT EXISTS(SELECT 1 FROM public n WHERE n.fprev = p.fpid) ORDER BY p.fmtime, p.fpid",
    )
    # The first post of a thread answers nothing; its latest edit carries the title.
    roots = {root: Structured(uuid, rid) for rid, uuid, root, answers in found if answers is None}
    posts = {}
    for rid, uuid, root, _ in found:
        edit = Structured(uuid, rid)
        posts[uuid] = Post(edit, roots.get(root, edit))
    return posts


def withheld(database: sqlite3.Connection, versions: Mapping[str, str]) -> frozenset[str]:
    """Of indexed artifacts (version by hash), those that are private, shunned, rejected or expunged now.

    What was merely edited since is not among them: the index is then stale, which each answer reports by itself.
    """
    # The version of a media manifest ends with its transcript's hash.
    transcripts = {uuid: version.partition("+")[2] for uuid, version in versions.items() if "+" in version}
    blobs = find_blobs(database, [*versions, *transcripts.values()])
    secret = {uuid for uuid, blob in blobs.items() if blob.private or blob.shunned}
    hidden = {uuid for uuid in versions if uuid in secret or transcripts.get(uuid) in secret}
    hidden |= {uuid for uuid, transcript in transcripts.items() if transcript not in blobs}
    hidden |= versions.keys() & {uuid for (uuid,) in fetch_rows(database, _HIDDEN_CHECKINS)}
    for uuid in versions.keys() - blobs.keys():
        changes = _tickets(database, uuid).get(uuid, ())
        # Comments are added at the end. Where no beginning of the ticket is what was indexed, one was taken out.
        if not any(ticket_version(changes[:count]) == versions[uuid] for count in range(1, len(changes) + 1)):
            hidden.add(uuid)
    return frozenset(hidden)


def foreign_artifacts(database: sqlite3.Connection, hashes: Collection[str]) -> frozenset[str]:
    """Those artifacts, tickets among them, that never arrived in this copy of the repository, and were not shunned."""
    known = {
        uuid for uuid, blob in find_blobs(database, hashes).items() if blob.size >= 0 or blob.private or blob.shunned
    }
    known |= {uuid for (uuid,) in fetch_rows(database, "SELECT uuid FROM shun")}
    known |= {
        ticket for (ticket,) in fetch_rows(database, "SELECT substr(tagname, 5) FROM tag WHERE tagname GLOB 'tkt-*'")
    }
    return frozenset(hashes) - known


def tip_files(database: sqlite3.Connection, tip: Structured) -> list[artifacts.FileCard]:
    cards = _cards(database, tip, "check-in")
    baseline = artifacts.baseline_of(cards)
    if baseline is None:
        return artifacts.files_of(cards)
    blob = find_blobs(database, [baseline]).get(baseline)
    if blob is None:
        raise ArtifactUnreadable(f"check-in {tip.uuid[:10]} builds on {baseline[:10]}, which is not in this repository")
    base = _cards(database, Structured(baseline, blob.rid), "check-in")
    return artifacts.merge_files(artifacts.files_of(base), artifacts.files_of(cards))


def read_structured(database: sqlite3.Connection, ref: Ref, public: PublicArtifacts) -> tuple[Ref, bytes] | None:
    """A page, ticket or post as it is now, with its true version; None where it is not public any more.

    Wiki pages come in whatever markup they were written; the rest as Markdown, see ``vcs.fossil_artifacts``.
    """
    if ref.kind is Kind.TICKET:
        changes = public.tickets.get(ref.hash)
        if changes is None:
            return None
        text = artifacts.ticket_text(_cards(database, change, "ticket change") for change in changes)
        return replace(ref, version=ticket_version(changes)), text
    if ref.kind is Kind.FORUM:
        post = public.posts.get(ref.hash)
        return None if post is None else (replace(ref, version=post.version), _read_post(database, post))
    page = public.pages.get(ref.hash)
    if page is None:
        return None
    if ref.kind is Kind.WIKI:
        return ref, artifacts.text_of(_cards(database, page, "wiki page"))
    return ref, artifacts.technote_text(_cards(database, page, "technote"))


def _read_post(database: sqlite3.Connection, post: Post) -> bytes:
    """The title of its thread, then its text; empty where the post was deleted."""
    text = artifacts.text_of(_cards(database, post.edit, "forum post"))
    if not text.strip():
        return b""
    title = artifacts.title_of(_cards(database, post.root, "forum post"))
    return artifacts.post_text(title, [text], titled=post.edit == post.root)


def _cards(database: sqlite3.Connection, item: Structured, what: str) -> list[artifacts.Card]:
    try:
        return artifacts.parse_cards(read_content(database, item.uuid, item.rid))
    except ArtifactUnreadable as error:
        raise ArtifactUnreadable(f"{what} {item.uuid[:10]}: {error.what}", error.fix) from error

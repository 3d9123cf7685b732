"""Who may read what in a Fossil repository, from the capability letters of its users.

Fossil's letters: ``o`` files, ``j`` wiki and technotes, ``r`` tickets, ``2`` forum; others include these. ``t`` lets a
user write ticket reports, which may select from every ``fx_`` table, whatever else Fossil withholds from that user.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from outcrop.core.model import Kind
from outcrop.vcs.fossil import fetch_rows

_INCLUDED: Mapping[str, str] = {
    "s": "a", "a": "ikwt6", "i": "o", "k": "j", "w": "r", "6": "5", "5": "4", "4": "3", "3": "2",
}  # fmt: skip
# Letters that mean all the capabilities of another user. These users are not accounts for a login.
_TEMPLATES = {"u": "reader", "v": "developer"}

_NEEDED: Mapping[Kind, str] = {
    Kind.WIKI: "j", Kind.TECHNOTE: "j", Kind.TICKET: "r", Kind.FORUM: "2",
}  # fmt: skip
_FILES = "o"
_READING = frozenset({_FILES, *_NEEDED.values()})
_REPORTS = "t"

# Fossil's name for a visitor who is not logged in.
NOBODY = "nobody"
_ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class ReportWriter:
    """A user who can read indexed text through a ticket report, and the kinds that Fossil withholds from this user."""

    login: str
    withheld: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Claim:
    """What Fossil tells a program under ``/ext`` of its visitor, in these variables of the environment.

    Fossil sets REMOTE_USER and FOSSIL_USER only for a visitor who is logged in. Without a login both may be those of
    the server's own environment or of the web server in front of it.

    Attributes:
        user: FOSSIL_USER.
        remote_user: REMOTE_USER.
        granted: FOSSIL_CAPABILITIES: those of the login or of ``nobody``, and in both cases those of ``anonymous``.
        cookies: HTTP_COOKIE.
    """

    user: str
    remote_user: str
    granted: str
    cookies: str


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks, ``nobody`` where that is in doubt, and every capability letter that counts for the answer."""

    login: str
    capabilities: frozenset[str]


def identify(database: sqlite3.Connection, claim: Claim) -> Visitor:
    """The visitor, who never has more than Fossil says and than the repository says."""
    users = dict(_users(database))
    granted = _close(users, claim.granted)
    login = claim.user if claim.user and claim.user == claim.remote_user else NOBODY
    # Without a login, Fossil names the capabilities of anonymous: more than these are proof of one.
    is_proven = not _READING & granted <= _expand(users, _ANONYMOUS)
    if not is_proven and not _has_login_cookie(database, login, claim.cookies):
        login = NOBODY
    return Visitor(login, _expand(users, login) & granted)


def _has_login_cookie(database: sqlite3.Connection, login: str, cookies: str) -> bool:
    """Whether one of the cookies is Fossil's own for this login: ``SECRET/CODE/LOGIN``.

    The secret of ``anonymous`` is not checked: it differs between versions, and the login page gives everybody one.
    """
    valid = "SELECT 1 FROM user WHERE login = ? AND cookie = ? AND cexpire > julianday('now')"
    for cookie in cookies.split(";"):
        name, _, value = cookie.strip().partition("=")
        secret, _, rest = unquote(value).partition("/")
        if not name.startswith("fossil-") or rest.partition("/")[2] != login:
            continue
        if login == _ANONYMOUS or fetch_rows(database, valid, (login, secret)):
            return True
    return False


def capabilities_of(database: sqlite3.Connection, login: str) -> frozenset[str]:
    """Every capability letter of a user, directly or by inclusion. An unknown login has those of ``nobody``."""
    return _expand(dict(_users(database)), login)


def may_see(capabilities: Collection[str], kind: Kind) -> bool:
    return _NEEDED.get(kind, _FILES) in capabilities


def report_writers(database: sqlite3.Connection, kinds: Collection[Kind]) -> list[ReportWriter]:
    """Users who may write ticket reports but may not see all of these (indexed) kinds."""
    users = dict(_users(database))
    found = []
    for login in users.keys() - _TEMPLATES.values():
        capabilities = _expand(users, login)
        withheld = frozenset(kind for kind in kinds if not may_see(capabilities, kind))
        if _REPORTS in capabilities and withheld:
            found.append(ReportWriter(login, withheld))
    return sorted(found, key=lambda writer: writer.login)


def _users(database: sqlite3.Connection) -> list[tuple[str, str]]:
    return [(login, cap or "") for login, cap in fetch_rows(database, "SELECT login, cap FROM user")]


def _expand(users: Mapping[str, str], login: str) -> frozenset[str]:
    """Of a user. What ``nobody`` may do, everybody may do; what ``anonymous`` may do, everybody who is logged in."""
    known = login if login in users else NOBODY
    shared = (NOBODY,) if known == NOBODY else (NOBODY, _ANONYMOUS)
    return _close(users, (letter for name in (known, *shared) for letter in users.get(name, "")))


def _close(users: Mapping[str, str], letters: Iterable[str]) -> frozenset[str]:
    """Capability letters with all that they include."""
    pending = list(letters)
    found: set[str] = set()
    while pending:
        letter = pending.pop()
        if letter not in found:
            found.add(letter)
            pending += _INCLUDED.get(letter, "")
            pending += users.get(_TEMPLATES.get(letter, ""), "")
    return frozenset(found)

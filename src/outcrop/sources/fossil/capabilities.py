"""Who may read what in a Fossil repository, from the capability letters of its users.

Fossil's letters: ``o`` files, ``j`` wiki and technotes, ``r`` tickets, ``2`` forum; others include these. ``t`` lets a
user write ticket reports, which may select from every ``fx_`` table, whatever else Fossil withholds from that user.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass

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
_REPORTS = "t"
# What these may do, every user who is logged in may do.
_SHARED = ("nobody", "anonymous")


@dataclass(frozen=True, slots=True)
class ReportWriter:
    """A user who can read indexed text through a ticket report, and the kinds that Fossil withholds from this user."""

    login: str
    withheld: frozenset[Kind]


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
    known = login if login in users else "nobody"
    shared = _SHARED[:1] if known == "nobody" else _SHARED
    pending = [letter for name in (known, *shared) for letter in users.get(name, "")]
    found: set[str] = set()
    while pending:
        letter = pending.pop()
        if letter not in found:
            found.add(letter)
            pending += _INCLUDED.get(letter, "")
            pending += users.get(_TEMPLATES.get(letter, ""), "")
    return frozenset(found)

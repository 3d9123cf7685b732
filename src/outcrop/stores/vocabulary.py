"""What the keyword index knows of single words: whether they are held, how they are spelt, what they name. Source:
https://sqlite.org/fts5.html, "FTS5 Column Filters" and "The fts5vocab Virtual Table Module".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from outcrop import terms
from outcrop.model import Kind
from outcrop.stores.keywords import TABLE
from outcrop.stores.selection import EVERYWHERE

PASSAGES = 12
"""Passages that are looked at for the forms of a stem."""


NAMED = 4000
"""Passages whose names hold a word that are looked at for one that is named just so."""


def defining(database: sqlite3.Connection, name: str) -> list[int]:
    """Passages of code whose own name is this one, those of the same case first."""
    words = terms.words(name)
    if not words:
        return []
    match = "{name} : " + '"' + " ".join(words) + '"'
    rows = database.execute(
        f"SELECT c.id, c.name FROM {TABLE} t JOIN fx_vec_chunk c ON c.id = t.rowid WHERE {TABLE} MATCH ? LIMIT ?",
        (match, NAMED),
    )
    exact, loose = [], []
    for id, names in rows:
        own = {part.strip().rpartition(".")[2] for part in (names or "").split(",")}
        if name in own:
            exact.append(id)
        elif name.lower() in map(str.lower, own):
            loose.append(id)
    return [*sorted(exact), *sorted(loose)]


def unknown(database: sqlite3.Connection, worktree: str, words: Sequence[str], kinds: Sequence[Kind]) -> frozenset[str]:
    """Those words that no passage of a view and of these kinds (none named: any) holds in any form."""
    visible, values = _visible(f"{TABLE}.rowid", worktree, kinds)
    question = f"SELECT 1 FROM {TABLE} WHERE {TABLE} MATCH ? AND {visible} LIMIT 1"
    return frozenset(word for word in words if database.execute(question, (f'"{word}"', *values)).fetchone() is None)


def stems(database: sqlite3.Connection, beginning: str) -> Mapping[str, int]:
    """The stems that begin so, and how many passages hold each."""
    _open(database, "row")
    rows = database.execute(
        "SELECT term, doc FROM temp.fx_vec_vocabulary_row WHERE term >= ? AND term <= ?",
        (beginning, f"{beginning}\U0010ffff"),
    )
    return dict(rows.fetchall())


def forms(database: sqlite3.Connection, worktree: str, stem: str, kinds: Sequence[Kind]) -> frozenset[str]:
    """Words of a stem, as the first passages of a view and of these kinds (none named: any) have them."""
    _open(database, "instance")
    visible, values = _visible("doc", worktree, kinds)
    rows = database.execute(
        f"SELECT DISTINCT doc FROM temp.fx_vec_vocabulary_instance WHERE term = ? AND {visible} LIMIT ?",
        (stem, *values, PASSAGES),
    ).fetchall()
    found: set[str] = set()
    for (id,) in rows:
        columns = database.execute(f"SELECT name, path, body FROM {TABLE} WHERE rowid = ?", (id,)).fetchone()
        found.update(word for column in columns for word in column.split() if terms.stem(word) == stem)
    return frozenset(found)


def _visible(id: str, worktree: str, kinds: Sequence[Kind]) -> tuple[str, Sequence[str]]:
    """A condition on a chunk's id, and its values. Words are met in a few passages, so each is looked up on its own."""
    of_kinds = f" AND m.kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    condition = (
        "EXISTS(SELECT 1 FROM fx_vec_chunk c JOIN fx_vec_member m"
        " ON m.project = c.project AND m.hash = c.hash AND m.part = c.part"
        f" WHERE c.id = {id} AND m.worktree IN (?, ?){of_kinds})"
    )
    return condition, (worktree, EVERYWHERE, *kinds)


def _open(database: sqlite3.Connection, sort: str) -> None:
    database.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.fx_vec_vocabulary_{sort} USING fts5vocab(main, {TABLE}, {sort})"
    )

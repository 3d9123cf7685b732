"""The words that the keyword index holds, for questions with spelling mistakes. Source: https://sqlite.org/fts5.html,
"The fts5vocab Virtual Table Module".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from outcrop import terms
from outcrop.stores.keywords import TABLE

PASSAGES = 12
"""Passages that are looked at for the forms of a stem."""


def unknown(database: sqlite3.Connection, words: Sequence[str]) -> frozenset[str]:
    """Those words that no passage holds in any form."""
    question = f"SELECT 1 FROM {TABLE} WHERE {TABLE} MATCH ? LIMIT 1"
    return frozenset(word for word in words if database.execute(question, (f'"{word}"',)).fetchone() is None)


def stems(database: sqlite3.Connection, beginning: str) -> Mapping[str, int]:
    """The stems that begin so, and how many passages hold each."""
    _open(database, "row")
    rows = database.execute(
        "SELECT term, doc FROM temp.fx_vec_vocabulary_row WHERE term >= ? AND term <= ?",
        (beginning, f"{beginning}\U0010ffff"),
    )
    return dict(rows.fetchall())


def forms(database: sqlite3.Connection, stem: str) -> frozenset[str]:
    """Words of a stem, as the first passages that hold it have them."""
    _open(database, "instance")
    rows = database.execute(
        "SELECT DISTINCT doc FROM temp.fx_vec_vocabulary_instance WHERE term = ? LIMIT ?", (stem, PASSAGES)
    ).fetchall()
    found: set[str] = set()
    for (id,) in rows:
        columns = database.execute(f"SELECT name, path, body FROM {TABLE} WHERE rowid = ?", (id,)).fetchone()
        found.update(word for column in columns for word in column.split() if terms.stem(word) == stem)
    return frozenset(found)


def _open(database: sqlite3.Connection, sort: str) -> None:
    database.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.fx_vec_vocabulary_{sort} USING fts5vocab(main, {TABLE}, {sort})"
    )

"""The keyword index (FTS5): rows go in one by one, or as a whole segment that was made where nothing is locked.

FTS5 keeps sorted segments in shadow tables. Making the segment of 10,000 passages takes half a second; in a Fossil
repository nobody could commit meanwhile. So a large slice is indexed in an attached database in memory, and only the
finished segment is copied, in some 30 ms. Formats: https://sqlite.org/fts5.html and the comments of SQLite's
fts5_index.c (structure record, averages record, segment ids in row ids).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from outcrop.core.model import Kind
from outcrop.stores.sqlite.connection import create_statement
from outcrop.stores.sqlite.filters import EVERYWHERE
from outcrop.text import terms

# Chunk id, then the terms of its name, its paths and its text, separated by blanks.
TermRow = tuple[int, str, str, str]

TABLE = "fx_vec_terms"

# Row ids of the two records in ``fx_vec_terms_data`` that are no pages of a segment.
_AVERAGES, _STRUCTURE = 1, 10

# A page's row id is its segment's number shifted by this, plus its place.
_SEGMENT_BITS = 37


@dataclass(frozen=True, slots=True)
class _Segment:
    """A sorted run of pages: its number, first and last page."""

    id: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Structure:
    """FTS5's list of segments, newest last on each level and levels of new ones first."""

    cookie: bytes
    writes: int
    levels: tuple[tuple[int, tuple[_Segment, ...]], ...]


def terms_of(text: str) -> str:
    """What is indexed of a text."""
    return " ".join(terms.words(text))


def insert(database: sqlite3.Connection, rows: Iterable[TermRow], schema: str = "main") -> None:
    """Index passages one by one."""
    database.executemany(f"INSERT INTO {schema}.{TABLE}(rowid, name, path, body) VALUES (?, ?, ?, ?)", rows)


def stage(database: sqlite3.Connection, rows: Sequence[TermRow], schema: str) -> None:
    """Index passages in an attached database, as one segment. Locks nothing else.

    Args:
        database: A connection with no transaction open.
        rows: The passages.
        schema: Name of the attached database, which has no such table yet.
    """
    database.execute(create_statement(TABLE).replace(TABLE, f"{schema}.{TABLE}", 1))
    database.execute("BEGIN")
    insert(database, rows, schema)
    database.execute(f"INSERT INTO {schema}.{TABLE}({TABLE}) VALUES ('optimize')")
    database.execute("COMMIT")


def append(database: sqlite3.Connection, schema: str) -> bool:
    """Copy what :func:`stage` made into the keyword index, inside the open transaction.

    The row ids must be new ones, and this connection must not have looked at the keyword index before: FTS5 remembers
    its structure, and is told of changes by other connections only.

    Returns:
        False if the structure is one that is not known here; nothing was changed then.
    """
    ours, theirs = (_structure(database, name) for name in ("main", schema))
    if ours is None or theirs is None:
        return False
    found = [(level, one) for level, (_, segments) in enumerate(theirs.levels) for one in segments]
    if len(found) != 1:
        return False
    ((level, segment),) = found
    taken = {one.id for _, segments in ours.levels for one in segments}
    number = next(id for id in range(1, len(taken) + 2) if id not in taken)
    # Below the small ones: FTS5 merges few large segments bit by bit, and many small ones at once. The last segment
    # under a level that is being merged is what it is merged into, and has to stay the last.
    while 0 < level <= len(ours.levels) and ours.levels[level - 1][0]:
        level += 1
    levels = list(ours.levels) + [(0, ())] * (level + 1 - len(ours.levels))
    merging, segments = levels[level]
    levels[level] = (merging, (*segments, replace(segment, id=number)))
    grown = replace(ours, levels=tuple(levels))
    database.execute(
        f"INSERT INTO main.{TABLE}_data SELECT id + ?, block FROM {schema}.{TABLE}_data WHERE id >= ?",
        ((number - segment.id) << _SEGMENT_BITS, segment.id << _SEGMENT_BITS),
    )
    database.execute(f"INSERT INTO main.{TABLE}_idx SELECT ?, term, pgno FROM {schema}.{TABLE}_idx", (number,))
    for table in ("content", "docsize"):
        database.execute(f"INSERT INTO main.{TABLE}_{table} SELECT * FROM {schema}.{TABLE}_{table}")
    _put(database, _STRUCTURE, _pack(grown))
    _put(database, _AVERAGES, _sum(_get(database, "main", _AVERAGES), _get(database, schema, _AVERAGES)))
    return True


def delete(database: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Take passages out."""
    database.executemany(f"DELETE FROM {TABLE} WHERE rowid = ?", ((id,) for id in ids))


def move(database: sqlite3.Connection, project: str, hash: str, paths: str) -> None:
    """Give an artifact's passages other paths."""
    database.execute(
        f"UPDATE {TABLE} SET path = ? WHERE rowid IN (SELECT id FROM fx_vec_chunk WHERE project = ? AND hash = ?)",
        (terms_of(paths), project, hash),
    )


def empty(database: sqlite3.Connection) -> None:
    """Take everything out: made anew, since taking out row by row reads and splits every text again."""
    database.execute(f"DROP TABLE {TABLE}")
    database.execute(create_statement(TABLE))


def rows_of_chunks(database: sqlite3.Connection) -> list[TermRow]:
    """What should be indexed of everything that is stored."""
    stored = database.execute(
        "SELECT c.id, c.name, coalesce(a.paths, c.path, ''), c.text FROM fx_vec_chunk c"
        " LEFT JOIN fx_vec_artifact a ON a.project = c.project AND a.hash = c.hash ORDER BY c.id"
    ).fetchall()
    return [(id, terms_of(name or ""), terms_of(paths), terms_of(text)) for id, name, paths, text in stored]


def _get(database: sqlite3.Connection, schema: str, id: int) -> bytes:
    row = database.execute(f"SELECT block FROM {schema}.{TABLE}_data WHERE id = ?", (id,)).fetchone()
    return b"" if row is None else bytes(row[0])


def _put(database: sqlite3.Connection, id: int, block: bytes) -> None:
    database.execute(f"REPLACE INTO main.{TABLE}_data VALUES (?, ?)", (id, block))


def _structure(database: sqlite3.Connection, schema: str) -> _Structure | None:
    """The structure record, or None for one that would not be written back the same."""
    data = _get(database, schema, _STRUCTURE)
    try:
        structure = _unpack(data)
    except IndexError:
        return None
    return structure if _pack(structure) == data else None


def _unpack(data: bytes) -> _Structure:
    numbers = _varints(data[4:])
    at = 3
    count, _, writes = numbers[:3]
    levels = []
    for _ in range(count):
        merging, segments = numbers[at], numbers[at + 1]
        at += 2
        levels.append((merging, tuple(_Segment(*numbers[at + 3 * n : at + 3 * n + 3]) for n in range(segments))))
        at += 3 * segments
    return _Structure(data[:4], writes, tuple(levels))


def _pack(structure: _Structure) -> bytes:
    segments = sum(len(level) for _, level in structure.levels)
    numbers = [len(structure.levels), segments, structure.writes]
    for merging, level in structure.levels:
        numbers += [merging, len(level)]
        for one in level:
            numbers += [one.id, one.first, one.last]
    return structure.cookie + b"".join(map(_varint, numbers))


def _sum(ours: bytes, theirs: bytes) -> bytes:
    """The averages record: number of rows and, per column, the number of tokens."""
    if not ours:
        return theirs
    return b"".join(_varint(a + b) for a, b in zip(_varints(ours), _varints(theirs), strict=True))


def _varints(data: bytes) -> list[int]:
    """SQLite's variable-length integers, those of up to eight bytes."""
    numbers: list[int] = []
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers


def _varint(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F | 0x80)
    return bytes(reversed(digits))


# Passages that are looked at for the forms of a stem.
PASSAGES = 12


# Passages whose names hold a word that are looked at for one that is named just so.
NAMED = 4000


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

"""The keyword index: an FTS5 table with a row for each chunk, and one for commits alone.

Apart, commits change neither the scores nor the speed of a question about the rest.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice

import numpy as np
import numpy.typing as npt

from outcrop.core.model import Kind
from outcrop.stores.sqlite.connection import KEYWORD_INDEXES, create_statement, moment
from outcrop.stores.sqlite.filters import EVERYWHERE, Ids
from outcrop.text import terms

Lengths = npt.NDArray[np.int64]

# Chunk id, then the terms of its name, its paths and its text, separated by blanks.
TermRow = tuple[int, str, str, str]

TABLE, COMMIT_TABLE = TABLES = KEYWORD_INDEXES

# What a term counts for in a chunk's name, its paths and its text (BM25 column weights).
COLUMN_WEIGHTS = (2.0, 3.0, 1.0)

_SCORED = np.dtype([("id", np.int64), ("score", np.float64)])

# Parameters of FTS5's BM25, and the least that it lets a frequent term count for.
_K1, _B, _LEAST_IDF = 1.2, 0.75, 1e-6

# Terms of a question that the index is asked for; the rest is ignored.
MAX_TERMS = 64

# Chunks of one transaction while the whole index is made anew.
REBUILD_BATCH = 500

# Chunks whose name holds a word that are searched for a definition of exactly that name.
MAX_NAMED = 4000

# Chunks that are read for the forms of a stem.
MAX_FORM_CHUNKS = 12


def terms_of(text: str) -> str:
    return " ".join(terms.words(text))


def table_of(kind: str) -> str:
    return COMMIT_TABLE if kind == Kind.COMMIT else TABLE


def insert(database: sqlite3.Connection, rows: Iterable[TermRow], table: str) -> None:
    database.executemany(f"INSERT INTO {table}(rowid, name, path, body) VALUES (?, ?, ?, ?)", rows)


def delete(database: sqlite3.Connection, ids: Sequence[int]) -> None:
    for table in TABLES:
        database.executemany(f"DELETE FROM {table} WHERE rowid = ?", ((chunk_id,) for chunk_id in ids))


def set_paths(database: sqlite3.Connection, project: str, artifact: str, paths: str) -> None:
    database.execute(
        f"UPDATE {TABLE} SET path = ? WHERE rowid IN (SELECT id FROM fx_vec_chunk WHERE project = ? AND hash = ?)",
        (terms_of(paths), project, artifact),
    )


def clear(database: sqlite3.Connection) -> None:
    """Remove every row; the tables are made anew, since deleting row by row reads and splits every text again."""
    for table in TABLES:
        database.execute(f"DROP TABLE {table}")
        database.execute(create_statement(table))


def create_next(database: sqlite3.Connection) -> None:
    """Make empty tables (``…_next``) that are to take the index's place."""
    for table in TABLES:
        database.execute(f"DROP TABLE IF EXISTS {table}_next")
        database.execute(create_statement(table).replace(table, f"{table}_next", 1))


def use_next(database: sqlite3.Connection) -> None:
    """Put the tables that :func:`create_next` made in the index's place."""
    for table in TABLES:
        database.execute(f"DROP TABLE {table}")
        database.execute(f"ALTER TABLE {table}_next RENAME TO {table}")


def batches_of_chunks(database: sqlite3.Connection) -> Iterator[Mapping[str, Sequence[TermRow]]]:
    """What the index should hold, by table and chunk id; other statements may run between two batches."""
    last = 0
    while stored := database.execute(
        "SELECT c.id, c.kind, c.name, coalesce(a.paths, c.path, ''), c.text FROM fx_vec_chunk c"
        " LEFT JOIN fx_vec_artifact a ON a.project = c.project AND a.hash = c.hash"
        " WHERE c.id > ? ORDER BY c.id LIMIT ?",
        (last, REBUILD_BATCH),
    ).fetchall():
        last = stored[-1][0]
        batch: dict[str, list[TermRow]] = {table: [] for table in TABLES}
        for chunk_id, kind, *texts in stored:
            batch[table_of(kind)].append((chunk_id, *(terms_of(text or "") for text in texts)))
        yield batch


def matches(
    database: sqlite3.Connection,
    words: Sequence[str],
    limit: int,
    visible: frozenset[int] | None,
    table: str = TABLE,
) -> list[tuple[int, float]]:
    """Chunks that hold any of the words, with their BM25 scores (higher is better), best first, ties by id.

    Of the chunks in ``visible`` only, where it is not None.
    """
    rows = database.execute(
        f"SELECT rowid, -bm25({table}, ?, ?, ?) AS score FROM {table} WHERE {table} MATCH ?"
        " ORDER BY score DESC, rowid LIMIT ?",
        # In SQLite -1 is no limit.
        (*COLUMN_WEIGHTS, " OR ".join(f'"{word}"' for word in words[:MAX_TERMS]), limit if visible is None else -1),
    )
    with closing(rows):
        return list(islice((row for row in rows if visible is None or row[0] in visible), limit))


class LengthCache:
    """How many terms each chunk of a table has, cached while the database does not change; 16 bytes a chunk."""

    def __init__(self, table: str) -> None:
        self.table = table
        self._cached: tuple[str, Ids, Lengths] | None = None

    def read(self, database: sqlite3.Connection) -> tuple[Ids, Lengths]:
        """Ids of the chunks, ascending, and their numbers of terms."""
        now, cached = moment(database), self._cached
        if cached is None or cached[0] != now:
            rows = database.execute(f"SELECT id, sz FROM {self.table}_docsize ORDER BY id").fetchall()
            ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
            lengths = _varints([row[1] for row in rows]).reshape(len(rows), -1).sum(axis=1) if rows else ids
            self._cached = cached = now, ids, lengths
        return cached[1:]


def matches_among(
    database: sqlite3.Connection, words: Sequence[str], limit: int, visible: Ids, cache: LengthCache
) -> list[tuple[int, float]]:
    """As :func:`matches`, with the statistics of the chunks in ``visible`` (ascending): others change no score.

    FTS5 counts every row. Its score of one word gives how often that word is in a chunk, and with this and the chunk's
    length BM25 is computed again.
    """
    table = cache.table
    ids, lengths = cache.read(database)
    visible = np.intersect1d(visible, ids, assume_unique=True)
    lengths = lengths[np.searchsorted(ids, visible)]
    if not lengths.any():
        return []
    (averages,) = database.execute(f"SELECT block FROM {table}_data WHERE id = 1").fetchone()
    rows, *totals = _varints([averages])
    # What a term's frequency is weighed against, as FTS5 has it and as it is among the visible chunks.
    before, after = (_K1 * (1 - _B + _B * lengths / mean) for mean in (sum(totals) / rows, lengths.mean()))
    question = f"SELECT rowid, -bm25({table}, ?, ?, ?) FROM {table} WHERE {table} MATCH ?"
    scores = np.zeros(len(visible))
    for word in words[:MAX_TERMS]:
        found = np.fromiter(database.execute(question, (*COLUMN_WEIGHTS, f'"{word}"')), _SCORED)
        at = np.minimum(np.searchsorted(visible, found["id"]), len(visible) - 1)
        chosen = visible[at] == found["id"]
        at = at[chosen]
        share = found["score"][chosen] / _idf(rows, len(found))
        frequency = np.rint(share * before[at] / (_K1 + 1 - share))
        scores[at] += _idf(len(visible), len(at)) * frequency * (_K1 + 1) / (frequency + after[at])
    best = np.lexsort((visible, -scores))[:limit]
    return [(int(visible[each]), float(scores[each])) for each in best if scores[each] > 0]


def _idf(rows: int, holding: int) -> float:
    return max(math.log((rows - holding + 0.5) / (holding + 0.5)), _LEAST_IDF)


def _varints(blobs: Sequence[bytes]) -> Lengths:
    """The numbers in SQLite's format: seven bits a byte, the highest first, the last byte without its eighth bit."""
    data = np.frombuffer(b"".join(blobs), np.uint8)
    ends = np.flatnonzero(data < 128)
    starts = np.append(0, ends[:-1] + 1)
    power = np.repeat(ends, ends - starts + 1) - np.arange(len(data))
    numbers: Lengths = np.add.reduceat((data & 127).astype(np.int64) << (7 * power), starts)
    return numbers


def defining(database: sqlite3.Connection, name: str) -> list[int]:
    """Chunks whose own name is this one, those of the same case first."""
    words = terms.words(name)
    if not words:
        return []
    match = "{name} : " + '"' + " ".join(words) + '"'
    rows = database.execute(
        f"SELECT c.id, c.name FROM {TABLE} t JOIN fx_vec_chunk c ON c.id = t.rowid WHERE {TABLE} MATCH ? LIMIT ?",
        (match, MAX_NAMED),
    )
    exact, other_case = [], []
    for chunk_id, names in rows:
        own = {part.strip().rpartition(".")[2] for part in (names or "").split(",")}
        if name in own:
            exact.append(chunk_id)
        elif name.lower() in map(str.lower, own):
            other_case.append(chunk_id)
    return [*sorted(exact), *sorted(other_case)]


def unknown(database: sqlite3.Connection, worktree: str, words: Sequence[str], kinds: Sequence[Kind]) -> frozenset[str]:
    """Those words that no chunk of a view and of these kinds (none named: any but commits) holds in any form."""
    left = frozenset(words)
    for table in TABLES if Kind.COMMIT in kinds else (TABLE,):
        visible, values = _is_visible(f"{table}.rowid", worktree, kinds)
        question = f"SELECT 1 FROM {table} WHERE {table} MATCH ? AND {visible} LIMIT 1"
        left = frozenset(word for word in left if database.execute(question, (f'"{word}"', *values)).fetchone() is None)
    return left


def ids(database: sqlite3.Connection, table: str) -> Ids:
    """The chunks in a table, ascending."""
    rows = database.execute(f"SELECT id FROM {table}_docsize ORDER BY id")
    return np.fromiter((row[0] for row in rows), np.int64)


def stems(database: sqlite3.Connection, beginning: str) -> Mapping[str, int]:
    _attach_vocabulary(database, "row")
    rows = database.execute(
        "SELECT term, doc FROM temp.fx_vec_vocabulary_row WHERE term >= ? AND term <= ?",
        (beginning, f"{beginning}\U0010ffff"),
    )
    return dict(rows.fetchall())


def forms(database: sqlite3.Connection, worktree: str, stem: str, kinds: Sequence[Kind]) -> frozenset[str]:
    """Words of a stem, as the first chunks of a view and of these kinds (none named: any) have them, commits aside."""
    _attach_vocabulary(database, "instance")
    visible, values = _is_visible("doc", worktree, kinds)
    rows = database.execute(
        f"SELECT DISTINCT doc FROM temp.fx_vec_vocabulary_instance WHERE term = ? AND {visible} LIMIT ?",
        (stem, *values, MAX_FORM_CHUNKS),
    ).fetchall()
    found: set[str] = set()
    for (chunk_id,) in rows:
        columns = database.execute(f"SELECT name, path, body FROM {TABLE} WHERE rowid = ?", (chunk_id,)).fetchone()
        found.update(word for column in columns for word in column.split() if terms.stem(word) == stem)
    return frozenset(found)


def _is_visible(column: str, worktree: str, kinds: Sequence[Kind]) -> tuple[str, Sequence[str]]:
    """A condition on a chunk id, and its values. A word occurs in few chunks, so each is looked up by itself."""
    of_kinds = f" AND m.kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    condition = (
        "EXISTS(SELECT 1 FROM fx_vec_chunk c JOIN fx_vec_member m"
        " ON m.project = c.project AND m.hash = c.hash AND m.part = c.part"
        f" WHERE c.id = {column} AND m.worktree IN (?, ?){of_kinds})"
    )
    return condition, (worktree, EVERYWHERE, *kinds)


def _attach_vocabulary(database: sqlite3.Connection, sort: str) -> None:
    database.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.fx_vec_vocabulary_{sort} USING fts5vocab(main, {TABLE}, {sort})"
    )

"""A keyword segment that was made aside answers like rows that went in one by one."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from outcrop.stores.sqlite import keywords
from outcrop.stores.sqlite.connection import create_statement
from outcrop.stores.sqlite.keywords import TABLE, TermRow

QUESTIONS = ("w1", "w2 OR w7", "n3 OR w90", "p")


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def put(path: Path, rows: list[TermRow], dead: list[int], aside: bool) -> None:
    database = connect(path)
    if aside:
        database.execute("ATTACH ':memory:' AS aside")
        keywords.stage(database, rows, "aside")
    database.execute("BEGIN IMMEDIATE")
    if aside:
        assert keywords.append(database, "aside")
    else:
        keywords.insert(database, rows)
    keywords.delete(database, dead)
    database.execute("COMMIT")
    database.close()


def answers(database: sqlite3.Connection, question: str) -> list[tuple[int, float]]:
    return database.execute(
        f"SELECT rowid, bm25({TABLE}, 2, 1, 1) FROM {TABLE} WHERE {TABLE} MATCH ? ORDER BY rowid", (question,)
    ).fetchall()


def test_segments_and_rows_in_any_order_answer_alike(tmp_path: Path) -> None:
    """The same rows in both tables: one gets its large batches as segments. Merges and deletions happen in between."""
    chance = random.Random(7)
    mixed, plain = tmp_path / "mixed.sqlite", tmp_path / "plain.sqlite"
    readers = [connect(path) for path in (mixed, plain)]
    for reader in readers:
        reader.execute(create_statement(TABLE))
    living: list[int] = []
    for turn in range(40):
        first = turn * 1000 + 1
        count = chance.choice((1, 3, 250))
        rows = [
            (
                *(first + at, f"n{chance.randrange(50)}", f"p{chance.randrange(30)} p"),
                " ".join(f"w{min(int(chance.paretovariate(0.5)), 5000)}" for _ in range(30)),
            )
            for at in range(count)
        ]
        living += [row[0] for row in rows]
        dead = [
            living.pop(chance.randrange(len(living))) for _ in range(min(len(living) - 1, chance.choice((0, 1, 60))))
        ]
        put(mixed, rows, dead, aside=count > 100)
        put(plain, rows, dead, aside=False)
        for question in QUESTIONS:
            assert answers(readers[0], question) == answers(readers[1], question), (turn, question)
        readers[0].execute(f"INSERT INTO {TABLE}({TABLE}, rank) VALUES ('integrity-check', 1)")
    assert len(answers(readers[0], "p")) == len(living)
    for reader in readers:
        reader.close()


def test_a_structure_that_is_not_known_is_left_alone(tmp_path: Path) -> None:
    """Later versions of SQLite mark theirs; rows then go in one by one."""
    path = tmp_path / "later.sqlite"
    database = connect(path)
    database.execute(create_statement(TABLE))
    database.execute(f"UPDATE {TABLE}_data SET block = x'00000000FF000001000000' WHERE id = 10")
    before = database.execute(f"SELECT * FROM {TABLE}_data").fetchall()
    database.close()
    database = connect(path)
    database.execute("ATTACH ':memory:' AS aside")
    keywords.stage(database, [(1, "a", "b", "c")], "aside")
    database.execute("BEGIN IMMEDIATE")
    assert not keywords.append(database, "aside")
    assert database.execute(f"SELECT * FROM {TABLE}_data").fetchall() == before
    database.execute("ROLLBACK")
    database.close()

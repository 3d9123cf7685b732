"""What of a damaged index goes unnoticed: each round changes a copy of its file at one random place.

    python benchmarks/mutations.py --rounds 300 --seed 1

A mutation that leaves every row as it was (in a free page, say) is harmless. Of the others it counts those that status
and a search notice, that `outcrop check` notices, and that `check --repair` leaves behind.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path

import outcrop
from outcrop.errors import OutcropError
from outcrop.stores.sqlite.connection import KEYWORD_INDEXES, TABLES

PACKAGE = Path(outcrop.__file__).parent
QUESTION = "where is a request to a server tried again"

Rows = dict[str, list[str]]


def mutate(path: Path, chance: random.Random) -> str:
    """Change the file at one place; returns how."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    how = chance.choice(["bit", "bit", "byte", "zeros", "page"])
    if how == "bit":
        data[at] ^= 1 << chance.randrange(8)
    elif how == "byte":
        data[at] = chance.randrange(256)
    elif how == "zeros":
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    else:
        start = at // 512 * 512
        data[start : start + 512] = chance.randbytes(len(data[start : start + 512]))
    path.write_bytes(data)
    return how


def content(path: Path) -> Rows | None:
    """Every row of our tables without their numbers, and what the keyword index finds; None where SQLite fails."""
    found: Rows = {}
    try:
        with closing(sqlite3.connect(path)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            for table in TABLES:
                skipped = " WHERE key NOT IN ('changes', 'last_id')" if table == "fx_vec_meta" else ""
                found[table] = [repr(row) for row in database.execute(f"SELECT * FROM {table}{skipped} ORDER BY 1, 2")]
            for table in KEYWORD_INDEXES:
                found[table] = [repr(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY rowid")]
            if database.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return None
    except sqlite3.DatabaseError:
        return None
    return found


def passages(path: Path) -> list[str]:
    """Every passage with its vector, whatever its number."""
    question = (
        "SELECT c.project, c.hash, c.seq, c.kind, c.path, c.text, c.name, c.first_line, c.last_line, c.part, e.model,"
        " e.dim, e.v FROM fx_vec_chunk c LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id ORDER BY 1, 2, 3"
    )
    with closing(sqlite3.connect(path)) as database:
        return [repr(row) for row in database.execute(question)]


def complaint(folder: Path) -> str:
    """What an ordinary user sees: an error, an answer that is not what was asked, or an index that is not current."""
    try:
        with outcrop.open(folder, settings={"embedder": "hash"}) as index:
            status = index.status()
            answer = index.search(QUESTION)
    except OutcropError as error:
        return str(error)
    return answer.reason or ("" if status.complete == 1 and not status.stale else "not current")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    counts: Counter[str] = Counter()
    where: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "files")
        shutil.copytree(PACKAGE / "stores", folder, ignore=shutil.ignore_patterns("__pycache__"))
        with outcrop.open(folder, settings={"embedder": "hash"}) as index:
            index.build()
            path = index.store.path
        intact, whole = Path(place, "intact"), content(path)
        shutil.copy(path, intact)
        expected = passages(path)
        assert whole is not None
        for _ in range(arguments.rounds):
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            shutil.copy(intact, path)
            mutate(path, chance)
            now = content(path)
            if now == whole:
                counts["harmless"] += 1
                continue
            tables = ["the database"] if now is None else [name for name in whole if now[name] != whole[name]]
            counts["damaged"] += 1
            counts["unnoticed by status and search"] += not complaint(folder)
            with outcrop.open(folder, settings={"embedder": "hash"}) as index:
                report = index.check(repair=True)
            if not report.damage:
                counts["unnoticed by check"] += 1
                where.update(tables)
            else:
                counts["embedded again"] += report.embedded
                counts["left after the repair"] += bool(report.left)
            if passages(path) != expected:
                counts["other passages or vectors after check --repair"] += 1
    for name, count in counts.items():
        print(f"{name:<48} {count:>6,}")
    for table, count in where.most_common():
        print(f"  unnoticed in {table:<35} {count:>6,}")


if __name__ == "__main__":
    main()

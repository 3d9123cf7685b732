"""Whether the tables of a database are tables: a planted view or trigger may run for ever."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection

_COMPUTED = re.compile(r"\bgenerated\b|\bas\s*\(", re.IGNORECASE)
_VIRTUAL = re.compile(r"create\s+virtual\b", re.IGNORECASE)


def distrust_schema(database: sqlite3.Connection) -> None:
    """What the schema names may run no function that has effects."""
    database.execute("PRAGMA trusted_schema = OFF")


def find_foreign(database: sqlite3.Connection, tables: Collection[str], virtual: Collection[str] = ()) -> str | None:
    """What would compute something when these tables are read or written: a view in the place of one, a trigger.

    ``virtual`` are those of the tables that are virtual ones.
    """
    marks = ", ".join("?" * len(tables))
    rows = database.execute(
        "SELECT type, name, lower(tbl_name), coalesce(sql, '') FROM main.sqlite_master"
        f" WHERE lower(name) IN ({marks}) OR lower(tbl_name) IN ({marks})",
        (*tables, *tables),
    ).fetchall()
    for sort, name, table, sql in rows:
        if sort == "table":
            if bool(_VIRTUAL.match(sql)) != (table in virtual):
                return f"a table {name} of another sort"
            if _COMPUTED.search(sql):
                return f"a table {name} with computed columns"
        elif sort == "index":
            if sql.count("(") > 1:
                return f"an index {name} of expressions"
        else:
            return f"a {sort} {name}"
    return None

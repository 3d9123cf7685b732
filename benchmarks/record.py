"""Printing a table and keeping the run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RUNS = Path(__file__).parent / "runs"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under their columns."""
    cells = [list(map(str, columns)), *(list(map(str, row)) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    print(f"\n{title}")
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def record(name: str, parameters: Mapping[str, Any], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Append a run to the file of its day."""
    now = datetime.now(UTC)
    path = RUNS / f"{now:%Y-%m-%d}.json"
    runs = json.loads(path.read_text("utf-8")) if path.exists() else []
    runs.append(
        {
            "benchmark": name,
            "at": f"{now:%H:%M:%SZ}",
            "commit": _commit(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "parameters": dict(parameters),
            "columns": list(columns),
            "rows": [list(row) for row in rows],
        }
    )
    RUNS.mkdir(exist_ok=True)
    path.write_text(json.dumps(runs, indent=1) + "\n", "utf-8")


def _commit() -> str:
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=RUNS.parent, capture_output=True, text=True, check=False
    )
    return run.stdout.strip()

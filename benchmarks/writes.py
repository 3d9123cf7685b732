"""Bytes that a build really writes, one flush against file by file; and how soon an edited file answers.

usage: writes.py [--files N] [--cells N] [--edits N]

Writes: the same notebooks (1,000 files of 10 code cells, 10,000 chunks) are built into a corpus in one call, and file
by file, one call a file with `prune=False`, which flushes after each. Counted are the bytes that the process handed to
the system for writing while it built (`wchar` in /proc/self/io, so Linux only), the write-ahead log included, and
beside them those that reached the block layer (`write_bytes`: the system merges pages that were written twice). Each
way runs in a process of its own, down to the closed database. One flush may write 2.5 times the final file.

Editing: one file of that corpus is changed, built by name and asked for, over and over; the time is that of build and
query together, less what the embedder took.

Caveats: the `hash` embedder (768 dimensions) stands in for a model, since what is stored and written is the same.
Listing and hashing 1,000 files is part of every single call, which is most of the time that file by file takes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import outcrop
from measure import median
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from record import record, table
from synthetic import WORKSHOP, stretches

FLUSH_LIMIT = 2.5
EDIT_SECONDS = 1.0

COLUMNS = ("what", "written MB", "to disk MB", "file MB", "× file", "seconds", "limit")


class Timed(HashEmbedder):
    """The hash embedder, with a clock."""

    seconds = 0.0

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed, and count the time."""
        started = time.perf_counter()
        made = super().embed_passages(texts)
        self.seconds += time.perf_counter() - started
        return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--cells", type=int, default=10, help="of each file")
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--way", choices=WAYS, help="only build, one way, in the folder that is there")
    options = parser.parse_args()
    if options.way:
        print(json.dumps(build(options.way)))
        return
    rows = [written(way, options.files, options.cells) for way in WAYS]
    rows.append(edited(options.edits))
    table("Writes", COLUMNS, rows)
    record("writes", vars(options), COLUMNS, rows)


WAYS = ("file by file", "one flush")
ROOT = WORKSHOP / "writes"


def written(way: str, files: int, cells: int) -> tuple[object, ...]:
    """Build in a process of its own and count."""
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    pieces = stretches(seed=6)
    for number in range(files):
        _save(number, list(islice(pieces, cells)))
    done = subprocess.run([sys.executable, __file__, "--way", way], capture_output=True, text=True, check=True)
    handed, to_disk, seconds, chunks = json.loads(done.stdout)
    size = (ROOT / ".outcrop" / "index.sqlite").stat().st_size
    share = handed / size
    limit = f"{'OK' if share <= FLUSH_LIMIT else 'MISSED'}: ≤ {FLUSH_LIMIT:g} ×" if way == "one flush" else ""
    megabytes = (round(number / 1e6, 1) for number in (handed, to_disk, size))
    return (f"{way}, {files} files, {chunks} chunks", *megabytes, round(share, 2), round(seconds, 2), limit)


def build(way: str) -> tuple[int, int, float, int]:
    """Bytes handed over, bytes that went to disk, seconds and chunks."""
    paths = sorted(path.name for path in ROOT.glob("*.ipynb"))
    with outcrop.open(ROOT, settings={"embedder": "hash"}) as index:
        before = _counters()
        started = time.perf_counter()
        if way == "one flush":
            report = index.build(corpus="notebooks", paths=paths)
        else:
            for path in paths:
                report = index.build(corpus="notebooks", paths=[path], prune=False)
    seconds = time.perf_counter() - started
    after = _counters()
    return after["wchar"] - before["wchar"], after["write_bytes"] - before["write_bytes"], seconds, report.chunks


def edited(edits: int) -> tuple[object, ...]:
    """Seconds from an edited file to its new text in an answer."""
    taken = []
    with outcrop.open(ROOT, settings={"embedder": "hash"}) as index:
        index.embedder = embedder = Timed()
        index.search("warm up", corpus="notebooks")
        for number in range(edits):
            word = f"zanzibar{number}"
            _save(number, [f"def {word}():\n    return {number}\n"])
            embedder.seconds = 0.0
            started = time.perf_counter()
            index.build(corpus="notebooks", paths=[f"book{number:04}.ipynb"], prune=False)
            (hit,) = index.search(word, corpus="notebooks", k=1).hits
            taken.append(time.perf_counter() - started - embedder.seconds)
            if word not in hit.text:
                raise SystemExit(f"the new text of book{number:04}.ipynb was not found")
    seconds = median(taken)
    limit = f"{'OK' if seconds <= EDIT_SECONDS else 'MISSED'}: ≤ {EDIT_SECONDS:g} s"
    return (f"edit, build, ask, {edits} times", "", "", "", "", round(seconds, 3), limit)


def _save(number: int, sources: Sequence[str]) -> None:
    cells = [
        {"cell_type": "code", "id": f"c{at}", "metadata": {}, "outputs": [], "source": source}
        for at, source in enumerate(sources)
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (ROOT / f"book{number:04}.ipynb").write_text(json.dumps(book), "utf-8")


def _counters() -> dict[str, int]:
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return {name: int(number) for name, number in (line.split(": ") for line in lines)}


if __name__ == "__main__":
    main()

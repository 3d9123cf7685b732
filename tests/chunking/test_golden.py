"""Chunks of small real-looking files, dumped so that a person sees at once whether they are cut well.

A change of boundaries shows as a diff of a ``.chunks`` file, and means that ``chunking.VERSION`` goes up. To write the
dumps anew: ``OUTCROP_WRITE_GOLDEN=1 pytest tests/chunking/test_golden.py``, then read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from outcrop.chunking import VERSION, format_of
from outcrop.chunking.artifact import chunk
from outcrop.core.model import Chunk
from outcrop.text.kinds import kind_of
from outcrop.text.tokenizer import count

FOLDER = Path(__file__).parent.parent / "golden" / "chunks"
SOURCES = sorted(path for path in FOLDER.iterdir() if path.suffix != ".chunks")
# Read here: the tests' own environment has no OUTCROP variables.
WRITE = "OUTCROP_WRITE_GOLDEN" in os.environ


def show(chunk: Chunk) -> str:
    where = f"cell {chunk.cell} ({chunk.part}), " if chunk.cell is not None else ""
    when = f"{chunk.seconds[0]:g} to {chunk.seconds[1]:g} s, " if chunk.seconds else ""
    size = f"lines {chunk.first_line}-{chunk.last_line}, {when}{count(chunk.text)} tokens"
    head = f"== {where}{size}, {chunk.name or '(no name)'}"
    lines = chunk.text.split("\n")
    shown = lines if len(lines) <= 4 else [*lines[:2], "…", *lines[-2:]]
    return "\n".join([head, *(f"    {line}".rstrip() for line in shown)])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_chunks_are_those_in_the_dump(path: Path) -> None:
    kind = kind_of(path.name)
    chunks = chunk(path.read_text("utf-8"), path.name, kind)
    head = f"{path.name}: {kind}, {format_of(path.name, kind)}, chunker {VERSION}"
    dump = "\n".join([head, *map(show, chunks), ""])
    golden = path.with_name(f"{path.name}.chunks")
    if WRITE:
        golden.write_text(dump, "utf-8")
    assert dump == golden.read_text("utf-8")

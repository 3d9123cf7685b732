"""A commit is one passage, however it is cut."""

from __future__ import annotations

import pytest

from outcrop.chunking.artifact import chunk_by_lines
from outcrop.chunking.workers import pool
from outcrop.chunking.workers.pool import Text
from outcrop.core.model import Kind

TEXT = "Release slowly\n\n" + "The boiler whistled. " * 500 + "\n\nAda, 2024-01-01\nsrc/valve.py"


@pytest.mark.parametrize("by_lines", [False, True])
def test_a_long_commit_is_one_chunk_named_by_its_subject(by_lines: bool) -> None:
    chunks = chunk_by_lines(TEXT, None, Kind.COMMIT) if by_lines else pool.cut(Text(TEXT, None, Kind.COMMIT)).chunks
    (chunk,) = chunks
    assert (chunk.text, chunk.start, chunk.end) == (TEXT, 0, len(TEXT))
    assert (chunk.first_line, chunk.last_line, chunk.name) == (1, 6, "Release slowly")


def test_no_worker_process_is_started_for_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WorkerProcess", None)
    texts = [Text(f"{number}\n\nAda, 2024-01-01", None, Kind.COMMIT) for number in range(50)]
    cuts = [cut for _, cut in pool.cut_all((None, text) for text in texts) if cut is not None]
    assert [cut.chunks[0].name for cut in cuts] == [str(number) for number in range(50)]

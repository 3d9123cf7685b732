"""Cutting in worker processes: the same passages as in this process, whatever happens to a worker."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from outcrop.chunking.artifact import chunk, chunk_by_lines
from outcrop.chunking.workers import pool, process, worker
from outcrop.chunking.workers.messages import Job, chunks_of, rows_of
from outcrop.chunking.workers.pool import Text, cut, cut_all, lines_of
from outcrop.chunking.workers.process import TOO_LONG, WorkerProcess
from outcrop.core.model import Kind
from outcrop.errors import FormatError, OutcropError

# Texts that end a process which parses them, with the grammars of today.
CRASHING = {
    "keys.yaml": "".join(" " * level + "a:\n" for level in range(300)),
    "dashes.yml": "".join(" " * level + "- \n" for level in range(260)),
    "arrows.java": "a=>" * 5_000,
}
FILLING = "/*\n" * 5_000  # A Python file that takes 8 GB where nothing stops it
ENDLESS = "/*\n" * 10_000  # A JavaScript file that takes 10 s, and four times as long for each doubling

CODE = "def one():\n    return 1\n\n\nclass Two:\n    def three(self):\n        return 3\n"
NOTEBOOK = (
    '{"nbformat": 4, "cells": [{"cell_type": "markdown", "id": "a", "source": "# Café"},'
    ' {"cell_type": "code", "source": "x = 1", "outputs": [{"text": "secret"}]},'
    ' {"cell_type": "code", "source": "y = 2"}]}'
)
TEXTS = {
    "code": Text(CODE, "a.py", Kind.CODE),
    "long code": Text("".join(f"def f{n}(a):\n    return a + {n}\n\n\n" for n in range(3_000)), "a.py", Kind.CODE),
    "markdown": Text("# Plum\n\nJam.\n\n## Leek\n\nSand.\n", "a.md", Kind.DOC),
    "notebook": Text(NOTEBOOK, "a.ipynb", Kind.CODE),
    "percent script": Text("# %% [markdown]\n# # Title\n# %%\nx = 1\n", "a.py", Kind.CODE),
    "transcript": Text("WEBVTT\n\n00:01.000 --> 00:02.500\nHello there.\n", "a.vtt", Kind.MEDIA),
    "ticket": Text("Crash\n\f\nIt does.\n", None, Kind.TICKET),
    "characters": Text("# naïve 日本語 \U0001f600 \ud800 \0\nx = '\u2028'\n", "a.py", Kind.CODE),
    "blank": Text(" \n", "a.py", Kind.CODE),
    "nothing": Text("", None, Kind.DOC),
}

Send = Callable[[WorkerProcess, Sequence[Job]], None]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test starts its own processes."""
    monkeypatch.setattr(pool, "_pool", pool._Pool())


def test_a_worker_cuts_as_this_process_does() -> None:
    cuts = dict(cut_all((name, text) for name, text in TEXTS.items()))
    for name, text in TEXTS.items():
        found = cuts[name]
        assert found is not None
        assert (list(found.chunks), found.error, found.by_lines) == (chunk(*text), None, ""), name


def test_results_keep_the_order_of_many_texts_and_of_what_is_none() -> None:
    items = [(n, None if n % 3 == 0 else Text(f"x = {n}\n" * (n % 50), "a.py", Kind.CODE)) for n in range(400)]
    found = list(cut_all(items))
    assert [n for n, _ in found] == list(range(400))
    for (_, text), (n, result) in zip(items, found, strict=True):
        assert (result is None) == (text is None)
        if text is not None and result is not None:
            assert list(result.chunks) == chunk(*text), n


def test_more_text_than_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "AHEAD", 1_000)
    monkeypatch.setattr(pool, "TURNS", 5)
    read: list[int] = []

    def texts() -> object:
        for n in range(15):
            read.append(n)
            yield n, Text(f"x = {n}\n" * 60, "a.py", Kind.CODE)

    for n, result in cut_all(texts()):  # type: ignore[arg-type]
        assert result is not None
        assert result.chunks[0].text.startswith(f"x = {n}\n")
        assert len(read) <= n + 4


@pytest.mark.parametrize("name", CRASHING)
def test_a_text_that_ends_its_worker_is_cut_by_lines_and_the_next_as_ever(name: str) -> None:
    hostile = Text(CRASHING[name], name, Kind.CODE)
    before, crashed, after = (found for _, found in cut_all((t, t) for t in (TEXTS["code"], hostile, TEXTS["code"])))
    assert before is not None
    assert crashed is not None
    assert "crashed or ran out of memory (SIG" in crashed.by_lines
    assert list(crashed.chunks) == chunk_by_lines(*hostile)
    assert before == after == pool.Cut(chunk(*TEXTS["code"]))


def test_a_text_that_takes_too_long_is_cut_by_lines() -> None:
    text = Text(ENDLESS, "a.js", Kind.CODE)
    found = cut(text)
    assert (found.by_lines, list(found.chunks)) == (TOO_LONG, chunk_by_lines(*text))


def test_texts_that_all_end_their_workers() -> None:
    hostile = [Text(CRASHING["keys.yaml"] + f"# {n}\n", f"{n}.yaml", Kind.CODE) for n in range(8)]
    found = [each for _, each in cut_all((text, text) for text in hostile)]
    assert all(each is not None and each.by_lines and each.chunks for each in found)


def test_a_notebook_that_is_cut_by_lines_keeps_its_cells_and_not_its_outputs() -> None:
    chunks = chunk_by_lines(*TEXTS["notebook"])
    assert [(each.text, each.cell, each.cell_id) for each in chunks] == [
        ("# Café", 0, "a"),
        ("x = 1", 1, None),
        ("y = 2", 2, None),
    ]


def test_a_text_that_is_not_valid_says_why() -> None:
    found = cut(Text("{", "a.ipynb", Kind.CODE))
    assert isinstance(found.error, FormatError)
    assert "not valid JSON" in found.error.what
    assert found.error.fix.startswith("Open and save it again")
    assert (found.chunks, found.by_lines) == ((), "")


def killing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Let another program kill workers that have just got their texts, so often; returns what was sent when."""
    sent: list[int] = []
    send: Send = WorkerProcess.send

    def send_and_kill(self: WorkerProcess, jobs: Sequence[Job]) -> None:
        sent.append(len(jobs))
        if len(sent) <= times:
            self._popen.send_signal(signal.SIGSTOP)
            send(self, jobs)
            self._popen.kill()
        else:
            send(self, jobs)

    monkeypatch.setattr(WorkerProcess, "send", send_and_kill)
    return sent


def test_a_worker_that_is_killed_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = killing(monkeypatch, times=1)
    # What fits into a pipe, since nobody reads it.
    texts = [text for text in TEXTS.values() if len(text.text) < 10_000]
    found = [each for _, each in cut_all((text, text) for text in texts)]
    assert found == [pool.Cut(chunk(*text)) for text in texts]
    assert sent[0] == sent[1]


def test_a_text_whose_workers_are_killed_again_and_again_does_not_stop_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killing(monkeypatch, times=2)
    first, second = (found for _, found in cut_all((t, t) for t in (TEXTS["code"], TEXTS["markdown"])))
    assert first == pool.Cut(chunk_by_lines(*TEXTS["code"]), by_lines=first.by_lines if first else "")
    assert first is not None
    assert "SIGKILL" in first.by_lines
    assert second == pool.Cut(chunk(*TEXTS["markdown"]))


def test_a_worker_that_does_nothing_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "OVERDUE_SECONDS", 8.0)
    send: Send = WorkerProcess.send
    stopped: list[WorkerProcess] = []

    def send_and_stop(self: WorkerProcess, jobs: Sequence[Job]) -> None:
        if not stopped:
            stopped.append(self)
            self._popen.send_signal(signal.SIGSTOP)
        send(self, jobs)

    monkeypatch.setattr(WorkerProcess, "send", send_and_stop)
    first, second = (found for _, found in cut_all((t, t) for t in (TEXTS["code"], TEXTS["markdown"])))
    assert first is not None
    assert first.by_lines == TOO_LONG
    assert second == pool.Cut(chunk(*TEXTS["markdown"]))


def test_what_is_not_taken_any_more_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "usable_cpus", lambda: 1)
    monkeypatch.setattr(pool, "BATCH", 1)
    results = cut_all((n, Text(CODE, f"{n}.py", Kind.CODE)) for n in range(200))
    next(results)
    results.close()  # type: ignore[attr-defined]
    # The one process is free for others.
    assert cut(TEXTS["markdown"]).chunks == chunk(*TEXTS["markdown"])


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(OutcropError, match="no process could be started") as caught:
        cut(TEXTS["code"])
    assert caught.value.fix
    monkeypatch.undo()
    assert cut(TEXTS["code"]).chunks == chunk(*TEXTS["code"])


def test_a_process_that_cannot_import_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcrop.chunking.workers.process._PROGRAM", "import no_such_module")
    with pytest.raises(OutcropError, match="it ended at once, with 1"):
        cut(TEXTS["code"])


def test_what_a_worker_warns_of_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = "from outcrop.chunking import grammars; grammars.ENTRY_POINTS['go'] = ('no_such_grammar', 'language'); "
    program = process._PROGRAM.replace("main()", f"{broken}main()")
    monkeypatch.setattr("outcrop.chunking.workers.process._PROGRAM", program)
    monkeypatch.setattr(pool, "TURNS", 1)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [each.name for each in cut(Text("func one() {\n}\n", "a.go", Kind.CODE)).chunks] == ["one"]
    (record,) = caplog.records
    assert record.name == "outcrop.chunking.code"
    assert "go files are cut by patterns" in record.getMessage()


@pytest.mark.parametrize(
    "rows",
    [
        None,
        3,
        [[]],
        [[0, 1, 1, 1, None, "", None, None, None]],
        [["0", 1, 1, 1, None, "", None, None, None, None]],
        [[0, 1, 1, 1, 7, "", None, None, None, None]],
        [[0, 1, 1, 1, None, "nonsense", None, None, None, None]],
        [[0, 1, 1, 1, None, "", None, None, None, 5]],
        [[0, 1, 1, 1, None, "", None, None, [1], None]],
        [[0, 1, 1, 1, None, "", 1.5, None, None, None]],
    ],
)
def test_an_answer_that_is_none(rows: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        chunks_of(rows, CODE)


def test_rows_and_chunks() -> None:
    for text in TEXTS.values():
        chunks = chunk(*text)
        assert chunks_of(rows_of(chunks, text.text), text.text) == chunks


def test_the_lines_of_a_definition() -> None:
    assert lines_of(CODE, "python", "three") == (6, 7)
    assert lines_of(CODE, "python", "four") is None
    assert lines_of(CRASHING["keys.yaml"], "yaml", "four") is None


def test_the_bounds_leave_room_for_real_files() -> None:
    # A megabyte of real code takes at most 2 s of processor time and 60 MB.
    assert worker.BASE_SECONDS + 1_000_000 * worker.SECONDS_PER_CHARACTER >= 20
    assert worker.BASE_MEMORY + 1_000_000 * worker.MEMORY_PER_CHARACTER >= 400 << 20


def script(program: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload, no-any-return]


CUT_ONE = """
from outcrop.chunking.workers.pool import Text, cut
from outcrop.core.model import Kind
"""


def test_a_hostile_text_takes_bounded_memory() -> None:
    program = CUT_ONE + (
        "import resource, sys\n"
        f"cut(Text({FILLING!r}, 'a.py', Kind.CODE))\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    with script(program) as ran:
        output = ran.communicate()[0]
    assert ran.returncode == 0
    # macOS, which counts in bytes, has no such bound.
    if sys.platform == "linux":
        assert int(output) * 1024 < worker.BASE_MEMORY + (200 << 20)


def test_parsing_again_and_again_takes_no_more_memory() -> None:
    program = (
        "import resource\n"
        "from outcrop.chunking.code import find_definitions\n"
        "from outcrop.chunking.rows import TextRows\n"
        "rows = TextRows('x = [1, 2, 3]\\n' * 8_000)\n"
        "peaks = []\n"
        "for _ in range(60):\n"
        "    find_definitions(rows, 'python')\n"
        "    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "print(peaks[-1] - peaks[9])\n"
    )
    with script(program) as ran:
        output = ran.communicate()[0]
    growth = int(output) // (1024 if sys.platform == "darwin" else 1)
    # Fifty times the text are 5,600 kB.
    assert growth < 2_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_its_parent(sign: signal.Signals) -> None:
    # Cutting it takes much longer than ending does.
    program = CUT_ONE + (f"print('begun', flush=True)\ncut(Text({ENDLESS!r} * 30, 'a.js', Kind.CODE))\n")
    with script(program, stderr=subprocess.DEVNULL) as ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "begun\n"
        while not (workers := _busy_children(ran.pid)):
            time.sleep(0.05)
            assert ran.poll() is None
        ran.send_signal(sign)
        ran.wait()
        deadline = time.monotonic() + 20
        while any(map(_is_there, workers)):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _busy_children(parent: int) -> list[int]:
    """Child processes that have used a second of processor time, which starting does not."""
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            used = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            if int(used[11]) > os.sysconf("SC_CLK_TCK"):
                found.append(child)
    return found


def _is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_that_forks_cuts_in_both() -> None:
    program = CUT_ONE + (
        "import os\n"
        "first = cut(Text('x = 1\\n', 'a.py', Kind.CODE))\n"
        "child = os.fork()\n"
        "assert cut(Text('x = 1\\n', 'a.py', Kind.CODE)) == first\n"
        "if child:\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    with script(program) as ran:
        assert ran.communicate()[0] == "0\n"

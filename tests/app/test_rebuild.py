"""A rebuild makes a new index beside the old one, which answers until the new one is complete."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from fossil_program import SampleRepository
from repositories import make_repository, write
from travel import Counting, ask, frozen, opened, scores

import outcrop
from outcrop.core.model import Record
from outcrop.core.protocols import Matrix
from outcrop.core.reports import Progress
from outcrop.errors import EmbedderUnavailable

FILES: dict[str, str | bytes] = {
    "zoo.md": "# Zoo\n\nThe lions eat at seven.\n",
    **{f"chapter-{number}.md": f"# Chapter {number}\n\nThe keeper of house {number}.\n" for number in range(40)},
}
QUESTIONS = ("lions at seven", "the keeper")


@pytest.fixture(params=["folder", "git", "fossil", "git with commits", "fossil with commits"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param.endswith("commits"):
        request.getfixturevalue("with_history")
    if request.param.startswith("fossil"):
        sample: SampleRepository = request.getfixturevalue("sample")
        path = sample.copy(tmp_path)
    elif request.param.startswith("git"):
        path = make_repository(tmp_path / "place", FILES)
    else:
        path = tmp_path / "place"
        write(path, FILES)
    with opened(path) as index:
        assert index.build().complete
        index.upsert([Record("mine", "what the caller knows of lions")])
    return path


def leftovers(place: Path) -> list[str]:
    """Files and tables that a complete index does not have."""
    with opened(place) as index:
        path = index.store.path
    with closing(sqlite3.connect(path)) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE name GLOB '*_next*'")]
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return tables + [each.name for each in path.parent.iterdir() if ".new" in each.name]


class Failing(Counting):
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        if self.texts:
            raise EmbedderUnavailable("the model fell over", "Pick it up")
        return super().embed_passages(texts)


def test_everything_is_embedded_again_and_records_stay(place: Path) -> None:
    with opened(place) as index:
        before = ask(index, *QUESTIONS)
        chunks = index.build().chunks
    embedder = Counting()
    with opened(place, embedder) as index:
        report = index.build(rebuild=True)
        assert (report.complete, report.embedded, report.chunks) == (True, len(embedder.texts), chunks)
        assert len(embedder.texts) >= chunks - 1
        after = ask(index, *QUESTIONS)
        assert (frozen(after), scores(after)) == (frozen(before), scores(before))
        assert [hit.record.id for hit in index.search("lions", corpus="records").hits if hit.record] == ["mine"]
        assert index.check().damage == ()
    assert leftovers(place) == []


@pytest.mark.parametrize("phase", ["listing", "chunking", "embedding"])
def test_the_old_index_answers_meanwhile(place: Path, phase: str) -> None:
    answers = []

    def report(progress: Progress) -> None:
        if progress.phase == phase and not answers:
            with opened(place) as other:
                status = other.status()
                answers.append((frozen(ask(other, *QUESTIONS)), status.writer, status.complete, status.stale))

    with opened(place) as index:
        before = frozen(ask(index, *QUESTIONS))
        index.build(rebuild=True, progress=report)
        assert answers == [(before, True, 1.0, False)]


def test_a_rebuild_that_fails_changes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcrop.indexing.build.EMBED_TEXTS", 8)
    with opened(place) as index:
        before = frozen(ask(index, *QUESTIONS))
    with opened(place, Failing()) as index:
        with pytest.raises(
            EmbedderUnavailable, match=r"after 8 of \d+ passages, which are dropped: the index is as it"
        ):
            index.build(rebuild=True)
        status = index.status()
        assert (status.complete, status.stale, status.missing) == (1.0, False, ())
    with opened(place, Counting(refuse=True)) as index:
        assert frozen(ask(index, *QUESTIONS)) == before
        assert index.build().embedded == 0
    assert leftovers(place) == []


KILLED = """
import os, signal, sqlite3, sys
import outcrop
from outcrop.indexing import build, ingest
from outcrop.stores.sqlite import connection, writer
build.EMBED_TEXTS = 8
def kill(module, name, times):
    original = getattr(module, name)
    def dies(*arguments, **more):
        dies.left -= 1
        if dies.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **more)
    dies.left = times
    setattr(module, name, dies)
kill({module}, {name!r}, {times})
with outcrop.open(sys.argv[1], settings={{"embedder": "hash"}}) as index:
    index.build(rebuild=True)
"""

# Where the process is killed: a function, and how many calls of it come through before.
MOMENTS = [
    ("build", "embed_pending", 0),
    ("writer", "insert", 0),
    ("writer", "add_vectors", 0),
    ("writer", "finish", 0),
    ("connection", "count_change", 2),
    ("connection", "replace_database", 0),
    ("connection", "replace_tables", 0),
    *(("connection", "transaction", times) for times in (0, 1, 2)),
    ("connection", "_drop", 1),
    ("connection", "_copy_pages", 0),
]


@pytest.mark.parametrize("sort", ["folder", "fossil"])
def test_killed_at_any_moment_it_leaves_the_old_index_or_the_new_one(
    tmp_path: Path, request: pytest.FixtureRequest, sort: str
) -> None:
    if sort == "fossil":
        sample: SampleRepository = request.getfixturevalue("sample")
        place = sample.copy(tmp_path)
    else:
        place = tmp_path / "place"
        write(place, FILES)
    with opened(place) as index:
        index.build()
        before = frozen(ask(index, *QUESTIONS))
    killed = 0
    for module, name, times in MOMENTS:
        script = KILLED.format(module=module, name=name, times=times)
        done = subprocess.run([sys.executable, "-c", script, str(place)], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        killed += done.returncode == -signal.SIGKILL
        with opened(place, Counting(refuse=True)) as index:
            status = index.status()
            assert (status.complete, status.stale, status.missing, status.writer) == (1.0, False, (), False)
            assert frozen(ask(index, *QUESTIONS)) == before, (module, name, times)
    assert killed >= 8
    with opened(place, Counting(refuse=True)) as index:
        index.build()
        assert index.check().damage == ()
    assert leftovers(place) == []


def test_a_reader_that_stays_open_sees_the_switch(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    with opened(tmp_path) as reader, opened(tmp_path) as index:
        index.build()
        before = frozen(ask(reader, *QUESTIONS))
        assert frozen(ask(reader, *QUESTIONS)) == before
        (tmp_path / "zoo.md").write_text("# Zoo\n\nThe lions eat at eight.\n")
        index.build(rebuild=True)
        assert "The lions eat at eight" in ask(reader, "lions at eight")[0].text
        assert "The lions eat at eight" in ask(reader, "lions at eight")[0].text


def test_ctrl_c_says_that_nothing_changed(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    with opened(tmp_path) as index:
        index.build()
    script = textwrap.dedent(
        """
        import os, signal, sys
        from outcrop.indexing import build
        from outcrop.surfaces.cli.program import main
        def embed_pending(*arguments, **more):
            os.kill(os.getpid(), signal.SIGINT)
        build.embed_pending = embed_pending
        sys.exit(main(["rebuild", "--embedder", "hash", "-C", sys.argv[1]]))
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 130
    assert "the index is as it was\n  → outcrop rebuild starts again" in done.stderr
    assert leftovers(tmp_path) == []


def test_only_an_index_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "files", FILES)
    other = tmp_path / "letters.txt"
    other.write_text("my only copy")
    settings = {"embedder": "hash", "store": str(other)}
    with (
        outcrop.open(tmp_path / "files", settings=settings) as index,
        pytest.raises(outcrop.StoreDamaged, match="left alone"),
    ):
        index.build(rebuild=True)
    assert other.read_text() == "my only copy"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["files", "letters.txt"]

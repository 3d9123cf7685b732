"""What goes wrong around a Fossil repository: locks, kills, damage, foreign blobs. The repository always survives."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fossil_program import SampleRepository, query

import outcrop
from outcrop.app.index import Index
from outcrop.core.model import Space
from outcrop.embedders.hash import HashEmbedder
from outcrop.errors import BlobError
from outcrop.transfer import blob as blobs
from outcrop.transfer import sync
from outcrop.transfer.blob import BlobRecord, SpaceNote
from outcrop.transfer.fossil.unversioned import FossilTransfer
from outcrop.vcs import fossil_lock


@contextmanager
def opened(path: Path, **settings: object) -> Iterator[Index]:
    with outcrop.open(path, settings={"embedder": "hash", **settings}) as index:
        yield index


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def copy(sample: SampleRepository, tmp_path: Path) -> Path:
    (tmp_path / "alone").mkdir()
    return sample.copy(tmp_path / "alone")


@pytest.fixture
def indexed(copy: Path) -> Path:
    with opened(copy) as index:
        index.build()
    return copy


def healthy(sample: SampleRepository, repository: Path) -> bool:
    return "database integrity-check: ok" in sample.fossil.run("test-integrity", "-R", repository)


class TestTheFileIsFossils:
    def test_nothing_is_ever_put_beside_it(self, indexed: Path) -> None:
        assert [path.name for path in indexed.parent.iterdir()] == [indexed.name]

    def test_its_journal_and_pages_stay_as_they_were(self, copy: Path) -> None:
        before = query(copy, "PRAGMA journal_mode"), query(copy, "PRAGMA page_size")
        with opened(copy) as index:
            index.build()
            index.clear()
        assert (query(copy, "PRAGMA journal_mode"), query(copy, "PRAGMA page_size")) == before
        assert before[0] == [("delete",)]

    def test_clearing_drops_our_rows_and_gives_no_page_back(self, sample: SampleRepository, indexed: Path) -> None:
        size = indexed.stat().st_size
        with opened(indexed) as index:
            assert index.status().bytes < size
            freed = index.clear()
            assert freed > 50 * 768 * 4
            assert index.status().bytes < 100
            assert index.search("lions").mode == "keyword"
        assert indexed.stat().st_size == size
        assert query(indexed, "SELECT count(*) FROM fx_vec_chunk") == [(0,)]
        assert healthy(sample, indexed)

    def test_a_damaged_repository_is_never_deleted(self, indexed: Path) -> None:
        content = indexed.read_bytes()
        ((page,),) = query(indexed, "SELECT rootpage FROM sqlite_master WHERE name = 'fx_vec_chunk'")
        ((size,),) = query(indexed, "PRAGMA page_size")
        with indexed.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
        with opened(indexed) as index:
            for use in (index.build, lambda: index.build(rebuild=True), index.clear):
                with pytest.raises(outcrop.OutcropError, match="test-integrity"):
                    use()
        assert indexed.stat().st_size == len(content)
        assert query(indexed, "SELECT count(*) > 20 FROM blob") == [(1,)]

    def test_a_store_named_by_hand_that_is_a_repository_is_left_as_one(
        self, sample: SampleRepository, copy: Path, tmp_path: Path
    ) -> None:
        notes = tmp_path / "notes"
        notes.mkdir()
        (notes / "a.md").write_text("# Notes\n")
        with opened(notes, store=copy) as index:
            index.build()
        assert [path.name for path in copy.parent.iterdir()] == [copy.name]
        assert query(copy, "PRAGMA journal_mode") == [("delete",)]
        assert healthy(sample, copy)

    def test_an_index_kept_elsewhere_writes_nothing_into_it(self, copy: Path, tmp_path: Path) -> None:
        before = copy.read_bytes()
        with opened(copy, store=tmp_path / "own.sqlite") as index:
            assert index.build().shared == 0
            assert index.search("lions", mode="semantic").hits
        assert copy.read_bytes() == before


class TestLocks:
    def test_a_write_waits_for_a_quiet_moment_and_a_late_reader_waits_for_it(self, copy: Path) -> None:
        """A transaction that read and then writes, as a commit does, is never made to fail by an index."""
        other = sqlite3.connect(copy, isolation_level=None, timeout=60)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM blob").fetchone()
        with opened(copy) as index:
            building = threading.Thread(target=index.build)
            building.start()
            time.sleep(0.5)
            other.execute("UPDATE config SET value = value WHERE name = 'project-name'")
            other.execute("COMMIT")
            building.join()
            assert index.status().complete == 1
        other.close()

    def test_one_who_never_lets_go_is_waited_for_no_longer_than_said(
        self, copy: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fossil_lock, "IDLE_TIMEOUT", 0.2)
        monkeypatch.setattr("outcrop.stores.sqlite.connection.BUSY_SECONDS", 0.2)
        other = sqlite3.connect(copy, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with opened(copy) as index, pytest.raises(outcrop.StoreLocked, match="in use by another process"):
            index.build()
        other.execute("ROLLBACK")
        other.close()
        with opened(copy) as index:
            assert index.build().complete

    def test_a_locked_repository_says_so(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("outcrop.vcs.fossil.BUSY_SECONDS", 0.2)
        other = sqlite3.connect(copy, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(outcrop.SourceError, match="in use by another process"):
            outcrop.open(copy)
        other.close()

    def test_two_indexers_at_once(self, copy: Path) -> None:
        class Slow(HashEmbedder):
            def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
                inside.set()
                assert over.wait(60)
                return super().embed_passages(texts)

        inside, over = threading.Event(), threading.Event()
        with opened(copy) as first, opened(copy) as second:
            first.embedder = Slow()
            building = threading.Thread(target=first.build)
            building.start()
            assert inside.wait(60)
            with pytest.raises(outcrop.StoreLocked, match="another process is building"):
                second.build()
            assert second.status().writer
            assert second.search("lions", mode="keyword").hits
            over.set()
            building.join()
            assert second.build().embedded == 0

    def test_a_file_that_may_not_be_written(self, copy: Path, tmp_path: Path) -> None:
        for path in (copy.parent, tmp_path, *tmp_path.parents):
            if path.stat().st_uid == os.getuid() and len(path.parts) > 2:
                path.chmod(path.stat().st_mode | 0o055)
        copy.chmod(0o444)
        done = run_script("index.build()", copy, tmp_path, as_nobody=True)
        assert done.returncode == 1
        assert "cannot be opened (attempt to write" in done.stderr.decode()
        # Searching needs no writing: the files themselves answer.
        done = run_script("print(index.search('lions').mode)", copy, tmp_path, as_nobody=True)
        assert done.stdout.decode().strip() == "keyword", done.stderr.decode()


def run_script(
    body: str, repository: Path, home: Path, as_nobody: bool = False, first: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """Run a few lines in a process of their own, with ``index`` open on the repository."""
    # Nobody may not read where Python lies, so everything is loaded by a build elsewhere before.
    warm = "with outcrop.open(Path(sys.argv[2]), settings={'embedder': 'hash'}) as index: index.build()\n"
    leave = f"{warm}if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n" if as_nobody else ""
    (home / "warm").mkdir(exist_ok=True)
    (home / "warm" / "a.md").write_text("# Warm\n")
    cache = home / ("cache-of-nobody" if as_nobody else "cache")
    cache.mkdir(exist_ok=True)
    cache.chmod(0o777)
    script = (
        "import importlib.readers, os, signal, sys\nimport filelock, platformdirs, outcrop\nfrom pathlib import Path\n"
        "import outcrop.app.index, outcrop.indexing.build, outcrop.search.fallback\n"
        "import outcrop.sources.discover, outcrop.sources.fossil.source, outcrop.embedders.hash\n"
        f"{leave}{first}\nwith outcrop.open(Path(sys.argv[1]), settings={{'embedder': 'hash'}}) as index:\n    {body}\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script, repository, home / "warm"],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "HOME": str(cache)},
        capture_output=True,
        timeout=60,
    )


PHASE = "index.build(progress=lambda p: p.phase == '{}' and os.kill(os.getpid(), signal.SIGKILL))"
INSIDE = (
    "import {module} as module\nreal = module.{name}\n"
    "def fatal(*given, **more):\n    real(*given, **more)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    "module.{name} = fatal"
)
KILLS = {
    "listing": (PHASE.format("listing"), ""),
    "chunking": (PHASE.format("chunking"), ""),
    "embedding": (PHASE.format("embedding"), ""),
    "writing": (PHASE.format("writing"), ""),
    "inside the first transaction": (
        "index.build()",
        INSIDE.format(module="outcrop.stores.sqlite.membership", name="apply"),
    ),
    "inside the last transaction": (
        "index.build()",
        INSIDE.format(module="outcrop.stores.sqlite.writer", name="finish"),
    ),
    "while blobs are written": (
        "index.build()",
        INSIDE.format(module="outcrop.transfer.fossil.unversioned", name="_receive"),
    ),
}


@pytest.mark.parametrize("kill", KILLS)
def test_a_killed_build_hurts_nothing_and_the_next_one_completes(
    sample: SampleRepository, copy: Path, tmp_path: Path, kill: str
) -> None:
    body, first = KILLS[kill]
    done = run_script(body, copy, tmp_path, first=first)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    with opened(copy) as index:
        status = index.status()
        assert not status.writer
        report = index.build()
        assert report.complete
        assert index.search("lions at seven", mode="semantic", k=1).hits[0].path == "Feeding times"
        names = {blobs.hash_of(name) for name in FossilTransfer(copy).names()} - {None}
        assert names == {row[0] for row in query(copy, "SELECT DISTINCT hash FROM fx_vec_chunk")}
        assert index.build().shared == 0
    assert healthy(sample, copy)


class TestBlobs:
    """Blobs that somebody else made, or broke."""

    @pytest.fixture
    def emptied(self, indexed: Path) -> Path:
        """Blobs, and no tables yet."""
        with opened(indexed) as index:
            index.clear()
        return indexed

    @pytest.fixture
    def chosen(self, emptied: Path) -> str:
        ((digest,),) = query(
            emptied, "SELECT uuid FROM tagxref JOIN tag USING(tagid) JOIN blob USING(rid) WHERE tagname = 'wiki-Plain'"
        )
        return blobs.name_of(digest)

    @pytest.mark.parametrize(
        ("break_", "words"),
        [
            (lambda data: data[:-5], "truncated"),
            (lambda data: data + b"\0\0\0", "left over"),
            (lambda data: data[:-4] + b"\0\0\xc0\x7f", "NaN"),
            (lambda data: data[:-4] + b"\0\0\x80\x40", "length"),
            (lambda data: blobs.encode([BlobRecord(0, "", "three", np.float32([0, 0, 1]))], 3), "truncated"),
        ],
    )
    def test_a_bad_one_is_refused_and_the_others_are_imported(
        self, emptied: Path, chosen: str, break_: object, words: str
    ) -> None:
        transfer = FossilTransfer(emptied)
        data = transfer.read(chosen)
        assert isinstance(data, bytes)
        transfer.replace({chosen: break_(data)}, [])  # type: ignore[operator]
        with opened(emptied) as index:
            report = index.import_blobs()
            ((refused),) = report.refused
            assert (refused.path, report.missing) == (chosen, 1)
            assert words in refused.detail
            assert index.build().embedded == 1
            assert transfer.read(chosen) == data

    def test_one_that_is_damaged_in_the_repository(self, emptied: Path, chosen: str) -> None:
        query(emptied, "UPDATE unversioned SET content = x'00', encoding = 0 WHERE name = ?", chosen)
        with opened(emptied) as index:
            assert [item.path for item in index.import_blobs().refused] == [chosen]

    def test_another_models_blobs_are_refused_whole(self, emptied: Path) -> None:
        note = blobs.encode_note(SpaceNote(Space("some-other-model", 768)))
        FossilTransfer(emptied).replace({blobs.NOTE: note}, [])
        with opened(emptied) as index:
            with pytest.raises(outcrop.SpaceMismatch, match=r"some-other-model-768.*hash-768"):
                index.import_blobs()
            assert query(emptied, "SELECT count(*) FROM fx_vec_chunk") == [(0,)]
            # Indexing makes them ours.
            assert index.build().complete
            note = sync.note_of(FossilTransfer(emptied))
            assert note is not None
            assert (note.space, note.revision) == (Space("hash", 768), index.status().revision)

    def test_blobs_that_say_nothing_of_themselves_are_not_all_held_in_memory(
        self, emptied: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        FossilTransfer(emptied).replace({}, [blobs.NOTE])
        monkeypatch.setattr(blobs, "MOST_HELD", 10_000)
        with opened(emptied) as index, pytest.raises(BlobError, match="outcrop index"):
            index.import_blobs()

    def test_no_blobs_at_all(self, copy: Path) -> None:
        said = r"no vectors.*outcrop pull.*clone --unversioned"
        with opened(copy) as index, pytest.raises(outcrop.StoreError, match=said):
            index.import_blobs()

    def test_a_folder_has_none_to_import(self, tmp_path: Path) -> None:
        said = r"travel with a Fossil or git repository.*outcrop export"
        with opened(tmp_path) as index, pytest.raises(outcrop.UsageError, match=said):
            index.import_blobs()

    def test_blobs_of_older_tools_are_imported_and_normalised(self, emptied: Path) -> None:
        """No header, no note, and vectors of any length."""
        transfer = FossilTransfer(emptied)
        before = {name: data for name, data in transfer.read_all() if isinstance(data, bytes) and name != blobs.NOTE}
        transfer.replace({name: data[4:] for name, data in before.items()}, [blobs.NOTE])
        with opened(emptied) as index:
            report = index.import_blobs()
            assert (report.missing, report.refused) == (0, ())
            assert report.space == "hash-768"
            longer = {name: _lengthened(data) for name, data in before.items()}
            transfer.replace(longer, [])
            query(emptied, "UPDATE fx_vec_embedding SET v = zeroblob(3072) WHERE rowid = 1")
            ((stretched,),) = query(emptied, "SELECT v FROM fx_vec_embedding WHERE rowid = 2")
            query(
                emptied,
                "UPDATE fx_vec_embedding SET v = ? WHERE rowid = 2",
                (3 * np.frombuffer(stretched, "<f4")).tobytes(),
            )
            normalised = index.normalize()
            assert (normalised.vectors, normalised.dropped, normalised.blobs) == (1, 1, len(before))
            assert normalised.refused == ()
            again = index.normalize()
            assert (again.vectors, again.dropped, again.blobs, again.unchanged) == (0, 0, 0, len(before))
            # One was dropped; three stand under a heading or subject, which the older tool did not embed with the text.
            assert index.build().embedded == 1 + 3
        after = dict(transfer.read_all())
        for name, data in before.items():
            content = after[name]
            assert isinstance(content, bytes)
            ours, theirs = (blobs.decode(each, 768) for each in (data, content))
            assert [item.text for item in ours] == [item.text for item in theirs]
            assert np.abs(np.stack([a.vector - b.vector for a, b in zip(ours, theirs, strict=True)])).max() < 1e-6

    def test_texts_that_another_chunker_cut_are_taken_until_the_next_build(self, emptied: Path, chosen: str) -> None:
        vectors = HashEmbedder().embed_passages(["Bears", "Asleep."])
        records = [BlobRecord(seq, "", text, vectors[seq]) for seq, text in enumerate(("Bears</h2>", "Asleep."))]
        note = blobs.encode_note(SpaceNote(Space("hash", 768), "older/7"))
        FossilTransfer(emptied).replace({chosen: blobs.encode(records, 768), blobs.NOTE: note}, [])
        with opened(emptied) as index:
            assert index.import_blobs().missing == 0
            (hit,) = [hit for hit in index.search("Asleep.", mode="semantic").hits if hit.text == "Asleep."]
            assert (hit.path, hit.lines, round(hit.score, 5)) == ("Plain", (3, 3), 1.0)
            assert index.import_blobs().imported == 0
            report = index.build()
            # This page, and three passages under a heading or subject, which the older one did not embed with the text.
            assert (report.complete, report.embedded) == (True, 1 + 3)
            assert not [hit for hit in index.search("Asleep.", mode="semantic").hits if hit.text == "Asleep."]

    def test_what_does_not_fit_into_the_format_is_indexed_but_not_shared(
        self, copy: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(blobs, "MOST_SEQ", 10)
        with opened(copy) as index:
            report = index.build()
            assert report.complete
            assert report.shared == 13
            assert index.search("step_150", mode="keyword", k=1).hits[0].path == "src/app.py"
        assert "not shared" in caplog.text
        assert "the seq is 11, and the format ends at 10" in caplog.text


def _lengthened(data: bytes) -> bytes:
    """The same blob without its header and with vectors of length 2."""
    records = blobs.decode(data, 768)
    parts = []
    for item in records:
        text = item.text.encode()
        parts += [item.seq.to_bytes(2, "little"), b"\0\0", len(text).to_bytes(4, "little"), text]
        parts.append((2 * item.vector).astype("<f4").tobytes())
    return b"".join(parts)


def test_what_is_no_repository(tmp_path: Path) -> None:
    other = tmp_path / "other.fossil"
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE blob(x)")
    database.close()
    (tmp_path / "text.fossil").write_text("not a database")
    for name in ("other.fossil", "text.fossil"):
        with pytest.raises(outcrop.NotARepository, match=name):
            outcrop.open(tmp_path / name)


def test_a_repository_without_trunk_names_its_branches(copy: Path) -> None:
    query(copy, "UPDATE tag SET tagname = 'sym-main' WHERE tagname = 'sym-trunk'")
    with opened(copy) as index, pytest.raises(outcrop.SourceError, match=r"'trunk'.*Branches:"):
        index.build()


def test_the_nearest_repository_is_meant(sample: SampleRepository, copy: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    sample.fossil.run("open", copy, cwd=outer)
    inner = outer / "vendored"
    inner.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    deepest = inner / "checkout"
    deepest.mkdir()
    shutil.copy(copy, tmp_path / "second.fossil")
    sample.fossil.run("open", tmp_path / "second.fossil", "--nested", cwd=deepest)
    for folder, kind, root in (
        (outer / "docs", "fossil", outer),
        (inner, "git", inner),
        (deepest / "src", "fossil", deepest),
    ):
        with outcrop.open(folder) as index:
            assert (index.source.type, index.source.root) == (kind, root)


def test_a_repository_in_wal_mode_keeps_it(sample: SampleRepository, copy: Path) -> None:
    sample.fossil.run("rebuild", "--wal", copy)
    with opened(copy) as index:
        assert index.build().complete
        assert index.search("lions at seven", mode="semantic", k=1).hits[0].path == "Feeding times"
    assert query(copy, "PRAGMA journal_mode") == [("wal",)]
    assert healthy(sample, copy)

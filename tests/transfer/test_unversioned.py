"""Blobs as unversioned content: the rows that Fossil makes, moved by Fossil's own sync."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from fossil_program import SampleRepository, query

from outcrop.core.model import Skipped, SkipReason
from outcrop.core.rows import TransferCounts
from outcrop.errors import StoreDamaged, StoreError, StoreFull, StoreLocked
from outcrop.stores.sqlite import connection
from outcrop.transfer.fossil import remote, unversioned
from outcrop.transfer.fossil.unversioned import FossilTransfer

SAMPLES = {
    "vec/plain.bin": b"VE01" + os.urandom(3000),
    "vec/packed.bin": b"VE01" + b"the same words again " * 300,
    "vec/edge.bin": os.urandom(1000) + bytes(200),
    "vec/over_the_edge.bin": os.urandom(1000) + bytes(400),
    "vec/empty.bin": b"",
    "vec/space.json": b"{}\n",
}


@pytest.fixture
def copy(sample: SampleRepository, tmp_path: Path) -> Path:
    return sample.copy(tmp_path)


def rows(repository: Path) -> dict[str, tuple[Any, ...]]:
    found = query(repository, "SELECT name, hash, sz, encoding, content, typeof(mtime) FROM unversioned")
    return {name: rest for name, *rest in found}  # type: ignore[misc]


def add_by_program(sample: SampleRepository, repository: Path, folder: Path) -> None:
    for name, data in SAMPLES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    sample.fossil.run("uv", "add", *SAMPLES, "-R", repository, cwd=folder)


class TestRows:
    @pytest.mark.parametrize("policy", ["sha3", "sha1"])
    def test_they_are_the_ones_that_fossil_makes(self, sample: SampleRepository, tmp_path: Path, policy: str) -> None:
        ours, theirs = (tmp_path / name for name in ("ours.fossil", "theirs.fossil"))
        sample.copy(tmp_path).rename(ours)
        sample.fossil.run("hash-policy", policy, "-R", ours)
        sample.copy(tmp_path).rename(theirs)
        sample.fossil.run("hash-policy", policy, "-R", theirs)
        FossilTransfer(ours).replace(SAMPLES, [])
        add_by_program(sample, theirs, tmp_path)
        assert rows(ours) == rows(theirs)
        assert {len(row[0]) for row in rows(ours).values()} == {64 if policy == "sha3" else 40}
        assert [rows(ours)[name][2] for name in ("vec/edge.bin", "vec/over_the_edge.bin")] == [0, 1]
        names = ("table_info", "index_list")
        assert [query(ours, f"PRAGMA {name}(unversioned)") for name in names] == [
            query(theirs, f"PRAGMA {name}(unversioned)") for name in names
        ]
        sample.fossil.run("uv", "rm", "vec/packed.bin", "vec/empty.bin", "-R", theirs)
        FossilTransfer(ours).replace({}, ["vec/packed.bin", "vec/empty.bin"])
        assert rows(ours) == rows(theirs)

    def test_what_the_program_stored_is_read(self, sample: SampleRepository, copy: Path, tmp_path: Path) -> None:
        add_by_program(sample, copy, tmp_path)
        (tmp_path / "other.txt").write_text("not ours\n")
        sample.fossil.run("uv", "add", "other.txt", "-R", copy, cwd=tmp_path)
        assert dict(FossilTransfer(copy).read_all()) == SAMPLES

    def test_the_program_reads_what_we_stored(self, sample: SampleRepository, copy: Path) -> None:
        FossilTransfer(copy).replace(SAMPLES, [])
        assert sample.fossil.run("uv", "cat", "vec/packed.bin", "-R", copy).encode() == SAMPLES["vec/packed.bin"]
        listed = sample.fossil.run("uv", "list", "-R", copy).splitlines()
        assert [line.split()[-1] for line in listed] == sorted(SAMPLES)

    def test_each_write_says_where_it_came_from(self, copy: Path) -> None:
        before = query(copy, "SELECT count(*) FROM rcvfrom")[0][0]
        FossilTransfer(copy).replace(SAMPLES, [])
        ((count, source, user, day),) = query(
            copy,
            "SELECT count(*) OVER (), r.ipaddr, login, date(r.mtime) FROM rcvfrom r JOIN user USING(uid)"
            " WHERE rcvid = (SELECT max(rcvid) FROM unversioned)",
        )
        assert (count, source, user) == (1, "#!outcrop", "alice")
        assert day == time.strftime("%Y-%m-%d", time.gmtime())
        assert query(copy, "SELECT count(*) FROM rcvfrom")[0][0] == before + 1

    def test_time_never_stands_still_for_a_file(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Sync keeps the later of two copies, so every change must be later than the one before."""
        store = FossilTransfer(copy)
        now = 1_900_000_000
        monkeypatch.setattr(unversioned, "time", SimpleNamespace(time=lambda: now + 0.5))
        store.replace({"vec/a.bin": b"1"}, [])
        times = [query(copy, "SELECT mtime FROM unversioned")[0][0]]
        for data in (b"2", b"3"):
            store.replace({"vec/a.bin": data}, [])
            times.append(query(copy, "SELECT mtime FROM unversioned")[0][0])
        store.replace({}, ["vec/a.bin"])
        times.append(query(copy, "SELECT mtime FROM unversioned")[0][0])
        assert times == [now, now + 1, now + 2, now + 3]

    def test_names_without_a_policy_are_those_of_the_repository(self, copy: Path) -> None:
        query(copy, "DELETE FROM config WHERE name = 'hash-policy'")
        FossilTransfer(copy).replace({"vec/a.bin": b"1"}, [])
        assert len(rows(copy)["vec/a.bin"][0]) == 64

    def test_an_equal_file_keeps_its_row_whatever_its_hash(self, sample: SampleRepository, copy: Path) -> None:
        sample.fossil.run("hash-policy", "sha1", "-R", copy)
        store = FossilTransfer(copy)
        store.replace(SAMPLES, [])
        sample.fossil.run("hash-policy", "sha3", "-R", copy)
        before = copy.read_bytes()
        assert store.replace(SAMPLES, []) == TransferCounts(0, 0)
        assert copy.read_bytes() == before


class TestTransactions:
    def test_a_large_change_goes_in_few(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(unversioned, "BATCH_BYTES", 10_000)
        files = {f"vec/{number}.bin": os.urandom(4000) for number in range(7)}
        store = FossilTransfer(copy)
        store.replace({"vec/old.bin": b"x"}, [])
        before = query(copy, "SELECT count(*) FROM rcvfrom")[0][0]
        assert store.replace(files, ["vec/old.bin"]) == TransferCounts(7, 1)
        assert query(copy, "SELECT count(*) FROM rcvfrom")[0][0] == before + 3
        monkeypatch.setattr(unversioned, "_READ_BYTES", 9_000)
        assert dict(store.read_all()) == files

    def test_the_journal_stays_as_it_was(self, copy: Path) -> None:
        FossilTransfer(copy).replace(SAMPLES, [])
        assert query(copy, "PRAGMA journal_mode") == [("delete",)]
        assert sorted(path.name for path in copy.parent.iterdir()) == [copy.name]

    def test_nothing_is_written_when_another_holds_it(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
        holder = sqlite3.connect(copy, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="in use by another process"):
            FossilTransfer(copy).replace(SAMPLES, [])
        holder.close()
        assert FossilTransfer(copy).names() == frozenset()

    def test_readers_see_all_of_it_or_nothing(self, copy: Path) -> None:
        """Killed in the middle of a write, the repository is as before."""
        FossilTransfer(copy).replace({"vec/a.bin": b"before"}, [])
        script = (
            "import os, sys, time; from pathlib import Path; from outcrop.transfer.fossil import unversioned\n"
            "def kill(database): os.kill(os.getpid(), 9)\n"
            "unversioned._receive = kill\n"
            "unversioned.FossilTransfer(Path(sys.argv[1])).replace({'vec/a.bin': b'after'}, [])\n"
        )
        killed = subprocess.run([sys.executable, "-c", script, copy], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert dict(FossilTransfer(copy).read_all()) == {"vec/a.bin": b"before"}


class TestBadInput:
    def test_what_is_damaged_comes_back_as_such(self, copy: Path) -> None:
        store = FossilTransfer(copy)
        store.replace(SAMPLES, [])
        query(copy, "UPDATE unversioned SET content = x'00' WHERE name IN ('vec/plain.bin', 'vec/packed.bin')")
        query(copy, "UPDATE unversioned SET content = NULL WHERE name = 'vec/edge.bin'")
        found = dict(store.read_all())
        skipped = {name: item for name, item in found.items() if isinstance(item, Skipped)}
        assert {name: item.reason for name, item in skipped.items()} == {
            "vec/plain.bin": SkipReason.BROKEN,
            "vec/packed.bin": SkipReason.BROKEN,
            "vec/edge.bin": SkipReason.UNREADABLE,
        }
        assert found["vec/space.json"] == SAMPLES["vec/space.json"]

    def test_a_repository_that_is_gone(self, tmp_path: Path) -> None:
        with pytest.raises(StoreFull, match="unable to open"):
            FossilTransfer(tmp_path / "gone.fossil").names()

    def test_a_file_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("no database\n" * 100)
        with pytest.raises(StoreDamaged):
            FossilTransfer(tmp_path / "text").names()
        sqlite3.connect(tmp_path / "empty").close()
        with pytest.raises(StoreError):
            FossilTransfer(tmp_path / "empty").replace(SAMPLES, [])


@pytest.fixture
def url(sample: SampleRepository, copy: Path) -> Iterator[str]:
    """The copy behind a real server on this machine."""
    sample.fossil.run("user", "password", "alice", "open-sesame", "-R", copy)
    # Not even the owner may push unversioned content without ``y``; Fossil then says nothing and does nothing.
    sample.fossil.run("user", "capabilities", "alice", "sy", "-R", copy)
    # Its children would live on for a minute after the server ended.
    sample.fossil.run("settings", "backoffice-disable", "1", "-R", copy)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["fossil", "server", "--localhost", "--nojail", "-P", str(port), copy],
        env=sample.fossil.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield f"http://alice:open-sesame@127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


class TestSync:
    def test_fossil_moves_what_we_write(self, sample: SampleRepository, copy: Path, tmp_path: Path, url: str) -> None:
        served, clone = FossilTransfer(copy), tmp_path / "clone.fossil"
        served.replace(SAMPLES, [])
        sample.fossil.run("clone", "--unversioned", url, clone)
        cloned = FossilTransfer(clone)
        assert dict(cloned.read_all()) == SAMPLES
        # A sync fills the cache by which both sides know that nothing changed; our next write must empty it.
        sample.fossil.run("uv", "sync", url, "-R", clone)
        assert query(clone, "SELECT 1 FROM config WHERE name = 'uv-hash'") == [(1,)]
        served.replace({"vec/plain.bin": b"newer"}, ["vec/packed.bin"])
        sample.fossil.run("uv", "sync", url, "-R", clone)
        assert dict(cloned.read_all()) == dict(served.read_all())
        assert cloned.names() == SAMPLES.keys() - {"vec/packed.bin"}
        # And the other way.
        cloned.replace({"vec/new.bin": b"from the clone"}, ["vec/plain.bin"])
        sample.fossil.run("uv", "sync", url, "-R", clone)
        assert served.names() == SAMPLES.keys() - {"vec/packed.bin", "vec/plain.bin"} | {"vec/new.bin"}
        for repository in (copy, clone):
            assert "database integrity-check: ok" in sample.fossil.run("test-integrity", "-R", repository)

    def test_rebuild_keeps_what_we_write(self, sample: SampleRepository, copy: Path) -> None:
        store = FossilTransfer(copy)
        store.replace(SAMPLES, [])
        before = rows(copy)
        sample.fossil.run("rebuild", "--vacuum", "--compress", copy)
        assert rows(copy) == before
        assert "database integrity-check: ok" in sample.fossil.run("test-integrity", "-R", copy)


@pytest.mark.parametrize("claimed", [300 << 20, 1000, 0, -1, None, "some"])
def test_a_few_stored_bytes_do_not_become_many(copy: Path, claimed: object) -> None:
    names = [f"vec/{number:040x}.bin" for number in range(3)]
    transfer = FossilTransfer(copy)
    transfer.replace(dict.fromkeys(names, b"VE01"), [])
    real = 300 << 20
    packer = zlib.compressobj()
    packed = b"".join([real.to_bytes(4, "big"), *(packer.compress(bytes(1 << 20)) for _ in range(300)), packer.flush()])
    query(copy, "UPDATE unversioned SET sz = ?, encoding = 1, content = ?", claimed, packed)
    tracemalloc.start()
    for name, data in [*transfer.read_all(), (names[0], transfer.read(names[0]))]:
        assert isinstance(data, Skipped), name
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20


def test_the_proof_of_a_login_is_never_written(
    sample: SampleRepository, copy: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone.fossil"
    sample.fossil.run("clone", url, clone)
    written: list[tuple[str, bytes]] = []

    class Looked(TemporaryDirectory[str]):
        """As it is when a process is killed before it can delete it."""

        def cleanup(self) -> None:
            written.extend((path.name, path.read_bytes()) for path in Path(self.name).iterdir())
            super().cleanup()

    monkeypatch.setattr(remote, "TemporaryDirectory", Looked)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / f"{remote._PREFIX}abandoned"
    abandoned.mkdir()
    os.utime(abandoned, (0, 0))
    remote.exchange(clone, url)
    assert any(name.startswith("http-reply-") and data for name, data in written)
    assert not [name for name, data in written if b"login " in data]
    assert not abandoned.exists()

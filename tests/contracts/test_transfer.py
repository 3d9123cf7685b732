"""What every transfer store must do, whatever carries it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fossil_program import SampleRepository
from repositories import make_repository

from outcrop.core.model import Skipped, SkipReason
from outcrop.core.protocols import TransferStore
from outcrop.core.rows import TransferCounts
from outcrop.errors import BlobError
from outcrop.transfer import blob
from outcrop.transfer.directory import DirectoryTransfer
from outcrop.transfer.fossil.unversioned import FossilTransfer
from outcrop.transfer.git.ref import GitTransfer
from outcrop.vcs.git_repository import find_repository

ONE, TWO = f"vec/{'1' * 64}.bin", f"vec/{'2' * 40}.bin"
NOTE = "vec/space.json"
SAMPLES = {ONE: b"VE01" + bytes(range(256)) * 40, TWO: b"", NOTE: b'{"model": "m", "dim": 2}\n'}


@pytest.fixture(params=["fossil", "git", "git, kept apart", "git, SHA-256", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TransferStore:
    if request.param == "fossil":
        sample: SampleRepository = request.getfixturevalue("sample")
        return FossilTransfer(sample.copy(tmp_path))
    if request.param == "folder":
        return DirectoryTransfer(tmp_path / "new" / "export")
    options = ["--object-format=sha256"] if "SHA-256" in request.param else []
    repository = find_repository(make_repository(tmp_path / "repository", {"a.md": "a\n"}, *options))
    assert repository is not None
    return GitTransfer(repository, None) if "apart" in request.param else GitTransfer(repository)


def test_an_empty_store(store: TransferStore) -> None:
    assert store.names() == frozenset()
    assert list(store.read_all()) == []
    assert store.replace({}, [ONE]) == TransferCounts(0, 0)


def test_what_is_stored_comes_back(store: TransferStore) -> None:
    assert store.replace(SAMPLES, []) == TransferCounts(3, 0)
    assert store.names() == SAMPLES.keys()
    assert list(store.read_all()) == sorted(SAMPLES.items())


def test_one_file_is_read_by_its_name(store: TransferStore) -> None:
    store.replace(SAMPLES, [])
    assert {name: store.read(name) for name in SAMPLES} == SAMPLES
    assert store.read(f"vec/{'3' * 64}.bin") is None


def test_many_files(store: TransferStore) -> None:
    many = {f"vec/{number:040x}.bin": number.to_bytes(2, "big") * (number % 700) for number in range(1200)}
    assert store.replace(many, []) == TransferCounts(1200, 0)
    assert dict(store.read_all()) == many
    assert store.replace({}, list(many)[:1199]) == TransferCounts(0, 1199)
    assert store.names() == {list(many)[-1]}


def test_equal_files_are_left_alone(store: TransferStore) -> None:
    store.replace(SAMPLES, [])
    assert store.replace({**SAMPLES, TWO: b"changed"}, []) == TransferCounts(1, 0)
    assert dict(store.read_all()) == {**SAMPLES, TWO: b"changed"}


def test_what_is_withdrawn_is_gone_and_can_come_back(store: TransferStore) -> None:
    store.replace(SAMPLES, [])
    assert store.replace({}, [ONE, TWO, f"vec/{'3' * 64}.bin"]) == TransferCounts(0, 2)
    assert dict(store.read_all()) == {NOTE: SAMPLES[NOTE]}
    assert store.replace({}, [ONE]) == TransferCounts(0, 0)
    assert store.replace({ONE: SAMPLES[ONE]}, []) == TransferCounts(1, 0)
    assert store.names() == {ONE, NOTE}


def test_adding_and_withdrawing_at_once(store: TransferStore) -> None:
    store.replace({ONE: b"old", TWO: b"old"}, [])
    assert store.replace({ONE: b"new"}, [ONE, TWO]) == TransferCounts(1, 1)
    assert dict(store.read_all()) == {ONE: b"new"}


def test_reading_goes_on_while_something_is_withdrawn(store: TransferStore) -> None:
    store.replace(SAMPLES, [])
    reading = store.read_all()
    first, _ = next(reading)
    store.replace({NOTE: b"{}"}, [TWO])
    assert {first, *(name for name, _ in reading)} <= SAMPLES.keys()


def test_what_is_larger_than_any_file_may_be_is_not_read(store: TransferStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.replace({ONE: bytes(5000), TWO: b"VE01", NOTE: b" " * 70_000}, [])
    monkeypatch.setattr(blob, "MOST_BYTES", 4999)
    found = dict(store.read_all())
    assert found[TWO] == b"VE01"
    for name in (ONE, NOTE):
        for read in (found[name], store.read(name)):
            assert isinstance(read, Skipped)
            assert read.reason is SkipReason.OVERSIZE


@pytest.mark.parametrize("name", ["other/a.bin", "vec/a b.bin", "vec/", "vec/../a.bin", "/vec/a.bin", "vec/ä.bin"])
def test_names_of_others_are_refused_before_anything_is_written(store: TransferStore, name: str) -> None:
    with pytest.raises(BlobError, match="no name of the transfer store"):
        store.replace({ONE: b"x", name: b"x"}, [])
    with pytest.raises(BlobError):
        store.replace({}, [name])
    assert store.names() == frozenset()

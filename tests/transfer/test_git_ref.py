"""Vectors as a commit of a git repository: what is written, what is left alone, and what others may have put there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from repositories import git, make_repository, write

from outcrop.core.model import Skipped, SkipReason
from outcrop.errors import StoreError, StoreLocked
from outcrop.transfer import blob
from outcrop.transfer.git import ref
from outcrop.transfer.git.ref import REF, GitTransfer
from outcrop.vcs.git import Repository
from outcrop.vcs.git_repository import find_repository

ONE, TWO, NOTE = f"vec/{'1' * 40}.bin", f"vec/{'2' * 40}.bin", "vec/space.json"
SAMPLES = {ONE: b"VE01" + bytes(range(256)) * 40, TWO: b"VE01", NOTE: b'{"model": "m", "dim": 2}\n'}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "zoo", {"README.md": "# Zoo\n", "src/app.py": "def run():\n    pass\n"})


def found(folder: Path) -> Repository:
    repository = find_repository(folder)
    assert repository is not None
    return repository


def text(folder: Path, *arguments: str) -> str:
    return git(folder, *arguments).decode().strip()


def test_a_commit_without_parents_that_is_replaced(folder: Path) -> None:
    transfer = GitTransfer(found(folder))
    transfer.replace(SAMPLES, [])
    first = text(folder, "rev-parse", REF)
    transfer.replace({ONE: b"VE01 changed"}, [TWO])
    assert text(folder, "rev-list", "--count", REF) == "1"
    assert text(folder, "rev-parse", REF) != first
    assert text(folder, "log", "-1", "--format=%P|%an|%ae", REF) == "|outcrop|outcrop@localhost"
    assert text(folder, "ls-tree", "-r", "--name-only", REF).splitlines() == [ONE, NOTE]
    assert text(folder, "ls-tree", REF).split()[:2] == ["040000", "tree"]
    # Whatever a strict server looks at.
    assert text(folder, "fsck", "--strict", "--no-dangling") == ""


def test_equal_files_are_an_equal_commit_whoever_writes_them(folder: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other", {"x": "x"})
    GitTransfer(found(folder)).replace(SAMPLES, [])
    later = GitTransfer(found(other))
    later.replace({NOTE: SAMPLES[NOTE], TWO: b"old"}, [])
    later.replace({TWO: SAMPLES[TWO], ONE: SAMPLES[ONE]}, [])
    assert text(folder, "rev-parse", REF) == text(other, "rev-parse", REF)


def test_nothing_of_the_users_is_touched(folder: Path) -> None:
    git(folder, "config", "core.logAllRefUpdates", "always")
    write(folder, {"README.md": "# Zoo, changed\n", "new.txt": "untracked\n", "staged.txt": "staged\n"})
    git(folder, "add", "staged.txt")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "objects" not in path.parts}
    status = text(folder, "status", "--porcelain")
    transfer = GitTransfer(found(folder))
    transfer.replace({f"vec/{number:040x}.bin": b"VE01%d" % number for number in range(300)} | SAMPLES, [])
    transfer.replace({}, [ONE])
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "objects" not in path.parts}
    assert {str(path.relative_to(folder)) for path in after.keys() - before.keys()} == {f".git/{REF}"}
    assert {path: after[path] for path in before} == before
    assert text(folder, "status", "--porcelain") == status


def test_many_files_are_a_few_packs_and_objects(folder: Path) -> None:
    GitTransfer(found(folder)).replace({f"vec/{number:040x}.bin": b"VE01%d" % number for number in range(2000)}, [])
    counts = dict(line.split(": ") for line in text(folder, "count-objects", "-v").splitlines())
    assert int(counts["packs"]) == 1
    assert int(counts["count"]) < 20


def test_hooks_and_filters_of_the_repository_do_not_run(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for name in ("reference-transaction", "post-commit", "pre-push", "update"):
        hook = folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
        hook.chmod(0o755)
    GitTransfer(found(folder)).replace(SAMPLES, [])
    assert not mark.exists()


def test_two_writers_do_not_lose_each_others_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer = GitTransfer(found(folder))
    transfer.replace({ONE: b"VE01"}, [])
    written = ref._write_commit

    def meanwhile(repository: Repository, entries: dict[str, str]) -> str:
        monkeypatch.undo()
        GitTransfer(repository).replace({TWO: b"VE01 of another"}, [])
        return written(repository, entries)

    monkeypatch.setattr(ref, "_write_commit", meanwhile)
    with pytest.raises(StoreLocked, match="changed by another process"):
        transfer.replace({NOTE: b"{}"}, [])
    assert transfer.names() == {ONE, TWO}


def test_what_was_kept_apart_is_published_at_once(folder: Path) -> None:
    transfer = GitTransfer(found(folder))
    transfer.replace({ONE: b"VE01"}, [])
    apart = GitTransfer(found(folder), transfer.commit)
    apart.replace({TWO: b"VE01"}, [])
    apart.replace({NOTE: b"{}"}, [ONE])
    assert transfer.names() == {ONE}
    apart.publish()
    assert transfer.names() == {TWO, NOTE}


def hostile(folder: Path, entries: str) -> None:
    """A commit at the ref that none of ours would make."""
    tree = git(folder, "mktree", "--missing", stdin=entries.encode()).decode().strip()
    root = git(folder, "mktree", stdin=f"040000 tree {tree}\tvec\n".encode()).decode().strip()
    git(folder, "update-ref", REF, text(folder, "commit-tree", "-m", "x", root))


def test_what_is_no_ordinary_file_is_passed_over(folder: Path) -> None:
    blob = git(folder, "hash-object", "-w", "--stdin", stdin=b"VE01").decode().strip()
    tree = text(folder, "rev-parse", "HEAD^{tree}")
    commit = text(folder, "rev-parse", "HEAD")
    lines = [
        f"100644 blob {blob}\t{'1' * 40}.bin",
        f"120000 blob {blob}\t{'2' * 40}.bin",
        f"040000 tree {tree}\t{'3' * 40}.bin",
        f"160000 commit {commit}\t{'4' * 40}.bin",
        f"100644 blob {blob}\twith space.bin",
        f"100644 blob {blob}\t-rf.bin",
    ]
    hostile(folder, "".join(f"{line}\n" for line in lines))
    assert list(GitTransfer(found(folder)).read_all()) == [(ONE, b"VE01")]


def test_a_file_that_is_too_large_or_not_here_is_refused_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob, "MOST_BYTES", 1000)
    small, large = (
        git(folder, "hash-object", "-w", "--stdin", stdin=data).decode().strip() for data in (b"VE01", b"V" * 1001)
    )
    names = {"1": small, "2": large, "3": "dead" * 10}
    hostile(folder, "".join(f"100644 blob {blob}\t{digit * 40}.bin\n" for digit, blob in names.items()))
    read = dict(GitTransfer(found(folder)).read_all())
    assert read[ONE] == b"VE01"
    refused = {name: item.reason for name, item in read.items() if isinstance(item, Skipped)}
    assert refused == {TWO: SkipReason.OVERSIZE, f"vec/{'3' * 40}.bin": SkipReason.UNREADABLE}


def test_a_ref_that_names_no_commit_holds_nothing(folder: Path) -> None:
    git(folder, "update-ref", REF, text(folder, "rev-parse", "HEAD:README.md"))
    assert GitTransfer(found(folder)).names() == frozenset()


def test_a_commit_of_something_else_holds_nothing(folder: Path) -> None:
    git(folder, "update-ref", REF, "HEAD")
    assert GitTransfer(found(folder)).names() == frozenset()


def test_a_repository_that_cannot_be_written(folder: Path) -> None:
    transfer = GitTransfer(found(folder))
    transfer.replace({ONE: b"VE01"}, [])
    lock = folder / ".git" / f"{REF}.lock"
    lock.write_text("")
    with pytest.raises(StoreLocked, match="Run the command again"):
        transfer.replace({TWO: b"VE01"}, [])
    lock.unlink()
    (folder / ".git" / "HEAD").unlink()
    with pytest.raises(StoreError):
        GitTransfer(Repository(folder, folder / ".git", folder / ".git", False, "sha1"), None).replace(SAMPLES, [])


def test_in_a_linked_worktree_the_ref_is_the_repositorys(folder: Path, tmp_path: Path) -> None:
    git(folder, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    GitTransfer(found(tmp_path / "linked")).replace(SAMPLES, [])
    assert GitTransfer(found(folder)).names() == SAMPLES.keys()


def test_in_a_partial_clone_new_files_ask_no_remote(folder: Path, tmp_path: Path) -> None:
    GitTransfer(found(folder)).replace({ONE: b"VE01 not fetched"}, [])
    git(folder, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--filter=blob:none", folder.as_uri(), str(clone))
    git(clone, "fetch", "-q", "origin", f"+{REF}:{REF}")
    (folder / ".git").rename(tmp_path / "gone")
    transfer = GitTransfer(found(clone))
    assert transfer.names() == {ONE}
    missing = transfer.read(ONE)
    assert isinstance(missing, Skipped)
    assert missing.reason is SkipReason.UNREADABLE
    transfer.replace({TWO: b"VE01"}, [])
    assert transfer.names() == {ONE, TWO}
    assert transfer.read(TWO) == b"VE01"


def test_it_can_be_read_by_git_alone(folder: Path) -> None:
    GitTransfer(found(folder)).replace(SAMPLES, [])
    shown = subprocess.run(
        ["git", "-C", str(folder), "cat-file", "blob", f"{REF}:{ONE}"], check=True, capture_output=True
    )
    assert shown.stdout == SAMPLES[ONE]

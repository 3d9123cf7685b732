"""Commits of real git repositories: which are listed, and what is read of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from repositories import ISOLATED, commit, git, make_repository, write

from outcrop.core.model import Artifact, CommitListing, Kind, Skipped, SkipReason
from outcrop.sources.git.source import GitSource
from outcrop.sources.options import Options
from outcrop.text.commits import touched_files


def history(root: Path, rev: str | None = None, most: int | str = 2000) -> tuple[GitSource, CommitListing]:
    source = GitSource(root, Options(history=most), rev)  # type: ignore[arg-type]
    return source, source.commits(source.artifacts({}).revision)


def texts(root: Path, rev: str | None = None, most: int | str = 2000) -> list[str]:
    source, listing = history(root, rev, most)
    found = list(source.read(listing.refs))
    assert [item.ref for item in found if isinstance(item, Artifact)] == list(listing.refs)
    return [item.text for item in found if isinstance(item, Artifact)]


def subjects(root: Path, rev: str | None = None, most: int | str = 2000) -> list[str]:
    return [text.partition("\n")[0] for text in texts(root, rev, most)]


def empty_commit(root: Path, message: str | bytes, *options: str) -> None:
    data = message.encode() if isinstance(message, str) else message
    git(root, *options, "commit", "-q", "--allow-empty", "--allow-empty-message", "-F", "-", stdin=data)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "work", {"a.py": "x = 1\n", "docs/b.md": "# B\n"})


def test_a_commit_is_its_message_author_date_and_files(root: Path) -> None:
    write(root, {"a.py": "x = 2\n", "größe.py": "y\n"})
    (root / "docs/b.md").unlink()
    head = commit(root, "Change and add\n\nA reason.\n\nSigned-off-by: Ada <ada@example.org>")
    source, listing = history(root)
    assert [(ref.hash, ref.kind, ref.path, ref.version) for ref in listing.refs[:1]] == [
        (head, Kind.COMMIT, None, head)
    ]
    assert listing.note == ""
    assert texts(root) == [
        "Change and add\n\nA reason.\n\nSigned-off-by: Ada\n\nAda, 2024-01-01\na.py\ndocs/b.md\ngröße.py",
        "change\n\nAda, 2024-01-01\na.py\ndocs/b.md",
    ]
    assert "example.org" not in "".join(texts(root))
    assert list(source.read([])) == []


def test_the_newest_are_listed_and_merges_are_not(root: Path) -> None:
    git(root, "switch", "-q", "-c", "side")
    write(root, {"side.py": "s\n"})
    commit(root, "on the side")
    git(root, "switch", "-q", "main")
    write(root, {"main.py": "m\n"})
    commit(root, "on main")
    git(root, "merge", "-q", "--no-ff", "-m", "the merge", "side")
    assert sorted(subjects(root)) == ["change", "on main", "on the side"]
    assert len(subjects(root, most=2)) == 2
    assert subjects(root, most=0) == []
    assert len(subjects(root, most="all")) == 3


def test_only_what_is_reachable_is_listed(root: Path) -> None:
    write(root, {"a.py": "x = 2\n"})
    commit(root, "first wording")
    before = GitSource(root).revision({})
    git(root, "commit", "-q", "--amend", "-m", "second wording")
    assert subjects(root) == ["second wording", "change"]
    assert GitSource(root).revision({}) != before
    assert subjects(root, "HEAD~1") == ["change"]
    git(root, "reset", "-q", "--hard", "HEAD~1")
    assert subjects(root) == ["change"]


def test_a_repository_without_a_commit_has_no_history(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert texts(tmp_path) == []


def test_a_bare_repository_and_a_linked_worktree_have_their_own(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    write(tmp_path / "linked", {"a.py": "x = 3\n"})
    commit(tmp_path / "linked", "in the worktree")
    assert subjects(tmp_path / "linked") == ["in the worktree", "change"]
    assert subjects(root) == ["change"]
    git(tmp_path, "clone", "-q", "--bare", str(root), str(tmp_path / "bare.git"))
    assert subjects(tmp_path / "bare.git") == ["change"]


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_odd_messages_names_and_files(tmp_path: Path, object_format: str) -> None:
    root = make_repository(tmp_path / "odd", {"a": "1"}, f"--object-format={object_format}")
    empty_commit(root, "")
    empty_commit(root, "no files")
    empty_commit(root, "Straße in UTF-8")
    empty_commit(root, "Straße as it says".encode("cp1252"), "-c", "i18n.commitEncoding=cp1252")
    # As other programs write it: Western European without saying so.
    empty_commit(root, "to be replaced")
    raw = git(root, "cat-file", "commit", "HEAD")
    raw = raw.partition(b"\n\n")[0] + b"\n\nStra\xdfe without a word\n"
    head = git(root, "hash-object", "-t", "commit", "-w", "--stdin", stdin=raw).decode().strip()
    git(root, "reset", "-q", "--hard", head)
    for name in (b"\nline\n", b"\x01odd", b"\xff.bin", b" blank ", b"and 3 more"):
        (Path(os.fsdecode(os.fsencode(root) + b"/" + name))).write_bytes(b"\0")
    commit(root, "odd names")
    empty_commit(root, b"\x01" + head.encode() + b"\n\nlooks like the next one\x1b[31m\r\nin red")
    found = texts(root)
    assert [text.partition("\n")[0] for text in found] == [
        head,
        "odd names",
        "Straße without a word",
        "Straße as it says",
        "Straße in UTF-8",
        "no files",
        "(no message)",
        "change",
    ]
    assert touched_files(found[0]) == ()
    assert "looks like the next one[31m\nin red" in found[0]
    assert set(touched_files(found[1])) == {"\\x0aline\\x0a", "\\x01odd", "\\xff.bin", " blank ", "and 3 more"}
    assert touched_files(found[-1]) == ("a",)


def test_a_file_that_is_named_like_a_commit_begins_none(root: Path) -> None:
    other = git(root, "rev-parse", "HEAD").decode().strip()
    (root / f"\x01{other}").write_text("x")
    commit(root, "a trap")
    assert subjects(root) == ["a trap", "change"]


def test_submodules_and_renames_are_paths_like_others(root: Path, tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"i.py": "i = 1\n"})
    git(root, "submodule", "add", "-q", str(inner), "lib/inner")
    git(root, "mv", "a.py", "b.py")
    commit(root, "add a submodule")
    assert touched_files(texts(root)[0]) == (".gitmodules", "a.py", "b.py", "lib/inner")


def test_a_shallow_clone_has_what_is_there_and_says_so(root: Path, tmp_path: Path) -> None:
    for number in range(3):
        write(root, {"a.py": f"x = {number + 2}\n"})
        commit(root, f"step {number}")
    clone = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "2", root.as_uri(), str(clone))
    source, listing = history(clone)
    assert listing.note == "a shallow clone has no older ones"
    # What the last of them touched is not known: git would name every file.
    assert [touched_files(text) for text in texts(clone)] == [("a.py",), ()]
    assert subjects(clone) == ["step 2", "step 1"]
    assert [ref.version == ref.hash for ref in listing.refs] == [True, False]
    assert history(clone, most=1)[1].note == ""
    before = source.revision({})
    git(clone, "fetch", "-q", "--unshallow")
    assert source.revision({}) != before
    assert texts(clone) == texts(root)
    assert history(clone)[1] == history(root)[1]


@pytest.mark.parametrize("only", ["blob:none", "tree:0"])
def test_a_partial_clone_fetches_nothing(root: Path, tmp_path: Path, only: str) -> None:
    write(root, {"a.py": "x = 2\n"})
    commit(root, "second")
    git(root, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    git(tmp_path, "clone", "-q", f"--filter={only}", root.as_uri(), str(clone))
    (tmp_path / "work").rename(tmp_path / "gone")
    assert subjects(clone) == ["second", "change"]
    assert touched_files(texts(clone)[0]) == (("a.py",) if only == "blob:none" else ())


def test_settings_of_the_repository_change_nothing_and_run_nothing(root: Path, tmp_path: Path) -> None:
    write(root, {"a.py": "x = 2\n"})
    commit(root, "second")
    wanted = texts(root)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    for key, value in {
        "log.showSignature": "true",
        "gpg.program": str(program),
        "log.mailmap": "true",
        "mailmap.blob": "HEAD:.mailmap",
        "log.showRoot": "false",
        "log.diffMerges": "on",
        "i18n.logOutputEncoding": "UTF-16",
        "diff.orderFile": "/no/such/file",
        "diff.external": str(program),
        "diff.renames": "copies",
        "diff.relative": "true",
        "diff.noprefix": "true",
        "diff.ignoreSubmodules": "all",
        "color.ui": "always",
        "color.diff": "always",
        "core.quotePath": "false",
        "format.pretty": "oneline",
        "log.date": "raw",
        "core.pager": str(program),
        "notes.displayRef": "*",
    }.items():
        git(root, "config", key, value)
    assert texts(root) == wanted
    assert not (tmp_path / "ran").exists()


def test_a_private_key_in_a_message_is_left_out(root: Path) -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "\n".join(["Ab0+" * 17] * 4) + "\n-----END OPENSSH PRIVATE KEY-----"
    empty_commit(root, f"oops\n\n{key}\n")
    source, listing = history(root)
    outcome = next(iter(source.read(listing.refs)))
    assert isinstance(outcome, Skipped)
    assert (outcome.path, outcome.reason) == (listing.refs[0].hash, SkipReason.SECRET)


def test_a_commit_that_is_gone_is_skipped_and_the_rest_is_read(root: Path) -> None:
    write(root, {"a.py": "x = 2\n"})
    commit(root, "second")
    source, listing = history(root)
    first, last = listing.refs
    ghost = type(first)("1" * 40, Kind.COMMIT, None, "1" * 40)
    outcomes = list(source.read([first, ghost, last]))
    assert [isinstance(item, Artifact) for item in outcomes] == [True, False, True]
    assert isinstance(outcomes[1], Skipped)
    assert outcomes[1].reason is SkipReason.UNREADABLE


def test_a_huge_message_and_thousands_of_files_take_little_memory(tmp_path: Path) -> None:
    # By fast-import: no file is written.
    files = "".join(f"M 100644 inline d/{number}.txt\ndata 1\nx\n" for number in range(5000))
    message = "big\n\n" + "word " * 1_000_000
    stream = f"commit refs/heads/main\ncommitter Ada <a@b.c> 1700000000 +0000\ndata {len(message)}\n{message}\n{files}"
    git(tmp_path, "init", "-q", "--bare", "-b", "main")
    subprocess.run(
        ["git", "-C", str(tmp_path), "fast-import", "--quiet"],
        input=stream.encode(),
        env=os.environ | ISOLATED,
        check=True,
    )
    (text,) = texts(tmp_path)
    assert text.startswith("big\n\nword word")
    assert text.endswith("and 4,970 more")
    assert len(text) < 5000

"""A git repository against the real git: what is listed under which id, from where it is read, and when it moved."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from repositories import commit, git, make_repository, opened_files, write

from outcrop.core.model import Artifact, Listing, Skipped, SkipReason
from outcrop.errors import NotARepository, SourceError
from outcrop.sources.discover import find_root, open_source
from outcrop.sources.git.source import GitSource
from outcrop.sources.options import Options
from outcrop.vcs.git_repository import find_repository


def hashes(listing: Listing) -> dict[str | None, str]:
    return {ref.path: ref.hash for ref in listing.refs}


def reasons(listing: Listing) -> dict[str, SkipReason]:
    return {item.path: item.reason for item in listing.skipped}


def texts(source: GitSource, listing: Listing | None = None) -> dict[str | None, str]:
    refs = (listing or source.artifacts({})).refs
    return {item.ref.path: item.text for item in source.read(refs) if isinstance(item, Artifact)}


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").decode().strip()


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_files_are_named_by_their_blob_ids(tmp_path: Path, object_format: str) -> None:
    make_repository(tmp_path, {"a.md": "one\n", "b/c.py": "x = 1\n"}, f"--object-format={object_format}")
    write(tmp_path, {"a.md": "two\n", "new.md": "three\n"})
    listing = GitSource(tmp_path).artifacts({})
    wanted = {path: git(tmp_path, "hash-object", path).decode().strip() for path in ("a.md", "b/c.py", "new.md")}
    assert hashes(listing) == wanted
    assert len(wanted["a.md"]) == (40 if object_format == "sha1" else 64)
    assert texts(GitSource(tmp_path)) == {"a.md": "two\n", "b/c.py": "x = 1\n", "new.md": "three\n"}


def test_the_revision_is_the_commit_while_nothing_differs(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "one\n", ".outcropignore": "x/\n"})
    source = GitSource(tmp_path)
    assert source.revision({}) == head(tmp_path)
    write(tmp_path, {"a.md": "two\n"})
    first = source.artifacts({})
    commit_id, _, digest = first.revision.partition("+")
    assert commit_id == head(tmp_path)
    assert len(digest) == 8
    git(tmp_path, "checkout", "-q", "a.md")
    assert source.revision(first.seen) == head(tmp_path)


def test_staging_alone_keeps_the_content_and_moves_the_revision_at_most_once(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "one\n"})
    write(tmp_path, {"a.md": "two\n"})
    source = GitSource(tmp_path)
    unstaged = source.artifacts({})
    git(tmp_path, "add", "a.md")
    staged = source.artifacts(unstaged.seen)
    assert staged.refs[0].hash == unstaged.refs[0].hash
    assert source.revision(staged.seen) == staged.revision != head(tmp_path)
    git(tmp_path, "commit", "-q", "-m", "two")
    assert source.revision(staged.seen) == head(tmp_path)


def test_a_clean_file_is_never_read_from_disk(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "as committed\n", "b.md": "other\n"})
    git(tmp_path, "update-index", "--assume-unchanged", "a.md")
    write(tmp_path, {"a.md": "on disk it says something else\n"})
    source = GitSource(tmp_path)
    with opened_files() as opened:
        assert texts(source) == {"a.md": "as committed\n", "b.md": "other\n"}
    assert not [name for name in opened if name.endswith(".md")]


def test_changed_files_are_read_once(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "one\n", "b.md": "two\n"})
    write(tmp_path, {"a.md": "changed\n", "new.md": "new\n"})
    time.sleep(0.06)
    source = GitSource(tmp_path)
    with opened_files() as opened:
        first = source.artifacts({})
    assert sorted(Path(name).name for name in opened if name.endswith(".md")) == ["a.md", "new.md"]
    assert sorted(first.seen) == ["a.md", "new.md"]
    with opened_files() as opened:
        second = source.artifacts(first.seen)
        assert source.revision(first.seen) == first.revision
    assert not [name for name in opened if name.endswith(".md")]
    assert second == first


def test_touching_a_changed_file_is_no_change(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "one\n"})
    write(tmp_path, {"a.md": "two\n"})
    time.sleep(0.06)
    source = GitSource(tmp_path)
    first = source.artifacts({})
    os.utime(tmp_path / "a.md")
    assert source.revision(first.seen) == first.revision
    write(tmp_path, {"a.md": "eno\n"})
    assert source.revision(first.seen) != first.revision


def test_a_changed_file_that_changes_again_carries_its_true_hash(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "one\n", "gone.md": "x\n"})
    write(tmp_path, {"a.md": "two\n", "gone.md": "y\n"})
    source = GitSource(tmp_path)
    listing = source.artifacts({})
    write(tmp_path, {"a.md": "three\n"})
    (tmp_path / "gone.md").unlink()
    changed, gone = source.read(listing.refs)
    assert isinstance(changed, Artifact)
    assert (changed.text, changed.ref.hash) == ("three\n", git(tmp_path, "hash-object", "a.md").decode().strip())
    assert gone == Skipped("gone.md", SkipReason.VANISHED)


def test_ignored_untracked_and_tracked_files(tmp_path: Path) -> None:
    make_repository(tmp_path, {".gitignore": "*.log\n!keep.log\n", "a.md": "x\n"})
    write(tmp_path, {"tracked.log": "x\n"})
    git(tmp_path, "add", "-f", "tracked.log")
    write(
        tmp_path, {"b.log": "x\n", "keep.log": "x\n", "sub/.gitignore": "c.md\n", "sub/c.md": "x\n", "sub/d.md": "x\n"}
    )
    (tmp_path / ".git" / "info" / "exclude").write_text("private.md\n")
    write(tmp_path, {"private.md": "x\n", "node_modules/m/i.js": "x\n", ".outcrop/x": "x\n"})
    listing = GitSource(tmp_path).artifacts({})
    assert list(hashes(listing)) == [".gitignore", "a.md", "keep.log", "sub/.gitignore", "sub/d.md", "tracked.log"]
    assert reasons(listing) == {"node_modules": SkipReason.EXCLUDED}


def test_our_own_ignore_file_applies_to_tracked_files(tmp_path: Path) -> None:
    make_repository(
        tmp_path,
        {
            ".outcropignore": "/vendor/\n*.gen.py\n",
            "vendor/x/y.py": "x\n",
            "a.gen.py": "x\n",
            "lib/.outcropignore": "!b.gen.py\n",
            "lib/b.gen.py": "x\n",
            "lib/vendor/z.py": "x\n",
        },
    )
    listing = GitSource(tmp_path, Options(exclude=("lib/vendor",))).artifacts({})
    assert list(hashes(listing)) == [".outcropignore", "lib/.outcropignore", "lib/b.gen.py"]
    assert reasons(listing) == dict.fromkeys(["a.gen.py", "lib/vendor", "vendor"], SkipReason.EXCLUDED)
    at_commit = GitSource(tmp_path, Options(exclude=("lib/vendor",)), "HEAD").artifacts({})
    assert (hashes(at_commit), reasons(at_commit)) == (hashes(listing), reasons(listing))


def test_an_ignore_file_that_hides_itself_still_moves_the_revision(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "x\n", "b.md": "x\n"})
    (tmp_path / ".git" / "info" / "exclude").write_text(".outcropignore\n")
    source = GitSource(tmp_path)
    first = source.artifacts({})
    write(tmp_path, {".outcropignore": "a.md\n"})
    second = source.artifacts(first.seen)
    assert list(hashes(second)) == ["b.md"]
    assert source.revision(second.seen) == second.revision != first.revision
    write(tmp_path, {".outcropignore": "b.md\n"})
    assert source.revision(second.seen) != second.revision


def test_states_of_a_file_in_the_index(tmp_path: Path) -> None:
    make_repository(tmp_path, {"deleted.md": "x\n", "staged.md": "x\n", "type.md": "x\n", "moved.md": "some text\n"})
    (tmp_path / "deleted.md").unlink()
    (tmp_path / "type.md").unlink()
    (tmp_path / "type.md").symlink_to("staged.md")
    git(tmp_path, "mv", "moved.md", "there.md")
    write(tmp_path, {"staged.md": "y\n", "intent.md": "z\n"})
    git(tmp_path, "add", "staged.md")
    git(tmp_path, "add", "-N", "intent.md")
    source = GitSource(tmp_path)
    listing = source.artifacts({})
    assert texts(source, listing) == {"staged.md": "y\n", "intent.md": "z\n", "there.md": "some text\n"}
    assert reasons(listing) == {"type.md": SkipReason.SYMLINK}
    assert source.revision(listing.seen) == listing.revision


def test_a_conflict_is_read_as_it_stands_on_disk(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "base\n", "b.md": "same\n"})
    git(tmp_path, "checkout", "-q", "-b", "other")
    write(tmp_path, {"a.md": "theirs\n"})
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "main")
    write(tmp_path, {"a.md": "ours\n"})
    commit(tmp_path)
    with pytest.raises(Exception, match="merge"):
        git(tmp_path, "merge", "-q", "other")
    source = GitSource(tmp_path)
    text = texts(source)
    assert "<<<<<<<" in text["a.md"]
    assert text["b.md"] == "same\n"


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    write(tmp_path, {"outside/secret.md": "x\n"})
    repository = tmp_path / "r"
    repository.mkdir()
    git(repository, "init", "-q")
    write(repository, {"a.md": "x\n"})
    (repository / "out").symlink_to(tmp_path / "outside")
    (repository / "loop").symlink_to(".")
    (repository / "file.md").symlink_to("a.md")
    commit(repository)
    (repository / "new").symlink_to("..")
    os.mkfifo(repository / "pipe")
    for source in (GitSource(repository), GitSource(repository, rev="HEAD")):
        listing = source.artifacts({})
        assert list(hashes(listing)) == ["a.md"]
        assert reasons(listing).items() >= dict.fromkeys(["file.md", "loop", "out"], SkipReason.SYMLINK).items()
    assert reasons(GitSource(repository).artifacts({}))["new"] is SkipReason.SYMLINK


def test_odd_names_are_listed_and_read(tmp_path: Path) -> None:
    odd = ["new\nline.md", "tab\there.md", "quo\"te'.md", "back\\slash.md", "\udcff.md", "spa ce.md", "日本.md"]
    make_repository(tmp_path, {name: f"clean {number}\n" for number, name in enumerate(odd)})
    source = GitSource(tmp_path)
    assert sorted(texts(source).values()) == [f"clean {number}\n" for number in range(len(odd))]
    write(tmp_path, {name: f"changed {number}\n" for number, name in enumerate(odd)})
    text = texts(source)
    assert sorted(text.values()) == [f"changed {number}\n" for number in range(len(odd))]
    assert {"new\\x0aline.md", "tab\\x09here.md", "\\xff.md", "back\\slash.md"} <= set(text)


def test_line_ends_are_as_stored_or_as_they_stand(tmp_path: Path) -> None:
    make_repository(tmp_path, {".gitattributes": "*.md text eol=crlf\n", "a.md": "one\ntwo\n"})
    (tmp_path / "a.md").unlink()
    git(tmp_path, "checkout", "-q", "a.md")
    assert (tmp_path / "a.md").read_bytes() == b"one\r\ntwo\r\n"
    source = GitSource(tmp_path)
    listing = source.artifacts({})
    assert listing.seen == {}
    assert texts(source, listing)["a.md"] == "one\ntwo\n"
    write(tmp_path, {"a.md": "one\r\nthree\r\n"})
    assert texts(source)["a.md"] == "one\nthree\n"


def test_a_repository_without_commits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    source = GitSource(tmp_path)
    empty = source.artifacts({})
    assert (empty.revision, list(empty.refs)) == ("unborn", [])
    write(tmp_path, {"a.md": "x\n", "b.md": "y\n"})
    git(tmp_path, "add", "a.md")
    listing = source.artifacts({})
    assert texts(source, listing) == {"a.md": "x\n", "b.md": "y\n"}
    assert listing.revision.startswith("unborn+")
    assert source.revision(listing.seen) == listing.revision
    with pytest.raises(SourceError, match="HEAD is not a commit"):
        GitSource(tmp_path, rev="HEAD")


def test_a_detached_head(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "one\n"})
    first = head(tmp_path)
    write(tmp_path, {"a.md": "two\n"})
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", first)
    source = GitSource(tmp_path)
    assert (source.revision({}), source.worktree) == (first, "")
    assert texts(source) == {"a.md": "one\n"}


def test_a_commit_can_be_indexed(tmp_path: Path) -> None:
    first = head(make_repository(tmp_path, {"a.md": "one\n", "old/b.md": "x\n"}))
    git(tmp_path, "rm", "-q", "-r", "old")
    write(tmp_path, {"a.md": "two\n"})
    commit(tmp_path)
    source = GitSource(tmp_path, rev="HEAD~1")
    assert source.revision({}) == first
    assert source.worktree == f"rev:{first}"
    assert source.worktrees() == {"", f"rev:{first}"}
    listing = source.artifacts({})
    assert texts(source, listing) == {"a.md": "one\n", "old/b.md": "x\n"}
    assert [ref.size for ref in listing.refs] == [4, 2]
    assert source.store_path() == GitSource(tmp_path).store_path()
    for wrong in ("no-such-branch", "--all", "HEAD:a.md"):
        with pytest.raises(SourceError, match="commit"):
            GitSource(tmp_path, rev=wrong)


def test_a_bare_repository_is_its_head(tmp_path: Path) -> None:
    make_repository(tmp_path / "work", {"a.md": "one\n"})
    git(tmp_path, "clone", "-q", "--bare", "work", "Some Thing.git")
    bare = tmp_path / "Some Thing.git"
    git(bare, "remote", "remove", "origin")
    source = GitSource(bare)
    assert (source.root, source.worktree, source.project) == (bare, "", "some-thing")
    assert source.store_path() == bare / "outcrop" / "index.sqlite"
    before = source.revision({})
    assert texts(source) == {"a.md": "one\n"}
    write(tmp_path / "work", {"a.md": "two\n"})
    after = commit(tmp_path / "work")
    git(tmp_path / "work", "push", "-q", str(bare), "main")
    assert (source.revision({}), texts(source)) == (after, {"a.md": "two\n"})
    assert before != after
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    listing = GitSource(tmp_path / "empty.git").artifacts({})
    assert (listing.revision, list(listing.refs)) == ("unborn", [])


def test_worktrees_share_a_store_and_see_their_own_files(tmp_path: Path) -> None:
    make_repository(tmp_path / "main", {"a.md": "one\n", "same.md": "same\n"})
    git(tmp_path / "main", "worktree", "add", "-q", "-b", "feature", str(tmp_path / "linked"))
    write(tmp_path / "linked", {"a.md": "two\n"})
    commit(tmp_path / "linked")
    main, linked = GitSource(tmp_path / "main"), GitSource(tmp_path / "linked")
    assert main.store_path() == linked.store_path() == tmp_path / "main" / ".git" / "outcrop" / "index.sqlite"
    assert (main.worktree, linked.worktree) == ("", "linked")
    assert main.worktrees() == linked.worktrees() == {"", "linked"}
    assert main.project == linked.project == "main"
    assert texts(main)["a.md"] == "one\n"
    assert texts(linked)["a.md"] == "two\n"
    assert hashes(main.artifacts({}))["same.md"] == hashes(linked.artifacts({}))["same.md"]
    git(tmp_path / "main", "worktree", "lock", str(tmp_path / "linked"))
    (tmp_path / "linked").rename(tmp_path / "away")
    assert main.worktrees() == {"", "linked"}
    git(tmp_path / "main", "worktree", "unlock", str(tmp_path / "linked"))
    assert main.worktrees() == {""}


def test_a_worktree_inside_the_repository_is_not_its_content(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "one\n"})
    git(tmp_path, "worktree", "add", "-q", "-b", "feature", str(tmp_path / "trees" / "feature"))
    listing = GitSource(tmp_path).artifacts({})
    assert list(hashes(listing)) == ["a.md"]
    assert reasons(listing) == {"trees/feature": SkipReason.EXCLUDED}


def add_submodule(outer: Path, inner: Path, path: str) -> None:
    git(outer, "submodule", "add", "-q", str(inner), path)
    commit(outer)


def test_submodules_are_entered(tmp_path: Path) -> None:
    make_repository(tmp_path / "deep", {"d.md": "deepest\n"})
    make_repository(tmp_path / "inner", {"i.py": "i = 1\n", "skip/s.md": "x\n"})
    add_submodule(tmp_path / "inner", tmp_path / "deep", "libs/deep")
    make_repository(tmp_path / "outer", {"a.md": "a\n", ".outcropignore": "skip/\n"})
    add_submodule(tmp_path / "outer", tmp_path / "inner", "libs/inner")
    git(tmp_path / "outer", "submodule", "update", "-q", "--init", "--recursive")
    source = GitSource(tmp_path / "outer")
    listing = source.artifacts({})
    everything = texts(source, listing)
    assert {path: text for path, text in everything.items() if path and "." not in path[:1] and "/." not in path} == {
        "a.md": "a\n",
        "libs/inner/i.py": "i = 1\n",
        "libs/inner/libs/deep/d.md": "deepest\n",
    }
    assert reasons(listing) == {"libs/inner/skip": SkipReason.EXCLUDED}
    assert source.revision(listing.seen) == listing.revision
    write(tmp_path / "outer" / "libs" / "inner" / "libs" / "deep", {"d.md": "dirty\n", "n.md": "new\n"})
    assert source.revision(listing.seen) != listing.revision
    changed = source.artifacts(listing.seen)
    text = texts(source, changed)
    assert text["libs/inner/libs/deep/d.md"] == "dirty\n"
    assert text["libs/inner/libs/deep/n.md"] == "new\n"
    assert source.revision(changed.seen) == changed.revision
    assert texts(GitSource(tmp_path / "outer"), changed) == text


def test_a_submodule_that_is_not_checked_out_is_reported(tmp_path: Path) -> None:
    make_repository(tmp_path / "inner", {"i.py": "i = 1\n"})
    make_repository(tmp_path / "outer", {"a.md": "a\n"})
    add_submodule(tmp_path / "outer", tmp_path / "inner", "inner")
    git(tmp_path, "clone", "-q", "outer", "clone")
    source = GitSource(tmp_path / "clone")
    before = source.artifacts({})
    assert reasons(before) == {"inner": SkipReason.SUBMODULE}
    assert list(hashes(before)) == [".gitmodules", "a.md"]
    git(tmp_path / "clone", "submodule", "update", "-q", "--init")
    assert source.revision(before.seen) != before.revision
    assert "inner/i.py" in texts(source)
    assert reasons(GitSource(tmp_path / "outer", rev="HEAD").artifacts({})) == {"inner": SkipReason.SUBMODULE}


def test_a_submodule_asked_for_by_its_own_path_is_a_repository(tmp_path: Path) -> None:
    make_repository(tmp_path / "inner", {"i.py": "i = 1\n"})
    make_repository(tmp_path / "outer", {"a.md": "a\n"})
    add_submodule(tmp_path / "outer", tmp_path / "inner", "lib")
    source = GitSource(tmp_path / "outer" / "lib")
    assert texts(source) == {"i.py": "i = 1\n"}
    assert source.worktree == ""


def test_a_repository_inside_that_is_no_submodule_is_reported(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "a\n"})
    make_repository(tmp_path / "other", {"b.md": "b\n"})
    assert reasons(GitSource(tmp_path).artifacts({})) == {"other": SkipReason.EXCLUDED}


def test_a_sparse_checkout_lists_what_is_on_disk(tmp_path: Path) -> None:
    make_repository(tmp_path, {"in/a.md": "a\n", "out/b.md": "b\n", "out/c.md": "c\n", "top.md": "t\n"})
    source = GitSource(tmp_path)
    before = source.artifacts({})
    git(tmp_path, "sparse-checkout", "set", "in")
    listing = source.artifacts({})
    assert list(hashes(listing)) == ["in/a.md", "top.md"]
    skipped = listing.skipped[0]
    assert (skipped.path, skipped.reason) == ("out", SkipReason.EXCLUDED)
    assert skipped.detail.startswith("2 files")
    assert listing.revision != before.revision
    assert source.revision(listing.seen) == listing.revision


def test_a_shallow_clone(tmp_path: Path) -> None:
    make_repository(tmp_path / "full", {"a.md": "one\n"})
    write(tmp_path / "full", {"a.md": "two\n"})
    commit(tmp_path / "full")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}/full", "shallow")
    source = GitSource(tmp_path / "shallow")
    assert texts(source) == {"a.md": "two\n"}
    assert source.project == "full"
    with pytest.raises(SourceError, match="HEAD~1 is not a commit"):
        GitSource(tmp_path / "shallow", rev="HEAD~1")


def test_a_partial_clone_fetches_nothing(tmp_path: Path) -> None:
    make_repository(tmp_path / "full", {"a.md": "one\n", "b.md": "same\n"})
    write(tmp_path / "full", {"a.md": "two\n"})
    commit(tmp_path / "full")
    git(tmp_path / "full", "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{tmp_path}/full", "partial")
    partial = tmp_path / "partial"
    canary = tmp_path / "canary"
    git(partial, "config", "remote.origin.uploadpack", f"touch {canary}; git-upload-pack")
    source = GitSource(partial)
    assert texts(source) == {"a.md": "two\n", "b.md": "same\n"}
    write(partial, {"b.md": "changed\n"})
    assert texts(source) == {"a.md": "two\n", "b.md": "changed\n"}
    earlier = GitSource(partial, rev="HEAD~1")
    results = list(earlier.read(earlier.artifacts({}).refs))
    assert results[0] == Skipped("a.md", SkipReason.UNREADABLE, "its content is not in this clone")
    assert isinstance(results[1], Artifact)
    assert not canary.exists()


def test_a_damaged_object_costs_one_artifact(tmp_path: Path) -> None:
    make_repository(tmp_path, {f"{letter}.md": f"text {letter}\n" * 50 for letter in "abcdef"})
    source = GitSource(tmp_path, rev="HEAD")
    listing = source.artifacts({})
    name = hashes(listing)["c.md"]
    path = tmp_path / ".git" / "objects" / name[:2] / name[2:]
    path.chmod(0o600)
    data = path.read_bytes()
    path.write_bytes(data[:25] + b"\xff" * 10 + data[35:])
    results = list(source.read(listing.refs))
    assert [type(item) for item in results] == [Artifact, Artifact, Skipped, Artifact, Artifact, Artifact]
    # The working tree still has the file, and it is as good.
    write(tmp_path, {"other.md": "x\n"})
    work = GitSource(tmp_path)
    assert texts(work)["c.md"] == "text c\n" * 50


def test_nothing_in_the_repository_is_executed(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    root = tmp_path / "r"
    make_repository(
        root, {"a.md": "one\n", "b.evil": "x\n", ".gitattributes": "*.evil filter=evil\n*.md filter=long\n"}
    )
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    for name, value in {
        "core.fsmonitor": script,
        "core.hooksPath": tmp_path,
        "filter.evil.clean": script,
        "filter.evil.smudge": script,
        "filter.evil.required": "true",
        "filter.long.process": script,
        "diff.external": script,
        "core.pager": script,
        "core.alternateRefsCommand": script,
    }.items():
        git(root, "config", name, str(value))
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        (tmp_path / hook).symlink_to(script)
    for name in ("a.md", "b.evil"):
        os.utime(root / name, (1, 1))
    index = (root / ".git" / "index").read_bytes()
    source = GitSource(root)
    listing = source.artifacts({})
    source.revision(listing.seen)
    assert texts(source, listing)["b.evil"] == "x\n"
    assert len(list(GitSource(root, rev="HEAD").artifacts({}).refs)) == 3
    assert not canary.exists()
    assert (root / ".git" / "index").read_bytes() == index
    git(root, "status")
    assert canary.exists(), "the trap itself does not work"


def test_variables_of_a_hook_do_not_mislead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path / "a", {"a.md": "a\n"})
    make_repository(tmp_path / "b", {"b.md": "b\n"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "b" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "b"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "b" / ".git" / "index"))
    assert texts(GitSource(tmp_path / "a")) == {"a.md": "a\n"}


def test_any_path_inside_means_the_whole_repository(tmp_path: Path) -> None:
    make_repository(tmp_path / "My Repo", {"a.md": "x\n", "deep/er/b.md": "y\n"})
    for path in ("", "deep", "deep/er"):
        assert GitSource(tmp_path / "My Repo" / path).root == tmp_path / "My Repo"
    assert find_root(tmp_path / "My Repo" / "deep" / "er" / "b.md").root == tmp_path / "My Repo"
    assert GitSource(tmp_path / "My Repo").project == "my-repo"
    source = open_source(find_root(tmp_path / "My Repo" / "deep", "HEAD"), Options())
    assert source.worktree.startswith("rev:")


def test_a_folder_with_a_newline_in_its_name(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "two\nlines", {"a.md": "x\n"})
    source = GitSource(root)
    assert source.root == root
    assert texts(source) == {"a.md": "x\n"}
    assert source.store_path() == root / ".git" / "outcrop" / "index.sqlite"


@pytest.mark.parametrize(
    ("url", "project"),
    [
        ("https://example.org/group/Some.Tool.git", "some.tool"),
        ("git@example.org:group/tool.git", "tool"),
        ("ssh://example.org/tool/", "tool"),
        ("C:\\code\\tool", "tool"),
    ],
)
def test_the_project_is_named_after_the_remote(tmp_path: Path, url: str, project: str) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", url)
    assert GitSource(tmp_path).project == project


def test_outside_a_repository_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    assert find_repository(tmp_path) is None
    assert find_repository(tmp_path / "empty") is None
    with pytest.raises(NotARepository, match="not in a git repository"):
        GitSource(tmp_path)


def test_what_git_refuses_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path / "r", {"a.md": "x\n"})
    with pytest.raises(SourceError, match="not inside the working tree"):
        GitSource(tmp_path / "r" / ".git")
    git(tmp_path / "r", "worktree", "add", "-q", str(tmp_path / "w"))
    (tmp_path / "r").rename(tmp_path / "moved")
    with pytest.raises(NotARepository, match="worktree repair"):
        GitSource(tmp_path / "w")
    git(tmp_path / "moved", "config", "core.worktree", str(tmp_path))
    with pytest.raises(SourceError, match=r"core\.worktree"):
        GitSource(tmp_path / "moved")
    git(tmp_path / "moved", "config", "--unset", "core.worktree")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(SourceError, match=r"safe\.directory"):
        GitSource(tmp_path / "moved")
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    (tmp_path / "moved" / ".git" / "index").write_bytes(b"not an index")
    with pytest.raises(SourceError, match="git cannot"):
        GitSource(tmp_path / "moved").artifacts({})


def test_without_git_there_are_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path / "r", {"a.md": "x\n"})
    (tmp_path / "plain").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_repository(tmp_path / "plain") is None
    with pytest.raises(SourceError, match="not installed"):
        find_repository(tmp_path / "r")


def test_many_artifacts_come_in_order(tmp_path: Path) -> None:
    make_repository(tmp_path, {f"d{n % 7}/f{n:04}.md": f"text {n}\n" * (n % 40 + 1) for n in range(1500)})
    source = GitSource(tmp_path)
    listing = source.artifacts({})
    results = list(source.read(listing.refs))
    assert [item.ref for item in results if isinstance(item, Artifact)] == list(listing.refs)
    assert all(
        isinstance(item, Artifact) and item.text.startswith(f"text {int((item.ref.path or '')[4:8])}\n")
        for item in results
    )


def test_a_path_may_be_deeper_than_python_recurses(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {".outcropignore": "*.tmp\n", "a.md": "text\n"})
    deep = "d/" * 1900
    stream = "blob\nmark :1\ndata 5\ndeep\n\n" + "commit refs/heads/deep\ncommitter a <a@b> 0 +0000\ndata 1\nx\n"
    stream += "from refs/heads/main^0\n" + "".join(f"M 100644 :1 {deep}{name}\n" for name in ("x.md", "x.tmp"))
    git(root, "fast-import", "--quiet", stdin=stream.encode())
    source = open_source(find_root(root, rev="deep"), Options())
    assert {ref.path for ref in source.artifacts({}).refs} == {".outcropignore", "a.md", f"{deep}x.md"}

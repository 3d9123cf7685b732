"""What every source must do, run on each of them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repositories import commit, git, make_repository, opened_files, write

from outcrop.core.model import Artifact, Kind, Ref, Skipped, SkipReason
from outcrop.core.protocols import Source
from outcrop.sources.folder import FolderSource
from outcrop.sources.git.source import GitSource
from outcrop.sources.options import Options

FILES: dict[str, str | bytes] = {
    "README.md": "# Title\r\n\r\nWords.\r\n",
    "src/a.py": "x = 1\n",
    "src/copy.py": "x = 1\n",
    "src/größe.py": "y = 2\n",
    "odd\nname.txt": "odd\n",
    "latin.txt": "Straße\n".encode("cp1252"),
    "empty.md": "",
    "binary.txt": b"a\0b",
    "AGENTS.md": "Be brief.\n",
    ".env": "TOKEN=1\n",
    "logo.png": b"\x89PNG",
    "big.txt": b"x\n" * 600,
    "drafts/a.md": "not yet\n",
    ".outcropignore": "drafts/\n",
}
TEXTS = {
    ".outcropignore": "drafts/\n",
    "AGENTS.md": "Be brief.\n",
    "README.md": "# Title\n\nWords.\n",
    "empty.md": "",
    "latin.txt": "Straße\n",
    "odd\\x0aname.txt": "odd\n",
    "src/a.py": "x = 1\n",
    "src/copy.py": "x = 1\n",
    "src/größe.py": "y = 2\n",
}
OPTIONS = Options(max_bytes=1000)


@dataclass(frozen=True)
class Material:
    """The files above as one kind of source: how to open it, and where they are on disk, if they are."""

    open: Callable[[], Source]
    folder: Path


def folder(path: Path) -> Material:
    write(path, FILES)
    return Material(lambda: FolderSource(path, OPTIONS), path)


def clean_git(path: Path) -> Material:
    make_repository(path, FILES)
    return Material(lambda: GitSource(path, OPTIONS), path)


def untracked_git(path: Path) -> Material:
    git(path, "init", "-q")
    write(path, FILES)
    return Material(lambda: GitSource(path, OPTIONS), path)


def changed_git(path: Path) -> Material:
    make_repository(path, dict.fromkeys(FILES, b"earlier\n"))
    write(path, FILES)
    return Material(lambda: GitSource(path, OPTIONS), path)


def linked_git(path: Path) -> Material:
    make_repository(path / "main", FILES)
    git(path / "main", "worktree", "add", "-q", "-b", "other", str(path / "linked"))
    return Material(lambda: GitSource(path / "linked", OPTIONS), path / "linked")


def commit_git(path: Path) -> Material:
    make_repository(path, FILES)
    git(path, "tag", "v1")
    write(path, {"README.md": "later\n"})
    commit(path)
    return Material(lambda: GitSource(path, OPTIONS, "v1"), path)


def bare_git(path: Path) -> Material:
    make_repository(path / "work", FILES)
    git(path, "clone", "-q", "--bare", str(path / "work"), str(path / "bare.git"))
    return Material(lambda: GitSource(path / "bare.git", OPTIONS), path)


CHANGING = [folder, clean_git, untracked_git, changed_git, linked_git]
FIXED = [commit_git, bare_git]


@pytest.fixture(scope="module", params=[*CHANGING, *FIXED])
def material(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Material:
    """One of each, shared by the tests that only look."""
    build: Callable[[Path], Material] = request.param
    return build(tmp_path_factory.mktemp("material"))


@pytest.fixture(params=CHANGING)
def changeable(request: pytest.FixtureRequest, tmp_path: Path) -> Material:
    """One of each that can change, new for each test."""
    build: Callable[[Path], Material] = request.param
    return build(tmp_path)


def test_it_says_what_it_is(material: Material) -> None:
    source = material.open()
    assert source.type in ("folder", "git", "fossil")
    assert source.root.is_absolute()
    assert source.root.is_dir()
    assert source.project
    assert source.project == source.project.lower()
    assert source.worktree in source.worktrees()
    assert source.store_path().is_absolute()
    assert not source.store_path().exists()


def test_it_lists_and_reads_the_files(material: Material) -> None:
    source = material.open()
    listing = source.artifacts({})
    paths = [ref.path or "" for ref in listing.refs]
    assert paths == sorted(set(paths))
    assert all(ref.version == ref.hash == ref.hash.lower() for ref in listing.refs)
    results = list(source.read(listing.refs))
    assert {item.ref.path: item.text for item in results if isinstance(item, Artifact)} == TEXTS
    assert [item.ref for item in results if isinstance(item, Artifact)] == [
        ref for ref, item in zip(listing.refs, results, strict=True) if isinstance(item, Artifact)
    ]


def test_it_says_what_it_leaves_out(material: Material) -> None:
    source = material.open()
    listing = source.artifacts({})
    left_out = [*listing.skipped, *(item for item in source.read(listing.refs) if isinstance(item, Skipped))]
    assert {item.path: item.reason for item in left_out} == {
        ".env": SkipReason.SECRET,
        "logo.png": SkipReason.BINARY,
        "big.txt": SkipReason.OVERSIZE,
        "binary.txt": SkipReason.BINARY,
        "drafts": SkipReason.EXCLUDED,
    }
    assert "1200 bytes" in next(item.detail for item in left_out if item.path == "big.txt")


def test_kinds_come_from_paths(material: Material) -> None:
    kinds = {ref.path: ref.kind for ref in material.open().artifacts({}).refs}
    assert kinds["src/a.py"] is Kind.CODE
    assert kinds["README.md"] is Kind.DOC
    assert kinds["AGENTS.md"] is Kind.INSTRUCTION


def test_copies_have_one_hash(material: Material) -> None:
    hashes = {ref.path: ref.hash for ref in material.open().artifacts({}).refs}
    assert hashes["src/a.py"] == hashes["src/copy.py"] != hashes["src/größe.py"]


def test_nothing_changed_means_the_same_listing_and_no_reading(material: Material) -> None:
    time.sleep(0.06)
    first = material.open().artifacts({})
    again = material.open()
    with opened_files() as opened:
        second = again.artifacts(first.seen)
        revision = again.revision(first.seen)
    assert second == first
    assert revision == first.revision
    assert not [name for name in opened if name.endswith((".py", ".md", ".txt", ".png", ".env"))]


def test_any_refs_can_be_read_in_any_order(material: Material) -> None:
    refs = list(reversed(material.open().artifacts({}).refs))[1::2]
    results = list(material.open().read(refs))
    assert [(item.ref.path if isinstance(item, Artifact) else item.path) for item in results] == [
        ref.path for ref in refs
    ]
    assert list(material.open().read([])) == []


def test_reading_can_be_given_up(material: Material) -> None:
    source = material.open()
    refs = source.artifacts({}).refs
    for _ in source.read(refs):
        break
    assert len(list(source.read(refs))) == len(refs)


def test_what_is_not_there_is_skipped_and_the_rest_is_read(material: Material) -> None:
    source = material.open()
    refs = source.artifacts({}).refs
    ghost = Ref("1" * len(refs[0].hash), Kind.DOC, "no/such.md", "1" * len(refs[0].hash))
    results = list(source.read([refs[0], ghost, *refs[1:]]))
    missing = results[1]
    assert isinstance(missing, Skipped)
    assert missing.path == "no/such.md"
    assert missing.reason in (SkipReason.VANISHED, SkipReason.UNREADABLE)
    assert len(results) == len(refs) + 1
    assert isinstance(results[2], Artifact)


@pytest.mark.parametrize(
    "change",
    [
        {"src/a.py": "x = 2\n"},
        {"src/new.py": "z = 3\n"},
        {".outcropignore": "src/\n"},
    ],
    ids=["edit", "add", "ignore"],
)
def test_a_change_moves_the_revision(changeable: Material, change: dict[str, str | bytes]) -> None:
    first = changeable.open().artifacts({})
    write(changeable.folder, change)
    moved = changeable.open().revision(first.seen)
    assert moved != first.revision
    second = changeable.open().artifacts(first.seen)
    assert second.revision != first.revision
    assert changeable.open().revision(second.seen) == second.revision
    assert second.refs != first.refs


def test_removing_moves_the_revision(changeable: Material) -> None:
    first = changeable.open().artifacts({})
    (changeable.folder / "README.md").unlink()
    assert changeable.open().revision(first.seen) != first.revision
    second = changeable.open().artifacts(first.seen)
    assert "README.md" not in [ref.path for ref in second.refs]
    assert "README.md" not in [item.path for item in second.skipped]
    assert "README.md" not in second.seen


PLACES = st.sampled_from(["a.md", "src/b.py", "src/deep/c.txt", ".outcropignore", "src/.gitignore", "x.log"])
WORDS = st.sampled_from(["one\n", "two\n", "*.log\n", "src/\n", "!x.log\n.outcropignore\n", "x" * 2000])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PLACES, WORDS),
        st.tuples(st.sampled_from(["remove", "touch", "link", "stage", "commit"]), PLACES, st.just("")),
    ),
    max_size=3,
)


@settings(max_examples=15)
@given(rounds=st.lists(STEPS, min_size=2, max_size=5), of=st.sampled_from(["folder", "git"]))
def test_listing_and_revision_stay_in_step(rounds: list[list[tuple[str, str, str]]], of: str) -> None:
    """Whatever happens, equal revisions mean equal listings, and what was seen never changes what is found."""
    with TemporaryDirectory() as name:
        root = Path(name).resolve()
        make_repository(root, {"a.md": "one\n", "src/b.py": "two\n"})
        if of == "folder":
            shutil.rmtree(root / ".git")
        source = FolderSource(root, OPTIONS) if of == "folder" else GitSource(root, OPTIONS)
        last = source.artifacts({})
        known = {last.revision: last.refs}
        for steps in rounds:
            for step in steps:
                take_step(root, *step, of == "git")
            revision = source.revision(last.seen)
            listing = source.artifacts(last.seen)
            afresh = source.artifacts({})
            assert (listing.revision, listing.refs, listing.skipped) == (
                afresh.revision,
                afresh.refs,
                afresh.skipped,
            )
            assert known.setdefault(listing.revision, listing.refs) == listing.refs
            assert source.revision(listing.seen) == listing.revision
            if revision == last.revision:
                assert listing.refs == last.refs
            last = listing


def take_step(root: Path, action: str, name: str, content: str, is_git: bool) -> None:
    path = root / name
    if action == "write":
        path.unlink(missing_ok=True)
        write(root, {name: content})
    elif action == "remove":
        path.unlink(missing_ok=True)
    elif action == "touch" and path.exists():
        path.touch()
    elif action == "link" and path.parent.is_dir():
        path.unlink(missing_ok=True)
        path.symlink_to("a.md")
    elif action == "stage" and is_git:
        git(root, "add", "-A")
    elif action == "commit" and is_git:
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "step")

"""A plain folder: what is listed, what is left out and why, and what is read again."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest
from repositories import opened_files, write

from outcrop.core.model import Artifact, Kind, Listing, Skipped, SkipReason
from outcrop.errors import NotARepository, SourceError
from outcrop.sources.discover import find_root, open_source
from outcrop.sources.folder import FolderSource
from outcrop.sources.options import Options

VENV_MARK = "home = /usr/bin\n"
CACHE_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"


def names(listing: Listing) -> list[str | None]:
    return [ref.path for ref in listing.refs]


def reasons(listing: Listing) -> dict[str, SkipReason]:
    return {item.path: item.reason for item in listing.skipped}


def settle() -> None:
    """Wait until a file that was just written is no longer too recent to be trusted."""
    time.sleep(0.06)


def test_files_are_named_by_the_digest_of_their_bytes(tmp_path: Path) -> None:
    write(tmp_path, {"b.md": "# B\r\n", "a/c.py": "x = 1\n"})
    source = FolderSource(tmp_path)
    listing = source.artifacts({})
    assert names(listing) == ["a/c.py", "b.md"]
    assert [ref.kind for ref in listing.refs] == [Kind.CODE, Kind.DOC]
    assert listing.refs[1].hash == hashlib.sha3_256(b"# B\r\n").hexdigest()
    assert listing.refs[1].size == 5
    assert [item.text for item in source.read(listing.refs) if isinstance(item, Artifact)] == ["x = 1\n", "# B\n"]
    assert source.store_path() == tmp_path / ".outcrop" / "index.sqlite"


def test_an_empty_folder_is_an_empty_listing(tmp_path: Path) -> None:
    listing = FolderSource(tmp_path).artifacts({})
    assert (listing.refs, listing.skipped) == ([], [])
    assert listing.revision == FolderSource(tmp_path).revision({})


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="not a folder"):
        FolderSource(tmp_path / "missing")


def test_a_folder_that_goes_away_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    source = FolderSource(tmp_path / "x")
    (tmp_path / "x").rmdir()
    with pytest.raises(SourceError, match="cannot be read"):
        source.artifacts({})


def test_every_skip_has_its_reason(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "ok.py": "x = 1\n",
            "big.txt": b"x\n" * 600_000,
            ".env": "TOKEN=1\n",
            "logo.png": b"\x89PNG",
            "app.min.js": "x",
            "node_modules/left/pad.js": "x",
            "env/pyvenv.cfg": VENV_MARK,
            "env/lib/a.py": "x",
            "target/CACHEDIR.TAG": CACHE_TAG,
            "target/b.rs": "x",
            "notes/CACHEDIR.TAG": "only a name\n",
            "drafts/a.md": "x",
            ".outcropignore": "drafts/\n",
            ".hg/store": "x",
            ".outcrop/index.sqlite": "x",
        },
    )
    (tmp_path / "link.py").symlink_to("ok.py")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(tmp_path)
    listening.bind("socket")
    os.chdir(here)
    listing = FolderSource(tmp_path).artifacts({})
    listening.close()
    assert names(listing) == [".outcropignore", "notes/CACHEDIR.TAG", "ok.py"]
    assert reasons(listing) == {
        "big.txt": SkipReason.OVERSIZE,
        ".env": SkipReason.SECRET,
        "logo.png": SkipReason.BINARY,
        "app.min.js": SkipReason.MINIFIED,
        "node_modules": SkipReason.EXCLUDED,
        "env": SkipReason.EXCLUDED,
        "target": SkipReason.EXCLUDED,
        "drafts": SkipReason.EXCLUDED,
        "link.py": SkipReason.SYMLINK,
        "loop": SkipReason.SYMLINK,
        "pipe": SkipReason.NOT_A_FILE,
        "socket": SkipReason.NOT_A_FILE,
    }
    assert "1200000 bytes" in next(item.detail for item in listing.skipped if item.path == "big.txt")


def test_oversize_and_binary_names_are_not_opened(tmp_path: Path) -> None:
    write(tmp_path, {"big.txt": b"x\n" * 600_000, "photo.jpg": b"text", "id_rsa": "x", "a.md": "x"})
    with opened_files() as opened:
        FolderSource(tmp_path).artifacts({})
    assert [Path(name).name for name in opened] == ["a.md"]


def test_the_contents_decide_too(tmp_path: Path) -> None:
    key = f"-----BEGIN {'PRIVATE'} KEY-----\n" + "A" * 64 + "\n"
    write(tmp_path, {"a.txt": "a\0b", "b.txt": key, "c.js": "x;" * 5000, "d.txt": "fine\n"})
    source = FolderSource(tmp_path)
    listing = source.artifacts({})
    results = list(source.read(listing.refs))
    found = [item.reason if isinstance(item, Skipped) else item.text for item in results]
    assert found == [SkipReason.BINARY, SkipReason.SECRET, SkipReason.MINIFIED, "fine\n"]
    assert isinstance(results[0], Skipped)
    assert results[0].hash == listing.refs[0].hash


def test_settings_exclude_and_bring_in(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.py": "x", "b/x.py": "x", ".env": "A=1\n", "node_modules/m.js": "m", "big.md": "x" * 100})
    options = Options(max_bytes=50, exclude=("/a/", "!node_modules/"), include_secrets=(".env",))
    source = FolderSource(tmp_path, options)
    listing = source.artifacts({})
    assert names(listing) == [".env", "b/x.py", "node_modules/m.js"]
    assert reasons(listing) == {"a": SkipReason.EXCLUDED, "big.md": SkipReason.OVERSIZE}
    assert [type(item) for item in source.read(listing.refs)] == [Artifact] * 3
    assert names(FolderSource(tmp_path, Options(exclude=("*",))).artifacts({})) == []


def test_a_setting_brings_in_a_secret_by_content(tmp_path: Path) -> None:
    write(tmp_path, {"fixtures/key.txt": f"-----BEGIN {'PRIVATE'} KEY-----\n" + "A" * 64 + "\n"})
    source = FolderSource(tmp_path, Options(include_secrets=("fixtures/",)))
    assert [type(item) for item in source.read(source.artifacts({}).refs)] == [Artifact]


def test_kinds_can_be_overridden(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x"})
    source = FolderSource(tmp_path, Options(kinds=(("*.txt", Kind.API),)))
    assert [ref.kind for ref in source.artifacts({}).refs] == [Kind.API]


def test_a_notebook_may_be_larger_because_its_outputs_are_dropped(tmp_path: Path) -> None:
    write(tmp_path, {"plots.ipynb": "[" + " " * 20_000_000 + "]", "huge.ipynb": b" " * (33 << 20)})
    listing = FolderSource(tmp_path).artifacts({})
    assert names(listing) == ["plots.ipynb"]
    assert reasons(listing) == {"huge.ipynb": SkipReason.OVERSIZE}


def test_ignore_files_of_git_count_at_every_level(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.log\n/out/\n",
            "a.log": "x",
            "out/x.md": "x",
            "src/out/y.md": "x",
            "src/.gitignore": "!keep.log\n",
            "src/keep.log": "x",
            "lib/.git/info/exclude": "*.tmp\n",
            "lib/z.tmp": "x",
            "lib/z.md": "x",
        },
    )
    listing = FolderSource(tmp_path).artifacts({})
    assert names(listing) == [".gitignore", "lib/z.md", "src/.gitignore", "src/keep.log", "src/out/y.md"]
    assert reasons(listing) == {}


def test_an_untouched_file_is_not_read_again(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "one", "b.md": "two"})
    settle()
    source = FolderSource(tmp_path)
    first = source.artifacts({})
    with opened_files() as opened:
        second = FolderSource(tmp_path).artifacts(first.seen)
        assert source.revision(first.seen) == first.revision
    assert opened == []
    assert second == first


def test_a_file_written_just_now_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one")
    source = FolderSource(tmp_path)
    first = source.artifacts({})
    path.write_text("two")
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, first.seen["a.md"].mtime_ns if first.seen["a.md"].mtime_ns > 0 else 0))
    assert source.revision(first.seen) != first.revision
    assert source.artifacts(first.seen).refs[0].hash == hashlib.sha3_256(b"two").hexdigest()


def test_a_restored_time_does_not_hide_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    settle()
    source = FolderSource(tmp_path)
    first = source.artifacts({})
    path.write_text("two")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert source.revision(first.seen) != first.revision


def test_touching_is_no_change(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "one"})
    settle()
    source = FolderSource(tmp_path)
    first = source.artifacts({})
    os.utime(tmp_path / "a.md")
    assert source.revision(first.seen) == first.revision


@pytest.mark.parametrize("change", ["edit", "grow", "add", "remove", "rename", "ignore"])
def test_the_revision_moves_with_every_change(tmp_path: Path, change: str) -> None:
    write(tmp_path, {"a.md": "one", "b.md": "two"})
    settle()
    source = FolderSource(tmp_path)
    first = source.artifacts({})
    if change == "edit":
        (tmp_path / "a.md").write_text("eno")
    elif change == "grow":
        (tmp_path / "a.md").write_text("one more")
    elif change == "add":
        (tmp_path / "c.md").write_text("three")
    elif change == "remove":
        (tmp_path / "a.md").unlink()
    elif change == "rename":
        (tmp_path / "a.md").rename(tmp_path / "z.md")
    else:
        (tmp_path / ".outcropignore").write_text("a.md\n")
    moved = source.revision(first.seen)
    assert moved != first.revision
    second = source.artifacts(first.seen)
    assert second.revision != first.revision
    assert source.revision(second.seen) == second.revision


def test_what_is_not_indexed_does_not_move_the_revision(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "one"})
    source = FolderSource(tmp_path)
    first = source.artifacts({})
    write(tmp_path, {"logo.png": b"x", "big.txt": b"x" * 2_000_000, ".env": "A=1", "node_modules/a.js": "x"})
    assert source.revision(first.seen) == first.revision


def test_a_file_that_changes_or_goes_before_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "one", "b.md": "two", "c.md": "three", "d.md": "four", "e.md": "five"})
    source = FolderSource(tmp_path)
    listing = source.artifacts({})
    (tmp_path / "a.md").write_text("changed")
    (tmp_path / "b.md").unlink()
    (tmp_path / "c.md").unlink()
    (tmp_path / "c.md").symlink_to("a.md")
    (tmp_path / "d.md").unlink()
    (tmp_path / "d.md").mkdir()
    (tmp_path / "e.md").unlink()
    os.mkfifo(tmp_path / "e.md")
    results = list(source.read(listing.refs))
    changed = results[0]
    assert isinstance(changed, Artifact)
    assert changed.text == "changed"
    assert changed.ref.hash == changed.ref.version == hashlib.sha3_256(b"changed").hexdigest()
    assert [item.reason for item in results[1:] if isinstance(item, Skipped)] == [
        SkipReason.VANISHED,
        SkipReason.SYMLINK,
        SkipReason.NOT_A_FILE,
        SkipReason.NOT_A_FILE,
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "one", "closed/b.md": "two"})
    (tmp_path / "a.md").chmod(0)
    (tmp_path / "closed").chmod(0)
    source = FolderSource(tmp_path)
    listing = source.artifacts({})
    (tmp_path / "closed").chmod(0o700)
    assert reasons(listing) == {"a.md": SkipReason.UNREADABLE, "closed": SkipReason.UNREADABLE}


def test_a_folder_too_deep_for_the_system_is_reported(tmp_path: Path) -> None:
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        for _ in range(25):
            Path("n" * 200).mkdir()
            os.chdir("n" * 200)
        Path("a.md").write_text("unreachable by its whole path")
    finally:
        os.chdir(here)
    write(tmp_path, {"ok.md": "x"})
    listing = FolderSource(tmp_path).artifacts({})
    assert names(listing) == ["ok.md"]
    assert list(reasons(listing).values()) == [SkipReason.UNREADABLE]


def test_two_hundred_nested_folders(tmp_path: Path) -> None:
    path = "d/" * 200 + "a.md"
    write(tmp_path, {path: "deep"})
    source = FolderSource(tmp_path)
    listing = source.artifacts({})
    assert names(listing) == [path]
    assert [item.text for item in source.read(listing.refs) if isinstance(item, Artifact)] == ["deep"]


def test_odd_names_are_listed_and_read(tmp_path: Path) -> None:
    odd = ["new\nline.md", "quo\"te'.md", "back\\slash.md", "\udcff\udcfe.md", "spa ce.md", "日本.md", "\\xff.md"]
    write(tmp_path, {name: f"text {number}" for number, name in enumerate(odd)})
    source = FolderSource(tmp_path)
    listing = source.artifacts({})
    assert {ref.path for ref in listing.refs} == {
        "new\\x0aline.md",
        "quo\"te'.md",
        "back\\slash.md",
        "\\xff\\xfe.md",
        "spa ce.md",
        "日本.md",
        "\\x5cxff.md",
    }
    assert sorted(item.text for item in source.read(listing.refs) if isinstance(item, Artifact)) == [
        f"text {number}" for number in range(len(odd))
    ]


def test_a_link_to_a_folder_can_be_the_root(tmp_path: Path) -> None:
    write(tmp_path / "real", {"a.md": "x"})
    (tmp_path / "link").symlink_to("real")
    source = FolderSource(tmp_path / "link")
    assert source.root == tmp_path / "real"
    assert names(source.artifacts({})) == ["a.md"]


def test_a_path_inside_an_indexed_folder_means_that_folder(tmp_path: Path) -> None:
    write(tmp_path, {"sub/a.md": "x"})
    assert find_root(tmp_path / "sub").root == tmp_path / "sub"
    write(tmp_path, {".outcrop/index.sqlite": "x"})
    place = find_root(tmp_path / "sub")
    assert place.root == tmp_path
    assert names(open_source(place, Options()).artifacts({})) == ["sub/a.md"]
    with pytest.raises(NotARepository, match="is a file"):
        find_root(tmp_path / "sub" / "a.md")
    with pytest.raises(NotARepository, match="no commit"):
        find_root(tmp_path, "HEAD")
    with pytest.raises(NotARepository, match="There is no"):
        find_root(tmp_path / "missing")

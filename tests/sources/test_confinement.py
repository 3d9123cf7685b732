"""What a source reads lies inside of it, whatever became of a path since it was listed, and whoever named it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from repositories import git, make_repository, write

from outcrop.core.model import Artifact, Kind, Ref, Skipped, SkipReason
from outcrop.core.protocols import Source
from outcrop.sources.folder import FolderSource
from outcrop.sources.git.source import GitSource

KINDS = ["folder", "git"]


def make(kind: str, root: Path) -> Source:
    """A source whose ``docs/notes.md`` is read from disk."""
    if kind == "folder":
        write(root, {"docs/notes.md": "inside\n", "a.md": "a\n"})
        return FolderSource(root)
    make_repository(root, {"a.md": "a\n"})
    write(root, {"docs/notes.md": "inside\n"})
    return GitSource(root)


def read(source: Source, path: str) -> str | Skipped:
    ref = next((ref for ref in source.artifacts({}).refs if ref.path == path), Ref("0" * 40, Kind.DOC, path, "0" * 40))
    found = next(iter(source.read([ref])))
    return found.text if isinstance(found, Artifact) else found


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "outside", {"notes.md": "secret\n"})
    source = make(kind, tmp_path / "r")
    assert read(source, "docs/notes.md") == "inside\n"
    listed = [ref for ref in source.artifacts({}).refs if ref.path == "docs/notes.md"]
    shutil.rmtree(tmp_path / "r/docs")
    (tmp_path / "r/docs").symlink_to(tmp_path / "outside")
    (found,) = source.read(listed)
    assert isinstance(found, Skipped)
    assert found.reason is SkipReason.SYMLINK


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "path",
    ["../outside.md", "docs/../../outside.md", "/etc/hostname", "", ".", "docs/", "docs//notes.md", ".git/config"],
)
def test_a_path_that_no_listing_names_is_not_read(tmp_path: Path, kind: str, path: str) -> None:
    (tmp_path / "outside.md").write_text("secret\n")
    source = make(kind, tmp_path / "r")
    if kind == "folder":
        git(tmp_path / "r", "init", "-q")
    found = read(source, path)
    assert isinstance(found, Skipped)
    assert found.path == path


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_may_hold_secrets_is_not_read_either(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path / "r")
    write(tmp_path / "r", {".env": "PLAIN=words\n"})
    found = read(source, ".env")
    assert isinstance(found, Skipped)
    assert found.reason is SkipReason.SECRET

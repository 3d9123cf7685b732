"""An answer says that the index is behind exactly when a build would change it; a build says what it has read."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fossil_program import Fossil, SampleRepository, query
from repositories import commit, git, make_repository, write
from travel import opened as travel_opened

import outcrop
from outcrop.app.catalog import catalog
from outcrop.app.warm_index import WarmIndex
from outcrop.core.model import Artifact, Record, Ref, Skipped
from outcrop.errors import EmbedderUnavailable, SourceLocked
from outcrop.indexing.ingest import UNSURE
from outcrop.sources import file_state
from outcrop.sources.git import snapshot
from outcrop.surfaces.cli.report_view import status_lines
from outcrop.surfaces.mcp.tools import index_status
from outcrop.surfaces.web.http import Request
from outcrop.surfaces.web.pages.catalog import catalog_page
from outcrop.surfaces.web.view_model import Site

FILES: dict[str, str | bytes] = {
    "a.py": "def alpha():\n    return 1\n",
    "b.md": "# beta\n\nalpha text\n",
    "sub/c.md": "gamma\n",
    "n.ipynb": '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "raw", "metadata": {},'
    ' "id": "r", "source": "alpha raw"}]}',
}
Mutation = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """File times are trusted at once, so that nothing is found out by reading a file just because it is new."""
    monkeypatch.setattr(file_state, "_FINE_NS", 0)
    monkeypatch.setattr(file_state, "_COARSE_NS", 0)


def rows(database: Path, worktree: str) -> set[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        return set(
            connection.execute(
                "SELECT m.corpus, m.hash, m.path, m.kind, c.seq, c.text FROM fx_vec_member m JOIN fx_vec_chunk c"
                " ON c.hash = m.hash AND c.project = m.project AND c.part = m.part WHERE m.worktree = ?",
                (worktree,),
            )
        )
    finally:
        connection.close()


def verdict(
    root: Path, change: Mutation, before: dict[str, Any], after: dict[str, Any], tmp_path: Path
) -> tuple[bool, bool]:
    """Whether an answer says that the index is behind after a change, and whether it is."""
    with outcrop.open(root, settings={"embedder": "hash"} | before) as index:
        index.build()
        index.build()
        assert index.search("alpha").stale is None
        view, store = index.source.worktree, index.store.path
    change(root)
    settings = {"embedder": "hash"} | after
    with outcrop.open(root, settings=settings) as index:
        stale = index.search("alpha").stale is not None
        assert index.status().stale == stale
    kept = rows(store, view)
    with outcrop.open(root, settings=settings | {"store": tmp_path / "fresh.sqlite"}) as index:
        index.build()
    fresh = rows(tmp_path / "fresh.sqlite", view)
    with outcrop.open(root, settings=settings) as index:
        index.build()
        assert index.search("alpha").stale is None
    assert rows(store, view) == fresh
    return stale, kept != fresh


def put(path: Path, text: str) -> None:
    """Edit a file so that neither its size nor its time tells."""
    status = path.stat()
    assert len(text) == status.st_size
    # The other time, which nobody can set, must move.
    time.sleep(0.02)
    path.write_text(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_folder(root: Path) -> None:
    (root / "b.md").unlink()
    write(root, {"b.md/x.md": "alpha"})


def replace_by_link(root: Path) -> None:
    (root / "b.md").unlink()
    (root / "b.md").symlink_to("a.py")


CHANGES: dict[str, Mutation] = {
    "edit that keeps size and time": lambda root: put(root / "a.py", "def alphA():\n    return 1\n"),
    "untracked deleted": lambda root: (root / "u.md").unlink(),
    "untracked edited": lambda root: put(root / "u.md", "untrackeD\n"),
    "renamed": lambda root: (root / "b.md").rename(root / "z.md"),
    "another kind by its name": lambda root: (root / "a.py").rename(root / "a.txt"),
    "an ignore file of ours": lambda root: write(root, {".outcropignore": "b.md\n"}),
    "an ignore file": lambda root: write(root, {".gitignore": "u.md\n"}),
    "a folder in its place": replace_by_folder,
    "a link in its place": replace_by_link,
    "settings in the repository": lambda root: write(root, {"outcrop.toml": 'exclude = ["b.md"]\n'}),
}
NO_CHANGES: dict[str, Mutation] = {
    "nothing": lambda root: None,
    "touched": lambda root: os.utime(root / "a.py"),
    "an empty folder": lambda root: (root / "empty").mkdir(),
    "an ignored file": lambda root: write(root, {"node_modules/x.js": "alpha"}),
}


@pytest.fixture(params=["folder", "git"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "place"
    if request.param == "git":
        make_repository(root, FILES)
    else:
        root.mkdir()
        write(root, FILES)
    write(root, {"u.md": "untracked\n"})
    return root


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_shows(place: Path, change: str, tmp_path: Path) -> None:
    assert verdict(place, CHANGES[change], {}, {}, tmp_path) == (True, True)


@pytest.mark.parametrize("change", NO_CHANGES)
def test_no_change_shows_nothing(place: Path, change: str, tmp_path: Path) -> None:
    assert verdict(place, NO_CHANGES[change], {}, {}, tmp_path) == (False, False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"kinds": {"*.md": "instruction"}}),
        ({}, {"exclude": ("b.md",)}),
        ({}, {"max_bytes": 10}),
        ({}, {"raw_cells": True}),
        ({"include_secrets": (".env",)}, {}),
    ],
    ids=lambda value: "-".join(value) or "default",
)
def test_other_settings_make_an_index_old(
    place: Path, before: dict[str, Any], after: dict[str, Any], tmp_path: Path
) -> None:
    write(place, {".env": "ALPHA=alpha\n"})
    assert verdict(place, lambda _: None, before, after, tmp_path) == (True, True)


def test_a_commit_under_other_settings(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "place", FILES)
    with outcrop.open(root, settings={"embedder": "hash"}, rev="HEAD") as index:
        index.build()
        assert index.search("alpha").stale is None
    with outcrop.open(root, settings={"embedder": "hash", "exclude": ("b.md",)}, rev="HEAD") as index:
        assert index.search("alpha").stale is not None
        index.build()
        assert index.search("alpha").stale is None


def test_an_index_in_the_middle_of_a_change_has_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch is switched, the build stores the passages and fails to embed them, and the branch is switched back."""
    root = make_repository(tmp_path / "place", FILES)
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        index.build()
        git(root, "checkout", "-q", "-b", "side")
        write(root, {"a.py": "def omega():\n    return 2\n"})
        commit(root)

        def fail(texts: Sequence[str]) -> None:
            raise EmbedderUnavailable("the embedder is gone")

        with monkeypatch.context() as patch:
            patch.setattr(index.embedder, "embed_passages", fail)
            with pytest.raises(EmbedderUnavailable):
                index.build()
        git(root, "checkout", "-q", "main")
        answer = index.search("omega", mode="keyword")
        assert [hit.text for hit in answer.hits] != []
        assert answer.stale is not None
        index.build()
        answer = index.search("alpha")
        assert (answer.stale, index.search("omega", mode="keyword").hits) == (None, ())


@pytest.mark.parametrize("what", ["changed", "vanished"])
def test_a_source_that_moves_during_a_build_and_back_again(tmp_path: Path, what: str) -> None:
    """What was listed is not what was read, so the listing's revision would be a lie once the file is as it was."""
    write(tmp_path, FILES)
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        source = index.source
        real = source.read

        def read(refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
            (tmp_path / "a.py").unlink() if what == "vanished" else (tmp_path / "a.py").write_text("x = 1\n")
            yield from real(refs)
            (tmp_path / "a.py").write_text(str(FILES["a.py"]))

        source.read = read  # type: ignore[method-assign]
        report = index.build()
        del source.read  # type: ignore[attr-defined]
        assert report.revision.endswith(UNSURE)
        assert index.search("alpha").stale is not None
        report = index.build()
        assert not report.revision.endswith(UNSURE)
        answer = index.search("alpha", path="a.py")
        assert ([hit.text for hit in answer.hits], answer.stale) == ([str(FILES["a.py"]).rstrip()], None)


class TestGit:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return make_repository(tmp_path / "place", FILES)

    @pytest.mark.parametrize(
        "configuration", [("core.trustctime", "false"), ("core.checkStat", "minimal")], ids=lambda pair: pair[0]
    )
    def test_git_told_to_look_less_closely(self, root: Path, configuration: tuple[str, str], tmp_path: Path) -> None:
        git(root, "config", *configuration)
        change = CHANGES["edit that keeps size and time"]
        stale, differs = verdict(root, change, {}, {}, tmp_path)
        assert stale or not differs

    def test_submodules(self, root: Path, tmp_path: Path) -> None:
        inner = make_repository(tmp_path / "inner", {"i.md": "iota alpha\n"})
        git(root, "submodule", "add", "-q", str(inner), "mod")
        git(root, "commit", "-q", "-m", "submodule")
        changes: list[Mutation] = [
            lambda root: write(root, {"mod/i.md": "edited\n"}),
            lambda root: write(root, {"mod/new.md": "untracked\n"}),
            lambda root: git(root, "submodule", "deinit", "-q", "-f", "mod"),
        ]
        for number, change in enumerate(changes):
            (tmp_path / str(number)).mkdir()
            assert verdict(root, change, {}, {}, tmp_path / str(number)) == (True, True)

    def test_a_worktree_is_behind_by_its_own_files_only(self, root: Path, tmp_path: Path) -> None:
        linked = tmp_path / "linked"
        git(root, "worktree", "add", "-q", str(linked))
        assert verdict(linked, lambda _: write(root, {"a.py": "x = 1\n"}), {}, {}, tmp_path) == (False, False)
        assert verdict(linked, lambda _: write(linked, {"a.py": "x = 2\n"}), {}, {}, tmp_path / "linked") == (
            True,
            True,
        )

    def test_an_index_that_never_stands_still_is_no_revision(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        stamps = iter(range(1000))
        with outcrop.open(root, settings={"embedder": "hash"}) as index:
            index.build()
            monkeypatch.setattr(snapshot, "_PAUSE", 0.0)
            monkeypatch.setattr(snapshot, "_index_stamp", lambda _: (next(stamps), 0, 0))
            with pytest.raises(SourceLocked):
                index.source.revision({})
            stale = index.search("alpha").stale
        assert stale is not None
        assert "changes all the time" in stale.current


class TestFossil:
    def test_everything_public_counts_and_nothing_else(self, sample: SampleRepository, tmp_path: Path) -> None:
        repository = tmp_path / "zoo.fossil"
        repository.write_bytes(sample.repository.read_bytes())
        fossil = Fossil(tmp_path)
        checkout = fossil.open(repository, "ck")
        settings = {"embedder": "hash"}

        def stale_after(change: Callable[[], object]) -> bool:
            with outcrop.open(checkout, settings=settings) as index:
                index.build()
            change()
            with outcrop.open(checkout, settings=settings) as index:
                return index.search("alpha").stale is not None

        def ticket() -> None:
            fossil.run("ticket", "add", "title", "Oryx", "comment", "horned", "-R", repository)

        def hide(rid: int) -> None:
            query(repository, "INSERT INTO private VALUES (?)", rid)

        def approve(rid: int) -> None:
            query(repository, "DELETE FROM private WHERE rid = ?", rid)

        def branch() -> None:
            (checkout / "side.md").write_text("# Side\n")
            fossil.commit(checkout, "side", "--branch", "elsewhere")

        assert not stale_after(lambda: None)
        assert stale_after(lambda: fossil.run("wiki", "create", "Page", "-R", repository, stdin="alpha"))
        assert stale_after(lambda: fossil.run("wiki", "commit", "Page", "-R", repository, stdin="beta"))
        ((page,),) = query(repository, "SELECT max(rid) FROM blob")
        assert stale_after(lambda: hide(page))
        assert stale_after(lambda: approve(page))
        assert stale_after(ticket)
        assert not stale_after(lambda: fossil.run("uv", "add", checkout / ".fslckout", "--as", "x", "-R", repository))
        assert not stale_after(lambda: fossil.run("settings", "autosync", "0", "-R", repository))
        assert not stale_after(branch)


class TestMissing:
    """An index without one of the usual corpora is not current, on every surface."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        write(tmp_path, {"zoo.md": "# Zoo\n\nThe lions eat at seven.\n", "kettle.py": "def boil():\n    return 1\n"})
        with travel_opened(tmp_path) as index:
            index.build()
        return tmp_path

    def test_a_cleared_corpus_is_missing(self, folder: Path) -> None:
        with travel_opened(folder) as index:
            index.clear(corpus="docs")
            status = index.status()
            assert (status.missing, status.stale, status.revision) == (("docs",), True, None)
            assert "docs is not indexed → outcrop index" in "\n".join(
                status_lines(status, lambda _, text: text, verbose=False)
            )
            assert catalog(index.store, index.source, index.embedder).missing == ("docs",)
            assert index.search("boil").stale is not None
            index.build()
            assert (index.status().missing, index.status().stale) == ((), False)

    def test_an_empty_index_is_not_current(self, folder: Path) -> None:
        with travel_opened(folder) as index:
            index.clear(corpus="docs")
            index.clear(corpus="code")
            status = index.status()
            assert (status.missing, status.stale, status.complete) == (("code", "docs"), True, 0.0)
            assert "code and docs are not indexed → outcrop index" in "\n".join(
                status_lines(status, lambda _, text: text, verbose=False)
            )
            found = catalog(index.store, index.source, index.embedder)
            assert (found.missing, found.stale, found.complete) == (("code", "docs"), True, 0.0)
            text = index_status(WarmIndex(lambda: index, closes=False)).text
            assert "not indexed, or not completely: code, docs; to index it: outcrop index" in text
            page = catalog_page(Site(index), Request("catalog"))
            assert "outcrop index" in page.body.decode()

    def test_records_alone_or_a_custom_corpus_alone_are_current(self, tmp_path: Path) -> None:
        write(tmp_path, {"zoo.md": "# Zoo\n"})
        with travel_opened(tmp_path) as index:
            index.upsert([Record("mine", "a text of the caller")])
            assert (index.status().missing, index.status().stale, index.status().complete) == ((), False, 1.0)
        with travel_opened(tmp_path) as index:
            index.build(corpus="own", paths=["zoo.md"])
            assert (index.status().missing, index.status().stale) == ((), False)

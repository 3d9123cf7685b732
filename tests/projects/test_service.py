"""Many repositories in one index: real git, real Fossil, folders, exports and packages, and what can go wrong there."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest
from fossil_program import Fossil, SampleRepository, query
from python_packages import environment
from repositories import KETTLE, commit, git, make_repository, write
from travel import Counting, built, opened

import outcrop
from outcrop.app.index import Index
from outcrop.core.model import Hit, Kind, Mode
from outcrop.core.reports import ProjectStatus
from outcrop.errors import (
    IndexMissing,
    NotARepository,
    OutcropError,
    SchemaTooNew,
    SpaceMismatch,
    StoreDamaged,
    StoreError,
    StoreLocked,
    UnknownProject,
    UsageError,
)
from outcrop.projects import service
from outcrop.transfer import service as sharing

TOASTER: dict[str, str | bytes] = {
    "README.md": "# Toaster\n\nBrowns bread.\n",
    "src/brown.py": "def brown(bread):\n    return toast(bread)\n",
    "shared.md": "The same words stand in two repositories.\n",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "HOME", "FOSSIL_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """The repository that imports others."""
    folder = make_repository(tmp_path / "hub", {"notes.md": "# Notes\n\nOur own words.\n"})
    built(folder)
    return folder


@pytest.fixture
def kettle(tmp_path: Path) -> Path:
    folder = make_repository(tmp_path / "kettle", KETTLE)
    built(folder)
    return folder


def never(folder: Path) -> Index:
    """An index that may embed nothing."""
    index = outcrop.open(folder, settings={"embedder": "hash"})
    index.embedder = Counting(refuse=True)
    return index


def ask(index: Index, question: str, **filters: object) -> list[Hit]:
    answer = index.search(question, mode="semantic", **{"k": 20, **filters})  # type: ignore[arg-type]
    assert (answer.mode, answer.reason) == (Mode.SEMANTIC, None)
    return list(answer.hits)


def status_of(index: Index, name: str) -> ProjectStatus:
    return next(status for status in service.listing(index) if status.name == name)


def tables(store: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that a database holds of ours."""
    database = sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)
    names = [
        row[0]
        for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'fx_vec_*'")
    ]
    rows = {name: sorted(database.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in names}
    database.close()
    return rows


def test_a_third_repository_imports_two_and_a_fourth_of_another_space_is_refused(
    hub: Path, kettle: Path, sample: SampleRepository, tmp_path: Path
) -> None:
    zoo = sample.copy(tmp_path)
    built(zoo)
    other = make_repository(tmp_path / "toaster", TOASTER)
    built(other, Counting(dim=64))
    before = {store: tables(store) for store in (zoo, kettle / ".git/outcrop/index.sqlite")}
    with never(hub) as index:
        done = service.import_project(index, kettle)
        assert (done.name, done.type, done.artifacts, done.added, done.embedded) == ("kettle", "git", 3, 3, 0)
        done = service.import_project(index, zoo)
        assert (done.name, done.type, done.peer) == ("the-bestiary", "fossil", str(zoo))
        with pytest.raises(SpaceMismatch, match=r"vectors of hash-64.*searches hash-768.*outcrop index -C \S+toaster"):
            service.import_project(index, other)
        assert [status.name for status in service.listing(index)] == ["kettle", "the-bestiary"]
        assert all(status.current for status in service.listing(index))
        (best, *_) = ask(index, "boils water")
        assert (best.project, best.path, best.kind, best.lines) == ("kettle", "README.md", Kind.DOC, (1, 3))
        kinds = {hit.kind for hit in ask(index, "lions at seven with a fork, wood was ordered", project="the-bestiary")}
        assert kinds >= {Kind.WIKI, Kind.TICKET, Kind.FORUM, Kind.CODE}
        assert {hit.project for hit in ask(index, "words", project=["kettle", ""])} == {"kettle", ""}
        assert {hit.project for hit in ask(index, "words", project="")} == {""}
        assert {hit.project for hit in ask(index, "words", project="hub")} == {""}
        keyword = index.search("boils", mode="keyword")
        assert ("kettle", "README.md") in {(hit.project, hit.path) for hit in keyword.hits}
        status = index.status()
        assert [each.name for each in status.projects] == ["kettle", "the-bestiary"]
        assert (status.complete, status.stale) == (1.0, False)
    assert {store: tables(store) for store in before} == before


def test_scores_are_those_of_the_peer(hub: Path, kettle: Path) -> None:
    with opened(kettle) as index:
        there = {hit.text: hit.score for hit in ask(index, "boils water")}
    with never(hub) as index:
        service.import_project(index, kettle)
        here = {hit.text: hit.score for hit in ask(index, "boils water", project="kettle")}
    assert here == pytest.approx(there, abs=1e-6)


def test_the_same_artifact_is_found_under_both_projects(hub: Path, kettle: Path, tmp_path: Path) -> None:
    toaster = make_repository(tmp_path / "toaster", TOASTER)
    built(toaster)
    write(hub, {"shared.md": KETTLE["shared.md"]})
    built(hub)
    with never(hub) as index:
        for peer in (kettle, toaster):
            service.import_project(index, peer)
        found = [hit for hit in ask(index, "the same words in two repositories") if hit.path == "shared.md"]
        assert sorted(hit.project for hit in found) == ["", "kettle", "toaster"]
        assert len({hit.hash for hit in found}) == 1
        # Each of them keeps its own when another goes.
        service.remove(index, "kettle")
        (hub / "shared.md").unlink()
        index.build()
        found = [hit for hit in ask(index, "the same words in two repositories") if hit.path == "shared.md"]
        assert [hit.project for hit in found] == ["toaster"]


def test_a_build_of_ones_own_touches_no_project(hub: Path, kettle: Path) -> None:
    with never(hub) as index:
        service.import_project(index, kettle)
        before = ask(index, "boils water", project="kettle")
        assert index.build().chunks == 1
    write(hub, {"notes.md": "# Notes\n\nOther words.\n", "more.md": "More.\n"})
    with opened(hub) as index:
        assert index.build().embedded == 2
        assert ask(index, "boils water", project="kettle") == before
        index.build(rebuild=True)
        index.clear(corpus="docs")
        assert ask(index, "boils water", project="kettle") == before
        index.clear()
        assert index.status().projects == ()


def test_a_refresh_reads_only_what_changed(hub: Path, kettle: Path) -> None:
    with never(hub) as index:
        service.import_project(index, kettle)
        again = service.refresh(index, "kettle")
        assert (again.added, again.unchanged, again.removed) == (0, 3, 0)
        write(kettle, {"src/boil.py": "def boil(water):\n    return whistle(water)\n", "new.md": "A new page.\n"})
        (kettle / "shared.md").rename(kettle / "moved.md")
        reason = status_of(index, "kettle").reason
        assert reason is not None
        assert "changed and was not indexed since. Run: outcrop index -C" in reason
        built(kettle)
        assert "indexed anew since. Run: outcrop projects refresh kettle" in str(status_of(index, "kettle").reason)
        done = service.refresh(index, "kettle")
        assert (done.added, done.unchanged, done.removed) == (2, 2, 1)
        assert status_of(index, "kettle").current
        assert ask(index, "the same words stand in two repositories")[0].path == "moved.md"
        assert index.search("moved", mode="keyword", project="kettle").hits[0].path == "moved.md"
        assert ask(index, "whistle water", kind="code")[0].path == "src/boil.py"
        assert not [hit for hit in ask(index, "heat") if "heat(" in hit.text]


def test_a_refresh_reads_what_was_taken_from_the_public(hub: Path, sample: SampleRepository, tmp_path: Path) -> None:
    zoo = sample.copy(tmp_path)
    built(zoo)
    with never(hub) as index:
        service.import_project(index, zoo, name="zoo")
        texts = [hit.text for hit in ask(index, "private pending words animals", k=100) if hit.project]
        assert not [text for text in texts if "private" in text or "pending" in text]
        (readme,) = [hit for hit in ask(index, "all animals", project="zoo") if hit.path == "README.md"]
        query(zoo, "INSERT INTO shun(uuid, mtime) VALUES (?, 0)", readme.hash)
        # The peer's own index still holds it.
        assert "taken back 1 artifacts" in str(status_of(index, "zoo").reason)
        done = service.refresh(index, "zoo")
        assert done.removed == 1
        assert not [hit for hit in ask(index, "all animals", project="zoo") if hit.hash == readme.hash]


def ask_all(index: Index, project: str) -> set[tuple[str | None, Kind, str]]:
    hits = index.search("words of any sort", mode="semantic", k=1000, project=project).hits
    return {(hit.path, hit.kind, hit.corpus[0]) for hit in hits}


def test_a_peer_may_count_as_another_kind_and_in_part(hub: Path, kettle: Path) -> None:
    with never(hub) as index:
        service.import_project(index, kettle, name="kettle-api", kind=Kind.API, paths=["src/**"])
        assert ask_all(index, "kettle-api") == {("src/boil.py", Kind.API, "code")}
        assert (status_of(index, "kettle-api").kind, status_of(index, "kettle-api").paths) == ("api", ("src/**",))
        service.import_project(index, kettle)
        assert len(ask_all(index, "kettle")) == 3
        # The last import says how, and a refresh keeps to it.
        service.import_project(index, kettle, name="kettle-api", kind=Kind.API)
        assert {kind for _, kind, _ in ask_all(index, "kettle-api")} == {Kind.API}
        assert {corpus for _, _, corpus in ask_all(index, "kettle-api")} == {"code"}
        service.import_project(index, kettle, name="kettle-api", paths=["*.md"])
        assert service.refresh(index, "kettle-api").artifacts == 2
        assert ask_all(index, "kettle-api") == {("README.md", Kind.DOC, "docs"), ("shared.md", Kind.DOC, "docs")}
        with pytest.raises(UsageError, match="No path matches"):
            service.import_project(index, kettle, name="none", paths=["*.rs"])
        assert {each.name for each in service.listing(index)} == {"kettle", "kettle-api"}


def test_notebooks_and_corpora_of_a_peer_come_along(hub: Path, tmp_path: Path) -> None:
    book = (
        '{"cells": [{"cell_type": "markdown", "source": "# Steam", "metadata": {}}, {"cell_type": "code", "source":'
        ' "steam = 1", "metadata": {}, "outputs": [], "execution_count": null}], "metadata": {}, "nbformat": 4,'
        ' "nbformat_minor": 4}'
    )
    peer = make_repository(tmp_path / "books", {"steam.ipynb": book, "other.md": "Other.\n"})
    with opened(peer) as index:
        index.build()
        index.build(corpus="lessons", paths=["steam.ipynb"])
    with never(hub) as index:
        service.import_project(index, peer)
        assert ask_all(index, "books") >= {("steam.ipynb", Kind.DOC, "docs"), ("other.md", Kind.DOC, "docs")}
        assert [hit.text for hit in ask(index, "steam", corpus="lessons")] == ["steam = 1"]
        assert ask(index, "steam", corpus="lessons")[0].cell == 1


def test_plain_folders_and_records(hub: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Notes of Ada"
    write(folder, {"a.md": "Only in a folder.\n"})
    with opened(folder) as index:
        index.build()
        index.upsert([outcrop.Record("secret", "A record of the caller's own.")])
    with never(hub) as index:
        done = service.import_project(index, folder)
        assert (done.name, done.type, done.artifacts) == ("notes-of-ada", "folder", 1)
        # A caller's own records never leave.
        assert not [hit for hit in ask(index, "a record of the caller's own") if hit.record]
        with pytest.raises(NotARepository, match="There is no"):
            service.import_project(index, tmp_path / "nowhere")


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_a_peer_of_any_name_is_found_again(hub: Path, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/od\xe9 d\nname's"))
    write(folder, {"a.md": "Words in an odd place.\n"})
    built(folder)
    with never(hub) as index:
        assert service.import_project(index, folder, paths=["./*.md"]).name == "od-d-name-s"
        assert status_of(index, "od-d-name-s").current
        assert service.refresh(index, "od-d-name-s").unchanged == 1


def test_projects_of_a_peer_stay_there(hub: Path, kettle: Path, tmp_path: Path) -> None:
    middle = make_repository(tmp_path / "middle", {"m.md": "In the middle.\n"})
    built(middle)
    with never(middle) as index:
        service.import_project(index, kettle)
    with never(hub) as index:
        assert service.import_project(index, middle).artifacts == 1
        assert not [hit for hit in ask(index, "boils water") if hit.path == "README.md"]


def test_an_export_is_a_peer(hub: Path, kettle: Path, tmp_path: Path) -> None:
    with opened(kettle) as index:
        there = {hit.text: (hit.score, hit.path, hit.lines, hit.name) for hit in ask(index, "boils water")}
        sharing.export(index.source, index.store, tmp_path / "stick")
    with never(hub) as index:
        done = service.import_project(index, tmp_path / "stick")
        assert (done.name, done.type, done.artifacts) == ("kettle", "blobs", 3)
        here = {
            hit.text: (hit.score, hit.path, hit.lines, hit.name) for hit in ask(index, "boils water", project="kettle")
        }
        assert here == there
        assert status_of(index, "kettle").current
        write(kettle, {"README.md": "# Kettle\n\nWhistles.\n"})
        commit(kettle)
        built(kettle)
        with opened(kettle) as peer:
            sharing.export(peer.source, peer.store, tmp_path / "stick")
        assert not status_of(index, "kettle").current
        assert (service.refresh(index, "kettle").added, status_of(index, "kettle").current) == (1, True)
        (tmp_path / "stick" / "vec" / "members.json").write_text("{")
        with pytest.raises(OutcropError, match="stick"):
            service.refresh(index, "kettle")
        assert ask(index, "whistles", project="kettle")


def test_a_fresh_clone_that_has_only_vectors_is_a_peer(hub: Path, sample: SampleRepository, tmp_path: Path) -> None:
    zoo = sample.copy(tmp_path)
    built(zoo)
    query(zoo, "DELETE FROM unversioned WHERE name NOT GLOB 'vec/*'")
    clone = tmp_path / "clone.fossil"
    Fossil(tmp_path / "home").run("clone", "--unversioned", zoo, clone)
    for (name,) in query(clone, "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'fx_vec_*'"):
        if not name.startswith(("fx_vec_terms_", "fx_vec_commit_terms_")):
            query(clone, f"DROP TABLE {name}")
    with never(hub) as index:
        done = service.import_project(index, clone)
        assert (done.name, done.embedded) == ("the-bestiary", 0)
        assert ask(index, "lions at seven", project="the-bestiary", kind="wiki")[0].path == "Feeding times"
        assert status_of(index, "the-bestiary").current
        assert service.refresh(index, "the-bestiary").added == 0
    assert not query(clone, "SELECT 1 FROM sqlite_master WHERE name = 'fx_vec_chunk'")


def test_a_git_clone_that_has_only_vectors_is_a_peer(hub: Path, kettle: Path, tmp_path: Path) -> None:
    with opened(kettle) as index:
        sharing.export(index.source, index.store, None)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(kettle), str(clone))
    git(clone, "fetch", "-q", "origin", "refs/outcrop/vectors:refs/outcrop/vectors")
    # What no vector came for is left out, since nothing may be embedded for it.
    write(clone, {"draft.md": "Not committed.\n"})
    with never(hub) as index:
        assert service.import_project(index, clone, name="clone").artifacts == 3
        assert ask(index, "boils water", project="clone")[0].path == "README.md"
    assert not (clone / ".git" / "outcrop").exists()


def test_a_peer_without_index_or_vectors_says_what_to_run(hub: Path, tmp_path: Path) -> None:
    bare = make_repository(tmp_path / "my peer", {"a.md": "Words.\n"})
    with never(hub) as index:
        with pytest.raises(
            IndexMissing, match=r"no vectors came with it.*outcrop index -C '\S+my peer' --embedder hash"
        ):
            service.import_project(index, bare)
        assert index.store.projects() == []
    assert not (bare / ".git" / "outcrop").exists()


def test_names_that_clash(hub: Path, kettle: Path, tmp_path: Path) -> None:
    namesake = make_repository(tmp_path / "elsewhere" / "kettle", TOASTER)
    built(namesake)
    ours = make_repository(tmp_path / "elsewhere" / "hub", TOASTER)
    built(ours)
    with never(hub) as index:
        service.import_project(index, kettle)
        with pytest.raises(UsageError, match=r"a project 'kettle' already, from .*--as"):
            service.import_project(index, namesake)
        with pytest.raises(UsageError, match=r"this repository itself is called 'hub'.*--as hub-2"):
            service.import_project(index, ours)
        for bad in ("", "Kettle", "a b", "-x", "a/b", "@", "x" * 65):
            with pytest.raises(UsageError, match="cannot be named"):
                service.import_project(index, namesake, name=bad)
        assert service.import_project(index, namesake, name="kettle-2").name == "kettle-2"
        # Importing the same peer again is a refresh.
        assert service.import_project(index, kettle).added == 0
        with pytest.raises(UsageError, match="this repository itself"):
            service.import_project(index, hub)
        git(hub, "worktree", "add", "-q", str(tmp_path / "linked"))
        with pytest.raises(UsageError, match="another view"):
            service.import_project(index, tmp_path / "linked")
        with pytest.raises(UnknownProject, match="There is: kettle, kettle-2"):
            service.refresh(index, "toaster")
        with pytest.raises(UnknownProject):
            service.remove(index, "toaster")


def test_a_peer_that_moved_takes_its_name_along(hub: Path, kettle: Path, tmp_path: Path) -> None:
    with never(hub) as index:
        service.import_project(index, kettle)
        kettle.rename(tmp_path / "moved")
        assert "its peer is gone" in str(status_of(index, "kettle").reason)
        with pytest.raises(NotARepository, match="the peer of kettle is gone"):
            service.refresh(index, "kettle")
        assert ask(index, "boils water")[0].project == "kettle"
        done = service.import_project(index, tmp_path / "moved", name="kettle")
        assert (done.added, done.peer) == (0, str(tmp_path / "moved"))
        assert status_of(index, "kettle").current


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        ("newer", SchemaTooNew, "newer Outcrop"),
        ("older", StoreError, "older Outcrop"),
        ("truncated", StoreDamaged, "damaged"),
        ("unfinished", StoreError, "2 of its 3 passages have no vector yet"),
        ("never finished", StoreError, "its first build was never completed"),
        ("cleared", StoreError, "its first build was never completed"),
        ("short vector", StoreDamaged, "wrong length"),
        ("not a number", StoreDamaged, "not of length 1.*outcrop normalize"),
    ],
)
def test_a_peer_that_cannot_be_read_leaves_nothing_half_written(
    hub: Path, kettle: Path, damage: str, error: type[Exception], words: str
) -> None:
    with never(hub) as index:
        service.import_project(index, kettle)
    store = kettle / ".git/outcrop/index.sqlite"
    before = tables(hub / ".git/outcrop/index.sqlite")
    if damage == "cleared":
        with opened(kettle) as peer:
            peer.clear(corpus="docs")
            peer.clear(corpus="code")
    elif damage == "truncated":
        store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])
    else:
        change = {
            "newer": "UPDATE fx_vec_meta SET value = '999' WHERE key = 'schema'",
            "older": "UPDATE fx_vec_meta SET value = '1' WHERE key = 'schema'",
            "unfinished": "DELETE FROM fx_vec_embedding WHERE chunk_id > 1",
            "never finished": "DELETE FROM fx_vec_built",
            "short vector": "UPDATE fx_vec_embedding SET v = x'00'",
            "not a number": "UPDATE fx_vec_embedding SET v = zeroblob(3072)",
        }[damage]
        query(store, change)
        # So that all of it would have to be read again.
        query(hub / ".git/outcrop/index.sqlite", "UPDATE fx_vec_artifact SET version = 'x' WHERE project = 'kettle'")
        before = tables(hub / ".git/outcrop/index.sqlite")
    with never(hub) as index:
        with pytest.raises(error, match=f"kettle.*{words}"):
            service.refresh(index, "kettle")
        assert not status_of(index, "kettle").current or damage in ("short vector", "not a number")
        assert ask(index, "boils water")[0].project == "kettle"
    assert tables(hub / ".git/outcrop/index.sqlite") == before


def test_a_peer_that_changes_meanwhile_is_read_again_or_refused(
    hub: Path, kettle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outcrop.projects import copy

    calls = 0
    read = copy.entries_of

    def meddling(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls <= changes:
            write(kettle, {"new.md": f"Change {calls} of {changes}.\n"})
            built(kettle)
        return read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(copy, "entries_of", meddling)
    changes = 1
    with never(hub) as index:
        service.import_project(index, kettle)
        assert "Change 1 of 1." in {hit.text for hit in ask(index, "change", project="kettle")}
        assert status_of(index, "kettle").current
        changes, calls = 9, 0
        write(kettle, {"new.md": "Other.\n"})
        built(kettle)
        with pytest.raises(StoreLocked, match="keeps changing"):
            service.refresh(index, "kettle")
        assert "Change 1 of 1." in {hit.text for hit in ask(index, "change", project="kettle")}


def test_a_locked_fossil_peer_is_waited_for_and_then_said(
    hub: Path, sample: SampleRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outcrop.stores.sqlite import connection as database
    from outcrop.vcs import fossil

    monkeypatch.setattr(fossil, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    zoo = sample.copy(tmp_path)
    built(zoo)
    writer = sqlite3.connect(zoo, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    with never(hub) as index:
        with pytest.raises(OutcropError, match=r"locked|in use"):
            service.import_project(index, zoo)
        writer.execute("ROLLBACK")
        assert service.import_project(index, zoo).artifacts > 5
    writer.close()


def test_a_fossil_repository_imports_too(kettle: Path, sample: SampleRepository, tmp_path: Path) -> None:
    zoo = sample.copy(tmp_path)
    built(zoo)
    blobs = query(zoo, "SELECT name, hash FROM unversioned ORDER BY name")
    with never(zoo) as index:
        service.import_project(index, kettle)
        assert ask(index, "boils water")[0].project == "kettle"
        assert index.build().shared == 0
    # What came from elsewhere never travels on.
    assert query(zoo, "SELECT name, hash FROM unversioned ORDER BY name") == blobs


def test_an_index_of_another_space_imports_nothing(hub: Path, kettle: Path) -> None:
    with opened(hub, Counting(dim=64)) as index:
        with pytest.raises(SpaceMismatch, match=r"this index holds vectors of hash-768.*outcrop index"):
            service.import_project(index, kettle)
        index.build()
        with pytest.raises(SpaceMismatch, match=r"--embedder hash --dim 64"):
            service.import_project(index, kettle)


def test_after_a_change_of_space_projects_say_so_and_are_never_embedded_unasked(hub: Path, kettle: Path) -> None:
    with never(hub) as index:
        service.import_project(index, kettle)
    small = Counting(dim=64)
    with opened(hub, small) as index:
        assert index.build().complete
        assert len(small.texts) == 1
        assert index.status().complete == 1.0
        assert "3 passages have no vector of what is searched here" in str(status_of(index, "kettle").reason)
        answer = index.search("boils water", mode="keyword")
        assert answer.hits[0].project == "kettle"
        built(kettle, Counting(dim=64))
        assert service.refresh(index, "kettle").added == 3
        assert status_of(index, "kettle").current


def test_an_empty_folder_may_hold_nothing_but_projects(kettle: Path, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    with never(tmp_path / "desk") as index:
        with pytest.raises(NotARepository):
            service.import_project(index, tmp_path / "nowhere")
        assert not index.store.exists
        service.import_project(index, kettle)
        answer = index.search("boils water", mode="semantic")
        assert (answer.mode, answer.reason, answer.stale) == (Mode.SEMANTIC, None, None)
        assert answer.hits[0].project == "kettle"


def _import_and_die(hub: str, kettle: str) -> None:
    from outcrop.stores.sqlite.projects import ProjectTables

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    ProjectTables.place_project = die  # type: ignore[method-assign, assignment]
    with never(Path(hub)) as index:
        service.import_project(index, Path(kettle))


def test_a_killed_import_leaves_what_was_there(hub: Path, kettle: Path) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_import_and_die, args=(str(hub), str(kettle)))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    with never(hub) as index:
        assert service.listing(index) == []
        assert {hit.project for hit in ask(index, "boils water")} == {""}
        assert index.build().removed == 0
        assert service.import_project(index, kettle).artifacts == 3
        assert ask(index, "boils water")[0].project == "kettle"


@pytest.fixture
def packages(hub: Path, tmp_path: Path) -> Path:
    """An environment in the repository; returns the folder of its packages."""
    environment(hub / ".venv", tmp_path / "python")
    write(hub, {".gitignore": ".venv\n"})
    built(hub)
    return hub / ".venv" / "lib" / "python3.11" / "site-packages"


def test_a_python_package_is_a_project_of_its_public_names(hub: Path, packages: Path) -> None:
    with opened(hub) as index:
        done = service.import_package(index, "kettle")
        assert (done.name, done.type, done.item, done.artifacts) == ("kettle-tools-2.4", "python", "Kettle.Tools", 3)
        assert (done.embedded, done.chunks) == (10, 10)
        best = ask(index, "heat water until it boils", kind="api")[0]
        assert (best.project, best.name, best.path, best.lines) == (
            *("kettle-tools-2.4", "kettle.boil", "kettle/_boil.py"),
            (4, 8),
        )
        assert status_of(index, "kettle-tools-2.4").current
        stdlib = service.import_package(index, "stdlib")
        assert (stdlib.name, stdlib.item) == ("python-3.11", "stdlib")
        assert service.import_package(index, "kettle", name="tea").embedded == 0
    with never(hub) as index:
        again = service.refresh(index, "kettle-tools-2.4")
        assert (again.added, again.embedded) == (0, 0)
        with pytest.raises(UsageError, match="no package 'nothing'"):
            service.import_package(index, "nothing")


def upgrade(packages: Path, version: str, **files: str) -> None:
    info = packages / "kettle_tools-2.4.6.dist-info" / "METADATA"
    info.write_text(f"Metadata-Version: 2.1\nName: Kettle.Tools\nVersion: {version}\n")
    for name, text in files.items():
        (packages / "kettle" / f"{name}.py").write_text(text)


def test_a_newer_version_of_a_package_takes_the_place_of_the_older(hub: Path, packages: Path) -> None:
    with opened(hub) as index:
        service.import_package(index, "kettle")
        service.import_package(index, "kettle", name="tea")
        upgrade(packages, "2.4.7", pour='def pour(cup):\n    """Fill a cup to the brim."""\n')
        assert "version 2.4.7 is installed now" in str(status_of(index, "kettle-tools-2.4").reason)
        done = service.refresh(index, "kettle-tools-2.4")
        assert (done.name, done.replaced, done.added, done.embedded) == ("kettle-tools-2.4", "", 1, 1)
        upgrade(packages, "3.0", pour='def pour(cup):\n    """Fill a cup with care."""\n')
        done = service.refresh(index, "kettle-tools-2.4")
        assert (done.name, done.replaced, done.embedded) == ("kettle-tools-3.0", "kettle-tools-2.4", 1)
        assert [each.name for each in service.listing(index)] == ["kettle-tools-3.0", "tea"]
        # A name that somebody chose stays.
        assert service.refresh(index, "tea").name == "tea"
        assert {hit.project for hit in ask(index, "fill a cup with care", kind="api")} == {"kettle-tools-3.0", "tea"}


def test_an_import_of_a_package_that_was_stopped_goes_on(hub: Path, packages: Path) -> None:
    with opened(hub, Counting(refuse=True)) as index, pytest.raises(AssertionError):
        service.import_package(index, "kettle")
    with opened(hub) as index:
        assert not status_of(index, "kettle-tools-2.4").current
        # The build of the repository's own has nothing to do with it.
        assert index.build().embedded == 0
        done = service.refresh(index, "kettle-tools-2.4")
        assert (done.added, done.embedded, done.chunks) == (3, 10, 10)
        assert status_of(index, "kettle-tools-2.4").current


def test_a_package_that_is_gone_keeps_its_project(hub: Path, packages: Path) -> None:
    with opened(hub) as index:
        service.import_package(index, "kettle")
        (packages / "kettle_tools-2.4.6.dist-info" / "METADATA").unlink()
        (packages / "kettle_tools-2.4.6.dist-info" / "RECORD").unlink()
        (packages / "kettle_tools-2.4.6.dist-info").rmdir()
        assert "no package" in str(status_of(index, "kettle-tools-2.4").reason)
        with pytest.raises(UsageError, match="no package"):
            service.refresh(index, "kettle-tools-2.4")
        assert ask(index, "heat water", kind="api")
        assert service.remove(index, "kettle-tools-2.4") >= 0
        assert index.status().projects == ()

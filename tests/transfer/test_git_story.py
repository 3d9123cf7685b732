"""Vectors that travel with a git repository: pushed, cloned, pulled, merged, kept back, withdrawn."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from repositories import commit, git, make_repository, write
from travel import Counting, ask, built, frozen, opened, scores

import outcrop
from outcrop.app.index import Index
from outcrop.core.model import Kind, Skipped
from outcrop.core.reports import SyncReport
from outcrop.errors import UsageError
from outcrop.projects import service
from outcrop.surfaces.cli.program import main
from outcrop.transfer import blob
from outcrop.transfer.git import remote as git_remote
from outcrop.transfer.git.ref import REF, GitTransfer
from outcrop.transfer.git.remote import GitRemote
from outcrop.vcs.git import Repository
from outcrop.vcs.git_repository import find_repository

FILES: dict[str, str | bytes] = {
    "README.md": "# Zoo\n\nAll animals live here.\n\n## Lions\n\nThey are fed at seven.\n",
    "src/feed.py": "def feed(animal):\n    return hay\n\n\ndef water(animal):\n    return bucket\n",
    "copy.md": "# Zoo\n\nAll animals live here.\n\n## Lions\n\nThey are fed at seven.\n",
    "notes/bears.md": "# Bears\n\nAsleep until the spring.\n",
}
QUESTIONS = ("all animals", "lions are fed", "asleep until spring", "def water animal")


class World:
    """A bare repository in the middle, and whoever clones it."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self.remote = home / "zoo.git"
        git(home, "init", "-q", "--bare", "-b", "main", *options, str(self.remote))
        self.ada = make_repository(home / "ada", FILES, *options)
        git(self.ada, "remote", "add", "origin", str(self.remote))
        git(self.ada, "push", "-q", "-u", "origin", "main")

    def clone(self, name: str, *options: str) -> Path:
        place = self.home / name
        git(self.home, "clone", "-q", *options, self.remote.as_uri(), str(place))
        return place

    def vectors(self, place: Path | None = None) -> GitTransfer:
        return GitTransfer(found(place or self.remote))

    def texts(self) -> str:
        """Everything that can be read at the remote."""
        return "".join(data.decode("latin-1") for _, data in self.vectors().read_all() if isinstance(data, bytes))


def found(folder: Path) -> Repository:
    repository = find_repository(folder)
    assert repository is not None
    return repository


@pytest.fixture(params=["sha1", "sha256"])
def any_world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(tmp_path, f"--object-format={request.param}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def pull(place: Path, remote: str | None = None, refuse: bool = True) -> tuple[Index, Counting]:
    """Pull and import; nothing may be embedded."""
    embedder = Counting(refuse)
    with opened(place, embedder) as index:
        index.pull(remote)
        report = index.import_blobs()
        assert (report.missing, report.refused) == (0, ())
    assert embedder.texts == []
    return index, embedder


def push(place: Path) -> None:
    with opened(place) as index:
        assert index.push().sent == 1


def hash_at(place: Path, path: str, rev: str = "HEAD") -> str:
    return git(place, "rev-parse", f"{rev}:{path}").decode().strip()


def test_one_indexes_and_another_searches(any_world: World) -> None:
    world = any_world
    embedder = Counting()
    with opened(world.ada, embedder) as index:
        report = index.build()
        moved = index.push()
        first = ask(index, *QUESTIONS)
    assert report.embedded == len(embedder.texts) == 3
    assert (moved.sent, moved.received, moved.withheld, moved.withdrawn) == (3, 0, 0, 0)
    assert git(world.ada, "rev-list", "--count", REF) == b"1\n"
    bob = world.clone("bob")
    refusing = Counting(refuse=True)
    with opened(bob, refusing) as index:
        moved = index.pull()
        imported = index.import_blobs()
        second = ask(index, *QUESTIONS)
        again = index.build()
    assert (moved.received, imported.imported, imported.missing, imported.stale) == (3, report.chunks, 0, 0)
    assert refusing.texts == []
    assert (again.embedded, again.complete, again.added) == (0, True, 0)
    assert frozen(second) == frozen(first)
    assert scores(second) == pytest.approx(scores(first), abs=1e-6)
    before = git(world.remote, "rev-parse", REF)
    with opened(bob, refusing) as index:
        assert index.push() == SyncReport(0, 0, False)
    assert git(world.remote, "rev-parse", REF) == before


def test_an_index_in_git_lays_nothing_out_before_it_is_asked_to(world: World) -> None:
    built(world.ada)
    assert world.vectors(world.ada).names() == frozenset()


def test_both_edit_and_push(world: World) -> None:
    built(world.ada)
    with opened(world.ada) as index:
        index.push()
    bob = world.clone("bob")
    pull(bob)
    write(world.ada, {"src/feed.py": "def feed(animal):\n    return meat\n", "ada.md": "# Ada was here\n"})
    commit(world.ada)
    git(world.ada, "push", "-q")
    git(bob, "checkout", "-q", "-b", "bobs")
    write(bob, {"notes/bears.md": "# Bears\n\nAwake.\n", "bob.md": "# Bob was here\n"})
    commit(bob)
    git(bob, "push", "-q", "origin", "bobs")
    for place, new in ((world.ada, ["def feed(animal):\n    return meat", "# Ada was here"]), (bob, None)):
        embedder = Counting()
        built(place, embedder)
        assert new is None or sorted(embedder.texts) == sorted(new)
        with opened(place) as index:
            index.push()
    tips = {hash_at(world.ada, path) for path in ("src/feed.py", "ada.md", "README.md")}
    tips |= {hash_at(bob, path) for path in ("notes/bears.md", "bob.md", "src/feed.py")}
    assert tips <= {blob.hash_of(name) for name in world.vectors().names()}
    git(bob, "fetch", "-q")
    git(bob, "merge", "-q", "origin/main")
    git(bob, "push", "-q", "origin", "bobs")
    git(world.ada, "fetch", "-q")
    git(world.ada, "merge", "-q", "origin/bobs")
    answers = []
    for place in (world.ada, bob):
        pull(place)
        with opened(place, Counting(refuse=True)) as index:
            assert index.build().embedded == 0
            answers.append(ask(index, "Ada was here", "Bob was here", "return meat", "awake"))
    assert frozen(answers[0]) == frozen(answers[1])
    assert scores(answers[0]) == pytest.approx(scores(answers[1]), abs=1e-6)


class TestWhatNeverTravels:
    def test_what_is_not_committed(self, world: World) -> None:
        write(
            world.ada,
            {
                "secret.txt": "SECRET-UNTRACKED password of the safe\n",
                "README.md": "# Zoo\n\nSECRET-DIRTY words.\n",
                "staged.md": "# SECRET-STAGED\n",
                "src/new.py": "def secret():\n    return 'SECRET-UNTRACKED'\n",
            },
        )
        git(world.ada, "add", "staged.md")
        built(world.ada)
        with opened(world.ada) as index:
            assert index.search("SECRET-DIRTY", k=1).hits[0].path == "README.md"
            moved = index.push(unpublished=True)
            index.export()
            index.export(world.home / "folder")
        # README.md is dirty, but copy.md has the content that is committed.
        assert moved.sent == 3
        assert "SECRET" not in world.texts()
        everything = [path for path in (world.home / "folder").rglob("*") if path.is_file()]
        assert len(everything) == 6
        assert not any(b"SECRET" in path.read_bytes() or b"secret" in path.read_bytes() for path in everything)
        # Nor does any object that was made: not even one that nothing points to.
        made = git(world.ada, "cat-file", "--batch-all-objects", "--batch")
        assert made.count(b"SECRET") == 1, "the staged file itself, which git add stored"

    def test_names_of_untracked_copies(self, world: World) -> None:
        """Their content is committed, and what they are called is not."""
        write(world.ada, {"takeover-of-acme.md": FILES["README.md"]})
        (world.ada / "notes" / "bears.md").rename(world.ada / "layoffs.md")
        built(world.ada)
        with opened(world.ada) as index:
            index.export(world.home / "folder")
        listed = json.loads((world.home / "folder" / "vec" / "members.json").read_bytes())["artifacts"]
        paths = {standing["path"] for artifact in listed for standing in artifact["at"]}
        assert paths == set(FILES)

    def test_records_of_a_caller(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.upsert([outcrop.Record("1", "SECRET-RECORD of a caller")])
            index.push()
            index.export(world.home / "folder")
        assert "SECRET" not in world.texts()
        assert not any(b"SECRET" in path.read_bytes() for path in (world.home / "folder" / "vec").iterdir())

    def test_text_that_the_remote_has_not_got(self, world: World) -> None:
        write(world.ada, {"plan.md": "# SECRET-PLAN\n", "README.md": "# SECRET-README\n"})
        commit(world.ada)
        built(world.ada)
        with opened(world.ada) as index:
            moved = index.push()
            assert (moved.sent, moved.withheld) == (3, 2)
            assert "SECRET" not in world.texts()
            git(world.ada, "push", "-q")
            moved = index.push()
            assert (moved.sent, moved.withheld) == (2, 0)
        assert world.texts().count("SECRET") == 2

    def test_a_branch_that_was_never_pushed_and_a_remote_that_has_nothing(self, world: World) -> None:
        built(world.ada)
        empty = world.home / "empty.git"
        git(world.home, "init", "-q", "--bare", str(empty))
        with opened(world.ada) as index:
            with pytest.raises(outcrop.StoreError, match=r"does not have the commits.*git push.*--unpublished"):
                index.push(str(empty))
            assert git(empty, "for-each-ref") == b""
            assert index.push(str(empty), unpublished=True).sent == 3
        assert GitTransfer(found(empty)).names() >= {blob.name_of(hash_at(world.ada, "README.md"))}

    def test_an_older_main_that_was_fetched_counts_as_the_remotes(self, world: World) -> None:
        """Somebody else pushed since: the tip is unknown here, but what was there is."""
        bob = world.clone("bob")
        write(bob, {"bob.md": "# Bob\n"})
        commit(bob)
        git(bob, "push", "-q", "origin", "main")
        built(world.ada)
        with opened(world.ada) as index:
            assert (index.push().sent, index.push().withheld) == (3, 0)

    @pytest.mark.parametrize("moved_on", [False, True])
    def test_text_of_where_one_fetches_from_when_pushes_go_elsewhere(self, world: World, moved_on: bool) -> None:
        """A house that fetches from within and publishes to the outside."""
        outside = world.home / "outside.git"
        git(world.home, "clone", "-q", "--bare", str(world.remote), str(outside))
        write(world.ada, {"plan.md": "# SECRET-PLAN\n"})
        commit(world.ada)
        git(world.ada, "push", "-q")
        git(world.ada, "remote", "set-url", "--push", "origin", str(outside))
        if moved_on:
            bob = world.home / "bob"
            git(world.home, "clone", "-q", str(outside), str(bob))
            write(bob, {"bob.md": "# Bob\n"})
            commit(bob)
            git(bob, "push", "-q")
        built(world.ada)
        with opened(world.ada) as index:
            if moved_on:
                # What the outside had once is not known: what was fetched was another repository's.
                with pytest.raises(outcrop.StoreError, match="nothing was sent"):
                    index.push()
                assert git(outside, "for-each-ref", "refs/outcrop") == b""
            else:
                moved = index.push()
                assert (moved.sent, moved.withheld) == (3, 1)
                texts = [data for _, data in world.vectors(outside).read_all() if isinstance(data, bytes)]
                assert len(texts) == 4
                assert not any(b"SECRET" in data for data in texts)
        assert world.vectors().names() == frozenset()

    def test_what_was_committed_once_and_is_dirty_now_stays(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        write(world.ada, {"src/feed.py": "SECRET = 1\n"})
        built(world.ada)
        with opened(world.ada) as index:
            moved = index.push()
        assert (moved.sent, moved.withdrawn) == (0, 0)
        assert blob.name_of(hash_at(world.ada, "src/feed.py")) in world.vectors().names()

    def test_a_secret_that_was_exported_by_mistake_is_withdrawn(self, world: World) -> None:
        """Somebody committed it, exported it, and took the commit back."""
        write(world.ada, {"oops.md": "# SECRET\n"})
        commit(world.ada)
        built(world.ada)
        with opened(world.ada) as index:
            index.push(unpublished=True)
            index.export()
            oops = blob.name_of(hash_at(world.ada, "oops.md"))
            assert oops in world.vectors().names() & world.vectors(world.ada).names()
            git(world.ada, "reset", "-q", "--hard", "HEAD~1")
            assert index.push().withdrawn == 1
            index.export()
        assert oops not in world.vectors().names() | world.vectors(world.ada).names()

    def test_a_transcript_that_is_not_committed(self, world: World) -> None:
        manifest = (
            '{"uri": "https://example.org/a.mp4", "sha3": "' + "0" * 64 + '", "mime": "video/mp4", "bytes": 5,'
            ' "transcript": "media/a.txt"}'
        )
        write(world.ada, {"media/a.json": manifest, "media/a.txt": "The lion roars in public.\n"})
        commit(world.ada)
        git(world.ada, "push", "-q")
        write(world.ada, {"media/a.txt": "SECRET roars.\n"})
        with opened(world.ada) as index:
            index.build()
            assert [hit.kind for hit in index.search("SECRET roars", k=1).hits] == [outcrop.Kind.MEDIA]
            index.push(unpublished=True)
            assert "SECRET" not in world.texts()
            write(world.ada, {"media/a.txt": "The lion roars in public.\n"})
            index.build()
            index.push()
        assert "roars in public" in world.texts()


class TestOtherPeoplesVectors:
    def test_a_race_loses_nobodys(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        bob = world.clone("bob")
        for place, name in ((world.ada, "ada"), (bob, "bob")):
            git(place, "checkout", "-q", "-b", name)
            write(place, {f"{name}.md": f"# {name} was here\n"})
            commit(place)
            git(place, "push", "-q", "origin", name)
            built(place)
        pushed = GitRemote.push
        monkeypatch.setattr("outcrop.transfer.git.publish.RETRY_PAUSE", 0.0)

        def meanwhile(*arguments: object) -> bool:
            monkeypatch.setattr(GitRemote, "push", pushed)
            with opened(bob) as index:
                assert index.push().sent > 0
            return pushed(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(GitRemote, "push", meanwhile)
        with opened(world.ada) as index:
            moved = index.push()
        assert (moved.sent, moved.received) == (1, 4)
        both = {blob.name_of(hash_at(world.ada, "ada.md")), blob.name_of(hash_at(bob, "bob.md"))}
        assert both <= world.vectors().names()

    def test_a_branch_that_is_alive_keeps_its_vectors_and_a_deleted_one_does_not(self, world: World) -> None:
        bob = world.clone("bob")
        git(bob, "checkout", "-q", "-b", "side")
        write(bob, {"side.md": "# Side\n"})
        git(bob, "rm", "-q", "notes/bears.md")
        commit(bob)
        git(bob, "push", "-q", "origin", "side")
        built(bob)
        with opened(bob) as index:
            index.push()
        side, bears = (
            blob.name_of(hash_at(bob, path, rev)) for path, rev in (("side.md", "side"), ("notes/bears.md", "main"))
        )
        built(world.ada)
        with opened(world.ada) as index:
            # Ada never fetched that branch, so she cannot know what is on it.
            assert index.push().withdrawn == 0
            git(world.ada, "fetch", "-q")
            assert index.push().withdrawn == 0
            assert {side, bears} <= world.vectors().names()
            with opened(bob) as other:
                assert other.push().withdrawn == 0
            git(bob, "push", "-q", "origin", "--delete", "side")
            git(world.ada, "fetch", "-q", "--prune")
            assert index.push().withdrawn == 1
        assert side not in world.vectors().names()
        assert bears in world.vectors().names()

    def test_a_remote_without_branches_keeps_everybodys(self, world: World) -> None:
        bob = world.clone("bob")
        vectors = world.home / "vectors.git"
        git(world.home, "init", "-q", "--bare", str(vectors))
        names = set()
        for place, name in ((world.ada, "ada"), (bob, "bob"), (world.ada, "ada")):
            write(place, {f"{name}.md": f"# {name} was here\n"})
            git(place, "add", "-A")
            git(place, "commit", "-q", "--allow-empty", "-m", name)
            names.add(blob.name_of(hash_at(place, f"{name}.md")))
            built(place)
            with opened(place) as index:
                assert index.push(str(vectors), unpublished=True).withdrawn == 0
        assert len(names) == 2
        assert names <= world.vectors(vectors).names()

    def test_a_pull_keeps_what_is_only_here_whatever_the_user_fetches_besides(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        bob = world.clone("bob")
        git(bob, "config", "--add", "remote.origin.fetch", "+refs/outcrop/*:refs/outcrop/*")
        git(bob, "config", "fetch.prune", "true")
        write(bob, {"bob.md": "# Bob was here\n"})
        commit(bob)
        built(bob)
        with opened(bob) as index:
            index.export()
            index.pull()
        assert blob.name_of(hash_at(bob, "bob.md")) in world.vectors(bob).names()

    def test_another_space_is_refused_with_the_way_out(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        before = git(world.remote, "rev-parse", REF)
        bob = world.clone("bob")
        narrow = Counting(dim=64)
        built(bob, narrow)
        with opened(bob, narrow) as index:
            for attempt in (index.push, index.pull):
                with pytest.raises(
                    outcrop.SpaceMismatch, match=r"vectors of hash-768.*are of hash-64.*--model.*--delete"
                ):
                    attempt()
        assert git(world.remote, "rev-parse", REF) == before
        git(bob, "push", "-q", "origin", "--delete", REF)
        with opened(bob, narrow) as index:
            assert index.push().sent == 3
        note = world.vectors().read(blob.NOTE)
        assert isinstance(note, bytes)
        assert blob.decode_note(note).space.dim == 64

    def test_bad_blobs_are_refused_one_by_one_and_replaced_by_the_next_push(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        there = world.vectors()
        names = sorted(name for name in there.names() if name != blob.NOTE)
        good = there.read(names[0])
        assert isinstance(good, bytes)
        there.replace({names[0]: good[:-3], names[1]: b"\x7fELF" * 900}, [])
        bob = world.clone("bob")
        with opened(bob, Counting(refuse=True)) as index:
            index.pull()
            report = index.import_blobs()
        assert sorted(item.path for item in report.refused) == names[:2]
        assert all(isinstance(item, Skipped) and item.detail for item in report.refused)
        assert report.imported > 0
        built(bob)
        with opened(bob) as index:
            assert index.push().sent == 2
        assert there.read(names[0]) == good

    def test_vectors_without_a_note_are_not_mixed_with_ours(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
            world.vectors().replace({blob.name_of("e" * 40): b"VE01"}, [blob.NOTE])
            index.push()
        assert blob.NOTE in world.vectors().names()
        assert blob.name_of("e" * 40) not in world.vectors().names()

    def test_a_broken_note_is_an_error_that_names_it(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
            world.vectors().replace({blob.NOTE: b"not json"}, [])
            with pytest.raises(outcrop.OutcropError, match=r"space\.json is not JSON"):
                index.push()


class TestClones:
    @pytest.mark.parametrize(
        "options",
        [(), ("--depth=1",), ("--filter=blob:none",), ("--filter=tree:0",), ("--no-tags", "--single-branch")],
        ids=str,
    )
    def test_of_every_sort_pull_and_push(self, world: World, options: tuple[str, ...]) -> None:
        for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
            git(world.remote, "config", name, "true")
        write(world.ada, {"later.md": "# Later\n"})
        commit(world.ada)
        git(world.ada, "push", "-q")
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
            first = ask(index, *QUESTIONS)
        bob = world.clone("bob", *options)
        pull(bob)
        with opened(bob, Counting(refuse=True)) as index:
            second = ask(index, *QUESTIONS)
        assert frozen(second) == frozen(first)
        assert scores(second) == pytest.approx(scores(first), abs=1e-6)
        write(bob, {"bob.md": "# Bob was here\n"})
        commit(bob)
        git(bob, "push", "-q", "origin", "main")
        built(bob)
        with opened(bob) as index:
            assert index.push().sent == 1
        assert blob.name_of(hash_at(bob, "bob.md")) in world.vectors().names()
        assert git(bob, "status", "--porcelain") == b""

    def test_a_partial_clone_whose_user_fetched_the_ref_by_hand(self, world: World) -> None:
        git(world.remote, "config", "uploadpack.allowFilter", "true")
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        bob = world.clone("bob", "--filter=blob:none")
        git(bob, "fetch", "-q", "origin", "+refs/outcrop/*:refs/outcrop/*")
        pull(bob)

    def test_plain_refspecs_do_the_same(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.export()
        git(world.ada, "push", "-q", "origin", REF)
        bob = world.clone("bob")
        git(bob, "fetch", "-q", "origin", "+refs/outcrop/*:refs/outcrop/*")
        with opened(bob, Counting(refuse=True)) as index:
            assert index.import_blobs().missing == 0
            assert ask(index, *QUESTIONS)

    def test_only_what_is_new_is_sent_again(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        write(world.ada, {f"note{number}.md": f"# Note {number}\n" for number in range(120)})
        commit(world.ada)
        git(world.ada, "push", "-q")
        built(world.ada)
        bob = world.clone("bob")
        with opened(world.ada) as index:
            index.push()
        pull(bob)
        write(world.ada, {"note7.md": "# Another note\n"})
        commit(world.ada)
        git(world.ada, "push", "-q")
        git(bob, "pull", "-q")
        built(world.ada)
        trace = world.home / "trace"
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
        for move in (lambda: push(world.ada), lambda: pull(bob)):
            trace.write_text("")
            move()
            wrote = re.findall(r'"key":"write_pack_file/wrote","value":"(\d+)"', trace.read_text())
            # The blob, its folder, the root and the commit.
            assert wrote == ["4"]
        assert git(bob, "fsck", "--connectivity-only", "--no-dangling") == b""
        assert git(bob, "rev-parse", "--is-shallow-repository") == b"false\n"

    def test_a_linked_worktree(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        bob = world.clone("bob")
        linked = world.home / "linked"
        git(bob, "worktree", "add", "-q", "-b", "side", str(linked))
        pull(linked)
        write(linked, {"side.md": "# Side\n"})
        commit(linked)
        git(linked, "push", "-q", "origin", "side")
        built(linked)
        with opened(linked) as index:
            assert index.push().sent == 1

    def test_a_bare_repository_is_indexed_where_it_is(self, world: World) -> None:
        built(world.remote)
        with opened(world.remote) as index:
            assert index.export().artifacts == 3
        pull(world.clone("bob"))

    def test_the_user_sees_nothing_of_it(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        bob = world.clone("bob")
        before = {path for path in bob.rglob("*") if "objects" not in path.parts}
        pull(bob)
        made = {str(path.relative_to(bob)) for path in bob.rglob("*") if "objects" not in path.parts} - {
            str(path.relative_to(bob)) for path in before
        }
        ours = {name for name in made if name.startswith((".git/outcrop", ".git/refs/outcrop"))}
        assert made - ours == set()
        assert not any("incoming" in name and (bob / name).is_file() for name in made)

    def test_a_sparse_checkout_keeps_what_it_leaves_out(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        bob = world.clone("bob")
        git(bob, "sparse-checkout", "set", "notes")
        pull(bob)
        write(bob, {"notes/bob.md": "# Bob\n"})
        commit(bob)
        git(bob, "push", "-q", "origin", "main")
        built(bob)
        with opened(bob) as index:
            moved = index.push()
        assert (moved.sent, moved.withdrawn) == (1, 0)
        assert blob.name_of(hash_at(bob, "src/feed.py")) in world.vectors().names()

    def test_files_of_a_submodule_do_not_travel(self, world: World) -> None:
        inner = make_repository(world.home / "inner", {"inner.md": "# SECRET of another repository\n"})
        git(world.ada, "submodule", "add", "-q", str(inner), "inner")
        commit(world.ada)
        git(world.ada, "push", "-q")
        built(world.ada)
        with opened(world.ada) as index:
            assert index.search("SECRET of another", k=1).hits[0].path == "inner/inner.md"
            index.push(unpublished=True)
            index.export()
        assert "SECRET" not in world.texts()
        assert blob.name_of(hash_at(inner, "inner.md")) not in world.vectors(world.ada).names()


class TestTheCommands:
    def run(self, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, list[str], str]:
        code = main([*map(str, arguments), "--embedder", "hash"])
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err

    def test_they_say_what_they_did(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        write(world.ada, {"plan.md": "# Not pushed yet\n"})
        commit(world.ada)
        self.run(capsys, "index", "-q", world.ada)
        code, out, _ = self.run(capsys, "push", "-C", world.ada)
        assert (code, out[0]) == (0, "sent 3 blobs, received 0 blobs")
        assert out[1].startswith("kept back 1 artifact of commits")
        code, out, _ = self.run(capsys, "push", "-C", world.ada, "--unpublished", "--json")
        assert json.loads(out[0]) == {"sent": 1, "received": 0, "refused": False, "withdrawn": 0, "withheld": 0}
        code, out, _ = self.run(capsys, "export", "-C", world.ada)
        assert (code, out[0].partition(" (")[0]) == (0, "4 artifacts in refs/outcrop/vectors: 0 written, 0 withdrawn")
        code, out, _ = self.run(capsys, "export", "-C", world.ada, "../out")
        assert (code, out[0].partition(":")[0]) == (0, f"4 artifacts in {world.ada}/../out")
        bob = world.clone("bob")
        code, out, _ = self.run(capsys, "pull", "-C", bob)
        assert (code, out[0]) == (0, "sent 0 blobs, received 4 blobs")
        assert out[1].startswith("imported 3 vectors of hash-768: 3 artifacts")
        assert out[2] == "ignored 1 blob of what is not here"
        cy = world.clone("cy")
        code, out, _ = self.run(capsys, "import", "-C", cy, world.home / "out")
        assert (code, out[0].partition(":")[0]) == (0, "imported 3 vectors of hash-768")

    def test_they_fail_with_a_way_out(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, err = self.run(capsys, "push", "-C", world.ada)
        assert (code, out) == (1, [])
        assert "→ Run: outcrop index" in err
        plain = world.home / "plain"
        write(plain, {"a.md": "# A\n"})
        self.run(capsys, "index", "-q", plain)
        for command in ("push", "pull", "export", "import"):
            code, out, err = self.run(capsys, command, "-C", plain)
            assert (code, out) == (2, [])
            assert "outcrop export DIR" in err
        code, out, err = self.run(capsys, "export", "-C", plain, world.ada)
        assert (code, out) == (2, [])
        assert "was left alone" in err


class TestRemotes:
    def test_which_one_is_meant(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        built(world.ada)
        git(world.ada, "remote", "rename", "origin", "home")
        with opened(world.ada) as index:
            assert index.push().sent == 3
            git(world.ada, "remote", "add", "other", str(world.home / "other.git"))
            with pytest.raises(outcrop.UsageError, match=r"no remote called origin.*home, other"):
                index.push()
            assert index.push("home").sent == 0
            assert index.push(str(world.remote)).sent == 0
            monkeypatch.chdir(world.ada / "src")
            assert index.push("../../zoo.git").sent == 0
            git(world.ada, "remote", "remove", "home")
            git(world.ada, "remote", "remove", "other")
            with pytest.raises(outcrop.UsageError, match=r"has no remote.*git remote add origin"):
                index.pull()
            for name in ("--upload-pack=touch x", "", "-q"):
                with pytest.raises(outcrop.UsageError, match="is no remote"):
                    index.pull(name)

    def test_one_of_several_addresses(self, world: World) -> None:
        """As with git: fetched from the first, pushed to all."""
        mirror = world.home / "mirror.git"
        git(world.home, "clone", "-q", "--bare", str(world.remote), str(mirror))
        git(world.ada, "remote", "set-url", "--add", "origin", str(mirror))
        built(world.ada)
        with opened(world.ada) as index:
            assert index.push().sent == 6
            assert index.push().sent == 0
        assert world.vectors(mirror).ids() == world.vectors().ids()

    def test_two_addresses_of_one_that_moved_on(self, world: World) -> None:
        """Read by one address and written by another, as with HTTP and ssh."""
        bob = world.clone("bob")
        write(bob, {"bob.md": "# Bob\n"})
        commit(bob)
        git(bob, "push", "-q", "origin", "main")
        git(world.ada, "config", f"url.{world.home.as_uri()}/.pushInsteadOf", f"{world.home}/")
        built(world.ada)
        with opened(world.ada) as index:
            moved = index.push()
        assert (moved.sent, moved.withheld) == (3, 0)

    def test_settings_of_git_push_send_neither_less_nor_more(self, world: World) -> None:
        git(world.ada, "config", "push.recurseSubmodules", "only")
        git(world.ada, "config", "push.followTags", "true")
        git(world.ada, "tag", "-a", "-m", "mine", "private")
        built(world.ada)
        with opened(world.ada) as index:
            assert index.push().sent == 3
        assert len(world.vectors().names()) == 4
        assert git(world.remote, "tag") == b""

    def test_one_that_is_not_there(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            for attempt in (index.push, index.pull):
                with pytest.raises(outcrop.StoreError, match=r"could not reach .*nowhere"):
                    attempt(str(world.home / "nowhere.git"))
                with pytest.raises(outcrop.StoreError) as failure:
                    attempt("http://me:hunter2@127.0.0.1:9/x.git")
                assert "hunter2" not in str(failure.value)

    def test_one_without_vectors(self, world: World) -> None:
        with opened(world.ada) as index, pytest.raises(outcrop.StoreError, match=r"no vectors yet.*outcrop push"):
            index.pull()

    def test_one_that_wants_a_password_is_not_waited_for(self, world: World, login: str) -> None:
        built(world.ada)
        with opened(world.ada) as index, pytest.raises(outcrop.StoreError, match=r"Log in as for git push"):
            index.push(login)

    def test_one_that_never_answers(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its program sleeps, and with it whatever it started is ended."""
        monkeypatch.setattr(git_remote, "ANSWER_TIMEOUT", 0.5)
        monkeypatch.setenv("GIT_SSH_COMMAND", "sleep 600; :")
        built(world.ada)
        with opened(world.ada) as index, pytest.raises(outcrop.StoreError, match=r"could not reach .* within 0.5 s"):
            index.push("ssh://example.invalid/zoo.git")

    def test_hooks_of_the_repository_do_not_run(self, world: World) -> None:
        mark = world.home / "mark"
        for name in ("pre-push", "reference-transaction", "post-checkout"):
            hook = world.ada / ".git" / "hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
            hook.chmod(0o755)
        with opened(world.ada) as index:
            index.build()
            index.push()
            index.pull()
        assert not mark.exists()

    def test_what_a_killed_process_left_is_cleared_away(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        gone = subprocess.Popen(["true"])
        gone.wait()
        for number in (gone.pid, os.getpid(), "x", 10**30):
            git(world.ada, "update-ref", f"refs/outcrop/incoming/{number}", REF)
        running = subprocess.Popen(["sleep", "60"])
        git(world.ada, "update-ref", f"refs/outcrop/incoming/{running.pid}", REF)
        try:
            with opened(world.ada) as index:
                index.push()
        finally:
            running.kill()
            running.wait()
        left = git(world.ada, "for-each-ref", "--format=%(refname)", "refs/outcrop").decode().split()
        assert left == [f"refs/outcrop/incoming/{running.pid}", REF]

    def test_one_that_keeps_changing(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("outcrop.transfer.git.publish.RETRY_PAUSE", 0.0)
        monkeypatch.setattr("outcrop.transfer.git.publish.ATTEMPTS", 2)
        monkeypatch.setattr(GitRemote, "push", lambda *_: False)
        built(world.ada)
        with (
            opened(world.ada) as index,
            pytest.raises(outcrop.StoreError, match="faster than this process could, 2 times"),
        ):
            index.push()


@pytest.fixture
def login() -> Iterator[str]:
    """A server that asks for a password."""

    class Closed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="zoo"')
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Closed)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/zoo.git"
    server.shutdown()
    server.server_close()
    thread.join()


def test_without_an_index_or_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "unborn")
    unborn = tmp_path / "unborn"
    with opened(unborn) as index, pytest.raises(outcrop.IndexMissing, match="outcrop index"):
        index.push()
    write(unborn, {"a.md": "# A\n"})
    built(unborn)
    with opened(unborn) as index:
        with pytest.raises(outcrop.SourceError, match=r"no commit yet.*Commit first"):
            index.push(str(tmp_path))
        with pytest.raises(outcrop.StoreError, match=r"no vectors to import.*outcrop pull"):
            index.import_blobs()


def test_an_index_that_is_behind_says_so(world: World, caplog: pytest.LogCaptureFixture) -> None:
    built(world.ada)
    write(world.ada, {"later.md": "# Later\n"})
    commit(world.ada)
    git(world.ada, "push", "-q")
    with opened(world.ada) as index, caplog.at_level(logging.WARNING, "outcrop"):
        assert index.push().sent == 3
    assert "not indexed yet, so that it does not travel: 1 file." in caplog.text
    assert blob.name_of(hash_at(world.ada, "later.md")) not in world.vectors().names()
    caplog.clear()
    built(world.ada)
    write(world.ada, {"untracked.md": "# Nobody's business\n"})
    with opened(world.ada) as index, caplog.at_level(logging.WARNING, "outcrop"):
        index.push()
    assert caplog.text == ""
    assert blob.name_of(hash_at(world.ada, "later.md")) in world.vectors().names()


@pytest.mark.usefixtures("with_history")
class TestCommits:
    def commits(self, world: World) -> set[str]:
        """The subjects of the commits whose vectors are at the remote."""
        found = set()
        for name, data in world.vectors().read_all():
            if blob.hash_of(name) and isinstance(data, bytes):
                (record, *_) = blob.decode(data, 768)
                if "Ada, 2024-01-01" in record.text:
                    found.add(record.text.partition("\n")[0])
        return found

    def test_they_travel_with_the_files_and_need_no_model(self, world: World) -> None:
        write(world.ada, {"ada.md": "# Ada was here\n"})
        commit(world.ada, "Say who was here")
        git(world.ada, "push", "-q")
        built(world.ada)
        with opened(world.ada) as index:
            assert index.push() == SyncReport(6, 0, False)
        assert self.commits(world) == {"change", "Say who was here"}
        bob = world.clone("bob")
        pull(bob)
        with opened(bob, Counting(refuse=True)) as index:
            assert index.build().commits == 2
            assert not index.status().stale
            (hit, *_) = index.search("who was here", kind="commit").hits
            assert hit.name == "Say who was here · 2024-01-01"
            assert index.push() == SyncReport(0, 0, False)

    def test_one_that_was_not_pushed_stays_here(self, world: World) -> None:
        git(world.ada, "commit", "-q", "--allow-empty", "-m", "SECRET plans")
        built(world.ada)
        with opened(world.ada) as index:
            report = index.push()
            assert (report.sent, report.withheld) == (4, 1)
            assert self.commits(world) == {"change"}
            assert "SECRET" not in world.texts()
            assert index.push(unpublished=True).sent == 1
        assert self.commits(world) == {"change", "SECRET plans"}

    def test_one_that_no_branch_comes_from_is_withdrawn(self, world: World) -> None:
        git(world.ada, "commit", "-q", "--allow-empty", "-m", "first wording")
        git(world.ada, "push", "-q")
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
            assert self.commits(world) == {"change", "first wording"}
            git(world.ada, "commit", "-q", "--allow-empty", "--amend", "-m", "second wording")
            git(world.ada, "push", "-q", "--force")
            index.build()
            assert index.push().withdrawn == 1
        assert self.commits(world) == {"change", "second wording"}

    def test_older_ones_of_somebody_who_indexes_more_stay(self, world: World) -> None:
        git(world.ada, "commit", "-q", "--allow-empty", "-m", "the newest")
        git(world.ada, "push", "-q")
        built(world.ada)
        with opened(world.ada) as index:
            index.push()
        bob = world.clone("bob")
        write(bob, {"outcrop.toml": "history = 1\n"})
        built(bob)
        with opened(bob) as index:
            index.push()
        assert self.commits(world) == {"change", "the newest"}

    def test_a_shallow_clone_sends_none_whose_files_it_does_not_know(self, world: World) -> None:
        git(world.ada, "commit", "-q", "--allow-empty", "-m", "the newest")
        git(world.ada, "push", "-q")
        bob = world.clone("bob", "--depth", "1")
        built(bob)
        with opened(bob) as index:
            assert index.push().sent == 3
        assert self.commits(world) == set()

    def test_an_export_brings_them_without_their_source(self, world: World) -> None:
        built(world.ada)
        with opened(world.ada) as index:
            index.export(world.home / "folder")
        place = world.home / "empty"
        place.mkdir()
        with opened(place, Counting(refuse=True)) as index:
            index.import_blobs(world.home / "folder")
            (hit,) = index.search("change", kind="commit").hits
            assert hit.name == "change · 2024-01-01"
            assert not [hit for hit in index.search("change").hits if hit.kind is Kind.COMMIT]

    def test_a_project_brings_its_commits_but_not_as_another_kind(self, world: World) -> None:
        built(world.ada)
        other = make_repository(world.home / "other", {"a.py": "a = 1\n"})
        built(other)
        with opened(other) as index:
            service.import_project(index, world.ada)
            hits = index.search("change", kind="commit").hits
            assert {hit.project for hit in hits} == {"", "zoo"}
            assert not [hit for hit in index.search("change").hits if hit.kind is Kind.COMMIT]
            service.import_project(index, world.ada, kind=Kind.API)
            assert {hit.project for hit in index.search("change", kind="commit").hits} == {""}
            with pytest.raises(UsageError, match="cannot be imported as commits"):
                service.import_project(index, world.ada, kind=Kind.COMMIT)

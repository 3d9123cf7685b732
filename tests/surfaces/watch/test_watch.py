"""``outcrop watch``: an index follows its source through every kind of change, and reports it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fossil_program import Fossil, SampleRepository, query
from repositories import commit, git, make_repository, write
from servers import as_endpoint, free_port, listening
from watch_process import Scenario, await_current, found, no_display, play, watched

import outcrop
from outcrop.app import watch_lock
from outcrop.embedders.hash import HashEmbedder
from outcrop.errors import BadConfig, EgressRefused, NotARepository
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.watch import daemon, once, triggers
from outcrop.surfaces.watch.once import update_once

BENCHMARKS = Path(__file__).parent.parent.parent.parent / "benchmarks"

# Copies each line to a file at once.
TEE = "import sys; log = open(sys.argv[1], 'w', 1); [log.write(line) for line in sys.stdin]"

FILES: dict[str, str | bytes] = {"a.md": "# Alpha\n\nfirst\n", "src/b.py": "def beta():\n    return 2\n"}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of this machine, and a watch that is quick."""
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module, name, seconds in (
        (triggers, "SETTLE", 0.02),
        (triggers, "REST", 0.02),
        (triggers, "POLL", 0.02),
        (triggers, "REST_POLL", 0.02),
        (triggers, "MIN_PAUSE", 0.05),
        (triggers, "SHARE", 1),
        (daemon, "RETURN_POLL", 0.05),
        (daemon, "BUSY_RETRY", 0.05),
        (daemon, "FIRST_RETRY", 0.2),
        (daemon, "WAIT", 1.0),
    ):
        monkeypatch.setattr(module, name, seconds)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    write(root, FILES)
    return root


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository", FILES)


def build(root: Path, **settings: Any) -> None:
    with outcrop.open(root, settings={"embedder": "hash"} | settings) as index:
        index.build()


class TestFolders:
    def test_a_first_build_then_saved_new_and_deleted_files(self, folder: Path) -> None:
        def scenario() -> Scenario:
            event = yield
            assert (event.name, event.details["how"], event.details["source"]) == ("watching", "file events", "folder")
            event = yield
            assert (event.name, event.details["added"]) == ("updated", 2)
            (folder / "a.md").write_text("# Alpha\n\nzebra\n")
            event = yield
            assert (event.name, found(folder, "zebra")) == ("updated", ["a.md"])
            (folder / "new" / "deep").mkdir(parents=True)
            (folder / "new" / "deep" / "c.md").write_text("lion")
            event = yield
            assert found(folder, "lion") == ["new/deep/c.md"]
            (folder / "new" / "deep" / "d.md").write_text("tiger")
            event = yield
            assert found(folder, "tiger") == ["new/deep/d.md"]
            shutil.rmtree(folder / "new")
            event = yield
            assert (event.details["removed"], found(folder, "tiger")) == (2, [])

        play(folder, scenario())

    @pytest.mark.parametrize("as_json", [False, True])
    def test_a_watch_whose_output_goes_into_the_folder_comes_to_rest(self, folder: Path, as_json: bool) -> None:
        # Through another program, which no look at its own descriptors would show.
        watch = [sys.executable, "-m", "outcrop", "watch", *(["--json"] if as_json else [])]
        log = folder / "watch.log"
        shell = f"{shlex.join(watch)} 2>&1 | {shlex.join([sys.executable, '-c', TEE, str(log)])}"
        environment = os.environ | {"OUTCROP_CONFIG": os.devnull}
        with subprocess.Popen(["sh", "-c", shell], cwd=folder, env=environment, start_new_session=True) as process:
            try:
                await_current(folder)
                write(folder, {"a.md": "# Alpha\n\nlion\n"})
                deadline = time.monotonic() + 60
                while len(log.read_bytes().splitlines()) < 3 and time.monotonic() < deadline:
                    time.sleep(0.05)
                await_current(folder)
                rest = log.read_bytes()
                assert len(rest.splitlines()) == 3, rest
                time.sleep(3)
                assert log.read_bytes() == rest
                assert found(folder, "lion") == ["a.md"]
            finally:
                os.killpg(process.pid, signal.SIGTERM)

    def test_what_is_ignored_and_the_index_itself_cause_no_sign(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / ".gitignore").write_text("out/\n")
        (folder / "out").mkdir()
        (folder / "node_modules").mkdir()
        build(folder)
        with outcrop.open(folder) as index:
            trigger = triggers.FileEvents(index.source)
            (folder / "out" / "x.log").write_text("1")
            (folder / "node_modules" / "y.js").write_text("1")
            index.build(rebuild=True)
            assert not trigger.wait(0.3, 0.0)
            (folder / "z.md").write_text("1")
            assert trigger.wait(60.0, 0.0)
            trigger.close()

    def test_an_ignore_file_changes_what_is_watched(self, folder: Path) -> None:
        with outcrop.open(folder) as index:
            trigger = triggers.FileEvents(index.source)
            (folder / ".outcropignore").write_text("src/\n")
            assert trigger.wait(60.0, 0.0)
            (folder / "src" / "b.py").write_text("gamma = 1\n")
            assert not trigger.wait(0.3, 0.0)
            trigger.close()

    def test_names_that_are_not_utf_8(self, folder: Path) -> None:
        deep = os.fsencode(folder) + b"/caf\xe9"
        build(folder)

        def scenario() -> Scenario:
            event = yield
            os.mkdir(deep)  # noqa: PTH102, a Path is a text
            with open(deep + b"/h\xfc.md", "w") as file:  # noqa: PTH123
                file.write("# Hyrax")
            while not found_now(folder, "hyrax"):
                event = yield
            (folder / "a.md").write_text("# Addax")
            event = yield
            assert (event.name, found(folder, "addax")) == ("updated", ["a.md"])
            assert found(folder, "hyrax") == ["caf\\xe9/h\\xfc.md"]
            with outcrop.open(folder) as index:
                watcher = index.status().watcher
            assert watcher is not None
            assert watcher.how == "file events"

        play(folder, scenario())

    def test_a_folder_that_goes_and_comes_back(self, folder: Path, tmp_path: Path) -> None:
        build(folder)

        def scenario() -> Scenario:
            event = yield
            folder.rename(tmp_path / "away")
            event = yield
            assert event.name == "gone"
            assert not folder.exists()
            folder.mkdir()
            (folder / "other.md").write_text("# Gnu\n")
            event = yield
            assert event.name == "back"
            event = yield
            assert event.name == "watching"
            event = yield
            assert (event.name, found(folder, "gnu")) == ("updated", ["other.md"])

        play(folder, scenario())

    def test_changed_settings_are_read_again(self, folder: Path) -> None:
        build(folder)

        def scenario() -> Scenario:
            event = yield
            (folder / "outcrop.toml").write_text('exclude = ["src/"]\n')
            event = yield
            while event.name != "updated":
                event = yield
            while found(folder, "beta"):
                event = yield

        play(folder, scenario())

    def test_settings_that_are_broken_meanwhile_are_waited_for(self, folder: Path) -> None:
        build(folder)

        def scenario() -> Scenario:
            event = yield
            (folder / "outcrop.toml").write_text("exclude = 3\n")
            event = yield
            while event.name != "gone":
                event = yield
            assert "exclude" in event.details["reason"]
            (folder / "outcrop.toml").unlink()
            event = yield
            assert event.name == "back"

        play(folder, scenario())

    def test_without_events_it_asks_again_and_again_and_says_so(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError("OS file watch limit reached.")

        monkeypatch.setattr(triggers, "RustNotify", refuse)
        build(folder)

        def scenario() -> Scenario:
            event = yield
            assert (event.details["how"], "limit" in event.details["reason"]) == ("polling", True)
            (folder / "a.md").write_text("# Okapi\n")
            event = yield
            assert (event.name, found(folder, "okapi")) == ("updated", ["a.md"])
            with outcrop.open(folder) as index:
                watcher = index.status().watcher
            assert watcher is not None
            assert (watcher.how, "max_user_watches" in str(watcher.reason)) == ("polling", True)

        play(folder, scenario())

    def test_a_custom_corpus_is_kept_current_where_the_settings_name_its_paths(self, folder: Path) -> None:
        (folder / "outcrop.toml").write_text('[corpora]\nmine = ["src/"]\n')
        with outcrop.open(folder) as index:
            index.build()
            index.build(corpus="mine")
            index.build(corpus="typed", paths=[folder / "a.md"])

        def scenario() -> Scenario:
            event = yield
            event = yield
            assert (event.name, event.details) == ("corpora", {"left_out": ["typed"]})
            (folder / "src" / "b.py").write_text("def eland():\n    return 3\n")
            event = yield
            assert event.name == "updated"
            with outcrop.open(folder) as index:
                assert [hit.path for hit in index.search("eland", corpus="mine", mode="keyword").hits] == ["src/b.py"]
                done = index.store.revisions()
                assert done["mine"] == done["code"] != done["typed"]

        play(folder, scenario())

    @pytest.mark.parametrize("inside", [True, False])
    def test_an_index_among_the_files_is_not_watched(self, folder: Path, tmp_path: Path, inside: bool) -> None:
        store = (folder if inside else tmp_path) / "my [index]*.sqlite"
        with outcrop.open(folder, settings={"store": store}) as index:
            index.build()

        def scenario() -> Scenario:
            yield
            (folder / "a.md").write_text("# Nyala\n")
            yield
            threading.Timer(1.0, lambda: (folder / "b.md").write_text("# Okapi\n")).start()
            event = yield
            # Nothing else happened meanwhile, although the index was written.
            assert (event.name, event.details["added"]) == ("updated", 1)
            with outcrop.open(folder, settings={"store": store}) as index:
                assert [hit.path for hit in index.search("okapi", mode="keyword").hits] == ["b.md"]
                assert index.status().watcher is not None

        play(folder, scenario(), store=store)
        assert [path.name for path in folder.rglob("*watch*")] == []

    def test_the_first_opening_must_work(self, tmp_path: Path) -> None:
        with pytest.raises(NotARepository):
            daemon.watch(lambda: outcrop.open(tmp_path / "nowhere"), print, no_display)
        (tmp_path / "outcrop.toml").write_text("exclude = 3\n")
        with pytest.raises(BadConfig):
            daemon.watch(lambda: outcrop.open(tmp_path), print, no_display)


class TestGit:
    def test_commits_branches_rebases_and_stashed_work(self, repository: Path) -> None:
        build(repository)

        def scenario() -> Scenario:
            event = yield
            assert event.details["source"] == "git"
            write(repository, {"c.md": "# Quagga\n"})
            event = yield
            assert found(repository, "quagga") == ["c.md"]
            commit(repository)
            await_change = git(repository, "rev-parse", "HEAD").decode().strip()
            # Committed content was indexed from disk already: nothing to tell, yet the revision follows.
            git(repository, "checkout", "-q", "-b", "side", "HEAD~1")
            event = yield
            assert (event.details["removed"], found(repository, "quagga")) == (1, [])
            write(repository, {"src/b.py": "def kudu():\n    return 2\n"})
            event = yield
            commit(repository)
            git(repository, "rebase", "-q", "main")
            event = yield
            while not (found_now(repository, "quagga") and found_now(repository, "kudu")):
                event = yield
            assert git(repository, "rev-parse", "HEAD~1").decode().strip() == await_change
            git(repository, "checkout", "-q", "main")
            event = yield
            assert (found(repository, "kudu"), found(repository, "beta")) == ([], ["src/b.py"])

        play(repository, scenario())

    def test_a_commit_that_only_moves_the_head(self, repository: Path) -> None:
        build(repository)
        with watched(repository) as process:
            process.await_event("watching")
            git(repository, "commit", "-q", "--allow-empty", "-m", "nothing")
            await_current(repository)

    def test_what_git_ignores_is_not_watched(self, repository: Path) -> None:
        write(repository, {".gitignore": "out/\n*.log\n", "out/x": "1", "deep/er/y.md": "1"})
        commit(repository)
        with outcrop.open(repository) as index:
            places = index.source.watch_paths()  # type: ignore[attr-defined]
        assert {str(Path(each).relative_to(repository)) for each in places.folders} == {".", "src", "deep", "deep/er"}
        own = repository / ".git"
        assert all(places.counts(str(own / name)) for name in ("HEAD", "index", "packed-refs", "refs/heads/main"))
        assert not any(
            places.counts(str(own / name)) for name in ("index.lock", "FETCH_HEAD", "refs/heads/main.lock", "outcrop")
        )
        assert not places.counts(str(own))

    def test_tracked_folders_count_where_they_are_and_not_where_they_are_not(self, repository: Path) -> None:
        write(repository, {"gone/x.md": "1", "node_modules/kept.js": "let a\n"})
        git(repository, "add", "-f", ".")
        git(repository, "commit", "-q", "-m", "all")
        shutil.rmtree(repository / "gone")
        with outcrop.open(repository) as index:
            trigger = triggers.make_trigger(index.source)
            assert trigger.how == "file events"
            (repository / "node_modules" / "kept.js").write_text("let b\n")
            assert trigger.wait(60.0, 0.0)
            trigger.close()

    def test_a_worktree_is_watched_beside_the_main_one(self, repository: Path, tmp_path: Path) -> None:
        linked = tmp_path / "linked"
        git(repository, "worktree", "add", "-q", str(linked), "-b", "side")
        build(repository)
        build(linked)
        with watched(repository) as main_one, watched(linked) as other:
            main_one.await_event("watching")
            other.await_event("watching")
            write(linked, {"c.md": "# Bongo\n"})
            commit(linked)
            other.await_event("updated")
            await_current(linked)
            assert (found(linked, "bongo"), found(repository, "bongo")) == (["c.md"], [])

    def test_a_bare_repository_follows_what_is_pushed(self, repository: Path, tmp_path: Path) -> None:
        bare = tmp_path / "bare.git"
        git(tmp_path, "clone", "-q", "--bare", str(repository), str(bare))
        git(repository, "remote", "add", "origin", str(bare))
        build(bare)

        def scenario() -> Scenario:
            event = yield
            write(repository, {"c.md": "# Dikdik\n"})
            commit(repository)
            git(repository, "push", "-q", "origin", "main")
            event = yield
            assert (event.name, found(bare, "dikdik")) == ("updated", ["c.md"])

        play(bare, scenario())

    def test_a_repository_that_stops_being_one_is_not_taken_for_a_folder(self, repository: Path) -> None:
        build(repository)

        def scenario() -> Scenario:
            event = yield
            (repository / ".git").rename(repository.parent / "git")
            (repository / "a.md").write_text("x")
            event = yield
            while event.name != "gone":
                event = yield
            assert event.details["reason"].startswith(f"{repository} (git) is {repository} (folder) now")
            (repository.parent / "git").rename(repository / ".git")
            event = yield
            assert event.name == "back"

        play(repository, scenario())
        assert not (repository / ".outcrop").exists()


def found_now(root: Path, question: str) -> bool:
    with outcrop.open(root) as index:
        return bool(index.search(question, mode="keyword").hits)


class TestFossil:
    def test_check_ins_wiki_and_a_moderators_approval(self, sample: SampleRepository, tmp_path: Path) -> None:
        repository = tmp_path / "zoo.fossil"
        shutil.copy(sample.repository, repository)
        fossil = Fossil(tmp_path)
        checkout = fossil.open(repository, "ck")
        build(checkout)

        def scenario() -> Scenario:
            event = yield
            assert (event.details["source"], "file" in event.details["how"]) == ("fossil", True)
            (checkout / "gerenuk.md").write_text("# Gerenuk\n")
            fossil.commit(checkout, "gerenuk")
            event = yield
            assert found(checkout, "gerenuk") == ["gerenuk.md"]
            fossil.run("wiki", "create", "Nilgai", "-R", repository, stdin="# Nilgai\n\nblue bull\n")
            event = yield
            assert found(checkout, "nilgai") == ["Nilgai"]
            # A private page becomes public, as when a moderator approves it: no new artifact, no new event.
            ((rid, uuid),) = query(repository, "SELECT rid, uuid FROM blob ORDER BY rid DESC LIMIT 1")
            query(repository, "INSERT INTO private VALUES (?)", rid)
            event = yield
            while found_now(checkout, "nilgai"):
                event = yield
            query(repository, "DELETE FROM private WHERE rid = ?", rid)
            event = yield
            assert (found(checkout, "nilgai"), bool(uuid)) == (["Nilgai"], True)

        play(checkout, scenario())

    def test_its_own_writing_wakes_it_once_and_no_more(self, sample: SampleRepository, tmp_path: Path) -> None:
        repository = tmp_path / "zoo.fossil"
        shutil.copy(sample.repository, repository)
        trigger = triggers.FilePolling(repository)
        assert not trigger.wait(0.1, 0.0)
        build(repository)
        assert trigger.wait(60.0, 0.0)
        assert not trigger.wait(0.3, 0.0)


class TestFailures:
    def test_a_dead_embedder_is_waited_for_and_status_says_so(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        port = free_port()
        settings = {"embedder": "endpoint", "endpoint_url": f"http://127.0.0.1:{port}/", "model": "m", "dim": 768}
        waits: list[float] = []

        def scenario() -> Scenario:
            event = yield
            event = yield
            while len(waits) < 2:
                assert event.name == "waiting"
                waits.append(event.details["seconds"])
                assert event.details["reason"].removesuffix(".") + ". Trying again in" in event.text
                with outcrop.open(folder, settings=settings) as index:
                    watcher = index.status().watcher
                assert watcher is not None
                assert (watcher.state, watcher.reason) == ("waiting", event.details["reason"])
                assert watcher.retry is not None
                assert main(["status", "-C", str(folder), *_flags(settings)]) == 0
                assert "which waits: " in capsys.readouterr().out
                # Words are indexed all the same.
                with outcrop.open(folder, settings=settings) as index:
                    assert index.search("alpha", mode="keyword").hits
                event = yield
            with listening(as_endpoint(HashEmbedder()), port=port):
                while event.name != "updated":
                    event = yield
                assert event.details["embedded"] == 2
                event = yield
                assert (event.name, event.text) == ("watching", "working again")

        play(folder, scenario(), **settings)
        assert waits == [0.2, 0.4]

    def test_text_does_not_leave_the_machine_unasked(self, folder: Path) -> None:
        # 192.0.2.1 is reserved for documentation.
        settings = {"embedder": "endpoint", "endpoint_url": "http://192.0.2.1/", "model": "m", "dim": 8}
        with pytest.raises(EgressRefused, match="there is no consent"):
            daemon.watch(lambda: outcrop.open(folder, settings=settings), lambda _: None, no_display)

    def test_an_address_that_the_repository_names_meanwhile_gets_nothing(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / "outcrop.toml").write_text('embedder = "hash"\n')
        build(folder)

        def scenario() -> Scenario:
            event = yield
            lines = ('embedder = "endpoint"', 'endpoint_url = "http://192.0.2.1/"', 'model = "m"', "dim = 8")
            (folder / "outcrop.toml").write_text("\n".join(lines))
            event = yield
            while event.name != "waiting":
                event = yield
            assert "192.0.2.1" in event.details["reason"]

        monkeypatch.delenv("OUTCROP_EMBEDDER")
        play(folder, scenario(), embedder=None)

    def test_a_manual_build_waits_for_a_watch(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        build(folder)
        with outcrop.open(folder) as watching:
            with watch_lock.claim(watching.store, "test"):
                held = threading.Event()

                def hold() -> None:
                    with watching.store.writing():
                        held.set()
                        time.sleep(0.3)

                holder = threading.Thread(target=hold)
                holder.start()
                held.wait()
                assert main(["index", str(folder)]) == 0
                holder.join()
            assert f"process {os.getpid()} watches this" in capsys.readouterr().err
            with watching.store.writing():
                assert main(["index", str(folder)]) == 1

    def test_another_process_that_builds_is_waited_for(self, folder: Path) -> None:
        build(folder)
        with outcrop.open(folder) as other:
            begin, held = threading.Event(), threading.Event()

            def scenario() -> Scenario:
                event = yield
                begin.set()
                held.wait()
                (folder / "a.md").write_text("# Impala\n")
                event = yield
                assert (event.name, found(folder, "impala")) == ("updated", ["a.md"])

            def hold() -> None:
                begin.wait()
                with other.store.writing():
                    held.set()
                    time.sleep(0.5)

            thread = threading.Thread(target=hold)
            thread.start()
            play(folder, scenario())
            thread.join()


def _flags(settings: dict[str, Any]) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


class TestProcesses:
    def test_a_second_watch_names_the_first_and_leaves(self, folder: Path) -> None:
        with watched(folder) as first:
            first.await_event("updated")
            run = subprocess.run(
                [sys.executable, "-m", "outcrop", "watch", str(folder)], capture_output=True, text=True, check=True
            )
            assert f"process {first.process.pid} has been watching this since" in run.stderr
            with outcrop.open(folder) as index:
                watcher = index.status().watcher
                assert watcher is not None
                assert (watcher.process, watcher.how) == (first.process.pid, "file events")
                # A manual build and an update beside it both work.
                index.build()
                result = update_once(index, lambda _: None, if_indexed=False)
            assert result.details == {
                "updated": False,
                "reason": f"process {first.process.pid} watches this and keeps it current",
            }
            assert first.stop() == (0, "outcrop: stopped; what was done is kept\n")
        with outcrop.open(folder) as index:
            assert index.status().watcher is None
        names = {each.name for each in (folder / ".outcrop").iterdir()}
        assert names <= {"index.sqlite", "index.sqlite.lock", "index.sqlite-wal", "index.sqlite-shm", ".gitignore"}

    def test_ctrl_c_leaves_a_healthy_index(self, folder: Path) -> None:
        with watched(folder) as process:
            process.await_event("updated")
            assert process.stop(signal.SIGINT)[0] == 130
        assert found(folder, "alpha") == ["a.md"]

    def test_a_process_that_was_stopped_for_a_while_catches_up(self, folder: Path) -> None:
        with watched(folder) as process:
            process.await_event("updated")
            process.process.send_signal(signal.SIGSTOP)
            (folder / "a.md").write_text("# Topi\n")
            time.sleep(0.2)
            process.process.send_signal(signal.SIGCONT)
            process.await_event("updated")
            assert found(folder, "topi") == ["a.md"]

    def test_the_note_of_a_killed_watch_is_ignored(self, folder: Path) -> None:
        with watched(folder) as process:
            process.await_event("updated")
            process.stop(signal.SIGKILL)
            with outcrop.open(folder) as index:
                assert index.status().watcher is None
        with watched(folder) as again:
            assert again.await_event("watching")["how"] == "file events"


def test_time_that_was_slept_through_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a laptop that sleeps, one clock stops and the other goes on; a failed update is then tried at once."""
    ahead = 0.0
    real = time.time
    monkeypatch.setattr(daemon, "LAST_RETRY", 1000.0)
    monkeypatch.setattr(daemon, "FIRST_RETRY", 1000.0)
    port = free_port()
    settings = {"embedder": "endpoint", "endpoint_url": f"http://127.0.0.1:{port}/", "model": "m", "dim": 768}

    def forward() -> None:
        nonlocal ahead
        ahead = 3600.0

    def scenario() -> Scenario:
        event = yield
        event = yield
        assert (event.name, event.details["seconds"]) == ("waiting", 1000.0)
        monkeypatch.setattr(daemon.time, "time", lambda: real() + ahead)
        with listening(as_endpoint(HashEmbedder()), port=port):
            threading.Timer(0.2, forward).start()
            event = yield
            assert event.name == "updated"

    play(folder, scenario(), **settings)


def test_once_leaves_alone_what_was_never_indexed(folder: Path) -> None:
    with outcrop.open(folder) as index:
        assert update_once(index, lambda _: None, if_indexed=True).details["reason"] == "there is no index yet"
        assert not index.store.exists
        assert update_once(index, lambda _: None, if_indexed=False).details["added"] == 2
        assert update_once(index, lambda _: None, if_indexed=True).text == "up to date"


def test_passages_without_a_vector_are_made_up_for_at_the_same_revision(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(folder)
    with sqlite3.connect(folder / ".outcrop" / "index.sqlite") as database:
        database.execute("DELETE FROM fx_vec_embedding WHERE chunk_id = (SELECT min(chunk_id) FROM fx_vec_embedding)")
    database.close()
    assert main(["status", "-C", str(folder)]) == 0
    assert "50 % complete → outcrop index" in capsys.readouterr().out
    with outcrop.open(folder) as index:
        done = update_once(index, lambda _: None, if_indexed=True).details
        assert (done["added"], done["embedded"]) == (0, 1)
        assert update_once(index, lambda _: None, if_indexed=True).text == "up to date"
    assert main(["status", "-C", str(folder)]) == 0
    assert "current" in capsys.readouterr().out


def test_once_waits_for_a_build_and_one_call_waits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(folder)
    (folder / "a.md").write_text("# Sitatunga\n")
    results: list[str] = []

    def call() -> None:
        with outcrop.open(folder) as index:
            results.append(update_once(index, lambda _: None, if_indexed=True).text)

    # The first has found that it must wait for the build before the second comes, which takes the place behind it.
    found_locked = threading.Event()

    def pause(_: float) -> None:
        found_locked.set()
        time.sleep(0.1)

    monkeypatch.setattr(once, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    threads = [threading.Thread(target=call) for _ in range(4)]
    with outcrop.open(folder) as other, other.store.writing():
        threads[0].start()
        assert found_locked.wait(60)
        for thread in threads[1:]:
            thread.start()
        deadline = time.monotonic() + 60
        while len(results) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert sum(text.startswith("another call waits") for text in results) == 2
    assert sum(text.startswith("current to") for text in results) == 1
    assert found(folder, "sitatunga") == ["a.md"]


def test_a_note_that_is_no_note_is_passed_over(folder: Path) -> None:
    build(folder)
    with outcrop.open(folder) as index, watch_lock.claim(index.store, "test") as heartbeat:
        assert heartbeat is not None
        note = folder / ".outcrop" / "index.sqlite.watch.json"
        assert json.loads(note.read_text())["how"] == "test"
        for broken in ("", "[]", '{"process": 1}', "{"):
            note.write_text(broken)
            assert watch_lock.read(index.store) is None


def test_a_history_goes_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``benchmarks/replay.py`` in small: the whole of it runs for minutes."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import replay  # type: ignore[import-not-found]

    source = make_repository(tmp_path / "source", {f"m{number}.py": definition(number, 0) for number in range(8)})
    for turn in range(1, 21):
        write(source, {f"m{turn % 8}.py": definition(turn % 8, turn), f"doc/{turn}.md": f"# Round {turn}\n"})
        if turn % 5 == 0:
            (source / f"doc/{turn - 2}.md").unlink()
            (source / f"m{(turn + 3) % 8}.py").rename(source / f"renamed{turn}.py")
        commit(source, f"round {turn}")
    outcome = replay.replay_git(source, tmp_path, 20, "hash", 1, pause=0.1)
    assert (outcome.asked.failures, outcome.lies, outcome.differences) == ([], [], 0)
    assert (outcome.commits, outcome.updates > 5, outcome.asked.answers > 5) == (26, True, True)


def definition(number: int, turn: int) -> str:
    return f"def parse_{number}(argument):\n    '''Round {turn}.'''\n    raise ValueError({turn})\n"

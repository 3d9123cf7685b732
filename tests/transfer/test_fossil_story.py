"""A Fossil repository as corpus and store at once: indexed, rebuilt, cloned, imported, changed, withdrawn."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from fossil_program import SampleRepository, build_sample_repository, query, serving
from travel import Counting

import outcrop
from outcrop.app.index import Index
from outcrop.core.model import Hit, Kind, Mode
from outcrop.core.protocols import Matrix
from outcrop.transfer.fossil.unversioned import FossilTransfer


@contextmanager
def opened(path: Path, embedder: Counting | None = None, **more: str) -> Iterator[Index]:
    with outcrop.open(path, settings={"embedder": "hash"}, **more) as index:  # type: ignore[arg-type]
        index.embedder = embedder or Counting()
        yield index


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "HOME", "FOSSIL_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


@pytest.fixture
def copy(sample: SampleRepository, tmp_path: Path) -> Path:
    return sample.copy(tmp_path)


QUESTIONS = {
    Kind.DOC: "all animals of the zoo",
    Kind.CODE: "renamed",
    Kind.INSTRUCTION: "feed them",
    Kind.WIKI: "lions at seven",
    Kind.TECHNOTE: "we opened the gates",
    Kind.TICKET: "wood was ordered",
    Kind.FORUM: "with a fork",
}


def ask(index: Index) -> dict[Kind, list[Hit]]:
    """Every question of its kind, by meaning."""
    found = {}
    for kind, question in QUESTIONS.items():
        answer = index.search(question, kind=kind, mode="semantic", k=5)
        assert (answer.mode, answer.reason, answer.stale) == (Mode.SEMANTIC, None, None)
        found[kind] = list(answer.hits)
    return found


def best(found: dict[Kind, list[Hit]]) -> dict[Kind, tuple[str | None, str]]:
    return {kind: (hits[0].path, hits[0].text) for kind, hits in found.items()}


def same(one: dict[Kind, list[Hit]], other: dict[Kind, list[Hit]]) -> bool:
    def frozen(found: dict[Kind, list[Hit]]) -> list[tuple[object, ...]]:
        return [
            (hit.kind, hit.project, hit.path, hit.hash, hit.text, hit.lines, hit.name)
            for hits in found.values()
            for hit in hits
        ]

    scores = [[hit.score for hits in found.values() for hit in hits] for found in (one, other)]
    return frozen(one) == frozen(other) and scores[0] == pytest.approx(scores[1], abs=1e-6)


def tables(repository: Path) -> dict[str, int]:
    names = [
        row[0] for row in query(repository, "SELECT name FROM sqlite_master WHERE name GLOB 'fx_*' AND type = 'table'")
    ]
    return {name: query(repository, f"SELECT count(*) FROM {name}")[0][0] for name in sorted(names)}


def test_the_whole_story(tmp_path: Path) -> None:
    zoo = build_sample_repository(tmp_path)
    fossil, repository = zoo.fossil, zoo.repository

    embedder = Counting()
    with opened(zoo.checkout / "src", embedder) as index:
        report = index.build()
        assert report.embedded == len(embedder.texts) == report.chunks > 20
        assert report.shared == 14
        first = ask(index)
    assert best(first) == {
        Kind.DOC: ("README.md", "# Zoo\n\nAll animals."),
        Kind.CODE: ("src/new_name.py", "def renamed():\n    pass"),
        Kind.INSTRUCTION: ("AGENTS.md", "Feed them."),
        Kind.WIKI: ("Feeding times", "# Lions\n\nAt seven."),
        Kind.TECHNOTE: (zoo.technote, "# Opening day\n\nWe opened the gates."),
        Kind.TICKET: (None, "Wood was ordered."),
        Kind.FORUM: (None, "With a fork."),
    }
    assert first[Kind.DOC][0].paths == ("README.md", "copy.md")
    assert (first[Kind.TICKET][0].hash, first[Kind.TICKET][0].name) == (zoo.ticket, "Fence \\ is broken")
    assert query(repository, "SELECT model, dim, last_ckout FROM fx_vec_state") == [("hash", 768, zoo.tip)]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("zoo")) == ["zoo", "zoo.fossil"]

    before = tables(repository)
    fossil.run("rebuild", "--vacuum", repository)
    assert tables(repository) == before
    with opened(repository) as index:
        assert same(ask(index), first)
        report = index.build()
        assert (report.embedded, report.added, report.shared, report.withdrawn) == (0, 0, 0, 0)

    clone = tmp_path / "clone.fossil"
    with serving(fossil, repository) as url:
        fossil.run("clone", "--unversioned", url, clone)
        assert tables(clone) == {}
        refusing = Counting(refuse=True)
        with opened(clone, refusing) as index:
            imported = index.import_blobs()
            assert (imported.imported, imported.missing, imported.stale, imported.refused) == (report.chunks, 0, 0, ())
            assert same(ask(index), first)
            again = index.build()
            assert (again.embedded, again.shared, again.withdrawn) == (0, 0, 0)
        assert refusing.texts == []

        _change_everything(zoo)
        changing = Counting()
        with opened(repository, changing) as index:
            report = index.build()
            moved = best(ask(index))
        assert sorted(changing.texts) == [
            "# Bears\n\nAsleep since noon.",
            "# Zoo\n\nNearly all animals.",
            "Fence \\ is broken\nNails were missing.",
        ]
        assert report.embedded == 3
        assert moved[Kind.DOC][0] in ("README.md", "copy.md")
        assert query(repository, "SELECT path FROM fx_vec_chunk WHERE text = 'from the side'") == [("aside.md",)]

        served, cloned = FossilTransfer(repository), FossilTransfer(clone)
        gone = cloned.names() - served.names()
        assert len(gone) == 2
        assert report.withdrawn == 2
        assert query(repository, "SELECT count(*) FROM unversioned WHERE hash IS NULL") == [(2,)]
        fossil.run("pull", url, "-R", clone)
        fossil.run("uv", "sync", url, "-R", clone)
        assert cloned.names() == served.names()
        with opened(clone, refusing) as index:
            imported = index.import_blobs()
            assert (imported.imported, imported.missing) == (3, 0)
            assert best(ask(index)) == moved
    for each in (repository, clone):
        assert "database integrity-check: ok" in fossil.run("test-integrity", "-R", each)


def _change_everything(zoo: SampleRepository) -> None:
    """Change a file, rename another, delete a third, edit a page, add a comment."""
    fossil, checkout = zoo.fossil, zoo.checkout
    fossil.run("update", zoo.tip, cwd=checkout)
    (checkout / "README.md").write_text("# Zoo\n\nNearly all animals.\n")
    fossil.run("mv", "--hard", "side.md", "aside.md", cwd=checkout)
    fossil.run("rm", "--hard", "docs/with space.md", cwd=checkout)
    fossil.commit(checkout, "changed", "--allow-fork")
    fossil.run("wiki", "commit", "Plain", "-", "-R", zoo.repository, stdin="# Bears\n\nAsleep since noon.\n")
    fossil.run("ticket", "set", zoo.ticket, "icomment", "Nails were missing.", "-R", zoo.repository)


@pytest.mark.parametrize("way", ["build", "export", "broken"])
def test_what_others_made_of_what_has_not_arrived_here_stays(
    sample: SampleRepository, copy: Path, tmp_path: Path, way: str
) -> None:
    (tmp_path / "there").mkdir()
    bob = sample.copy(tmp_path / "there")
    for place in (copy, bob):
        with opened(place) as index:
            index.build()
            (old,) = {hit.hash for hit in index.search("bears", kind="wiki", k=50).hits if hit.path == "Plain"}
    sample.fossil.run("wiki", "create", "Bob", "-", "-R", bob, stdin="Bob was here.\n")
    with opened(bob) as index:
        assert index.build().shared == 1
    (theirs,) = FossilTransfer(bob).names() - FossilTransfer(copy).names()
    blob = FossilTransfer(bob).read(theirs)
    assert isinstance(blob, bytes)
    FossilTransfer(copy).replace({theirs: blob}, [])
    sample.fossil.run("wiki", "commit", "Plain", "-", "-R", copy, stdin="New words.\n")
    with opened(copy, Broken() if way == "broken" else None) as index:
        if way == "broken":
            with pytest.raises(outcrop.EmbedderUnavailable):
                index.build()
        elif way == "build":
            assert index.build().withdrawn == 1
        else:
            index.export()
    names = FossilTransfer(copy).names()
    assert theirs in names
    assert f"vec/{old}.bin" not in names


class Broken(Counting):
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        raise outcrop.EmbedderUnavailable("out of order", "Wait")


class TestWhatIsWithdrawn:
    def test_it_is_not_shown_before_the_next_build_and_gone_after(self, sample: SampleRepository, copy: Path) -> None:
        with opened(copy) as index:
            index.build()
            hits = {kind: ask(index)[kind][0] for kind in (Kind.WIKI, Kind.CODE, Kind.TECHNOTE)}
            query(copy, "INSERT INTO shun VALUES (?, 0, '')", hits[Kind.WIKI].hash)
            private = "INSERT INTO private SELECT rid FROM blob WHERE uuid = ?"
            query(copy, private, hits[Kind.CODE].hash)
            query(copy, "DELETE FROM blob WHERE uuid = ?", hits[Kind.TECHNOTE].hash)
            gone = {hit.hash for hit in hits.values()}
            for mode in ("semantic", "hybrid", "keyword"):
                for kind, question in QUESTIONS.items():
                    answer = index.search(question, kind=kind, mode=mode, k=50)
                    assert not gone & {hit.hash for hit in answer.hits}, (mode, kind)
            stored = "SELECT DISTINCT hash FROM fx_vec_chunk"
            assert gone <= {row[0] for row in query(copy, stored)}
            report = index.build()
            assert report.withdrawn == 3
            assert not gone & {row[0] for row in query(copy, stored)}
            assert not {f"vec/{key}.bin" for key in gone} & FossilTransfer(copy).names()

    def test_a_model_that_fails_does_not_keep_it_public(self, sample: SampleRepository, copy: Path) -> None:
        with opened(copy) as index:
            index.build()
            wiki = ask(index)[Kind.WIKI][0].hash
        query(copy, "INSERT INTO shun VALUES (?, 0, '')", wiki)
        sample.fossil.run("wiki", "commit", "Plain", "-", "-R", copy, stdin="New words.\n")
        with opened(copy, Broken()) as index:
            with pytest.raises(outcrop.EmbedderUnavailable):
                index.build()
            assert f"vec/{wiki}.bin" not in FossilTransfer(copy).names()

    def test_a_build_that_is_stopped_leaves_nothing_of_it(
        self, sample: SampleRepository, copy: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with opened(copy) as index:
            index.build()
            wiki = ask(index)[Kind.WIKI][0].hash
            query(copy, "DELETE FROM blob WHERE uuid = ?", wiki)
            monkeypatch.setattr("outcrop.transfer.sync.export", _stop)
            with pytest.raises(KeyboardInterrupt):
                index.build()
        assert f"vec/{wiki}.bin" not in FossilTransfer(copy).names()

    def test_a_changed_ticket_is_shared_anew_after_a_build_that_was_stopped(
        self, sample: SampleRepository, copy: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with opened(copy) as index:
            index.build()
            sample.fossil.run("ticket", "set", sample.ticket, "comment", "Only this is left.", "-R", copy)
            monkeypatch.setattr("outcrop.transfer.sync.export", _stop)
            with pytest.raises(KeyboardInterrupt):
                index.build()
            monkeypatch.undo()
            assert index.build().shared == 1
        blob = FossilTransfer(copy).read(f"vec/{sample.ticket}.bin")
        assert isinstance(blob, bytes)
        assert b"Only this is left." in blob
        assert b"Wood was ordered." not in blob


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


class TestWarnings:
    def test_who_reads_the_index_through_ticket_reports(
        self, sample: SampleRepository, copy: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        sample.fossil.run("user", "new", "carol", "", "secret", "-R", copy)
        sample.fossil.run("user", "capabilities", "carol", "t", "-R", copy)
        sample.fossil.run("user", "capabilities", "nobody", "", "-R", copy)
        with caplog.at_level(logging.WARNING, "outcrop"), opened(copy) as index:
            index.build()
        (message,) = [record.getMessage() for record in caplog.records if "carol" in record.getMessage()]
        assert "capability t" in message
        assert "code, doc, forum" in message

    def test_a_push_that_moved_nothing(
        self, sample: SampleRepository, copy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        fossil = sample.fossil
        with opened(copy) as index:
            index.build()
        for name, capabilities in (("dan", "gio"), ("eve", "gioy")):
            fossil.run("user", "new", name, "", "secret", "-R", copy)
            fossil.run("user", "capabilities", name, capabilities, "-R", copy)
        clone = tmp_path / "clone.fossil"
        with serving(fossil, copy) as url:
            fossil.run("clone", "--unversioned", url, clone)
            FossilTransfer(clone).replace({"vec/space.json": b"{}"}, [])
            dan, eve = (url.replace("//", f"//{name}:secret@") for name in ("dan", "eve"))
            with opened(clone) as index, caplog.at_level(logging.WARNING, "outcrop"):
                moved = index.push(dan)
                assert (moved.sent, moved.refused) == (0, True)
                assert "capability y" in caplog.text
                caplog.clear()
                moved = index.push(eve)
                assert (moved.sent, moved.received, moved.refused) == (1, 0, False)
                assert caplog.text == ""
        assert FossilTransfer(copy).read("vec/space.json") == b"{}"

    def test_without_the_program_only_what_needs_it_fails(
        self, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with opened(copy) as index:
            assert index.build().complete
            assert ask(index)
            with pytest.raises(outcrop.StoreError, match=r"fossil is not installed.*apt-get install fossil"):
                index.push()


def test_an_export_into_the_repository_itself_does_what_a_build_does(copy: Path) -> None:
    with opened(copy) as index:
        index.build()
        transfer = FossilTransfer(copy)
        before = dict(transfer.read_all())
        transfer.replace({}, before)
        report = index.export()
        assert (report.artifacts, report.written, report.where) == (14, 14, str(copy))
        assert dict(transfer.read_all()) == before
        assert index.export().written == 0


def test_another_branch(sample: SampleRepository, copy: Path) -> None:
    with opened(copy, branch="side") as index:
        index.build()
        answer = index.search("on the branch", kind="code", k=1)
        assert answer.stale is None
    assert query(copy, "SELECT last_ckout FROM fx_vec_state") == [(sample.branch_tip,)]
    with pytest.raises(outcrop.UsageError, match="no --branch"):
        outcrop.open(sample.fossil.home.parent, branch="side")

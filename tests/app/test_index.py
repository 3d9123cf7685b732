"""Building and asking, through the public API, on real folders and real git repositories."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from repositories import commit, git, make_repository, write

import outcrop
from outcrop.core.model import SkipReason
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from outcrop.errors import EmbedderUnavailable

ALPHA = '''
def open_valve(pressure):
    """Let the steam out of the boiler before it bursts."""
    while pressure > 9:
        pressure = release(pressure)
    return pressure
'''
BETA = '''
def close_ledger(year):
    """Sum every account and lock the books of a year."""
    total = sum(account.balance for account in accounts(year))
    lock(year, total)
    return total
'''
GAMMA = '''
def paint_fence(colour):
    """Cover all boards with two coats."""
    for board in boards():
        board.coat(colour)
        board.coat(colour)
'''
GUIDE = "# Guide\n\nHow to sharpen scissors with a whetstone and some patience.\n"


class Counting(HashEmbedder):
    """The hash embedder, with a record of what went through it."""

    def __init__(self) -> None:
        super().__init__(64)
        self.passages: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.passages += texts
        return super().embed_passages(texts)


class Broken(HashEmbedder):
    """An embedder that works for a while."""

    def __init__(self, texts: int) -> None:
        super().__init__(64)
        self.left = texts

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.left -= len(texts)
        if self.left < 0:
            raise EmbedderUnavailable("the model fell over", "Pick it up")
        return super().embed_passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        raise EmbedderUnavailable("the model fell over", "Pick it up")


Opener = Callable[..., outcrop.Index]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Open with a counting embedder, away from this machine's own settings."""

    def open_counting(root: Path, embedder: HashEmbedder | None = None, **more: object) -> outcrop.Index:
        index = outcrop.open(root, settings={"embedder": "hash"}, **more)  # type: ignore[arg-type]
        index.embedder = embedder or Counting()
        return index

    return open_counting


def passages(index: outcrop.Index) -> list[str]:
    assert isinstance(index.embedder, Counting)
    return index.embedder.passages


def paths(index: outcrop.Index, query: str, **more: object) -> list[str | None]:
    return [hit.path for hit in index.search(query, **more).hits]  # type: ignore[arg-type]


@pytest.fixture(params=["folder", "git"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {"plant/boiler.py": ALPHA + BETA, "garden.py": GAMMA, "docs/guide.md": GUIDE}
    if request.param == "git":
        return make_repository(tmp_path / "works", files)
    write(tmp_path / "works", files)
    return tmp_path / "works"


def save(root: Path, message: str = "change") -> None:
    if (root / ".git").exists():
        commit(root, message)


def test_a_question_finds_its_passage_with_everything_that_a_hit_names(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        report = index.build()
        answer = index.search("let steam out before it bursts", k=1)
    assert (report.added, report.unchanged, report.removed, report.complete) == (3, 0, 0, True)
    assert report.chunks == report.embedded
    (hit,) = answer.hits
    assert (answer.mode, answer.reason, answer.stale, answer.space) == ("hybrid", None, None, "hash-64-64")
    assert (hit.path, hit.kind, hit.project, hit.name) == ("plant/boiler.py", "code", "", "open_valve")
    assert hit.text.strip() == ALPHA.strip()
    assert hit.lines == (2, 6)
    assert hit.preview == '"""Let the steam out of the boiler before it bursts."""'
    assert (hit.paths, hit.corpus, hit.mode, hit.cell) == (("plant/boiler.py",), ("code",), "hybrid", None)
    assert 0 < hit.score <= 1
    data = (root / "plant/boiler.py").read_bytes()
    known = {40: git(root, "hash-object", "plant/boiler.py").decode().strip()} if len(hit.hash) == 40 else {}
    assert hit.hash == known.get(len(hit.hash), __import__("hashlib").sha3_256(data).hexdigest())


def test_an_unchanged_tree_does_nothing(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
    with opened(root) as index:
        report = index.build()
        assert (report.added, report.unchanged, report.removed, report.embedded) == (0, 3, 0, 0)
        assert passages(index) == []


def test_editing_one_function_embeds_one_chunk(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
    write(root, {"plant/boiler.py": ALPHA + BETA.replace("lock(year, total)", "publish(year, total)")})
    with opened(root) as index:
        report = index.build()
        assert (report.added, report.embedded, report.reused) == (1, 1, 1)
        assert len(passages(index)) == 1
        assert "publish(year, total)" in passages(index)[0]
        assert all("lock(year" not in hit.text for hit in index.search("lock year total").hits)
        assert paths(index, "publish", mode="keyword") == ["plant/boiler.py"]


def test_renaming_embeds_nothing(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
    (root / "yard").mkdir()
    (root / "garden.py").rename(root / "yard/fence.py")
    save(root)
    with opened(root) as index:
        report = index.build()
        assert (report.embedded, passages(index)) == (0, [])
        assert paths(index, "paint boards two coats", k=1) == ["yard/fence.py"]
        assert paths(index, "yard", mode="keyword") == ["yard/fence.py"]


def test_deleted_passages_no_longer_answer(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
    (root / "garden.py").unlink()
    save(root)
    with opened(root) as index:
        before = index.search("paint boards two coats")
        assert before.stale is not None
        assert before.stale.indexed != before.stale.current
        report = index.build()
        assert (report.removed, report.embedded) == (1, 0)
        assert "garden.py" not in paths(index, "paint boards two coats")
        assert paths(index, "fence", mode="keyword") == []
        assert index.search("anything").stale is None


def test_two_copies_are_stored_once_and_name_both_paths(root: Path, opened: Opener) -> None:
    shutil.copy(root / "garden.py", root / "copy.py")
    save(root)
    with opened(root) as index:
        report = index.build()
        assert report.chunks == len(passages(index)) == 4
        (hit,) = index.search("paint boards two coats", k=1).hits
        assert hit.paths == ("copy.py", "garden.py")
        assert index.search("paint", path="garden.py", k=1).hits[0].path == "garden.py"
    (root / "copy.py").unlink()
    save(root)
    with opened(root) as index:
        assert index.build().embedded == 0
        assert index.search("paint boards two coats", k=1).hits[0].paths == ("garden.py",)


def test_the_same_function_in_two_files_is_embedded_once(root: Path, opened: Opener) -> None:
    write(root, {"other.py": BETA + ALPHA})
    with opened(root) as index:
        report = index.build()
        assert report.chunks == 6
        assert len(passages(index)) == 4


def test_a_build_that_fails_keeps_what_it_has_and_goes_on(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outcrop.indexing.build.EMBED_TEXTS", 10)
    monkeypatch.setattr("outcrop.indexing.build.REPORT_SECONDS", 0)
    root = tmp_path / "many"
    write(root, {f"{n:02}.py": ALPHA.replace("valve", f"valve_{n}") for n in range(35)})
    with opened(root, Broken(25)) as index, pytest.raises(EmbedderUnavailable, match="fell over"):
        index.build()
    with opened(root) as index:
        answer = index.search("steam boiler valve_33", k=3)
        assert (answer.mode, answer.reason) == ("hybrid", "index 57 % complete")
        assert "33.py" in [hit.path for hit in answer.hits]
        assert answer.stale is not None
        assert index.status().complete == pytest.approx(20 / 35)
        assert index.status().revision is None
        passages(index).clear()
        report = index.build()
        assert len(passages(index)) == report.embedded == 15
        assert report.complete
        assert index.search("steam").reason is None


def test_an_embedder_that_fails_on_the_question_leaves_the_words(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
    with opened(root, Broken(0)) as index:
        answer = index.search("sharpen scissors", min_score=0.9)
    assert answer.mode == "keyword"
    assert answer.reason is not None
    assert answer.reason.startswith("the model fell over. Pick it up")
    assert "min_score was ignored" in answer.reason
    assert [hit.path for hit in answer.hits] == ["docs/guide.md"]
    assert (answer.hits[0].score, answer.hits[0].mode, answer.space) == (1.0, "keyword", None)


def test_another_space_falls_back_until_it_is_indexed(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
    with outcrop.open(root, settings={"embedder": "hash", "dim": 32}) as index:
        answer = index.search("sharpen scissors")
        assert answer.mode == "keyword"
        assert (
            answer.reason == "the index holds vectors of hash-64-64, but the embedder is hash-32-32. Run: outcrop index"
        )
        assert answer.hits[0].path == "docs/guide.md"
        assert index.build().embedded == 4
        assert index.search("sharpen scissors").mode == "hybrid"
        assert [space.space for space in index.status().spaces] == ["hash-32-32", "hash-64-64"]
    with opened(root) as index:
        assert index.build().embedded == 0
        assert index.search("sharpen scissors").space == "hash-64-64"


def test_without_an_index_the_files_answer_and_nothing_is_written(root: Path, opened: Opener) -> None:
    before = sorted(path for path in root.rglob("*"))
    with opened(root) as index:
        answer = index.search("sharpen scissors")
        assert answer.mode == "keyword"
        assert answer.reason is not None
        assert answer.reason.startswith("there is no index yet")
        assert "outcrop index (about 1 s)" in answer.reason
        assert [(hit.path, hit.mode) for hit in answer.hits] == [("docs/guide.md", "keyword")]
        assert paths(index, "steam", kind="doc") == []
        assert paths(index, "steam", corpus="code", path="plant/") == ["plant/boiler.py"]
        with pytest.raises(outcrop.UnknownKind, match="There is: code, doc"):
            index.search("steam", kind="wiki")
        assert passages(index) == []
    assert sorted(path for path in root.rglob("*")) == before


def test_filters_name_what_exists(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        assert set(paths(index, "steam ledger fence scissors", kind=["doc"])) == {"docs/guide.md"}
        assert set(paths(index, "steam ledger fence scissors", corpus="code")) == {"plant/boiler.py", "garden.py"}
        assert set(paths(index, "steam ledger fence scissors", path="plant/**")) == {"plant/boiler.py"}
        own = index.search("steam", project=index.source.project)
        assert own.hits == index.search("steam", project="").hits != ()
        with pytest.raises(outcrop.UnknownKind, match="There is: code, doc"):
            index.search("x", kind="wiki")
        with pytest.raises(outcrop.UnknownKind, match="there is no kind 'cod'"):
            index.search("x", kind="cod")
        with pytest.raises(outcrop.UnknownCorpus, match="There is: code, docs"):
            index.search("x", corpus="notes")
        with pytest.raises(outcrop.UnknownProject, match="this one"):
            index.search("x", project="peer")
        with pytest.raises(outcrop.UsageError, match="empty"):
            index.search("  ")
        with pytest.raises(outcrop.UsageError, match="at least 1"):
            index.search("x", k=0)
        with pytest.raises(outcrop.UsageError, match="hybrid"):
            index.search("x", mode="fuzzy")


def test_modes_and_the_floor(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        semantic = index.search("steam boiler bursts", mode="semantic")
        scores = [hit.score for hit in semantic.hits]
        assert semantic.mode == "semantic"
        assert scores == sorted(scores, reverse=True)
        assert {hit.mode for hit in semantic.hits} == {"semantic"}
        floor = index.search("steam boiler bursts", mode="hybrid", min_score=scores[0] - 1e-6)
        assert [hit.score for hit in floor.hits] == [scores[0]]
        words = index.search("steam bursts", mode="keyword")
        assert (words.mode, words.reason) == ("keyword", None)
        assert [hit.path for hit in words.hits] == ["plant/boiler.py"]


def test_the_same_passage_scores_one(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        (text,) = [text for text in passages(index) if "scissors" in text]
        (hit,) = index.search(text, mode="semantic", k=1).hits
        assert hit.score == pytest.approx(1.0, abs=1e-6)


def test_a_dry_run_says_what_would_go_where_and_does_nothing(root: Path, opened: Opener) -> None:
    write(root, {"logo.bin": b"\0\1\2\3"})
    with opened(root) as index:
        plan = index.plan()
        assert [ref.path for ref in plan.artifacts] == ["docs/guide.md", "garden.py", "plant/boiler.py"]
        assert (plan.new, plan.texts, plan.space, plan.address) == (3, 4, "hash-64-64", None)
        assert [(item.path, item.reason) for item in plan.skipped] == [("logo.bin", SkipReason.BINARY)]
        assert not index.status().exists
        assert passages(index) == []
        index.build()
        assert plan.characters == sum(map(len, passages(index)))
        after = index.plan()
        assert (after.new, after.texts, after.characters) == (0, 0, 0)
        assert [item.path for item in after.skipped] == ["logo.bin"]


def test_notebook_cells_go_to_two_corpora(tmp_path: Path, opened: Opener) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Scaling\n", "Why columns must share one range."]},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [{"x": "y" * 5000}],
            "source": "scaler.fit_transform(columns)",
        },
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    root = tmp_path / "books"
    write(root, {"scale.ipynb": json.dumps(book), "broken.ipynb": '{"cells": [', "plain.py": GAMMA})
    with opened(root) as index:
        report = index.build()
        assert [(item.path, item.reason) for item in report.skipped] == [("broken.ipynb", SkipReason.BROKEN)]
        (prose,) = index.search("share one range", corpus="docs").hits
        (code,) = index.search("scaler", corpus="code", k=1).hits
        assert (prose.kind, prose.cell, prose.path, prose.corpus) == ("doc", 0, "scale.ipynb", ("docs",))
        assert (code.kind, code.cell, code.text) == ("code", 1, "scaler.fit_transform(columns)")
        assert not any("yyyy" in text for text in passages(index))
    (root / "scale.ipynb").unlink()
    with opened(root) as index:
        index.build()
        assert set(paths(index, "scaling columns range scaler fit", mode="keyword")) == set()


def test_two_worktrees_share_vectors_and_keep_apart(tmp_path: Path, opened: Opener) -> None:
    main = make_repository(tmp_path / "main", {"boiler.py": ALPHA, "garden.py": GAMMA})
    side = tmp_path / "side"
    git(main, "worktree", "add", "-q", "-b", "feature", str(side))
    write(side, {"ledger.py": BETA})
    (side / "garden.py").unlink()
    commit(side)
    with opened(main) as first:
        assert first.build().embedded == 2
        with opened(side) as second:
            report = second.build()
            assert (report.embedded, report.added) == (1, 1)
            assert [text.count("close_ledger") for text in passages(second)] == [1]
            question = "steam boiler ledger books paint fence"
            assert set(paths(second, question)) == {"boiler.py", "ledger.py"}
            assert set(paths(first, question)) == {"boiler.py", "garden.py"}
            assert set(paths(first, question, mode="keyword")) == {"boiler.py", "garden.py"}
            assert first.build().embedded == 0
            assert first.status().store == second.status().store
    git(main, "worktree", "remove", "--force", str(side))
    with opened(main) as first:
        write(main, {"new.py": "x = 1\n"})
        first.build()
        assert paths(first, "ledger", mode="keyword") == []
        database = sqlite3.connect(first.status().store)
        assert database.execute("SELECT count(*) FROM fx_vec_chunk WHERE text LIKE '%ledger%'").fetchone() == (0,)
        database.close()


def test_a_commit_can_be_indexed_beside_the_working_tree(tmp_path: Path, opened: Opener) -> None:
    root = make_repository(tmp_path / "main", {"boiler.py": ALPHA, "garden.py": GAMMA})
    (root / "garden.py").unlink()
    commit(root)
    with opened(root) as now, opened(root, rev="HEAD~1") as then:
        now.build()
        # Indexing the working tree again would not help.
        earlier = git(root, "rev-parse", "HEAD~1").decode()
        assert f"Run: outcrop index --rev {earlier[:12]} (" in (then.search("paint fence").reason or "")
        assert then.build().embedded == 1
        assert "garden.py" in paths(then, "paint fence")
        assert "garden.py" not in paths(now, "paint fence")
    with pytest.raises(outcrop.OutcropError, match="no-such-commit"):
        opened(root, rev="no-such-commit")


@pytest.mark.parametrize("state", ["empty folder", "unborn repository", "nothing but blanks"])
def test_nothing_to_index(tmp_path: Path, opened: Opener, state: str) -> None:
    root = tmp_path / "void"
    root.mkdir()
    if state == "unborn repository":
        git(root, "init", "-q")
    elif state == "nothing but blanks":
        write(root, {"a.py": "", "b.md": " \n\n\t\n"})
    with opened(root) as index:
        report = index.build()
        assert (report.chunks, report.complete) == (0, True)
        answer = index.search("anything")
        assert answer.hits == ()
        assert index.build().added == 0


def test_bad_files_are_named_and_stop_nothing(tmp_path: Path, opened: Opener) -> None:
    root = tmp_path / "bad"
    write(
        root,
        {
            "good.py": GAMMA,
            "no-newline.md": "the last line about walnuts has no end",
            "utf16.txt": "Preußen und Küste".encode("utf-16"),
            "latin1.txt": "déjà vu, à la carte, très bientôt, forêt".encode("latin-1"),
            "binary.py": b"x = 1\n" + bytes(range(256)) * 20,
            "huge.log": b"line of a log\n" * 200_000,
            "oneline.js": "var a=1;" * 120_000,
            "surrogates.py": b"text = '\xed\xa0\x80'\n",
            "deep/" * 200 + "leaf.py": "needle_in_the_deep = 1\n",
        },
    )
    (root / "loop").symlink_to(root, target_is_directory=True)
    os.mkfifo(root / "pipe")
    with opened(root) as index:
        report = index.build()
        reasons = {item.path: item.reason for item in report.skipped}
        assert reasons["binary.py"] is SkipReason.BINARY
        assert reasons["huge.log"] is SkipReason.OVERSIZE
        assert reasons["oneline.js"] is SkipReason.MINIFIED
        assert reasons["loop"] is SkipReason.SYMLINK
        assert reasons["pipe"] is SkipReason.NOT_A_FILE
        assert paths(index, "walnuts", mode="keyword") == ["no-newline.md"]
        assert paths(index, "Küste", mode="keyword") == ["utf16.txt"]
        assert paths(index, "forêt", mode="keyword") == ["latin1.txt"]
        assert paths(index, "needle_in_the_deep", mode="keyword", k=1) == ["deep/" * 200 + "leaf.py"]
        assert list(report.skipped) == list(index.status().skipped)
        again = index.build()
        assert again.skipped == report.skipped
        assert again.added == 0


def test_a_file_that_goes_away_during_the_build(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few files would all be read before the first one is cut.
    monkeypatch.setattr("outcrop.chunking.workers.pool.AHEAD", 0)
    root = tmp_path / "moving"
    write(root, {f"{n:03}.py": ALPHA.replace("valve", f"valve_{n}") for n in range(40)})
    with opened(root) as index:

        def remove(progress: outcrop.Progress) -> None:
            if progress.phase == "chunking":
                (root / "039.py").unlink(missing_ok=True)

        report = index.build(progress=remove)
        assert [(item.path, item.reason) for item in report.skipped] == [("039.py", SkipReason.VANISHED)]
        assert report.chunks == 39


def test_ctrl_c_while_embedding_keeps_what_was_made(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outcrop.indexing.build.EMBED_TEXTS", 10)
    monkeypatch.setattr("outcrop.indexing.build.REPORT_SECONDS", 0)
    root = tmp_path / "many"
    write(root, {f"{n:02}.py": ALPHA.replace("valve", f"valve_{n}") for n in range(35)})
    with opened(root) as index:

        def stop(progress: outcrop.Progress) -> None:
            if progress.phase == "embedding" and progress.done >= 20:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            index.build(progress=stop)
    with opened(root) as index:
        assert index.status().complete == pytest.approx(20 / 35)
        assert index.build().embedded == 15


@pytest.mark.parametrize("phase", ["chunking", "embedding"])
def test_a_killed_build_leaves_a_healthy_index(tmp_path: Path, opened: Opener, phase: str) -> None:
    root = tmp_path / "many"
    write(root, {f"{n:03}.py": ALPHA.replace("valve", f"valve_{n}") for n in range(300)})
    script = textwrap.dedent(
        """
        import os, signal, sys, outcrop
        def die(progress):
            if progress.phase == sys.argv[2] and progress.done:
                os.kill(os.getpid(), signal.SIGKILL)
        with outcrop.open(sys.argv[1], settings={"embedder": "hash", "dim": 64}) as index:
            index.build(progress=die)
        """
    )
    run = subprocess.run([sys.executable, "-c", script, root, phase], capture_output=True, check=False)
    assert run.returncode == -signal.SIGKILL
    with opened(root) as index:
        status = index.status()
        assert (status.revision, status.stale, status.writer) == (None, True, False)
        assert index.search("steam", k=3).hits
        report = index.build()
        assert (report.chunks, report.complete) == (300, True)
        assert index.search("valve_299", k=1).hits[0].path == "299.py"
        database = sqlite3.connect(index.status().store)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.close()


def test_rebuild_is_the_way_out_of_a_damaged_index(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        store = Path(index.status().store)
    store.write_bytes(b"rubbish" * 1000)
    with opened(root) as index:
        answer = index.search("let steam out")
        assert (answer.mode, answer.hits[0].path) == ("keyword", "plant/boiler.py")
        assert answer.reason is not None
        assert "is damaged" in answer.reason
        assert "outcrop rebuild" in answer.reason
        with pytest.raises(outcrop.StoreDamaged, match="outcrop rebuild"):
            index.build()
        assert index.build(rebuild=True).embedded == 4
        assert paths(index, "steam", mode="keyword") == ["plant/boiler.py"]


def test_clearing_gives_the_room_back(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        with pytest.raises(outcrop.UnknownCorpus, match="There is: code, docs"):
            index.clear(corpus="notes")
        with pytest.raises(outcrop.UsageError, match="There is: hash-64-64"):
            index.clear(space="gpt-9-1")
        index.clear(corpus="docs")
        assert paths(index, "scissors", mode="keyword") == []
        assert index.build().embedded == 1
        index.clear(space="hash-64-64")
        assert index.search("scissors").reason == "index 0 % complete"
        assert index.build().embedded == 4
        index.clear()
        assert index.search("scissors").reason.startswith("there is no index yet")  # type: ignore[union-attr]


def test_secrets_stay_out(tmp_path: Path, opened: Opener) -> None:
    root = make_repository(
        tmp_path / "app",
        {".env": "TOKEN=hunter2\n", "id_rsa": "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n", "a.py": GAMMA},
    )
    write(root, {".env.local": "hunter2"})
    with opened(root) as index:
        report = index.build()
        assert {item.path for item in report.skipped if item.reason is SkipReason.SECRET} == {
            ".env",
            ".env.local",
            "id_rsa",
        }
        assert b"hunter2" not in Path(index.status().store).read_bytes()
        assert paths(index, "hunter2", mode="keyword") == []


def test_the_real_model_finds_by_meaning(tmp_path: Path, opened: Opener) -> None:
    from outcrop.embedders.local.embedder import LocalEmbedder

    root = tmp_path / "works"
    write(root, {"boiler.py": ALPHA, "ledger.py": BETA, "garden.py": GAMMA, "guide.md": GUIDE})
    with outcrop.open(root) as index:
        index.embedder = LocalEmbedder()
        index.build()
        for question, path in {
            "annual bookkeeping": "ledger.py",
            "relieve vapour so that the kettle does not explode": "boiler.py",
            "decorate the wooden barrier around the lawn": "garden.py",
            "make a blunt cutting tool keen": "guide.md",
        }.items():
            answer = index.search(question, mode="semantic")
            assert (answer.mode, answer.hits[0].path) == ("semantic", path)
            assert np.isfinite([hit.score for hit in answer.hits]).all()


def test_a_folder_that_its_repository_ignores_is_a_source_of_its_own(tmp_path: Path, opened: Opener) -> None:
    root = make_repository(tmp_path / "app", {".gitignore": "data/\n", "a.py": GAMMA})
    write(root, {"data/raw/ledger.py": BETA, "src/boiler.py": ALPHA})
    with opened(root / "data" / "raw") as index:
        assert index.source.type == "folder"
        index.build()
        assert paths(index, "ledger steam fence", mode="keyword") == ["ledger.py"]
    with opened(root / "src") as index:
        assert (index.source.type, index.source.root) == ("git", root)
        index.build()
        assert set(paths(index, "ledger steam fence", mode="keyword")) == {"a.py", "src/boiler.py"}


def test_a_file_that_is_not_ours_is_never_replaced(root: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work " * 500)
    with outcrop.open(root, settings={"embedder": "hash", "store": thesis}) as index:
        for use in (index.build, lambda: index.build(rebuild=True), index.clear):
            with pytest.raises(outcrop.StoreDamaged):
                use()
        assert index.search("steam").mode == "keyword"
    assert thesis.read_text() == "years of work " * 500
    assert not thesis.with_name("thesis.txt.lock").exists()


def test_a_store_that_is_a_folder(root: Path, tmp_path: Path) -> None:
    with outcrop.open(root, settings={"embedder": "hash", "store": tmp_path}) as index:
        with pytest.raises(outcrop.StoreError, match="is a folder"):
            index.build()
        assert "is a folder" in str(index.search("steam").reason)


def test_a_higher_limit_brings_a_refused_file_in(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"big.md": "a long line of prose about walruses\n" * 100})
    for limit, found in ((500, []), (50_000, ["big.md"]), (500, [])):
        with outcrop.open(root, settings={"embedder": "hash", "max_bytes": limit}) as index:
            index.build()
            assert list(dict.fromkeys(hit.path for hit in index.search("walruses").hits)) == found


def test_clear_removes_every_file(root: Path, opened: Opener) -> None:
    before = {path for path in root.rglob("*") if "logs" not in path.parts}
    with opened(root) as index, opened(root) as reader:
        index.build()
        assert reader.search("steam").mode == "hybrid"
        freed = index.clear()
        assert freed > 10_000
        assert {path for path in root.rglob("*") if "logs" not in path.parts} == before
        assert reader.search("steam").mode == "keyword"
        assert not reader.status().exists
        index.build()
        assert reader.search("steam").mode == "hybrid"


@pytest.mark.parametrize("schema", ["999", "abc", "0", "-1"])
@pytest.mark.parametrize("way", ["clear", "rebuild"])
def test_an_index_of_an_unknown_version_can_be_dropped(root: Path, opened: Opener, way: str, schema: str) -> None:
    with opened(root) as index:
        index.build()
        store = Path(index.status().store)
    database = sqlite3.connect(store)
    database.execute("UPDATE fx_vec_meta SET value = ? WHERE key = 'schema'", (schema,))
    database.commit()
    database.close()
    with opened(root) as index:
        assert ("newer Outcrop" if schema == "999" else "outcrop rebuild") in str(index.search("steam").reason)
        if way == "clear":
            index.clear()
            assert not store.exists()
        else:
            index.build(rebuild=True)
            assert index.search("steam").mode == "hybrid"


def test_rebuild_gets_over_tables_that_are_not_as_they_should_be(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        store = Path(index.status().store)
    database = sqlite3.connect(store)
    database.execute("ALTER TABLE fx_vec_built RENAME COLUMN builder TO something_else")
    database.commit()
    database.close()
    with opened(root) as index:
        assert index.search("steam").mode == "keyword"
        with pytest.raises(outcrop.StoreError, match="outcrop rebuild"):
            index.build()
        index.build(rebuild=True)
        assert index.search("steam").mode == "hybrid"


def test_an_index_that_lost_its_end_is_noticed(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        store = Path(index.status().store)
    os.truncate(store, store.stat().st_size - 4096)
    with opened(root) as index, pytest.raises(outcrop.StoreDamaged, match="end of the file is missing"):
        index.build()


def test_text_that_was_removed_is_gone_and_so_is_its_room(tmp_path: Path, opened: Opener) -> None:
    root = tmp_path / "log"
    write(root, {f"{n}.log": f"walrus {n} seen at sea\n" * 30_000 for n in range(15)} | {"a.py": GAMMA})
    with opened(root) as index:
        index.build()
        store = Path(index.status().store)
        large = index.status().bytes
    for number in range(15):
        (root / f"{number}.log").unlink()
    with opened(root) as index:
        index.build()
    assert store.stat().st_size < large / 10
    assert b"walrus" not in store.read_bytes()


def test_half_a_surrogate_in_a_notebook_stops_nothing(tmp_path: Path, opened: Opener) -> None:
    root = tmp_path / "books"
    cell = '{"cell_type":"markdown","metadata":{},"source":"walrus \\ud800 x"}'
    book = '{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[' + cell + "]}"
    write(root, {"s.ipynb": book, "a.py": GAMMA})
    with opened(root) as index:
        assert index.build().complete
        (hit,) = index.search("walrus", mode="keyword").hits
        assert hit.text == "walrus \ufffd x"


def test_keyword_scores_descend_from_one(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        scores = [hit.score for hit in index.search("steam books boards boiler", mode="keyword").hits]
        assert scores[0] == 1.0
        assert scores == sorted(scores, reverse=True)
        with pytest.raises(outcrop.UsageError, match="0 to 1"):
            index.search("steam", min_score=2)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": GUIDE})
    with pytest.raises(outcrop.NotARepository, match="is a file"):
        outcrop.open(tmp_path / "a.md")


def test_a_word_that_names_a_definition_finds_it_first(tmp_path: Path, opened: Opener) -> None:
    uses = "".join(f"def use_{n}(x):\n    return jsonify(jsonify(x), jsonify({n}))\n\n\n" for n in range(30))
    root = tmp_path / "app"
    write(
        root,
        {
            "tests.py": uses,
            "answers.py": "def jsonify(value):\n    text = dump(value)\n    return Response(text, kind)\n",
        },
    )
    with opened(root) as index:
        index.build()
        assert index.search("jsonify", k=1).hits[0].path == "answers.py"

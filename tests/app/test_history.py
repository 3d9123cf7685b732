"""Commits as material, through the public API: indexed, asked for, pruned, shared between views, kept apart."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from repositories import commit, git, make_repository, write
from travel import Counting, opened

import outcrop
from outcrop.app import documents
from outcrop.app.update import is_stale, update
from outcrop.core.model import Hit, Kind, Record, SkipReason
from outcrop.core.names import COMMITS
from outcrop.errors import BadConfig, UnknownKind, UsageError

pytestmark = pytest.mark.usefixtures("with_history")


class Short(Counting):
    """Reads little of a text."""

    @property
    def max_tokens(self) -> int:
        return 64


FILES: dict[str, str | bytes] = {
    "src/valve.py": "def open_valve(pressure):\n    return release(pressure)\n",
    "src/ledger.py": "def close_ledger(year):\n    lock(year)\n",
    "docs/guide.md": "# Guide\n\nHow to sharpen scissors with a whetstone.\n",
}
QUESTIONS = ["open_valve", "how do I sharpen scissors", "lock the year", "pressure release", "src/ledger.py", "zzyzx"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repository(tmp_path / "works", FILES)
    write(root, {"src/valve.py": "def open_valve(pressure):\n    return release(pressure, slowly=True)\n"})
    commit(root, "Release the pressure slowly\n\nThe boiler whistled at lunch.")
    write(root, {"docs/guide.md": "# Guide\n\nHow to sharpen scissors with a whetstone and some oil.\n"})
    commit(root, "Say that a whetstone takes oil")
    return root


def built(root: Path, embedder: Counting | None = None) -> None:
    with opened(root, embedder) as index:
        assert index.build().complete


def commits(index: outcrop.Index, question: str = "pressure whetstone change") -> list[str]:
    return sorted(hit.text.partition("\n")[0] for hit in index.search(question, kind="commit", k=50).hits)


def test_a_build_indexes_them_and_says_how_many(root: Path) -> None:
    with opened(root) as index:
        plan = index.plan()
        assert (len(plan.artifacts), plan.commits, plan.texts) == (6, 3, 6)
        report = index.build()
        assert (report.added, report.commits, report.history_note, report.chunks) == (6, 3, "", 6)
        again = index.build()
        assert (again.added, again.unchanged, again.commits, again.embedded) == (0, 6, 3, 0)
        assert index.plan().texts == 0
        kinds = {each.corpus: dict(each.kinds) for each in index.status().collections}
        assert kinds == {"code": {"code": 2}, "docs": {"commit": 3, "doc": 1}}
        assert not index.status().stale
        assert not is_stale(index)


def test_a_hit_is_one_commit_with_its_subject_and_date(root: Path) -> None:
    head = git(root, "rev-parse", "HEAD~1").decode().strip()
    with opened(root) as index:
        index.build()
        (hit, *_) = index.search("why did the boiler whistle", kind="commit").hits
    assert (hit.kind, hit.path, hit.paths, hit.hash, hit.corpus) == (Kind.COMMIT, None, (), head, ("docs",))
    assert hit.name == "Release the pressure slowly · 2024-01-01"
    assert hit.text == "Release the pressure slowly\n\nThe boiler whistled at lunch.\n\nAda, 2024-01-01\nsrc/valve.py"
    assert hit.lines == (1, 6)


def frozen(hits: tuple[Hit, ...]) -> list[tuple[object, ...]]:
    return [(hit.hash, hit.text, hit.score, hit.mode, hit.lines, hit.name, hit.explanation) for hit in hits]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_other_answers_are_those_of_an_index_without_commits(root: Path, tmp_path: Path, mode: str) -> None:
    git(tmp_path, "clone", "-q", str(root), str(tmp_path / "plain"))
    answers = []
    for place, settings in ((root, {}), (tmp_path / "plain", {"history": 0})):
        with outcrop.open(place, settings={"embedder": "hash", **settings}) as index:
            index.build()
            # Asked twice: a process that asks again keeps the vectors in memory.
            found = [index.search(text, mode=mode, explain=True, k=50) for text in [*QUESTIONS, *QUESTIONS]]
            answers.append([(frozen(answer.hits), answer.reason, dict(answer.corrected)) for answer in found])
            assert outcrop.rag_context("sharpen scissors with a whetstone", directory=place) is not None
    assert answers[0] == answers[1]
    assert any(hits for hits, _, _ in answers[0])


def test_they_are_hits_where_the_question_asks_for_a_change(root: Path) -> None:
    with opened(root) as index:
        index.build()
        for question in ("when did we release pressure slowly", "who changed the whetstone guide"):
            assert Kind.COMMIT in {hit.kind for hit in index.search(question).hits}
            assert Kind.COMMIT not in {hit.kind for hit in index.search(question, kind=["code", "doc"]).hits}
        assert Kind.COMMIT not in {hit.kind for hit in index.search("release pressure slowly").hits}
        assert {hit.kind for hit in index.search("release", kind=["code", "commit"]).hits} == {Kind.CODE, Kind.COMMIT}


def test_words_of_commits_alone_are_known_where_commits_are_asked_for(root: Path) -> None:
    write(root, {"words.md": "The whistler whistles.\n"})
    commit(root, "Add the whisteled word")
    with opened(root) as index:
        index.build()
        assert index.search("whisteled", kind="commit").corrected == {}
        assert index.search("when was whisteled added").corrected == {}


def test_without_an_index_they_are_searched_by_words(root: Path) -> None:
    with opened(root) as index:
        hits = index.search("boiler whistled", kind="commit").hits
        assert [hit.name for hit in hits][:1] == ["Release the pressure slowly · 2024-01-01"]
        assert Kind.COMMIT not in {hit.kind for hit in index.search("boiler whistled").hits}
        with pytest.raises(UnknownKind):
            index.search("boiler", kind="wiki")


def test_an_amended_commit_takes_the_place_of_the_old_one(root: Path) -> None:
    embedder = Counting()
    with opened(root, embedder) as index:
        index.build()
        git(root, "commit", "-q", "--amend", "-m", "Say that oil helps")
        assert index.status().stale
        assert is_stale(index)
        embedder.texts.clear()
        report = index.build()
        assert (report.added, report.removed, report.embedded, report.commits) == (1, 1, 1, 3)
        assert [text.partition("\n")[0] for text in embedder.texts] == ["Say that oil helps"]
        assert "Say that a whetstone takes oil" not in commits(index)
        assert not index.status().stale


def test_a_rebase_embeds_nothing_again(root: Path) -> None:
    git(root, "switch", "-q", "-c", "topic", "HEAD~2")
    write(root, {"topic.py": "t = 1\n"})
    commit(root, "A topic of its own")
    embedder = Counting()
    with opened(root, embedder) as index:
        index.build()
        old = git(root, "rev-parse", "HEAD").decode().strip()
        git(root, "rebase", "-q", "main")
        assert git(root, "rev-parse", "HEAD").decode().strip() != old
        embedder.texts.clear()
        report = index.build()
        # What is new here is on main, with the files that come from there.
        assert sorted(text.partition("\n")[0] for text in embedder.texts if "Ada, 2024" in text) == [
            "Release the pressure slowly",
            "Say that a whetstone takes oil",
        ]
        assert (report.reused, report.commits) == (1, 4)
        assert old not in {hit.hash for hit in index.search("topic", kind="commit").hits}


def test_a_new_commit_costs_only_itself(root: Path) -> None:
    embedder = Counting()
    with opened(root, embedder) as index:
        index.build()
        embedder.texts.clear()
        git(root, "commit", "-q", "--allow-empty", "-m", "Nothing in it")
        assert update(index).embedded == 1
        assert [text.partition("\n")[0] for text in embedder.texts] == ["Nothing in it"]


def test_an_unchanged_revision_asks_git_for_no_history(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(root)
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    built(root)
    trace = (tmp_path / "trace").read_text()
    assert "ls-files" in trace
    assert "rev-list" not in trace
    assert "diff-tree" not in trace
    git(root, "commit", "-q", "--allow-empty", "-m", "Nothing in it")
    built(root)
    assert "diff-tree" in (tmp_path / "trace").read_text()


def test_an_index_of_before_gets_them_at_the_next_build(root: Path) -> None:
    with opened(root) as index:
        index.build()
        with closing(sqlite3.connect(index.store.path)) as database, database:
            database.execute("DELETE FROM fx_vec_member WHERE builder = ?", (COMMITS,))
            database.execute("DELETE FROM fx_vec_built WHERE builder = ?", (COMMITS,))
        status = index.status()
        assert (status.stale, status.missing, status.behind, status.update) == (True, (), ("docs",), "outcrop index")
        assert status.complete == 1
        answer = index.search("sharpen scissors")
        assert answer.hits
        assert answer.stale is not None
        assert is_stale(index)
        assert index.build().commits == 3
        assert not index.status().stale
        assert not is_stale(index)
        assert len(commits(index)) == 3


def test_a_commit_that_is_left_out_stays_named_and_is_not_read_again(root: Path, tmp_path: Path) -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "\n".join(["Ab0+" * 17] * 4) + "\n-----END OPENSSH PRIVATE KEY-----"
    git(root, "commit", "-q", "--allow-empty", "-F", "-", stdin=f"oops\n\n{key}\n".encode())
    head = git(root, "rev-parse", "HEAD").decode().strip()
    with opened(root) as index:
        for _ in range(3):
            report = index.build()
            assert [(item.path, item.reason) for item in report.skipped] == [(head, SkipReason.SECRET)]
            assert [item.path for item in index.status().skipped] == [head]
        git(root, "commit", "-q", "--allow-empty", "-m", "Nothing in it")
        assert index.build().added == 1
        assert "Ab0+" not in "".join(hit.text for hit in index.search("oops key", kind="commit").hits)


def test_worktrees_share_them_and_each_sees_its_own(root: Path, tmp_path: Path) -> None:
    built(root)
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", "-b", "other", str(linked), "HEAD~1")
    write(linked, {"new.py": "n = 1\n"})
    commit(linked, "Only in the worktree")
    embedder = Counting()
    with opened(linked, embedder) as index:
        index.build()
        assert sorted(commits(index)) == ["Only in the worktree", "Release the pressure slowly", "change"]
        answer = index.search("whetstone oil", mode="semantic", k=50)
        assert Kind.COMMIT not in {hit.kind for hit in answer.hits}
    assert {text.partition("\n")[0] for text in embedder.texts if "Ada, 2024" in text} == {"Only in the worktree"}
    with opened(root) as index:
        assert "Only in the worktree" not in commits(index)
        assert len(commits(index)) == 3
        assert Kind.COMMIT not in {hit.kind for hit in index.search("whetstone oil", k=50).hits}


def test_another_revision_has_its_own_history(root: Path) -> None:
    built(root)
    with outcrop.open(root, settings={"embedder": "hash"}, rev="HEAD~1") as index:
        assert index.build().commits == 2
        assert commits(index) == ["Release the pressure slowly", "change"]
    with opened(root) as index:
        assert len(commits(index)) == 3
        assert not index.status().stale


@pytest.mark.parametrize(("history", "left"), [(0, 0), (1, 1), ("2", 2), ("all", 3)])
def test_the_setting_says_how_many(root: Path, history: object, left: int) -> None:
    built(root)
    with outcrop.open(root, settings={"embedder": "hash", "dim": 768, "history": history}) as index:
        assert index.status().stale
        report = index.build()
        assert (report.commits, report.removed, report.embedded) == (left, 3 - left, 0)
        assert not index.status().stale
        if left:
            assert len(commits(index)) == left
        else:
            with pytest.raises(UnknownKind):
                index.search("pressure", kind="commit")


@pytest.mark.parametrize("history", [-1, "some", 1.5, True, 10_000_000, ""])
def test_other_values_of_the_setting_are_refused(root: Path, history: object) -> None:
    with pytest.raises(BadConfig, match="history cannot be"):
        outcrop.open(root, settings={"embedder": "hash", "history": history})


def test_the_repository_may_set_it(root: Path) -> None:
    write(root, {"outcrop.toml": "history = 1\n"})
    with opened(root) as index:
        assert index.build().commits == 1


def test_nothing_else_can_be_a_commit(root: Path) -> None:
    with pytest.raises(BadConfig, match="each kind one of"):
        outcrop.open(root, settings={"embedder": "hash", "kinds": {"*.md": "commit"}})
    with opened(root) as index, pytest.raises(UsageError, match="kind cannot be commit"):
        index.upsert([Record("1", "text", Kind.COMMIT)])


def test_a_commit_can_be_read_whole(root: Path) -> None:
    head = git(root, "rev-parse", "HEAD").decode().strip()
    with opened(root) as index:
        before = documents.read(index, content_hash=head)
        index.build()
        after = documents.read(index, content_hash=head)
        assert after == before
        assert (after.kind, after.path, after.state) == (Kind.COMMIT, None, "indexed")
        assert after.blocks[0].text == "Say that a whetstone takes oil\n\nAda, 2024-01-01\ndocs/guide.md"
        git(root, "commit", "-q", "--amend", "-m", "Other words")
        git(root, "reflog", "expire", "--expire=now", "--all")
        git(root, "gc", "-q", "--prune=now")
        assert documents.read(index, content_hash=head).state == "stored"


def test_a_build_that_is_stopped_continues(root: Path) -> None:
    with opened(root, Counting(refuse=True)) as index:
        with pytest.raises(AssertionError):
            index.build()
        assert index.search("whetstone", kind="commit", mode="keyword").hits
        assert is_stale(index)
    with opened(root) as index:
        report = index.build()
        assert (report.embedded, report.complete) == (6, True)
        assert not is_stale(index)


def test_clearing_the_corpus_takes_them_along_and_the_next_build_brings_them_back(root: Path) -> None:
    with opened(root) as index:
        index.build()
        index.clear(corpus="docs")
        with pytest.raises(UnknownKind):
            index.search("pressure", kind="commit")
        assert index.build().commits == 3
        assert len(commits(index)) == 3


def test_a_custom_corpus_leaves_them_alone(root: Path) -> None:
    with opened(root) as index:
        index.build()
        index.build(corpus="notes", paths=["docs/**"])
        assert len(commits(index)) == 3
        assert index.search("release", corpus="notes", kind="doc").hits
        assert index.build().commits == 3


def test_that_only_their_beginning_is_embedded_needs_no_remark(root: Path) -> None:
    git(root, "commit", "-q", "--allow-empty", "-m", "A long story\n\n" + "and then another thing " * 300)
    write(root, {"long.txt": "word " * 100})
    with opened(root, Short()) as index:
        assert index.build().cut == 1

"""Corpora of one's own: the list is the corpus, and each build takes out only what it put in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repositories import commit, make_repository, opened_files, write

import outcrop
from outcrop.app.update import build_all
from outcrop.core.model import Kind, Listing, Ref, SkipReason
from outcrop.core.protocols import Matrix
from outcrop.embedders.hash import HashEmbedder
from outcrop.errors import BadConfig, EmbedderUnavailable, UnknownCorpus, UsageError
from outcrop.indexing.scope import custom_scope
from outcrop.sources import file_state


class Counting(HashEmbedder):
    """The hash embedder, with a record of what went through it."""

    def __init__(self, dim: int = 64) -> None:
        super().__init__(dim)
        self.passages: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.passages += texts
        return super().embed_passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return super().embed_passages(texts)


def book(*cells: tuple[str, str]) -> str:
    made = [
        {"cell_type": kind, "id": f"id-{number}", "source": source, "metadata": {}, "outputs": [{"text": "an output"}]}
        for number, (kind, source) in enumerate(cells)
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


FIT = book(("markdown", "# Fitting\n\nWhy outliers bend the line."), ("code", "%matplotlib inline\nline = fit(points)"))
PLOT = book(("code", "!pip list\ndraw(axes, colour)"), ("raw", "rst directive of nbsphinx"))
NOTES = "# Notes\n\nA walk along the river.\n"
SCRIPT = "# %% [markdown]\n# # Sailing\n# Reefing in strong wind.\n\n# %%\nhoist(sail)\n"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., outcrop.Index]:

    def open_counting(root: Path, embedder: HashEmbedder | None = None, **settings: object) -> outcrop.Index:
        index = outcrop.open(root, settings={"embedder": "hash", **settings})
        index.embedder = embedder or Counting()
        return index

    return open_counting


Opener = Callable[..., outcrop.Index]


@pytest.fixture(params=["folder", "git"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        "lab/fit.ipynb": FIT,
        "lab/deep/plot.ipynb": PLOT,
        "notes.md": NOTES,
        "sail.py": SCRIPT,
        "src/app.py": "def start_engine():\n    return ignite()\n",
    }
    if request.param == "git":
        return make_repository(tmp_path / "works", files)
    write(tmp_path / "works", files)
    return tmp_path / "works"


def save(root: Path) -> None:
    if (root / ".git").exists():
        commit(root)


def found(index: outcrop.Index, query: str, **more: Any) -> set[tuple[str | None, int | None]]:
    return {(hit.path, hit.cell) for hit in index.search(query, mode="keyword", **more).hits}


def passages(index: outcrop.Index) -> list[str]:
    assert isinstance(index.embedder, Counting)
    return index.embedder.passages


def test_a_notebook_goes_to_two_corpora_with_the_cells_number_and_id(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        report = index.build(corpus="notebooks", paths=["lab/**/*.ipynb"])
        assert (report.added, report.unchanged, report.removed, report.embedded) == (2, 0, 0, 3)
        assert (report.chunks, report.skipped, report.complete) == (3, (), True)
        assert {line.corpus: line.chunks for line in index.status().collections} == {"docs": 1, "notebooks": 2}
        (code,) = index.search("fit points", corpus="notebooks", k=1).hits
        (prose,) = index.search("outliers", corpus="docs").hits
        assert (code.kind, code.cell, code.cell_id, code.lines) == ("code", 1, "id-1", (1, 2))
        assert code.text == "%matplotlib inline\nline = fit(points)"
        assert (prose.kind, prose.cell, prose.cell_id, prose.corpus) == ("doc", 0, "id-0", ("docs",))
        assert not any("output" in text for text in passages(index))
        (shell,) = index.search("draw axes", corpus=["notebooks", "docs"], k=1).hits
        assert shell.text.startswith("!pip list")
        assert index.search("outliers").stale is None
        assert not index.status().stale


def test_raw_cells_are_documents_when_they_are_asked_for(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        assert found(index, "nbsphinx directive") == set()
    with opened(root, raw_cells=True) as index:
        report = index.build(corpus="notebooks", paths=["lab"])
        assert (report.added, report.embedded) == (0, 1)
        assert found(index, "nbsphinx directive", corpus="docs") == {("lab/deep/plot.ipynb", 1)}


def test_a_notebook_of_raw_cells_alone_is_read_once_and_named_as_left_out(root: Path, opened: Opener) -> None:
    write(root, {"lab/raw.ipynb": book(("raw", "only a directive here"))})
    with opened(root) as index:
        planned = index.plan()
        first = index.build()
        assert (planned.new, planned.texts) == (first.added, first.embedded)
        for done in (planned, first, index.plan(), index.build()):
            assert [(item.path, item.reason) for item in done.skipped] == [("lab/raw.ipynb", SkipReason.EXCLUDED)]
        again = index.build()
        assert (again.added, again.unchanged) == (0, first.added)
        assert found(index, "only a directive here", k=50).isdisjoint({("lab/raw.ipynb", 0)})
    with opened(root, raw_cells=True) as index:
        report = index.build()
        assert (report.skipped, report.embedded) == ((), 2)
        assert ("lab/raw.ipynb", 0) in found(index, "only a directive here", k=50)
    with opened(root) as index:
        index.build()
        assert index.build().added == 0
        (root / "lab" / "raw.ipynb").unlink()
        index.build()
        assert not index.status().skipped


def test_unchanged_files_are_left_alone_and_a_file_that_is_no_longer_named_goes(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        before = len(passages(index))
        again = index.build(corpus="notebooks", paths=["lab"])
        assert (again.added, again.unchanged, again.removed, again.embedded) == (0, 2, 0, 0)
        less = index.build(corpus="notebooks", paths=["lab/deep"])
        assert (less.added, less.unchanged, less.removed) == (0, 1, 1)
        assert found(index, "outliers fit") == set()
        assert found(index, "draw") == {("lab/deep/plot.ipynb", 0)}
        assert len(passages(index)) == before
        index.build(corpus="notebooks", paths=[])
        assert index.status().collections == ()


def test_a_partial_build_takes_nothing_out_but_what_it_names(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        (root / "lab/fit.ipynb").write_text(book(("code", "polish(lens)")), "utf-8")
        save(root)
        report = index.build(corpus="notebooks", paths=["lab/fit.ipynb"], prune=False)
        assert (report.added, report.removed, report.embedded) == (1, 1, 1)
        assert found(index, "outliers polish draw") == {("lab/fit.ipynb", 0), ("lab/deep/plot.ipynb", 0)}
        (root / "lab/fit.ipynb").unlink()
        save(root)
        gone = index.build(corpus="notebooks", paths=["lab/fit.ipynb"], prune=False)
        assert gone.removed == 1
        assert [(item.path, item.reason) for item in gone.skipped] == [("lab/fit.ipynb", SkipReason.UNLISTED)]
        assert found(index, "outliers polish draw") == {("lab/deep/plot.ipynb", 0)}


def test_builds_of_several_corpora_keep_off_each_other(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        index.build(corpus="docs", paths=["notes.md"])
        assert found(index, "outliers river", corpus="docs") == {("lab/fit.ipynb", 0), ("notes.md", None)}
        index.build(corpus="docs", paths=[])
        assert found(index, "outliers river", corpus="docs") == {("lab/fit.ipynb", 0)}
        everything = index.build()
        assert everything.complete
        assert found(index, "outliers river", corpus="docs") == {("lab/fit.ipynb", 0), ("notes.md", None)}
        assert found(index, "fit points", corpus="notebooks") == {("lab/fit.ipynb", 1)}
        (hit,) = index.search("fit points", k=1).hits
        assert hit.corpus == ("code", "notebooks")
        index.build(corpus="notebooks", paths=[])
        (hit,) = index.search("fit points", k=1).hits
        assert hit.corpus == ("code",)
        assert found(index, "outliers", corpus="docs") == {("lab/fit.ipynb", 0)}
        # Only what nobody named for a while was embedded twice.
        assert sorted(passages(index)).count(NOTES.strip()) == 2
        assert len(passages(index)) == len(set(passages(index))) + 1


def test_both_halves_go_with_the_file(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        (root / "lab/fit.ipynb").unlink()
        save(root)
        assert index.build(corpus="notebooks", paths=["lab"]).removed == 1
        assert found(index, "outliers fit points") == set()


def test_a_notebook_of_one_half_and_a_percent_script(root: Path, opened: Opener) -> None:
    write(root, {"lab/prose.ipynb": book(("markdown", "Only a lighthouse.")), "lab/empty.ipynb": book()})
    save(root)
    with opened(root) as index:
        report = index.build(corpus="mixed", paths=["lab/prose.ipynb", "lab/empty.ipynb", "sail.py"])
        assert (report.added, report.skipped) == (3, ())
        assert found(index, "lighthouse") == {("lab/prose.ipynb", 0)}
        (prose,) = index.search("reefing", mode="keyword", corpus="docs").hits
        (code,) = index.search("hoist", mode="keyword", corpus="mixed").hits
        assert (prose.kind, prose.lines, code.kind, code.lines) == ("doc", (1, 3), "code", (5, 6))


def test_only_the_corpus_that_was_asked_for_is_embedded(root: Path, opened: Opener) -> None:
    class Failing(Counting):
        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            raise EmbedderUnavailable("the model fell over", "Pick it up")

    with opened(root, Failing()) as index, pytest.raises(EmbedderUnavailable):
        index.build()
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        assert len(passages(index)) == 3
        answer = index.search("start engine")
        assert answer.reason is not None
        assert "complete" in answer.reason


def test_a_corpus_that_was_not_built_since_makes_the_answer_stale(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        index.build(corpus="notebooks", paths=["lab"])
        (root / "notes.md").write_text("# Notes\n\nA walk along the canal.\n", "utf-8")
        save(root)
        index.build(corpus="notebooks", paths=["lab"])
        assert index.search("river").stale is not None
        assert index.status().stale
        index.build()
        assert index.search("river").stale is None


def test_what_is_left_out_is_named_for_the_corpus_and_kept_for_the_rest(root: Path, opened: Opener) -> None:
    write(root, {"lab/broken.ipynb": "{", "logo.bin": b"\0\1\2"})
    save(root)
    with opened(root) as index:
        index.build()
        report = index.build(corpus="notebooks", paths=["lab", "nothing/here", "*.nope"])
        assert [(item.path, item.reason) for item in report.skipped] == [
            ("lab/broken.ipynb", SkipReason.BROKEN),
            ("nothing/here", SkipReason.UNLISTED),
            ("*.nope", SkipReason.UNLISTED),
        ]
        assert [item.path for item in index.status().skipped] == ["lab/broken.ipynb", "logo.bin"]


def test_clearing_a_corpus_takes_its_notebooks_documents_along(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        index.build(corpus="prose", paths=["notes.md"])
        index.clear(corpus="notebooks")
        assert [line.corpus for line in index.status().collections] == ["prose"]
        with pytest.raises(UnknownCorpus, match="prose"):
            index.search("river", corpus="notebooks")


@pytest.mark.parametrize(
    ("corpus", "paths", "words"),
    [
        ("a/b", ["lab"], "cannot be named"),
        ("", ["lab"], "cannot be named"),
        ("books", None, "name and the paths"),
        (None, ["lab"], "name and the paths"),
        ("books", ["../other"], "outside of"),
        ("books", ["/etc/passwd"], "outside of"),
    ],
)
def test_what_cannot_be_a_corpus(root: Path, opened: Opener, corpus: Any, paths: Any, words: str) -> None:
    with opened(root) as index:
        with pytest.raises(UsageError, match=words):
            index.build(corpus=corpus, paths=paths)
        assert not index.status().exists


def test_a_rebuild_is_of_everything(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build(corpus="notebooks", paths=["lab"])
        with pytest.raises(UsageError, match="whole index"):
            index.build(corpus="notebooks", paths=["lab"], rebuild=True)
        assert [line.corpus for line in index.status().collections] == ["docs", "notebooks"]


def test_a_dry_run_of_a_corpus(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        plan = index.plan(corpus="notebooks", paths=["lab", "gone"])
        assert [ref.path for ref in plan.artifacts] == ["lab/deep/plot.ipynb", "lab/fit.ipynb"]
        assert (plan.new, plan.texts) == (2, 3)  # the raw cell is not asked for
        assert [item.reason for item in plan.skipped] == [SkipReason.UNLISTED]
        assert not index.status().exists


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ("a.ipynb", {"a.ipynb"}),
        ("./sub/../a.ipynb", {"a.ipynb"}),
        ("*.ipynb", {"a.ipynb", "odd[1].ipynb"}),
        ("**/*.ipynb", {"a.ipynb", "odd[1].ipynb", "sub/b.ipynb", "sub/deep/c.ipynb"}),
        ("sub", {"sub/b.ipynb", "sub/deep/c.ipynb", "sub/d.md"}),
        ("sub/", {"sub/b.ipynb", "sub/deep/c.ipynb", "sub/d.md"}),
        ("sub/*", {"sub/b.ipynb", "sub/deep/c.ipynb", "sub/d.md"}),
        ("su?/[bc].ipynb", {"sub/b.ipynb"}),
        ("odd[1].ipynb", {"odd[1].ipynb"}),
        ("ub", set()),
        (".", {"a.ipynb", "odd[1].ipynb", "sub/b.ipynb", "sub/deep/c.ipynb", "sub/d.md"}),
    ],
)
def test_files_folders_and_patterns(tmp_path: Path, entry: str, named: set[str]) -> None:
    there = ["a.ipynb", "odd[1].ipynb", "sub/b.ipynb", "sub/deep/c.ipynb", "sub/d.md"]
    listing = Listing("r", [Ref(path, Kind.CODE, path, path) for path in there], ())
    for written in (entry, str(tmp_path / entry)):
        scope = custom_scope("mine", [written], tmp_path, True, False)
        assert {ref.path for ref in scope.choose(listing)[0]} == named
        assert bool(scope.unlisted(*scope.choose(listing))) == (not named)


@given(st.lists(st.sampled_from(["a", "b", "c[", "*", "d e", "ü"]), min_size=1, max_size=3))
def test_a_listed_file_always_names_itself(parts: list[str]) -> None:
    path = "/".join(parts)
    scope = custom_scope("mine", [path], Path("/home/me/elsewhere"), True, False)
    assert scope.names(path)
    assert not scope.names(f"x{path}") or "*" in path


def test_editing_is_live(tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file of a large corpus is read and embedded, and no other (its time: benchmarks/writes.py)."""
    # File times are trusted at once, so that no file is read again only because it is new.
    monkeypatch.setattr(file_state, "_FINE_NS", 0)
    monkeypatch.setattr(file_state, "_COARSE_NS", 0)
    words = [f"word{number}" for number in range(997)]
    files: dict[str, str | bytes] = {}
    for number in range(200):
        cells = [("code", f"{words[(number * 7 + at) % 997]}({number}, {at})") for at in range(10)]
        files[f"books/n{number}.ipynb"] = book(*cells)
    write(tmp_path, files)
    with opened(tmp_path) as index:
        report = index.build(corpus="notebooks", paths=["books"])
        assert report.chunks == 2000
        assert isinstance(index.embedder, Counting)
        before = len(passages(index))
        (tmp_path / "books/n7.ipynb").write_text(book(("code", "zeppelin(mooring)")), "utf-8")
        with opened_files() as names:
            index.build(corpus="notebooks", paths=["books/n7.ipynb"], prune=False)
            (hit,) = index.search("zeppelin mooring", corpus="notebooks", k=1).hits
        assert (hit.text, hit.path) == ("zeppelin(mooring)", "books/n7.ipynb")
        assert passages(index)[before:] == ["zeppelin(mooring)"]
        assert {Path(name).name for name in names if name.endswith(".ipynb")} == {"n7.ipynb"}


def test_a_corpus_can_be_set_once_and_for_all(root: Path, opened: Opener) -> None:
    write(root, {"outcrop.toml": '[corpora]\nnotebooks = ["lab/**/*.ipynb"]\nother = ["src"]\n'})
    save(root)
    with opened(root) as index:
        # Without an index the files of that corpus answer, and no others.
        answer = index.search("fit engine outliers points", corpus="notebooks")
        assert (answer.mode, {(hit.path, hit.cell) for hit in answer.hits}) == ("keyword", {("lab/fit.ipynb", 1)})
        assert answer.reason is not None
        assert "no index yet" in answer.reason
        (engine,) = index.search("engine", corpus=["other", "docs"]).hits
        assert engine.corpus == ("other", "code")
        with pytest.raises(UnknownCorpus, match="notebooks, other"):
            index.search("fit", corpus="nowhere")
        assert index.build(corpus="notebooks").added == 2
        assert found(index, "fit points", corpus="notebooks") == {("lab/fit.ipynb", 1)}
        with pytest.raises(UsageError, match="name and the paths"):
            index.build(corpus="nowhere")


@pytest.mark.parametrize("raw", [{"a/b": ["x"]}, {"a": 3}, ["a"], {"": ["x"]}])
def test_a_setting_that_names_no_corpora(root: Path, opened: Opener, raw: Any) -> None:
    with pytest.raises(BadConfig, match="corpora cannot be"):
        opened(root, corpora=raw)


def test_corpora_in_a_variable(root: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTCROP_CORPORA", "books=lab/fit.ipynb,books=lab/deep,prose=notes.md")
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    with outcrop.open(root) as index:
        assert index.settings.corpora == (("books", ("lab/fit.ipynb", "lab/deep")), ("prose", ("notes.md",)))
        assert index.build(corpus="books").added == 2


def test_an_answer_names_the_corpus_that_is_behind_and_what_brings_it_up_to_date(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
        index.build(corpus="notebooks", paths=["lab"])
    write(root, {"lab/fit.ipynb": PLOT, "notes.md": NOTES + "\nAnd back.\n"})
    with opened(root) as index:
        stale = index.search("river").stale
        assert stale is not None
        assert set(stale.corpora) == {"code", "docs", "notebooks"}
        assert stale.update == "outcrop index; outcrop index --corpus notebooks PATH..."
        index.build()
        stale = index.search("river").stale
        assert stale is not None
        assert (stale.corpora, stale.update) == (("notebooks",), "outcrop index --corpus notebooks PATH...")
        status = index.status()
        assert (status.stale, status.behind, status.update) == (True, stale.corpora, stale.update)
        index.build(corpus="notebooks", paths=["lab"])
        assert index.search("river").stale is None
        assert (index.status().stale, index.status().behind) == (False, ())
    with opened(root, corpora={"notebooks": ["lab"]}) as index:
        write(root, {"lab/fit.ipynb": FIT})
        assert index.search("river").stale.update == "outcrop index"


def outcrop_command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "outcrop", *arguments, "--embedder", "hash"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=120)


def test_index_without_arguments_updates_every_corpus_whose_paths_are_set_and_names_the_others(root: Path) -> None:
    write(root, {"outcrop.toml": '[corpora]\nnotebooks = ["lab"]\nunbuilt = ["src"]\n'})
    outcrop_command(root, "index")
    outcrop_command(root, "index", "--corpus", "notebooks")
    outcrop_command(root, "index", "--corpus", "walks", "notes.md")
    write(root, {"lab/fit.ipynb": PLOT, "notes.md": NOTES + "\nAnd back.\n"})
    made = outcrop_command(root, "index")
    assert "\ncorpus notebooks: indexed " in made.stdout
    assert "corpus walks was not brought up to date: its paths are not in the setting corpora" in made.stderr
    assert "  → outcrop index --corpus walks PATH..." in made.stderr
    found = outcrop_command(root, "search", "river")
    assert "the index is behind: walks: " in found.stdout
    assert "→ outcrop index --corpus walks PATH..." in found.stdout
    assert "→ outcrop index --corpus walks PATH..." in outcrop_command(root, "status").stdout
    outcrop_command(root, "index", "--corpus", "walks", "notes.md")
    assert "behind" not in outcrop_command(root, "search", "river").stdout
    again = outcrop_command(root, "index", "--json")
    assert again.stderr == ""
    assert list(json.loads(again.stdout)["corpora"]) == ["notebooks"]


def test_a_rebuild_makes_the_corpora_again_whose_paths_are_set_and_names_those_that_are_gone(root: Path) -> None:
    write(root, {"outcrop.toml": '[corpora]\nnotebooks = ["lab"]\n'})
    outcrop_command(root, "index")
    outcrop_command(root, "index", "--corpus", "notebooks")
    outcrop_command(root, "index", "--corpus", "walks", "notes.md")
    made = outcrop_command(root, "rebuild")
    assert "corpus notebooks: " in made.stdout
    assert "corpus walks was not brought up to date" in made.stderr
    assert {each["corpus"] for each in json.loads(outcrop_command(root, "status", "--json").stdout)["collections"]} == {
        "code",
        "docs",
        "notebooks",
    }


class Stopping(Counting):
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        raise EmbedderUnavailable("the model is away")


def test_a_custom_corpus_whose_build_was_stopped_is_finished_by_the_next_update(root: Path, opened: Opener) -> None:
    with opened(root) as index:
        index.build()
    # Raw cells belong to no other corpus.
    wanted = {"corpora": {"raw": ["lab"]}, "raw_cells": True}
    with opened(root, Stopping(), **wanted) as index:
        with pytest.raises(EmbedderUnavailable):
            index.build(corpus="raw")
        status = index.status()
        assert status.complete < 1
        assert ("raw" in status.behind, status.update) == (True, "outcrop index")
    with opened(root, **wanted) as index:
        build_all(index)
        assert (index.status().complete, index.search("nbsphinx").stale) == (1.0, None)

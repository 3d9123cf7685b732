"""What every vector store must do. Vectors are small enough to check by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outcrop.core.model import Chunk, FileState, Filter, Kind, Part, Ref, Skipped, SkipReason, Space
from outcrop.core.names import COMMITS
from outcrop.core.protocols import VectorStore
from outcrop.core.reports import CutByLines
from outcrop.core.rows import (
    IMPORTED,
    Completion,
    Digested,
    Entry,
    Member,
    Project,
    RecordEntry,
    Upserted,
    View,
)
from outcrop.errors import IndexMissing, StoreLocked
from outcrop.stores.sqlite.store import SqliteStore

SPACE = Space("toy", 2)
OTHER = Space("other", 3)


def chunk(seq: int, text: str, name: str | None = None, part: Part = Part.WHOLE) -> Chunk:
    return Chunk(seq, text, 0, len(text), seq + 1, seq + 1, name, part)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def entry(key: str, path: str, *texts: str, kind: Kind = Kind.CODE) -> Entry:
    ref = Ref(key, kind, path, key)
    return Entry(ref, "1/toy", [Digested(chunk(seq, text), digest(text)) for seq, text in enumerate(texts)])


def member(key: str, path: str, kind: Kind = Kind.CODE, corpus: str = "code", part: Part = Part.WHOLE) -> Member:
    return Member(corpus, "code" if corpus == "code" else "docs", key, part, path, kind)


def view(*members: Member, **more: object) -> View:
    values: dict[str, object] = {"seen": {}, "skipped": (), "worktrees": frozenset({"", "side"}), **more}
    return View(builders=("code", "docs"), members=members, **values)  # type: ignore[arg-type]


def unit(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)], np.float32)


@pytest.fixture(params=["sqlite", "fossil"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the store is to be: a file of its own, or a Fossil repository."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if request.param == "sqlite":
        return tmp_path / "store" / "index.sqlite"
    (tmp_path / "store").mkdir()
    copy: Path = request.getfixturevalue("sample").copy(tmp_path / "store")
    return copy


def at(path: Path, worktree: str = "") -> SqliteStore:
    return SqliteStore(path, worktree, shared=path.suffix == ".fossil")


@pytest.fixture
def stores(path: Path) -> Iterator[list[VectorStore]]:
    """Two views of one store: the main one and a linked worktree's."""
    opened: list[VectorStore] = [at(path), at(path, "side")]
    yield opened
    for store in opened:
        store.close()


@pytest.fixture
def store(stores: Sequence[VectorStore]) -> VectorStore:
    return stores[0]


def fill(store: VectorStore) -> None:
    """Three chunks in two files, vectors at 0, 30 and 90 degrees."""
    with store.writing():
        store.set_space(SPACE)
        store.write(
            [entry("h1", "src/a.py", "alpha beta", "beta gamma"), entry("h2", "docs/b.md", "delta", kind=Kind.DOC)]
        )
        store.replace(view(member("h1", "src/a.py"), member("h2", "docs/b.md", Kind.DOC, "docs")))
        pending = store.pending(SPACE)
        angles = {"alpha beta": 0.0, "beta gamma": np.pi / 6, "delta": np.pi / 2}
        store.add_vectors(SPACE, [p.digest for p in pending], np.stack([unit(angles[p.chunk.text]) for p in pending]))
        store.finish("r1")


def texts(store: VectorStore, found: Sequence[object], wanted: Filter = Filter()) -> list[str]:  # noqa: B008
    passages = store.passages([item.id for item in found], wanted)  # type: ignore[attr-defined]
    return [passages[item.id].chunk.text for item in found]  # type: ignore[attr-defined]


def test_reading_a_store_that_is_not_there_says_so_and_makes_nothing(store: VectorStore, path: Path) -> None:
    before = path.read_bytes() if path.exists() else None
    assert not store.exists
    with pytest.raises(IndexMissing, match="no index"):
        store.state()
    if before is None:
        assert not path.parent.exists()
    else:
        assert path.read_bytes() == before


def test_nearest_is_ordered_by_dot_product(store: VectorStore) -> None:
    fill(store)
    found = store.nearest(unit(0.0), 3, Filter())
    assert texts(store, found) == ["alpha beta", "beta gamma", "delta"]
    assert [item.score for item in found] == pytest.approx([1.0, np.cos(np.pi / 6), 0.0], abs=1e-6)
    assert len(store.nearest(unit(0.0), 1, Filter())) == 1


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(corpora=("docs",)), {"delta"}),
        (Filter(corpora=("docs", "code")), {"alpha beta", "beta gamma", "delta"}),
        (Filter(kinds=(Kind.CODE,)), {"alpha beta", "beta gamma"}),
        (Filter(projects=("",)), {"alpha beta", "beta gamma", "delta"}),
        (Filter(projects=("peer",)), set()),
        (Filter(paths=("*.md",)), {"delta"}),
        (Filter(paths=("src/**",)), {"alpha beta", "beta gamma"}),
        (Filter(paths=("src/",), kinds=(Kind.DOC,)), set()),
    ],
)
def test_filters_hold_for_vectors_and_for_words(store: VectorStore, wanted: Filter, expected: set[str]) -> None:
    fill(store)
    assert set(texts(store, store.nearest(unit(0.5), 9, wanted), wanted)) == expected
    assert set(texts(store, store.keyword(["alpha", "beta", "gamma", "delta"], 9, wanted), wanted)) == expected


def test_keyword_prefers_more_and_rarer_words(store: VectorStore) -> None:
    fill(store)
    assert texts(store, store.keyword(["beta", "gamma"], 9, Filter())) == ["beta gamma", "alpha beta"]
    assert store.keyword(["nowhere"], 9, Filter()) == []
    assert store.keyword([], 9, Filter()) == []


def test_the_words_of_a_path_find_its_chunks(store: VectorStore) -> None:
    fill(store)
    assert texts(store, store.keyword(["docs"], 9, Filter())) == ["delta"]


def test_pending_gives_each_passage_once_and_progress_counts_chunks(store: VectorStore) -> None:
    with store.writing():
        store.set_space(SPACE)
        store.write([entry("h1", "a", "same", "other"), entry("h2", "b", "same")])
        store.replace(view(member("h1", "a"), member("h2", "b")))
        assert [item.chunk.text for item in store.pending(SPACE)] == ["same", "other"]
        assert store.progress(SPACE) == (0, 3)
        store.add_vectors(SPACE, [digest("same")], unit(0.3)[None])
        assert store.progress(SPACE) == (2, 3)
        assert [item.chunk.text for item in store.pending(SPACE)] == ["other"]
        assert store.embedded(SPACE, [digest("same"), digest("other")]) == {digest("same")}


def test_a_changed_artifact_takes_over_the_vectors_of_unchanged_passages(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        written = store.write([entry("h3", "src/a.py", "alpha beta", "beta CHANGED")])
        assert (written.chunks, written.reused) == (2, 1)
        replaced = store.replace(view(member("h3", "src/a.py"), member("h2", "docs/b.md", Kind.DOC, "docs")))
        assert (replaced.artifacts, replaced.chunks) == (1, 2)
        assert [item.chunk.text for item in store.pending(SPACE)] == ["beta CHANGED"]
    assert texts(store, store.nearest(unit(0.0), 9, Filter())) == ["alpha beta", "delta"]
    assert store.keyword(["gamma"], 9, Filter()) == []
    assert texts(store, store.keyword(["changed"], 9, Filter())) == ["beta CHANGED"]


def test_the_same_artifact_cut_again_keeps_what_it_can(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        written = store.write([entry("h1", "src/a.py", "beta gamma", "alpha", "beta")])
        assert (written.chunks, written.reused) == (3, 1)
        store.replace(view(member("h1", "src/a.py"), member("h2", "docs/b.md", Kind.DOC, "docs")))
    assert texts(store, store.nearest(unit(0.0), 9, Filter())) == ["beta gamma", "delta"]
    assert store.progress(SPACE) == (2, 4)


def test_a_rename_changes_the_path_and_no_vector(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.replace(view(member("h1", "lib/z.py"), member("h2", "docs/b.md", Kind.DOC, "docs")))
        assert store.pending(SPACE) == []
    (found,) = store.nearest(unit(0.0), 1, Filter())
    assert store.passages([found.id], Filter())[found.id].paths == ("lib/z.py",)
    assert texts(store, store.keyword(["lib"], 9, Filter())) == ["alpha beta", "beta gamma"]
    assert store.keyword(["src"], 9, Filter()) == []


def test_two_copies_are_one_artifact_with_two_paths_and_kinds(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.replace(
            view(member("h2", "docs/b.md", Kind.DOC, "docs"), member("h2", "AGENTS.md", Kind.INSTRUCTION, "docs"))
        )
    (found,) = store.nearest(unit(0.0), 9, Filter())
    passage = store.passages([found.id], Filter())[found.id]
    assert passage.paths == ("AGENTS.md", "docs/b.md")
    asked = Filter(kinds=(Kind.DOC,))
    passage = store.passages([found.id], asked)[found.id]
    assert (passage.paths, passage.kind) == (("docs/b.md", "AGENTS.md"), Kind.DOC)


def test_parts_of_one_artifact_live_in_their_own_corpora(store: VectorStore) -> None:
    ref = Ref("n", Kind.CODE, "n.ipynb", "n")
    chunks = [chunk(0, "print", part=Part.CODE), chunk(1, "prose", part=Part.DOC), chunk(2, "raw", part=Part.RAW)]
    with store.writing():
        store.set_space(SPACE)
        store.write([Entry(ref, "1/notebook", [Digested(item, digest(item.text)) for item in chunks])])
        store.replace(
            view(
                member("n", "n.ipynb", part=Part.CODE),
                Member("docs", "code", "n", Part.DOC, "n.ipynb", Kind.DOC),
            )
        )
        assert [item.chunk.text for item in store.pending(SPACE)] == ["print", "prose"]
    assert store.known()["n"].parts == {Part.CODE, Part.DOC, Part.RAW}
    assert texts(store, store.keyword(["prose", "print", "raw"], 9, Filter(corpora=("docs",)))) == ["prose"]
    (found,) = store.keyword(["print"], 9, Filter())
    assert store.passages([found.id], Filter())[found.id].kind is Kind.CODE


def test_what_is_written_but_not_placed_does_not_answer(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.write([entry("h9", "new.py", "epsilon")])
        assert store.keyword(["epsilon"], 9, Filter()) == []
        assert store.progress(SPACE) == (3, 3)
        store.replace(view(member("h1", "src/a.py"), member("h9", "new.py")))
    assert texts(store, store.keyword(["epsilon"], 9, Filter())) == ["epsilon"]
    assert store.keyword(["delta"], 9, Filter()) == []


def test_two_views_share_artifacts_and_see_only_their_own(stores: Sequence[VectorStore]) -> None:
    main, side = stores
    fill(main)
    with side.writing():
        assert side.built() is None
        side.write([entry("h5", "src/c.py", "zeta")])
        side.replace(view(member("h1", "src/moved.py"), member("h5", "src/c.py")))
        assert [item.chunk.text for item in side.pending(SPACE)] == ["zeta"]
        side.add_vectors(SPACE, [digest("zeta")], unit(1.0)[None])
        side.finish("r2")
    assert set(texts(main, main.nearest(unit(0.0), 9, Filter()))) == {"alpha beta", "beta gamma", "delta"}
    assert set(texts(side, side.nearest(unit(0.0), 9, Filter()))) == {"alpha beta", "beta gamma", "zeta"}
    assert main.keyword(["zeta"], 9, Filter()) == []
    (found,) = side.keyword(["alpha"], 9, Filter())
    assert side.passages([found.id], Filter())[found.id].paths == ("src/moved.py",)
    assert (main.built(), side.built()) == ("r1", "r2")
    assert main.progress(SPACE) == (3, 3)
    with main.writing():
        main.replace(view(member("h2", "docs/b.md", Kind.DOC, "docs")))
    assert len(side.nearest(unit(0.0), 9, Filter())) == 3
    with main.writing():
        main.replace(view(member("h2", "docs/b.md", Kind.DOC, "docs"), worktrees=frozenset({""})))
    assert side.nearest(unit(0.0), 9, Filter()) == []
    assert main.known().keys() == {"h2"}


def test_another_space_hides_the_old_one_until_it_comes_back(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.set_space(OTHER)
        assert store.built() is None
        assert len(store.pending(OTHER)) == 3
        assert store.nearest(np.array([1, 0, 0], np.float32), 9, Filter()) == []
        store.set_space(SPACE)
        assert store.pending(SPACE) == []
    assert len(store.nearest(unit(0.0), 9, Filter())) == 3


def test_a_reader_sees_what_a_writer_committed(stores: Sequence[VectorStore], path: Path) -> None:
    main = stores[0]
    fill(main)
    reader = at(path)
    try:
        assert len(reader.nearest(unit(0.0), 9, Filter())) == 3
        with main.writing():
            main.replace(view(member("h2", "docs/b.md", Kind.DOC, "docs")))
        assert texts(reader, reader.nearest(unit(0.0), 9, Filter())) == ["delta"]
    finally:
        reader.close()


def test_a_snapshot_does_not_move(stores: Sequence[VectorStore], path: Path) -> None:
    if path.suffix == ".fossil":
        pytest.skip("without a write-ahead log a writer waits for every reader")
    fill(stores[0])
    reader = at(path)
    try:
        with reader.snapshot():
            before = reader.nearest(unit(0.0), 9, Filter())
            with stores[0].writing():
                stores[0].replace(view(member("h2", "docs/b.md", Kind.DOC, "docs")))
            assert reader.nearest(unit(0.0), 9, Filter()) == before
            assert len(reader.passages([item.id for item in before], Filter())) == 3
        assert len(reader.nearest(unit(0.0), 9, Filter())) == 1
    finally:
        reader.close()


def test_only_one_writes(stores: Sequence[VectorStore], path: Path) -> None:
    other = at(path)
    try:
        with stores[0].writing(), pytest.raises(StoreLocked, match="another process"), other.writing():
            pass
        with other.writing():
            pass
    finally:
        other.close()


def test_vectors_come_back_as_they_went_in(store: VectorStore) -> None:
    fill(store)
    found = store.nearest(unit(0.0), 9, Filter())
    vectors = store.vectors([item.id for item in found] + [999])
    assert set(vectors) == {item.id for item in found}
    assert vectors[found[1].id].tolist() == unit(np.pi / 6).tolist()


def test_what_was_cut_by_lines_is_named_at_each_of_its_places(store: VectorStore) -> None:
    with store.writing():
        store.set_space(SPACE)
        store.write([entry("h1", "a.py", "x"), replace(entry("h2", "b.py", "y"), detail="its parser crashed")])
        store.replace(view(member("h1", "a.py"), member("h2", "c/b.py"), member("h2", "b.py")))
    assert list(store.cut_by_lines()) == [
        CutByLines("b.py", "its parser crashed"),
        CutByLines("c/b.py", "its parser crashed"),
    ]
    with store.writing():
        store.replace(view(member("h1", "a.py")))
    assert list(store.cut_by_lines()) == []


def test_what_a_build_left_out_and_what_files_looked_like_is_remembered(store: VectorStore) -> None:
    seen = {"a.py": FileState(10, 123456789, 7, "h1")}
    skipped = (Skipped("z.bin", SkipReason.BINARY, "NUL at 3", "hz"), Skipped("b.min.js", SkipReason.MINIFIED))
    with store.writing():
        store.set_space(SPACE)
        store.write(
            [
                entry("h1", "a.py", "x"),
                Entry(Ref("hz", Kind.DOC, "z.bin", "hz"), "r", (), SkipReason.BINARY, "NUL at 3"),
            ]
        )
        store.replace(view(member("h1", "a.py"), seen=seen, skipped=skipped))
    assert store.seen() == seen
    assert list(store.skipped()) == sorted(skipped, key=lambda item: item.path)
    known = store.known()
    assert (known["hz"].skip, known["hz"].detail, known["hz"].recipe) == (SkipReason.BINARY, "NUL at 3", "r")
    assert known["h1"].skip is None
    with store.writing():
        store.replace(view(member("h1", "a.py")))
    assert store.seen() == {}
    assert store.known().keys() == {"h1"}


def test_names_collections_and_spaces(store: VectorStore) -> None:
    fill(store)
    names = store.names()
    assert (names.corpora, names.kinds, names.projects) == ({"code", "docs"}, {"code", "doc"}, {""})
    code, docs = store.collections()
    assert (code.name, code.artifacts, code.chunks, code.embedded, code.characters) == ("code-toy-2", 1, 2, 2, 20)
    assert (docs.corpus, docs.kinds, docs.bytes) == ("docs", {"doc": 1}, len("delta") + 8)
    (space,) = store.spaces()
    assert (space.space, space.vectors, space.bytes) == ("toy-2", 3, 24)
    assert store.size() > 0


def test_clearing(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.clear(corpus="docs")
    assert store.names().corpora == {"code"}
    assert store.keyword(["delta"], 9, Filter()) == []
    assert store.built() is None
    with store.writing():
        store.clear(space=SPACE)
        assert len(store.pending(SPACE)) == 2
        store.clear()
    assert store.names().corpora == frozenset()
    assert store.state() is None


def test_replacing_with_the_same_writes_nothing(store: VectorStore, path: Path) -> None:
    fill(store)
    files = [path, *path.parent.glob("*-wal")]
    before = [file.read_bytes() for file in files]
    with store.writing():
        store.replace(view(member("h1", "src/a.py"), member("h2", "docs/b.md", Kind.DOC, "docs")))
        store.set_space(SPACE)
        store.finish("r1")
    assert [file.read_bytes() for file in files] == before


def record(name: str, *texts: str, project: str = "", metadata: str = "{}") -> RecordEntry:
    made = entry(f"{name}-{'-'.join(texts)}", f"notes/{name}", *texts, kind=Kind.WIKI)
    return RecordEntry(name, project, metadata, made)


def test_records_belong_to_every_view_and_to_no_build(stores: Sequence[VectorStore]) -> None:
    main, side = stores
    fill(main)
    with main.writing():
        assert main.upsert("own", [record("a", "omega", metadata='{"n": 1}')], SPACE) == Upserted(1, 0, 0, 0)
        assert [item.chunk.text for item in main.pending(SPACE, Filter(builders=("",)))] == ["omega"]
        main.add_vectors(SPACE, [digest("omega")], np.stack([unit(1.0)]), None)
        main.replace(view())
    assert main.names().corpora == {"own"}
    for store in (main, side):
        (found,) = store.keyword(["omega"], 9, Filter(corpora=("own",)))
        passage = store.passages([found.id], Filter())[found.id]
        assert (passage.kind, passage.paths, passage.corpora) == (Kind.WIKI, ("notes/a",), ("own",))
        assert passage.record is not None
        assert (passage.record.id, passage.record.metadata) == ("a", {"n": 1})
        assert store.vectors([found.id])[found.id] == pytest.approx(unit(1.0))
    assert not side.has_members()
    assert main.embedded_chunks(SPACE, ["a-omega"]) == {"a-omega": []}


def test_a_record_gives_way_to_its_next_version_and_keeps_what_did_not_change(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.upsert("own", [record("a", "omega", "psi")], SPACE)
        store.add_vectors(SPACE, [digest("omega"), digest("psi")], np.stack([unit(1.0), unit(2.0)]))
        assert store.upsert("own", [record("a", "omega", "psi")], SPACE) == Upserted(0, 0, 1, 0)
        assert store.upsert("own", [record("a", "omega", "chi")], SPACE) == Upserted(0, 1, 0, 1)
        assert [item.chunk.text for item in store.pending(SPACE)] == ["chi"]
        assert store.keyword(["psi"], 9, Filter()) == []
        assert store.upsert("own", [record("a", "omega", "chi", project="peer")], SPACE) == Upserted(0, 1, 0, 1)
        assert store.names().projects == {"", "peer"}
        assert store.remove_records("own", ["a", "b"]) == 1
        assert store.remove_records("own", ["a"]) == 0
    assert store.keyword(["omega", "chi"], 9, Filter()) == []
    assert store.names().projects == {""}


def test_each_corpus_has_its_own_members_and_revision(stores: Sequence[VectorStore]) -> None:
    main, side = stores
    fill(main)
    own = Member("own", "own", "h1", Part.WHOLE, "src/a.py", Kind.CODE)
    with main.writing():
        main.replace(View(("own",), [own], {}, (), frozenset({"", "side"})))
        main.finish("r2", ("own",))
    assert main.members("own") == [own]
    assert [item.hash for item in main.members("code")] == ["h1"]
    assert (main.built(), main.revisions()) == ("r1", {"code": "r1", "docs": "r1", COMMITS: "r1", "own": "r2"})
    assert (side.members("own"), side.revisions()) == ([], {})
    assert main.progress(SPACE, Filter(builders=("own",))) == (2, 2)
    with main.writing():
        main.clear(corpus="own")
    assert (main.members("own"), main.revisions()) == ([], {"code": "r1", "docs": "r1", COMMITS: "r1"})
    assert len(main.keyword(["beta"], 9, Filter())) == 2


def test_a_large_batch_is_stored_like_a_small_one(stores: Sequence[VectorStore]) -> None:
    """Passages from a thousand on take another way into the keyword index."""
    store = stores[0]
    rows = [
        entry(f"big{number}", f"big/{number}.py", *(f"word{number} w{seq} both" for seq in range(3)))
        for number in range(400)
    ]
    fill(store)
    with store.writing():
        members = [member(each.ref.hash, str(each.ref.path)) for each in rows]
        written = store.write(rows, view=view(member("h1", "src/a.py"), *members))
        assert (written.chunks, written.reused, written.dropped.artifacts) == (1200, 0, 1)
        again = store.write([entry("copy", "copy.py", "word7 w1 both")])
        store.replace(view(member("h1", "src/a.py"), member("copy", "copy.py"), *members[:10]))
        assert again.chunks == 1
    assert len(store.keyword(["both"], 2000, Filter())) == 31
    assert texts(store, store.keyword(["word7"], 9, Filter(paths=("copy.py",)))) == ["word7 w1 both"]
    assert set(texts(store, store.keyword(["alpha", "word3"], 9, Filter()))) == {
        "alpha beta", "word3 w0 both", "word3 w1 both", "word3 w2 both",
    }  # fmt: skip


def test_what_travels_of_an_artifact(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.write(
            [entry("h3", "src/c.py", "alpha beta", "new")],
            view=view(member("h1", "src/a.py"), member("h3", "src/c.py")),
        )
        assert store.interrupted()
        found = store.embedded_chunks(SPACE, ["h3", "h2", "nothing"])
        assert [(item.seq, item.text, item.digest) for item in found["h3"]] == [
            (0, "alpha beta", digest("alpha beta")),
            (1, "new", digest("new")),
        ]
        first, second = (item.vector for item in found["h3"])
        assert first is not None
        assert first.tolist() == unit(0.0).tolist()
        assert second is None
        assert (list(found["h2"]), list(found["nothing"])) == ([], [])
        store.add_vectors(SPACE, [digest("new")], unit(1.0)[None], Completion("r2"))
        assert (store.built(), store.interrupted(), store.artifacts()) == ("r2", False, 2)
    assert store.normalise() == (0, 0)


def test_holdings_name_every_place_and_what_is_stored_there(stores: Sequence[VectorStore]) -> None:
    store, other = stores
    fill(store)
    holdings = {(it.corpus, it.path): it for it in store.holdings()}
    assert set(holdings) == {("code", "src/a.py"), ("docs", "docs/b.md")}
    code = holdings["code", "src/a.py"]
    assert (code.builder, code.project, code.kind, code.hash, code.version) == ("code", "", Kind.CODE, "h1", "h1")
    assert (code.chunks, code.embedded, code.characters, code.bytes) == (2, 2, 20, 20)
    assert other.holdings() == []
    # Not every chunk embedded, a copy, a text beyond ASCII, and a record, which every view sees.
    with store.writing():
        store.write([entry("h3", "src/c.py", "käse")])
        store.replace(view(member("h1", "src/a.py"), member("h1", "src/b.py"), member("h3", "src/c.py")))
        store.upsert("records", [record("r", "alpha beta", project="lib")], SPACE)
    holdings = {(it.corpus, it.path): it for it in store.holdings()}
    assert set(holdings) == {("code", "src/a.py"), ("code", "src/b.py"), ("code", "src/c.py"), ("records", "notes/r")}
    late = holdings["code", "src/c.py"]
    assert (late.chunks, late.embedded, late.characters, late.bytes) == (1, 0, 4, 5)
    noted = holdings["records", "notes/r"]
    assert (noted.project, noted.version, noted.embedded) == ("lib", None, 1)
    assert [it.corpus for it in other.holdings()] == ["records"]


def project(name: str = "lib", revision: str = "p1") -> Project:
    return Project(name, "git", "/src/lib", "", None, (), revision, SPACE, 1.0)


def theirs(key: str, path: str, kind: Kind = Kind.CODE, corpus: str = "code") -> Member:
    return Member(corpus, IMPORTED, key, Part.WHOLE, path, kind)


def import_lib(store: VectorStore) -> None:
    """The project ``lib``: a copy of ``h1``'s first passage, and one passage of its own, at 60 degrees."""
    with store.writing():
        entries = [entry("h1", "lib/a.py", "alpha beta"), entry("p1", "lib/p.py", "peer words")]
        vectors = np.stack([unit(0.0), unit(np.pi / 3)])
        store.copy_in("lib", entries, SPACE, [digest("alpha beta"), digest("peer words")], vectors)
        store.place_project(project(), [theirs("h1", "lib/a.py"), theirs("p1", "lib/p.py", Kind.API)])


def test_an_imported_project_is_found_by_every_view_beside_what_is_ours(stores: Sequence[VectorStore]) -> None:
    store, other = stores
    fill(store)
    import_lib(store)
    found = store.nearest(unit(0.0), 9, Filter())
    passages = store.passages([item.id for item in found], Filter())
    assert [(passages[item.id].project, passages[item.id].chunk.text) for item in found] == [
        ("", "alpha beta"), ("lib", "alpha beta"), ("", "beta gamma"), ("lib", "peer words"), ("", "delta"),
    ]  # fmt: skip
    assert texts(store, store.nearest(unit(0.0), 9, Filter(projects=("lib",)))) == ["alpha beta", "peer words"]
    assert texts(other, other.nearest(unit(0.0), 9, Filter())) == ["alpha beta", "peer words"]
    assert texts(store, store.keyword(["peer"], 9, Filter())) == ["peer words"]
    assert texts(store, store.keyword(["lib"], 9, Filter(paths=("lib/p.py",)))) == ["peer words"]
    assert store.names().projects == {"", "lib"}
    assert store.projects() == [project()]
    (status,) = store.project_statuses()
    assert (status.name, status.artifacts, status.chunks, status.embedded, status.space) == ("lib", 2, 2, 2, "toy-2")


def test_builds_and_imported_projects_leave_each_other_alone(store: VectorStore) -> None:
    fill(store)
    import_lib(store)
    assert store.progress(SPACE, Filter(imported=False)) == (3, 3)
    assert store.progress(SPACE) == (5, 5)
    with store.writing():
        store.replace(view(member("h2", "docs/b.md", Kind.DOC, "docs")))
        assert store.known().keys() == {"h2"}
        assert store.known("lib").keys() == {"h1", "p1"}
        assert not store.interrupted()
    assert texts(store, store.nearest(unit(0.0), 9, Filter())) == ["alpha beta", "peer words", "delta"]
    with store.writing():
        store.clear(corpus="docs")
    assert texts(store, store.nearest(unit(0.0), 9, Filter())) == ["alpha beta", "peer words"]
    assert store.has_members() is False
    with store.writing():
        store.set_space(OTHER)
        assert store.pending(OTHER, Filter(imported=False)) == []
        assert len(store.pending(OTHER)) == 2
    assert [status.embedded for status in store.project_statuses()] == [0]


def test_a_project_is_replaced_and_removed_whole(store: VectorStore) -> None:
    fill(store)
    import_lib(store)
    with store.writing():
        store.upsert("records", [record("r", "note", project="lib")], SPACE)
        store.copy_in("lib", [entry("p2", "lib/q.py", "peer words", "two")], SPACE, [], np.empty((0, 2), np.float32))
        # Until it is placed no view sees it.
        assert texts(store, store.keyword(["two"], 9, Filter())) == []
        dropped = store.place_project(project(revision="p2"), [theirs("p2", "lib/q.py"), theirs("p2", "lib/r.py")])
    assert (dropped.artifacts, dropped.chunks) == (2, 2)
    assert texts(store, store.keyword(["two"], 9, Filter())) == ["two"]
    assert texts(store, store.keyword(["r"], 9, Filter(kinds=(Kind.CODE,), projects=("lib",)))) == ["two", "peer words"]
    # The same words have their vector from what they took the place of.
    assert texts(store, store.nearest(unit(np.pi / 3), 1, Filter(projects=("lib",)))) == ["peer words"]
    (passage,) = store.passages([store.keyword(["two"], 1, Filter())[0].id], Filter()).values()
    assert passage.paths == ("lib/q.py", "lib/r.py")
    assert store.projects() == [project(revision="p2")]
    with store.writing():
        assert store.remove_project("lib").artifacts == 1
    assert store.projects() == []
    # A caller's records of the same project are not imported.
    assert store.names().projects == {"", "lib"}
    assert texts(store, store.keyword(["note"], 9, Filter())) == ["note"]


def test_what_an_import_that_was_stopped_left_is_swept_away(store: VectorStore) -> None:
    fill(store)
    with store.writing():
        store.copy_in("lib", [entry("p1", "p.py", "peer words")], SPACE, [digest("peer words")], unit(0.0)[None])
    assert texts(store, store.nearest(unit(0.0), 9, Filter())) == ["alpha beta", "beta gamma", "delta"]
    assert (store.projects(), store.project_statuses()) == ([], [])
    with store.writing():
        store.replace(view(member("h1", "src/a.py"), member("h2", "docs/b.md", Kind.DOC, "docs")))
        assert store.known("lib") == {}
    assert texts(store, store.nearest(unit(0.0), 9, Filter())) == ["alpha beta", "beta gamma", "delta"]


def test_a_project_may_be_all_there_is(store: VectorStore) -> None:
    import_lib(store)
    state = store.state()
    assert state is not None
    assert (state.space, store.revisions()) == (SPACE, {})
    assert texts(store, store.nearest(unit(0.0), 9, Filter())) == ["alpha beta", "peer words"]
    moment = store.moment()
    with store.writing():
        store.place_project(
            replace(project(), imported=2.0), [theirs("h1", "lib/a.py"), theirs("p1", "lib/p.py", Kind.API)]
        )
    assert (store.moment(), store.projects()) == (moment, [project()])
    with store.writing():
        store.clear()
    assert store.projects() == []


def test_a_filter_of_every_kind_is_no_filter(store: VectorStore) -> None:
    fill(store)
    every = Filter(kinds=(Kind.CODE, Kind.DOC, Kind.WIKI))
    query = unit(0.0)
    assert store.nearest(query, 9, every) == store.nearest(query, 9, Filter())
    assert store.keyword(["beta"], 9, every) == store.keyword(["beta"], 9, Filter())
    assert store.progress(SPACE, every) == (3, 3)
    # What is written and not placed yet belongs to no kind that anybody may see.
    with store.writing():
        store.write([entry("h9", "late.py", "beta late")])
    assert store.keyword(["late"], 9, every) == []
    with store.writing():
        store.replace(view(member("h1", "src/a.py"), member("h2", "docs/b.md", Kind.INSTRUCTION, "docs")))
    assert [it.id for it in store.nearest(query, 9, every)] == [it.id for it in store.nearest(query, 2, Filter())]


def test_a_run_of_terms_is_found_as_a_phrase(store: VectorStore) -> None:
    fill(store)
    assert texts(store, store.keyword(["alpha beta"], 9, Filter())) == ["alpha beta"]
    assert store.keyword(["beta alpha"], 9, Filter()) == []


def test_the_vocabulary_knows_stems_and_the_words_behind_them(store: VectorStore) -> None:
    with store.writing():
        store.set_space(SPACE)
        store.write([entry("h1", "a.md", "connections and a connection", "scheduler", kind=Kind.DOC)])
        store.replace(view(member("h1", "a.md", Kind.DOC, "docs")))
    assert store.unknown(["connected", "conection", "scheduler"]) == {"conection"}
    assert store.stems("co") == {"connect": 1}
    assert set(store.stems("s")) == {"schedul"}
    assert store.stems("zz") == {}
    assert store.forms("connect") == {"connections", "connection"}
    assert store.forms("nowhere") == frozenset()


def test_the_vocabulary_of_some_kinds_and_of_a_view_holds_no_other_words(store: VectorStore) -> None:
    with store.writing():
        store.set_space(SPACE)
        store.write(
            [
                entry("h1", "a.md", "connections", kind=Kind.DOC),
                entry("h2", "b.py", "connection", kind=Kind.CODE),
                entry("h3", "c.md", "connecting", kind=Kind.DOC),
            ]
        )
        store.replace(view(member("h1", "a.md", Kind.DOC, "docs"), member("h2", "b.py", Kind.CODE, "code")))
    assert store.unknown(["connection"], [Kind.DOC, Kind.CODE]) == frozenset()
    assert store.unknown(["connection"], [Kind.WIKI]) == {"connection"}
    assert store.forms("connect", [Kind.DOC]) == {"connections"}
    assert store.forms("connect", [Kind.CODE, Kind.WIKI]) == {"connection"}
    assert store.forms("connect", [Kind.WIKI]) == frozenset()
    assert store.forms("connect") == {"connections", "connection"}


def test_definitions_are_found_by_their_own_name(store: VectorStore) -> None:
    named = [("Pool", "class"), ("Pool.drain", "def"), ("pool", "loose"), ("a.Pool, a.Other", "two"), ("Pooling", "no")]
    with store.writing():
        store.set_space(SPACE)
        made = entry("h1", "a.py", *(text for _, text in named))
        chunks = [
            replace(digested, chunk=replace(digested.chunk, name=name))
            for digested, (name, _) in zip(made.chunks, named, strict=True)
        ]
        store.write([replace(made, chunks=chunks)])
        store.replace(view(member("h1", "a.py")))
    names = {key: passage.chunk.name for key, passage in store.passages(range(1, 6), Filter()).items()}
    assert [names[key] for key in store.defining("Pool", 9, Filter())] == ["Pool", "a.Pool, a.Other", "pool"]
    assert [names[key] for key in store.defining("drain", 9, Filter())] == ["Pool.drain"]
    assert len(store.defining("Pool", 2, Filter())) == 2
    assert store.defining("Pool", 9, Filter(kinds=(Kind.DOC,))) == []
    assert store.defining("«»", 9, Filter()) == []


COMMIT = Filter(kinds=(Kind.COMMIT,))
OTHERS = Filter(commits=False)


def commit_entry(key: str, text: str) -> Entry:
    cut = Chunk(0, text, 0, len(text), 1, 1, text.partition("\n")[0])
    return Entry(Ref(key, Kind.COMMIT, None, key), "1/toy", [Digested(cut, digest(text))])


def with_commits(store: VectorStore, *more: Entry) -> None:
    """Two passages of code, and the commits ``c1`` and ``c2``; vectors for all of them."""
    entries = [
        entry("h1", "1.py", "alpha beta"),
        entry("h2", "2.py", "alpha gamma"),
        commit_entry("c1", "alpha delta"),
        commit_entry("c2", "epsilon delta"),
        *more,
    ]
    members = [
        Member("docs", COMMITS, item.ref.hash, Part.WHOLE, None, Kind.COMMIT)
        if item.ref.kind is Kind.COMMIT
        else member(item.ref.hash, item.ref.path or "")
        for item in entries
    ]
    whole = replace(view(*members), builders=("code", "docs", COMMITS))
    store.write(entries, SPACE, whole)
    digests = [item.digest for each in entries for item in each.chunks]
    store.add_vectors(SPACE, digests, np.stack([unit(0.1 * place) for place in range(len(digests))]))


def hashes_of(store: VectorStore, ids: Sequence[int]) -> list[str]:
    passages = store.passages(ids, Filter())
    return [passages[each].hash for each in ids]


@pytest.mark.parametrize("again", [False, True])
def test_commits_are_found_only_where_they_are_wanted(store: VectorStore, again: bool) -> None:
    with_commits(store)
    if again:
        # From the second question on, vectors are kept in memory.
        store.nearest(unit(1.0), 1, Filter())
        store.nearest(unit(2.0), 1, Filter())
    for wanted, expected in (
        (OTHERS, {"h1", "h2"}),
        (COMMIT, {"c1", "c2"}),
        (Filter(), {"h1", "h2", "c1", "c2"}),
        (Filter(kinds=(Kind.CODE,)), {"h1", "h2"}),
        (Filter(kinds=(Kind.CODE, Kind.COMMIT), commits=False), {"h1", "h2", "c1", "c2"}),
        (Filter(corpora=("docs",)), {"c1", "c2"}),
        (Filter(corpora=("docs",), commits=False), set()),
        (Filter(paths=("*.py",)), {"h1", "h2"}),
    ):
        near = store.nearest(unit(0.0), 10, wanted)
        assert set(hashes_of(store, [item.id for item in near])) == expected, wanted
        assert [item.score for item in near] == sorted((item.score for item in near), reverse=True)
        worded = store.keyword(["alpha", "epsilon"], 10, wanted)
        assert set(hashes_of(store, [item.id for item in worded])) == expected, wanted
        assert store.progress(SPACE, wanted) == (len(expected), len(expected))
    assert len(store.nearest(unit(0.0), 3, Filter())) == 3
    assert len(store.keyword(["alpha", "epsilon"], 3, Filter())) == 3


def test_the_same_question_to_both_groups_has_the_same_scores(store: VectorStore) -> None:
    with_commits(store)
    question = unit(0.15)
    answers = [[store.nearest(question, 5, OTHERS), store.nearest(question, 5, COMMIT)] for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert [item.score for item in answers[0][1]] == pytest.approx([np.cos(0.05), np.cos(0.15)])


def test_commits_change_no_word_statistics_of_the_rest(store: VectorStore) -> None:
    files = [entry(f"f{number}", f"f{number}.py", f"zeta number {number}") for number in range(8)]

    def scored() -> list[tuple[str, float]]:
        found = store.keyword(["beta", "gamma", "zeta"], 10, OTHERS)
        return [
            (key, item.score) for key, item in zip(hashes_of(store, [item.id for item in found]), found, strict=True)
        ]

    with_commits(store, *files)
    before = scored()
    assert before[0][1] > 1
    with_commits(store, *files, *(commit_entry(f"more{number}", f"gamma beta {number}") for number in range(50)))
    assert dict(scored()) == dict(before)
    assert store.stems("delt") == {}


def test_words_of_commits_are_known_where_their_kind_is_named(store: VectorStore) -> None:
    with_commits(store)
    assert store.unknown(["alpha", "epsilon"]) == {"epsilon"}
    assert store.unknown(["alpha", "epsilon", "gamma"], [Kind.COMMIT]) == {"gamma"}
    assert store.unknown(["alpha", "epsilon", "gamma"], list(Kind)) == frozenset()
    assert store.defining("delta", 5, COMMIT) == []


def test_a_commit_that_no_view_names_any_more_is_gone(stores: Sequence[VectorStore]) -> None:
    main, side = stores
    with_commits(main)
    side.write([], view=replace(view(), builders=("code", "docs", COMMITS), members=[]))
    only = Member("docs", COMMITS, "c2", Part.WHOLE, None, Kind.COMMIT)
    side.replace(replace(view(), builders=(COMMITS,), members=[only]))
    assert hashes_of(side, [item.id for item in side.keyword(["delta"], 5, COMMIT)]) == ["c2"]
    assert side.nearest(unit(0.0), 5, OTHERS) == []
    main.replace(replace(view(), builders=(COMMITS,), members=[]))
    assert main.keyword(["delta"], 5, COMMIT) == []
    assert main.nearest(unit(0.0), 5, COMMIT) == []
    assert len(main.nearest(unit(0.0), 5, OTHERS)) == 2
    assert set(main.known()) == {"h1", "h2", "c2"}

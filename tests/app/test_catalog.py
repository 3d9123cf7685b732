"""What an index says that it holds: right sums, the reader's kinds only, and nothing of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fossil_program import SampleRepository
from hypothesis import given
from hypothesis import strategies as st

import outcrop
from outcrop.app.catalog import Catalog, Folder, catalog
from outcrop.app.index import Index
from outcrop.core.model import Kind, Record, SkipReason
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.render import to_json

NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": "# Tides\n\nHow high the water stands.", "id": "a"},
            {"cell_type": "code", "metadata": {}, "source": "def tide():\n    return 3\n", "outputs": [], "id": "b"},
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    root = tmp_path / "harbour"
    files = {
        "README.md": "# Harbour\n\nShips come and go.\n",
        "src/ship.py": "def sail():\n    return 'käpt’n'\n",
        "src/deck/mast.py": "def hoist():\n    return 1\n",
        "copy/deck/mast.py": "def hoist():\n    return 1\n",
        "lab/tide.ipynb": NOTEBOOK,
        ".env": "TOKEN=1\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with outcrop.open(root, settings={"embedder": "hash", "dim": 64}) as index:
        yield index


def look(index: Index, **more: object) -> Catalog:
    return catalog(index.store, index.source, index.embedder, **more)  # type: ignore[arg-type]


def test_without_an_index_there_is_nothing_and_no_error(index: Index) -> None:
    found = look(index)
    assert (found.exists, found.space, found.total.chunks, found.bytes, found.folders) == (False, None, 0, None, ())
    assert not index.store.path.exists()


def test_sums_by_corpus_kind_project_and_place(index: Index) -> None:
    index.build()
    index.upsert([Record("n1", "The pilot comes aboard.", project="pilots")])
    found = look(index)
    assert found.total.artifacts == 5  # README, ship, mast (twice), the notebook, the record
    assert {it.tally.name: it.tally.artifacts for it in found.corpora} == {"code": 3, "docs": 2, "records": 1}
    assert {it.name: it.artifacts for it in found.kinds} == {"code": 3, "doc": 3}
    assert [it.name for it in found.projects] == ["", "pilots"]
    assert {(it.corpus, it.project, it.kind) for it in found.cells} == {
        ("code", "", Kind.CODE),
        ("docs", "", Kind.DOC),
        ("records", "pilots", Kind.DOC),
    }
    assert sum(it.tally.chunks for it in found.cells) == found.total.chunks == found.total.embedded
    code = next(it.tally for it in found.corpora if it.tally.name == "code")
    texts = ["def sail():\n    return 'käpt’n'", "def hoist():\n    return 1", "def tide():\n    return 3"]
    assert code.characters == sum(map(len, texts))
    assert code.bytes == sum(len(text.encode()) for text in texts) + 3 * 64 * 4
    assert found.complete == 1.0
    assert found.bytes == index.status().bytes
    assert [(it.space, it.vectors) for it in found.spaces] == [("hash-64-64", found.total.embedded)]


def test_folders_hold_what_is_below_them_and_deep_ones_are_summed(index: Index) -> None:
    index.build()
    (tree,) = look(index).folders
    assert (tree.name, tree.path, tree.artifacts) == ("", "", 5)
    assert {it.name: it.artifacts for it in tree.children} == {"src": 2, "copy": 1, "lab": 1}
    source = next(it for it in tree.children if it.name == "src")
    assert [(it.name, it.path, it.artifacts) for it in source.children] == [("deck", "src/deck", 1)]
    (shallow,) = look(index, depth=1).folders
    assert shallow.children == tuple(
        Folder(it.name, it.path, it.artifacts, it.chunks, it.characters, it.bytes, ()) for it in tree.children
    )
    (flat,) = look(index, depth=0).folders
    assert (flat.children, flat.bytes) == ((), tree.bytes)


def test_what_was_left_out_stands_with_its_reason(index: Index) -> None:
    index.build()
    found = {it.reason: [item.path for item in it.files] for it in look(index).omissions}
    assert found == {SkipReason.SECRET: [".env"], SkipReason.BINARY: ["logo.png"]}
    assert all(it.count == len(it.files) for it in look(index).omissions)


def test_each_corpus_is_as_current_as_its_own_build(index: Index) -> None:
    index.build()
    index.upsert([Record("n1", "The pilot comes aboard.")])
    assert not look(index).stale
    (index.source.root / "late.md").write_text("# Late\n\nThe ferry is late.\n")
    index.build(corpus="notebooks", paths=["lab"])
    found = {it.tally.name: it for it in look(index).corpora}
    assert look(index).stale
    assert (found["notebooks"].stale, found["code"].stale, found["docs"].stale) == (False, True, True)
    assert (found["records"].revision, found["records"].stale) == (None, False)
    assert found["notebooks"].revision == look(index).current != found["code"].revision


def test_nothing_of_this_machine_is_in_it(index: Index) -> None:
    index.build()
    assert str(index.source.root.parent) not in to_json(look(index))


FILES = frozenset({Kind.DOC, Kind.CODE, Kind.INSTRUCTION, Kind.MEDIA, Kind.API})


def test_a_reader_of_some_kinds_learns_of_these_alone(sample: SampleRepository, tmp_path: Path) -> None:
    with outcrop.open(sample.copy(tmp_path), settings={"embedder": "hash"}) as index:
        index.build()
        whole = look(index)
        assert {it.name for it in whole.kinds} > {"wiki", "technote", "ticket", "forum", "code"}
        assert {it.reason for it in whole.omissions} >= {SkipReason.BINARY, SkipReason.SECRET}
        for kinds in (FILES, frozenset({Kind.WIKI, Kind.TECHNOTE}), frozenset({Kind.TICKET}), frozenset[Kind]()):
            part = look(index, kinds=kinds)
            assert {it.name for it in part.kinds} == {it.name for it in whole.kinds} & kinds
            assert part.total.chunks == sum(it.chunks for it in whole.kinds if it.name in kinds)
            assert part.spaces[0].vectors == part.total.embedded
            assert (part.omissions, part.omissions_hidden, part.bytes) == ((), True, None)
            text = to_json(part)
            assert ("Feeding times" in text) is False
            assert ("docs" in {it.name for tree in part.folders for it in tree.children}) == (Kind.DOC in kinds)
            assert (sample.tip in text) == (Kind.CODE in kinds)
        most = FILES | {Kind.WIKI, Kind.TECHNOTE}
        assert look(index, kinds=most).omissions == whole.omissions
        # Wiki pages and technotes have names, no folders.
        assert all(it.name != "Feeding times" for tree in whole.folders for it in tree.children)


def test_what_was_taken_from_the_public_is_not_counted(sample: SampleRepository, tmp_path: Path) -> None:
    copy = sample.copy(tmp_path)
    with outcrop.open(copy, settings={"embedder": "hash"}) as index:
        index.build()
        before = look(index)
        (hit,) = index.search("a path with a space", mode="keyword", path="docs/with space.md", k=1).hits
        sample.fossil.run("sql", "-R", copy, f"INSERT INTO shun(uuid, mtime) VALUES ('{hit.hash}', 0)")
        after = look(index)
    assert after.total.artifacts == before.total.artifacts - 1
    assert "docs" not in {it.name for tree in after.folders for it in tree.children}


@given(
    st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=5), max_size=12, unique_by=tuple), st.integers(0, 4)
)
def test_every_folder_is_the_sum_of_its_files(paths: list[list[str]], depth: int) -> None:
    from outcrop.app.catalog import _tree
    from outcrop.core.model import Part
    from outcrop.core.rows import InventoryRow

    holdings = [
        InventoryRow("code", "code", "", Kind.CODE, "/".join([*path, "f"]), str(at), Part.WHOLE, "v", 1, 0, 10, 1 << at)
        for at, path in enumerate(paths)
    ]

    def check(folder: Folder) -> None:
        mine = [it for it in holdings if not folder.path or (it.path or "").startswith(f"{folder.path}/")]
        assert folder.bytes == sum(it.bytes for it in mine)
        assert (folder.artifacts, folder.chunks) == (len(mine), len(mine))
        assert folder.path.count("/") < max(depth, 1)
        for child in folder.children:
            assert child.path == f"{folder.path}/{child.name}".lstrip("/")
            check(child)

    check(_tree("", holdings, None, depth))


def test_status_shows_it(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-C", str(index.source.root), "--embedder", "hash", "--dim", "64"]
    assert main(["status", "--catalog", *where]) == 0
    assert "none yet" in capsys.readouterr().out
    index.build()
    assert main(["status", "--catalog", "--json", *where]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"]["artifacts"] == 4
    assert [it["tally"]["name"] for it in found["corpora"]] == ["code", "docs"]
    assert main(["status", "--catalog", *where]) == 0
    shown = capsys.readouterr().out
    assert "harbour (this one)" in shown
    assert "    deck/" in shown
    assert "left out 2: 1 binary, 1 may hold secrets" in shown
    assert ".env" not in shown
    assert main(["status", "--catalog", "--verbose", *where]) == 0
    assert ".env: may hold secrets" in capsys.readouterr().out

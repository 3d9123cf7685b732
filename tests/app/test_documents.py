"""Reading one artifact: exactly what is indexed can be read, word for word, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from fossil_program import SampleRepository
from repositories import write
from web_client import GUIDE, KETTLE, make_kettle, open_kettle

import outcrop
from outcrop.app.documents import Document, read
from outcrop.core.model import Kind, Record
from outcrop.errors import UnknownArtifact


def lines_of(document: Document, hit: outcrop.Hit) -> str:
    block = next(each for each in document.blocks if each.cell == hit.cell)
    first = hit.lines[0] - block.first_line
    return "\n".join(block.text.split("\n")[first : hit.lines[1] - block.first_line + 1])


def test_every_hit_can_be_read_at_its_lines(tmp_path: Path) -> None:
    with open_kettle(make_kettle(tmp_path / "kettle")) as index:
        hits = index.search("kettle water degrees agents temperatures vinegar", k=50).hits
        assert {hit.kind for hit in hits} == {Kind.CODE, Kind.DOC, Kind.INSTRUCTION}
        for hit in hits:
            document = read(index, path=hit.path, content_hash=hit.hash)
            assert (document.state, document.hash, document.path) == ("indexed", hit.hash, hit.path)
            assert hit.text.strip() in lines_of(document, hit)
        assert read(index, path="docs/guide.md").paths == ("docs/guide.md", "docs/copy of guide.md")
        assert [block.cell for block in read(index, path="lab/heat.ipynb").blocks] == [0, 1]


def test_every_sort_of_artifact_of_a_fossil_repository_can_be_read(sample: SampleRepository, tmp_path: Path) -> None:
    copy = tmp_path / "copy.fossil"
    copy.write_bytes(sample.repository.read_bytes())
    with outcrop.open(copy, settings={"embedder": "hash"}) as index:
        index.build()
        hits = index.search("a", k=500, mode="semantic").hits
        assert {hit.kind for hit in hits} >= {Kind.CODE, Kind.DOC, Kind.WIKI, Kind.TECHNOTE, Kind.TICKET, Kind.FORUM}
        for hit in hits:
            document = read(index, path=hit.path, content_hash=hit.hash)
            assert document.state == "indexed"
            assert any(hit.text.strip() in block.text for block in document.blocks)
            with pytest.raises(UnknownArtifact):
                read(index, path=hit.path, content_hash=hit.hash, kinds=frozenset(Kind) - {hit.kind})


def test_a_folder_shows_the_file_as_it_is_now_and_says_that_it_changed(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nThree minutes.\n")
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        assert read(index, path="tea.md").state == "indexed"
        index.build()
        assert read(index, path="tea.md").state == "indexed"
        (tmp_path / "tea.md").write_text("# Tea\n\nFour minutes.\n")
        changed = read(index, path="tea.md")
        assert changed.state == "changed"
        assert "Four" in changed.blocks[0].text
        (tmp_path / "tea.md").unlink()
        gone = read(index, path="tea.md")
        assert gone.state == "stored"
        assert gone.blocks[0].text == "# Tea\n\nThree minutes."


def test_git_still_has_what_was_indexed_and_committed(tmp_path: Path) -> None:
    folder = make_kettle(tmp_path / "kettle")
    write(folder, {"docs/guide.md": "other"})
    with open_kettle(folder) as index:
        document = read(index, path="docs/guide.md")
        assert (document.state, document.blocks[0].text) == ("indexed", GUIDE)


def test_records_are_read_from_the_index(tmp_path: Path) -> None:
    with open_kettle(make_kettle(tmp_path / "kettle")) as index:
        index.upsert([Record("tip", "Descale twice a year.\n\nOr more.", path="tips/1")])
        (hit,) = index.search("descale", corpus="records").hits
        document = read(index, path=hit.path, content_hash=hit.hash)
        assert document.state == "stored"
        assert document.blocks[0].text == "Descale twice a year.\n\nOr more."


NOWHERE: list[tuple[str | None, str | None]] = [
    ("../outside.txt", None),
    ("/etc/passwd", None),
    ("logo.bin", None),
    (".git/config", None),
    ("src", None),
    ("", None),
    ("src/kettle.py\x00", None),
    (None, None),
    (None, "0" * 40),
    ("docs/guide.md", "0" * 40),
]


@pytest.mark.parametrize("indexed", [True, False])
def test_nothing_else_can_be_read(tmp_path: Path, indexed: bool) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    folder = make_kettle(tmp_path / "kettle")
    with open_kettle(folder) as index:
        if not indexed:
            index.clear()
        assert read(index, path="src/kettle.py").blocks[0].text == KETTLE
        for path, content_hash in NOWHERE:
            with pytest.raises(UnknownArtifact):
                read(index, path=path, content_hash=content_hash)

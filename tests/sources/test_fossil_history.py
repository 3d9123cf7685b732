"""Check-ins of real Fossil repositories: only what the public may see, as it was amended."""

from __future__ import annotations

from pathlib import Path

import pytest
from fossil_program import Fossil, SampleRepository, query
from travel import Counting, opened

from outcrop.core.model import Artifact, Kind, Skipped, SkipReason
from outcrop.sources.fossil.source import FossilSource
from outcrop.sources.options import Options
from outcrop.text.commits import touched_files
from outcrop.transfer.fossil.unversioned import FossilTransfer
from outcrop.vcs.fossil import FossilLocation

pytestmark = pytest.mark.usefixtures("with_history")


@pytest.fixture
def copy(sample: SampleRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "HOME", "FOSSIL_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return sample.copy(tmp_path)


@pytest.fixture
def fossil(sample: SampleRepository) -> Fossil:
    return sample.fossil


def source_of(repository: Path, history: int | str = 2000) -> FossilSource:
    return FossilSource(FossilLocation(repository, None), Options(history=history))  # type: ignore[arg-type]


def texts(repository: Path, history: int | str = 2000) -> dict[str, str]:
    """The text of each check-in by its hash, newest first."""
    source = source_of(repository, history)
    refs = source.commits(source.revision({})).refs
    assert {ref.kind for ref in refs} <= {Kind.COMMIT}
    outcomes = list(source.read(refs))
    assert [item.ref for item in outcomes if isinstance(item, Artifact)] == list(refs)
    return {item.ref.hash: item.text for item in outcomes if isinstance(item, Artifact)}


def subjects(repository: Path, history: int | str = 2000) -> list[str]:
    return [text.partition("\n")[0] for text in texts(repository, history).values()]


def found(repository: Path, question: str) -> set[str]:
    with opened(repository) as index:
        answer = index.search(question, kind="commit", k=50)
        return {hit.text.partition("\n")[0] for hit in answer.hits}


def test_public_check_ins_are_listed_with_their_files(copy: Path, sample: SampleRepository) -> None:
    found = texts(copy)
    # Neither the private one nor the merge.
    assert [text.partition("\n")[0] for text in found.values()] == [
        "renamed and deleted",
        "to be merged",
        "branch",
        "everything",
        "initial empty check-in",
    ]
    assert sample.hidden not in found
    tip = found[sample.tip]
    assert tip.partition("\n\n")[2].startswith("alice, 20")
    assert set(touched_files(tip)) == {"docs/gone.md", "src/new_name.py", "src/old_name.py"}
    assert touched_files(found[sample.branch_tip]) == ("src/app.py",)
    assert touched_files(list(found.values())[-1]) == ()


def test_the_newest_come_first(copy: Path) -> None:
    assert subjects(copy, 2) == ["renamed and deleted", "to be merged"]
    assert subjects(copy, 0) == []
    assert len(subjects(copy, "all")) == 5


def test_an_amended_comment_counts(copy: Path, sample: SampleRepository, fossil: Fossil) -> None:
    before = source_of(copy).revision({})
    fossil.run("amend", sample.tip, "-m", "Moved two files away", "--author", "bob@example.org", "-R", copy)
    assert source_of(copy).revision({}) != before
    text = texts(copy)[sample.tip]
    assert text.startswith("Moved two files away\n\nbob, 20")


def test_a_hidden_branch_is_not_listed(copy: Path, sample: SampleRepository, fossil: Fossil) -> None:
    fossil.run("amend", sample.branch_tip, "--hide", "-R", copy)
    assert "branch" not in subjects(copy)
    assert "everything" in subjects(copy)


def test_what_is_hidden_or_shunned_between_listing_and_reading_is_skipped(
    copy: Path, sample: SampleRepository, fossil: Fossil
) -> None:
    source = source_of(copy)
    refs = source.commits(source.revision({})).refs
    fossil.run("amend", sample.branch_tip, "--hide", "-R", copy)
    query(copy, "INSERT INTO shun VALUES (?, 0, 'no')", sample.tip)
    left_out = [item for item in source.read(refs) if isinstance(item, Skipped)]
    assert {(item.path, item.reason) for item in left_out} == {
        (sample.branch_tip, SkipReason.VANISHED),
        (sample.tip, SkipReason.VANISHED),
    }


@pytest.mark.parametrize("way", ["hide", "shun", "private"])
def test_what_is_withdrawn_is_no_hit_any_more_and_its_vectors_leave(
    copy: Path, sample: SampleRepository, fossil: Fossil, way: str
) -> None:
    with opened(copy, Counting()) as index:
        report = index.build()
        assert report.commits == 5
        assert index.build().embedded == 0
        assert not index.status().stale
    name = f"vec/{sample.tip}.bin"
    assert name in FossilTransfer(copy).names()
    assert "renamed and deleted" in found(copy, "renamed and deleted")
    if way == "hide":
        fossil.run("amend", sample.tip, "--hide", "-R", copy)
    elif way == "shun":
        query(copy, "INSERT INTO shun VALUES (?, 0, 'no')", sample.tip)
    else:
        query(copy, "INSERT INTO private SELECT rid FROM blob WHERE uuid = ?", sample.tip)
    # At once, though the index is behind.
    assert "renamed and deleted" not in found(copy, "renamed and deleted")
    with opened(copy) as index:
        index.build()
        assert not index.status().stale
    assert "renamed and deleted" not in found(copy, "renamed and deleted")
    assert name not in FossilTransfer(copy).names()
    rows = query(copy, "SELECT count(*) FROM fx_vec_chunk WHERE hash = ?", sample.tip)
    assert rows == [(0,)]


def test_they_come_with_a_clone(copy: Path, fossil: Fossil, tmp_path: Path) -> None:
    with opened(copy) as index:
        index.build()
    clone = tmp_path / "clone.fossil"
    fossil.run("clone", "--unversioned", copy.as_uri(), clone)
    query(clone, "DELETE FROM fx_vec_built")
    refusing = Counting(refuse=True)
    with opened(clone, refusing) as index:
        report = index.import_blobs()
        assert (report.missing, report.stale) == (0, 0)
        assert index.build().commits == 5
    assert "branch" in found(clone, "branch")
    assert refusing.texts == []

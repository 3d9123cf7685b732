"""Patterns as people write them: what they match, what they leave out, and what is said of one that means nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outcrop
from outcrop.errors import UsageError
from outcrop.text.globs import compile_patterns, escape_path, path_matcher, split_patterns

PATHS = ("a.py", "lib/a.py", "lib/deep/b.md", "t/lib/a.py", "docs/my notes.md")


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ((), PATHS),
        (("*.py",), ("a.py", "lib/a.py", "t/lib/a.py")),
        (("lib/",), ("lib/a.py", "lib/deep/b.md", "t/lib/a.py")),
        (("/lib/",), ("lib/a.py", "lib/deep/b.md")),
        (("./lib",), ("lib/a.py", "lib/deep/b.md")),
        ((".",), PATHS),
        (("./",), PATHS),
        (("/",), PATHS),
        (("!t/",), ("a.py", "lib/a.py", "lib/deep/b.md", "docs/my notes.md")),
        (("!t", "!*.md"), ("a.py", "lib/a.py")),
        (("*", "!t/"), ("a.py", "lib/a.py", "lib/deep/b.md", "docs/my notes.md")),
        (("!./lib/deep", "lib/**"), ("lib/a.py",)),
        (("docs/my\\ notes.md",), ("docs/my notes.md",)),
        (("docs/my notes.md",), ("docs/my notes.md",)),
    ],
)
def test_what_passes(patterns: tuple[str, ...], left: tuple[str, ...]) -> None:
    matches = path_matcher(patterns)
    assert tuple(path for path in PATHS if matches(path)) == left


@pytest.mark.parametrize("pattern", ["\\", "a\\", "!a\\", "src/**/\\"])
def test_what_means_nothing_is_named(pattern: str) -> None:
    with pytest.raises(UsageError, match="is not a pattern") as caught:
        path_matcher(["*.py", pattern])
    assert repr(pattern.lstrip("!")) in str(caught.value)


def test_of_several_the_wrong_one_is_named() -> None:
    with pytest.raises(UsageError, match=r"'x.*' is not a pattern"):
        compile_patterns(["*.py", "x\\", "y"])


NAMES = st.text(st.characters(exclude_characters="/\n\r", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
FOLDERS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=3).map("/".join)


@example("a\xa0", "a")
@example("\u2003", "b ")
@given(FOLDERS, FOLDERS)
def test_a_path_as_a_pattern_matches_itself_and_nothing_else(path: str, other: str) -> None:
    (pattern,) = split_patterns(escape_path(path))
    matches = path_matcher([pattern])
    assert matches(path)
    assert matches(f"{path}/below.md")
    assert matches(other) == (other == path or other.startswith(f"{path}/"))


def test_a_line_is_split_at_spaces() -> None:
    assert split_patterns(" src/**  *.md ") == ("src/**", "*.md")
    assert split_patterns("my\\ docs/ a\\\\ b\\") == ("my\\ docs/", "a\\\\", "b\\")
    assert split_patterns(" ") == ()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("# Kettles\n\nA kettle boils water.\n")
    return tmp_path


def test_wrong_patterns_are_refused_wherever_they_are_written(folder: Path) -> None:
    with outcrop.open(folder, settings={"embedder": "hash"}) as index:
        with pytest.raises(UsageError, match="is not a pattern"):
            index.search("kettle", path="a\\")
        index.build()
        with pytest.raises(UsageError, match="is not a pattern"):
            index.search("kettle", path="a\\")
        with pytest.raises(UsageError, match="is not a pattern"):
            index.build(corpus="own", paths=["*\\"])
    kinds = outcrop.open(folder, settings={"embedder": "hash", "kinds": {"a\\": "code"}})
    with kinds as index, pytest.raises(UsageError, match="is not a pattern"):
        index.build()

"""Patterns as people write them: what they match, what they leave out, and what is said of one that means nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

import outcrop
from outcrop.errors import UsageError
from outcrop.sources.ignore import PathFilter, compile_globs
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


PIECES = st.sampled_from(["a", "b", "é", ".md", "*", "?", "[ab]", "[!b]", "[a-c]", "-", "\\ ", "\\*"])
PARTS = st.just("**") | st.lists(PIECES, min_size=1, max_size=5).map("".join).filter(lambda part: "**" not in part)
PATTERNS = st.builds(
    lambda root, parts, end: root + "/".join(parts) + end,
    st.sampled_from(["", "/"]),
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
SHORT_NAMES = st.text("ab*é-. ", min_size=1, max_size=4).map(lambda name: f"a{name}" if name in (".", "..") else name)
SHORT_PATHS = st.lists(SHORT_NAMES, min_size=1, max_size=4).map("/".join)


@settings(deadline=None)
@example(["a/**"], ["a/b"])
@example(["**/a", "/b/"], ["a", "b/a", "b"])
@given(st.lists(PATTERNS, min_size=1, max_size=3), st.lists(SHORT_PATHS, min_size=1, max_size=8))
def test_any_patterns_choose_what_a_gitignore_with_them_names(patterns: list[str], paths: list[str]) -> None:
    chooses = compile_patterns(patterns)
    rules = PathFilter({b"": compile_globs(patterns)})
    spec = GitIgnoreSpec.from_lines(patterns)
    for path in paths:
        assert chooses(path) == spec.match_file(path)
        # To git ``?`` is one byte.
        assert not path.isascii() or chooses(path) == (rules.ignored_by(path.encode()) is not None)


@pytest.mark.parametrize(
    "pattern", ["*?" * 13 + "z", "*a" * 40 + "b", "**/" * 40 + "z", "**/*a/" * 40 + "b", "[a-z]*" * 40 + "!"]
)
def test_a_hostile_pattern_is_answered(pattern: str) -> None:
    script = "import sys; from outcrop.text.globs import path_matcher; print(path_matcher([sys.argv[1]])(sys.argv[2]))"
    long = "a" * 200 + "/" + "a/" * 100 + "c"
    run = subprocess.run([sys.executable, "-c", script, pattern, long], capture_output=True, timeout=30, check=True)
    assert run.stdout == b"False\n"


def test_a_bracket_that_nothing_closes_is_a_character() -> None:
    assert path_matcher(["a[b*"])("a[bc")
    assert not path_matcher(["a[b*"])("ab")


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

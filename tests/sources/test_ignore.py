"""Ignore rules mean what they mean to git: hand-picked cases, and any pattern at all against the real git."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repositories import git, write

from outcrop.sources.folder import FolderSource
from outcrop.sources.ignore import NO_RULES, PathFilter, compile_globs, compile_rules
from outcrop.sources.paths import to_bytes

FOLDERS = [b"", b"a", b"a/b", b"a/b/c", b"foo", b"foo/bar", b"x-y", b"a/foo", b"[a]"]
NAMES = ["a.txt", "b.txt", "ab", "foo.py", "x]y", "a-b", "#c", "!d", " e ", "A1", "back\\slash", "été", "\udcff"]
PIECES = [
    *("a", "b", "ab", "foo", "bar", ".py", ".txt", "x", "-", "]", "é", " ", "!", "#", "/", "*", "**", "?"),
    *("**/", "/**", "/**/", "[ab]", "[!a]", "[^b-z]", "[a-", "[]x]", "[[:alpha:]]", "[[:digit:]A]", "[[:foo:]]"),
    *("\\", "\\*", "\\!", "[a\\]]", "[--0]", "[b-a]", "**\\/", "[[:]", "[[::]]", "[[]", "[+-.]"),
]
LINES = st.builds(
    lambda negated, pieces, slash: negated + "".join(pieces) + slash,
    st.sampled_from(["", "", "", "!"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5),
    st.sampled_from(["", "", "/"]),
)
RULES = st.builds(
    lambda lines, newline, end: (newline.join(lines) + end).encode(),
    st.lists(LINES, min_size=1, max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    git(root, "init", "-q")
    for folder in FOLDERS:
        write(root / os.fsdecode(folder), dict.fromkeys(NAMES, "text\n"))
    return root


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rules=st.dictionaries(st.sampled_from(FOLDERS), RULES, min_size=1, max_size=3), exclude=st.just(b"") | RULES)
def test_any_rules_keep_what_git_keeps(tree: Path, rules: dict[bytes, bytes], exclude: bytes) -> None:
    files = [tree / os.fsdecode(folder) / ".gitignore" for folder in rules]
    (tree / ".git" / "info" / "exclude").write_bytes(exclude)
    try:
        for file, content in zip(files, rules.values(), strict=True):
            file.write_bytes(content)
        listed = git(tree, "ls-files", "-o", "--exclude-standard", "-z")
        kept = {path for path in listed.split(b"\0") if path}
        assert {to_bytes(ref.path or "") for ref in FolderSource(tree).artifacts({}).refs} == kept
        if not exclude:
            whole = PathFilter({folder: compile_rules(content) for folder, content in rules.items()})
            assert {path for path in every_file(tree) if whole.ignored_by(path) is None} == kept
    finally:
        for file in files:
            file.unlink()


def every_file(root: Path) -> list[bytes]:
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return [os.fsencode(path) for path in found if path.parts[0] != ".git"]


@pytest.mark.parametrize(
    ("rules", "path", "kept"),
    [
        ("build/", "build", True),
        ("build/", "build/x.c", False),
        ("/build", "src/build", True),
        ("build", "src/build/x.c", False),
        ("*.log\n!keep.log", "keep.log", True),
        ("logs/\n!logs/keep.log", "logs/keep.log", False),
        ("logs/*\n!logs/keep.log", "logs/keep.log", True),
        ("foo*\n!foo.d", "foo.d/foox", False),
        ("*\n!*/\n!*.py", "src/a.txt", False),
        ("*\n!*/\n!*.py", "src/a.py", True),
        ("doc/*.txt", "doc/a/b.txt", True),
        ("doc/**/*.txt", "doc/a/b.txt", False),
        ("\\#x", "#x", False),
        ("#x", "#x", True),
        ("x ", "x", False),
        ("x\\ ", "x ", False),
        ("\ufeffx", "x", False),
        ("a[", "a[", True),
        ("x\r", "x", False),
    ],
)
def test_the_rules_of_gitignore(rules: str, path: str, kept: bool) -> None:
    assert (PathFilter({b"": compile_rules(rules.encode())}).ignored_by(path.encode()) is None) is kept


def test_a_nearer_file_decides_and_the_strongest_rules_before_all() -> None:
    rules = {b"": compile_rules(b"*.txt"), b"docs": compile_rules(b"!*.txt")}
    assert PathFilter(rules).ignored_by(b"docs/a.txt") is None
    assert PathFilter(rules).ignored_by(b"a.txt") == b"a.txt"
    strict = PathFilter(rules, compile_globs(["docs/a.*"]))
    assert strict.ignored_by(b"docs/a.txt") == b"docs/a.txt"


def test_the_outermost_ignored_folder_is_named() -> None:
    keep = PathFilter({b"": compile_rules(b"vendor/")})
    assert keep.ignored_by(b"lib/vendor/x/y.py") == b"lib/vendor"


def test_default_folders_can_be_brought_back() -> None:
    default = frozenset({b"node_modules"})
    assert PathFilter({}, NO_RULES, default).ignored_by(b"web/node_modules/a.js") == b"web/node_modules"
    back = PathFilter({b"": compile_rules(b"!node_modules/")}, NO_RULES, default)
    assert back.ignored_by(b"web/node_modules/a.js") is None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (b"*a" * 40 + b"b", b"a" * 250),
        (b"/" + b"**/a/" * 20 + b"b", b"a/" * 120 + b"c"),
        (b"/" + b"*/" * 20 + b"**/" + b"*a" * 20 + b"b", b"a/" * 60 + b"a" * 100),
    ],
)
def test_a_hostile_pattern_takes_no_exponential_time(pattern: bytes, path: bytes) -> None:
    """In a process of its own: no thread can interrupt a regular expression, and centuries would pass."""
    script = (
        "from outcrop.sources.ignore import compile_rules\n"
        f"path = {path!r}\n"
        f"assert compile_rules({pattern!r}).verdict(path, path.rpartition(b'/')[2], False) is None\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_settings_are_the_same_syntax() -> None:
    assert compile_globs(["/gen/", "*.tmp"]).verdict(b"gen", b"gen", True) is True
    assert compile_globs(["/gen/", "*.tmp"]).verdict(b"a/gen", b"gen", True) is None


def test_folders_are_as_deep_as_they_are() -> None:
    keep = PathFilter({b"": compile_rules(b"out/\n"), b"d": compile_rules(b"*.tmp\n")})
    deep = b"d/" * 5000
    assert keep.ignored_by(deep + b"x.md") is None
    assert keep.ignored_by(deep + b"x.tmp") == deep + b"x.tmp"
    assert keep.ignored_by(deep + b"out/" + deep + b"x.md") == deep + b"out"

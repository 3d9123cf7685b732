"""What holds for every format: nothing lost, nothing twice, right lines, never over the ceiling."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from outcrop.chunking import VERSION, format_of, passage
from outcrop.chunking.artifact import chunk
from outcrop.chunking.rows import CEILING
from outcrop.core.model import Chunk, Kind, Part
from outcrop.text.tokenizer import count

PATHS: list[tuple[str | None, Kind]] = [
    *(
        (f"a.{ext}", Kind.CODE)
        for ext in "py js ts go rs java c h cpp cs rb php kt swift scala lua sh sql css scss".split()
    ),
    *((f"a.{ext}", Kind.CODE) for ext in "hs ml ex zig dart vue cr pl r jl nim f90 cob json toml yaml ini clj".split()),
    *((f"a.{ext}", Kind.CODE) for ext in "hcl proto cmake mk nix erl elm ps1 d m groovy csv".split()),
    *((f"a.{ext}", Kind.DOC) for ext in "md rst adoc html txt org tex wiki textile pod texi 1".split()),
    ("Dockerfile", Kind.CODE),
    ("bin/tool", Kind.CODE),
    ("LICENSE", Kind.DOC),
    (None, Kind.WIKI),
    (None, Kind.TICKET),
    (None, Kind.FORUM),
    ("a", Kind.INSTRUCTION),
    ("media/a.json", Kind.MEDIA),
]

SCRAPS = [
    *(
        "\n",
        "\n",
        "\n\n",
        "    ",
        "\t",
        "  ",
        " ",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        ":",
        ",",
        "=",
        '"',
        "'",
        "`",
        "\\",
    ),
    *("#", "//", "/*", "*/", "--", '"""', "```\n", "# ", "## Head\n", "Title\n=====\n", "== Part\n", "<h2>", "</h2>"),
    *("---\n", "<!--", "%%", "def f():\n", "class A:\n", "    def m(self):\n", "end\n", "func (e *E) Run() {\n"),
    *("fn f() {\n", "module M\n", "key: 1\n", "[table]\n", "function f() {\n", "return x\n", "@decorator\n"),
    *("#ifdef X\n", "#endif\n", "\r", "\f", "\v", "\x85", "\u2028", "\0", "\ud800", "é", "e\u0301", "漢字", "한국어"),
    *("🙂", "word ", "longer words of prose. ", "x" * 150, "# %%\n", "# %% [markdown]\n", "<script>\n", "</script>\n"),
    *("<template>\n", "$$", "BEGIN\n", "=head1 NAME\n", "=cut\n", "\f\n"),
]


def check(text: str, path: str | None, kind: Kind) -> list[Chunk]:
    """Assert every promise of ``chunk`` and return what it gave."""
    chunks = chunk(text, path, kind)
    windows = format_of(path, kind) == "windows"
    covered = bytearray(len(text))
    end = 0
    for seq, one in enumerate(chunks):
        assert one.seq == seq
        assert one.text == text[one.start : one.end]
        assert one.text.strip()
        assert count(one.text) <= CEILING
        assert one.first_line == text.count("\n", 0, one.start) + 1
        body = one.text.rstrip("\n")
        assert one.last_line == one.first_line + body.count("\n")
        assert windows or one.start >= end
        end = one.end
        covered[one.start : one.end] = b"x" * (one.end - one.start)
        assert one.cell is None
        assert passage(one).endswith(one.text)
    lost = [place for place, char in enumerate(text) if not covered[place] and not char.isspace()]
    assert not lost, f"lost {text[lost[0]]!r} at {lost[0]}"
    return chunks


texts = st.lists(st.sampled_from(SCRAPS) | st.text(max_size=8), max_size=60).map("".join)


@given(texts, st.sampled_from(PATHS))
@settings(max_examples=400)
@example("", ("a.py", Kind.CODE))
@example("\n\n \n", ("a.md", Kind.DOC))
@example("x", ("a.py", Kind.CODE))
@example("<p>a</p><h2>b</h2>c<h2>d</h2>", ("a.html", Kind.DOC))
def test_nothing_is_lost_nor_doubled(text: str, where: tuple[str | None, Kind]) -> None:
    assert check(text, *where) == chunk(text, *where)


@pytest.mark.parametrize(("path", "kind"), PATHS)
def test_long_noise_in_every_format(path: str | None, kind: Kind) -> None:
    noise = random.Random(f"{path}{kind}")
    chunks = check("".join(noise.choice(SCRAPS) for _ in range(2500)), path, kind)
    assert len(chunks) > 5


def test_the_path_matters_only_by_its_format() -> None:
    text = "import os\n\n\n" + "\n\n".join(f"def f{n}(a):\n    return a + {n}\n" for n in range(40))
    assert chunk(text, "a.py", Kind.CODE) == chunk(text, "deep/b.pyi", Kind.CODE)
    assert format_of("deep/b.pyi", Kind.CODE) == format_of("a.py", Kind.CODE) == "python"


@pytest.mark.parametrize(
    ("path", "kind", "form"),
    [
        ("a.ipynb", Kind.CODE, "notebook"),
        ("a.md", Kind.INSTRUCTION, "markdown"),
        ("rules", Kind.INSTRUCTION, "markdown"),
        ("a.py", Kind.WIKI, "wiki"),
        (None, Kind.TICKET, "posts"),
        (None, Kind.MEDIA, "transcript"),
        ("a.unheard", Kind.CODE, "windows"),
        ("a.unheard", Kind.DOC, "text"),
        ("data.csv", Kind.CODE, "windows"),
        ("a.cr", Kind.API, "crystal"),
        ("uv.lock", Kind.CODE, "toml"),
    ],
)
def test_formats(path: str | None, kind: Kind, form: str) -> None:
    assert format_of(path, kind) == form


def test_the_version_is_a_number_to_raise() -> None:
    assert isinstance(VERSION, int)
    assert VERSION >= 1


def test_only_newlines_end_lines() -> None:
    text = "one\rstill one\x85\u2028\v\fstill one\ntwo\n\nthree"
    (one,) = chunk(text, "a.txt", Kind.DOC)
    assert (one.first_line, one.last_line) == (1, 4)


def test_windows_overlap_so_that_a_boundary_is_whole_somewhere() -> None:
    lines = [f"{n},alpha,beta,gamma,{n * 7}\n" for n in range(400)]
    chunks = chunk("".join(lines), "data.csv", Kind.CODE)
    for above, below in pairwise(chunks):
        assert below.start < above.end < below.end
    assert all(any(a + b in c.text + "\n" for c in chunks) for a, b in pairwise(lines))


def test_a_script_without_extension_is_known_by_its_first_line() -> None:
    body = "\n".join(f"    value = compute({n}, offset={n})" for n in range(CEILING // 8))
    text = f"#!/usr/bin/env python3\n\n\ndef first():\n{body}\n\n\ndef second():\n{body}\n"
    assert [c.name for c in chunk(text, "bin/tool", Kind.CODE) if c.name] == ["first", "first", "second", "second"]


@pytest.mark.parametrize("path", ["a.txt", "a.json", "a.js", "a.csv", "a.md", "a.html"])
def test_a_megabyte_on_one_line(path: str) -> None:
    chunks = check('{"key": [1, 2, "some value"], "other": null}, ' * 6000, path, Kind.CODE)
    assert len(chunks) > 100


def test_a_megabyte_without_a_space() -> None:
    assert max(len(c.text) for c in check("QmFzZTY0" * 40000, "a.txt", Kind.DOC)) <= CEILING * 16


@pytest.mark.parametrize(
    ("path", "open_", "close"),
    [
        ("a.json", '{"a":\n', "}\n"),
        ("a.js", "function f() {\n", "}\n"),
        ("a.py", "", ""),
        ("a.html", "<div>\n", "</div>\n"),
        ("a.md", "> ", ""),
        ("a.scm", "(define (f)\n", ")\n"),
    ],
)
def test_deep_nesting(path: str, open_: str, close: str) -> None:
    if path == "a.py":
        text = "".join("  " * n + f"def f{n}():\n" for n in range(200)) + "  " * 200 + "pass\n"
    else:
        text = open_ * 2000 + "1\n" + close * 2000
    check(text, path, Kind.CODE)


@pytest.mark.parametrize("path", ["a.gleam", "a.groovy", "a.scss", "a.fs", "a.f90"])
def test_a_long_line_of_keywords_ends(path: str) -> None:
    check("public " * 20_000 + "\n" + "static\t" * 20_000 + "\n", path, Kind.CODE)


def test_posts_are_not_joined() -> None:
    posts = "It crashes.\n\f\nWhich version?\n\f\nThe newest.\n\nSince Monday.\n"
    expected = ["It crashes.", "Which version?", "The newest.\n\nSince Monday."]
    nameless = chunk("\n" + posts, None, Kind.TICKET)
    assert [(c.text, c.name, c.first_line) for c in nameless] == list(zip(expected, [None] * 3, [2, 4, 6], strict=True))
    # A subject names every post; alone it is none, and with the first post it goes along.
    reply = chunk("Crash on start\n\f\n" + posts, None, Kind.FORUM)
    assert [(c.text, c.name) for c in reply] == [(text, "Crash on start") for text in expected]
    first, *rest = chunk("Crash on start\n\n" + posts, None, Kind.TICKET)
    assert first.text == "Crash on start\n\nIt crashes."
    assert [c.text for c in rest] == expected[1:]
    assert [c.text for c in chunk("Crash on start", None, Kind.TICKET)] == ["Crash on start"]


def make(text: str, name: str | None) -> Chunk:
    return Chunk(0, text, 0, len(text), 1, 1, name, Part.WHOLE)


def test_a_passage_says_what_the_text_does_not() -> None:
    assert passage(make("def run(self): ...", "Flask.run")) == "Flask.run\ndef run(self): ..."
    assert passage(make("class Flask:\n    def run(self): ...", "Flask.run")) == "class Flask:\n    def run(self): ..."
    assert passage(make("## Linux\n\nUse apt.", "Install > Linux")) == "Install > Linux\n## Linux\n\nUse apt."
    assert passage(make("# Install\n\nUse apt.", "Install")) == "# Install\n\nUse apt."
    assert passage(make("x = 1", None)) == "x = 1"
    assert passage(make("prerun = 1", "run")) == "run\nprerun = 1"

"""Where code is cut and what the pieces are called, language by language."""

from __future__ import annotations

from pathlib import Path

import pytest

from outcrop.chunking import code
from outcrop.chunking.artifact import chunk
from outcrop.chunking.code import has_grammar
from outcrop.chunking.grammars import ENTRY_POINTS, QUERIES
from outcrop.chunking.regex_outline import OUTLINES
from outcrop.chunking.rows import CEILING
from outcrop.core.model import Chunk, Kind
from outcrop.text.filetypes import LANGUAGES
from outcrop.text.tokenizer import count


def cut(path: str, text: str) -> list[Chunk]:
    return chunk(text, path, Kind.CODE)


def body_of(template: str, mark: str) -> str:
    """A body that fits under the ceiling, and of which two do not."""
    body = ""
    for n in range(100):
        line = template.format(n=f"{n}{mark}") + "\n"
        if count(body + line) > 0.7 * CEILING:
            break
        body += line
    return body


def lines(template: str, indent: str, times: int = 14) -> str:
    """So many lines under a ceiling of 256, in proportion under another."""
    times = round(times * CEILING / 256)
    return "".join(f"{indent}{template.format(n=n)}\n" for n in range(times))


# Path, source with two bodies, and the names under which the bodies must be found.
CASES: list[tuple[str, str, str, list[str]]] = [
    ("a.py", "class A:\n    def one(self):\n{}\n    def two(self):\n{}", "        go(v{n}, {n})", ["A.one", "A.two"]),
    ("a.js", "class A {{\n  one() {{\n{}  }}\n\n  two() {{\n{}  }}\n}}\n", "    go(v{n}, {n});", ["A.one", "A.two"]),
    ("a.js", "a.one = function () {{\n{}}};\n\nconst two = () => {{\n{}}};\n", "  go(v{n}, {n});", ["a.one", "two"]),
    (
        "a.jsx",
        "export function One() {{\n{}}}\n\nexport default function Two() {{\n{}}}\n",
        "  go({n}, 1);",
        ["One", "Two"],
    ),
    (
        "a.ts",
        "export class A<T> {{\n  one(): T {{\n{}  }}\n\n  two() {{\n{}  }}\n}}\n",
        "    go(v{n}, {n});",
        ["A.one", "A.two"],
    ),
    (
        "a.tsx",
        "namespace N {{\n  function one() {{\n{}  }}\n\n  function two() {{\n{}  }}\n}}\n",
        "    go({n}, 1);",
        ["N.one"],
    ),
    (
        "a.go",
        "package a\n\nfunc (e *E[T]) One() {{\n{}}}\n\nfunc Two() {{\n{}}}\n",
        "\tgo_(v{n}, {n})",
        ["E.One", "Two"],
    ),
    (
        "a.rs",
        "impl<T> Show for A<T> {{\n    fn one() {{\n{}    }}\n\n    fn two() {{\n{}    }}\n}}\n",
        "        go({n}, 1);",
        ["A.one", "A.two"],
    ),
    (
        "A.java",
        "@X\nclass A {{\n  A() {{\n{}  }}\n\n  void two() {{\n{}  }}\n}}\n",
        "    go(v{n}, {n});",
        ["A.A", "A.two"],
    ),
    ("a.c", "static int *one(int a) {{\n{}}}\n\nint two(void) {{\n{}}}\n", "  go(v{n}, {n});", ["one", "two"]),
    (
        "a.cpp",
        "namespace n {{\nclass A {{\n  void one() {{\n{}  }}\n}};\nvoid A::two() {{\n{}}}\n}}\n",
        "    go(v{n}, {n});",
        ["n.A", "n.A.two"],
    ),
    (
        "a.h",
        "namespace n {{\ntemplate <class T> T one(T a) {{\n{}}}\nvoid B<int>::two() {{\n{}}}\n}}\n",
        "  go({n}, 1);",
        ["n.one", "n.B.two"],
    ),
    (
        "a.cs",
        "namespace N.M {{\n  class A {{\n    void One() {{\n{}    }}\n    int Two {{ get {{\n{}    }} }}\n  }}\n}}\n",
        "      go(v{n}, {n});",
        ["N.M.A.One", "N.M.A.Two"],
    ),
    (
        "a.rb",
        "module M\n  class A\n    def one\n{}    end\n\n    def self.two\n{}    end\n  end\nend\n",
        "      go(v{n}, {n})",
        ["M.A.one", "M.A.two"],
    ),
    (
        "a_spec.rb",
        'describe "A" do\n  it "does one" do\n{}  end\n\n  it "does two" do\n{}  end\nend\n',
        "    go(v{n}, {n})",
        ["A > does one", "A > does two"],
    ),
    (
        "a.php",
        "<?php\nclass A {{\n  function one() {{\n{}  }}\n\n  function two() {{\n{}  }}\n}}\n",
        "    go($v{n}, {n});",
        ["A.one", "A.two"],
    ),
    (
        "a.kt",
        "class A {{\n  fun one() {{\n{}  }}\n\n  fun two() {{\n{}  }}\n}}\n",
        "    go(v{n}, {n})",
        ["A.one", "A.two"],
    ),
    (
        "a.swift",
        "extension A {{\n  init() {{\n{}  }}\n\n  func two() {{\n{}  }}\n}}\n",
        "    go(v{n}, {n})",
        ["A.init", "A.two"],
    ),
    (
        "a.scala",
        "object A {{\n  def one() = {{\n{}  }}\n\n  def two() = {{\n{}  }}\n}}\n",
        "    go(v{n}, {n})",
        ["A.one", "A.two"],
    ),
    ("a.lua", "function M.one()\n{}end\n\nM.two = function()\n{}end\n", "  go(v{n}, {n})", ["M.one", "M.two"]),
    ("a.sh", "one() {{\n{}}}\n\nfunction two {{\n{}}}\n", '  go "$v{n}" {n}', ["one", "two"]),
    (
        "a.sql",
        "CREATE TABLE s.one (\n{}  z int);\n\nCREATE TABLE two (\n{}  z int);\n",
        "  c{n} varchar({n}),",
        ["s.one", "two"],
    ),
    ("a.css", ".one > a {{\n{}}}\n\n#two {{\n{}}}\n", "  margin-{n}: {n}px;", [".one > a", "#two"]),
    ("a.scss", "@mixin one($a) {{\n{}}}\n\n.two {{\n{}}}\n", "  margin-{n}: {n}px;", ["one", ".two"]),
    ("a.hs", "one :: Int -> IO ()\none a = do\n{}\ntwo a = do\n{}", '  go v{n} {n} "x"', ["one", "two"]),
    (
        "a.ml",
        "module A = struct\n  let one a =\n{}    a\n\n  let two a =\n{}    a\nend\n",
        "    go v{n} {n};",
        ["A.one", "A.two"],
    ),
    (
        "a.ex",
        'defmodule A.B do\n  def one(a) do\n{}  end\n\n  @doc "x"\n  defp two(a) when a do\n{}  end\nend\n',
        "    go(v{n}, {n})",
        ["A.B.one", "A.B.two"],
    ),
    ("a.zig", "pub fn one() void {{\n{}}}\n\nfn two() void {{\n{}}}\n", "    go(v{n}, {n});", ["one", "two"]),
    (
        "a.dart",
        "class A {{\n  void one() {{\n{}  }}\n\n  two() {{\n{}  }}\n}}\n",
        "    go(v{n}, {n});",
        ["A.one", "A.two"],
    ),
    ("a.erl", "one(A) ->\n{}    A.\n\ntwo(A) ->\n{}    A.\n", "    go(v{n}, {n}),", ["one", "two"]),
    ("a.clj", "(defn one [a]\n{}  a)\n\n(defmacro ^:x two [a]\n{}  a)\n", "  (go v{n} {n} :x)", ["one", "two"]),
    (
        "a.jl",
        "module M\nfunction one(a)\n{}end\n\nfunction two(a)\n{}end\nend\n",
        "    go(v{n}, {n})",
        ["M.one", "M.two"],
    ),
    ("a.r", "one <- function(a) {{\n{}}}\n\ntwo = function(b) {{\n{}}}\n", "  go(v{n}, {n})", ["one", "two"]),
    ("a.pl", "package A;\n\nsub one {{\n{}}}\n\nsub two {{\n{}}}\n", "  go($v{n}, {n});", ["one", "two"]),
    (
        "a.f90",
        "module m\ncontains\nsubroutine one(a)\n{}end subroutine one\n\n"
        "function two(a)\n{}end function two\nend module m\n",
        "  call go(v{n}, {n})",
        ["m.one", "m.two"],
    ),
    (
        "a.vue",
        "<template>\n  <p>x</p>\n</template>\n\n"
        '<script lang="ts">\nfunction one() {{\n{}}}\n\nfunction two() {{\n{}}}\n</script>\n',
        "  go(v{n}, {n});",
        ["script.one", "script.two"],
    ),
    (
        "a.cr",
        "class A(T)\n  def one : Nil\n{}  end\n\n  private def self.two\n{}  end\nend\n",
        "    go(v{n}, {n})",
        ["A.one", "A.self.two"],
    ),
    ("a.cr", "lib C\n  struct One\n{}  end\nend\n\nmacro two(a)\n{}end\n", "    f{n} : Int{n}", ["C.One", "two"]),
    ("a.nim", "proc one*(a: int) =\n{}\nproc `+`(a: int) =\n{}", "  go(v{n}, {n})", ["one", "+"]),
    (
        "a.cob",
        "       ONE SECTION.\n{}       TWO SECTION.\n{}",
        "           MOVE V{n} TO W{n}.",
        ["ONE SECTION", "TWO SECTION"],
    ),
    ("a.yaml", "one:\n{}two:\n{}", "  key{n}: value {n}", ["one", "two"]),
    ("a.toml", "[one]\n{}\n[[two.three]]\n{}", 'key{n} = "value {n}"', ["one", "two.three"]),
    (
        "a.json",
        '{{\n  "one": {{\n{}    "z": 0}},\n  "two": {{\n{}    "z": 0}}\n}}\n',
        '    "key{n}": "v {n}",',
        ["one", "two"],
    ),
    ("a.ini", "[one]\n{}\n[two]\n{}", "key{n} = value {n}", ["one", "two"]),
    (
        "a.tf",
        'resource "one" "x" {{\n{}}}\n\nvariable "two" {{\n{}}}\n',
        "  key{n} = {n}",
        ["resource one x", "variable two"],
    ),
    ("a.proto", "message One {{\n{}}}\n\nmessage Two {{\n{}}}\n", "  int32 f{n} = {n};", ["One", "Two"]),
    (
        "a.fs",
        "module M\n\ntype A() =\n    member x.One a =\n{}        a\n\n    static member Two (a: int) =\n{}        a\n",
        "        go v{n} {n} |> ignore",
        ["A.One", "A.Two"],
    ),
    (
        "a.elm",
        "module A exposing (..)\n\n{{-| What\none does. -}}\none : Int -> Int\none a =\n{}    a\n\ntwo a =\n{}    a\n",
        "    go v{n} {n} <|",
        ["one", "two"],
    ),
    ("a.gleam", "pub fn one(\n  a: Int,\n) -> Int {{\n{}}}\n\nfn two() {{\n{}}}\n", "  go(v{n}, {n})", ["one", "two"]),
    (
        "a.sol",
        "contract A is B {{\n    function one(\n        uint a\n    ) public {{\n{}    }}\n\n"
        "    modifier two() {{\n{}    }}\n}}\n",
        "        go(v{n}, {n});",
        ["A.one", "A.two"],
    ),
    ("a.thrift", "struct One {{\n{}}}\n\nservice Two {{\n{}}}\n", "  {n}: i32 f{n},", ["One", "Two"]),
    ("a.cmake", "function(one a)\n{}endfunction()\n\nmacro(two)\n{}endmacro()\n", "  set(V{n} {n})", ["one", "two"]),
    ("a.fish", "function one\n{}end\n\nfunction two --on-event x\n{}end\n", "    go v{n} {n}", ["one", "two"]),
    ("a.gd", "func one(a):\n{}\nstatic func two() -> int:\n{}", "\tgo(v{n}, {n})", ["one", "two"]),
    (
        "a.el",
        '(defun one (a)\n  "What it does.\nIn two lines."\n{}  a)\n\n(cl-defmethod two ((a b))\n{}  a)\n',
        "  (go v{n} {n})",
        ["one", "two"],
    ),
    ("a.rkt", "#lang racket\n(define (one a b)\n{}  a)\n\n(define two\n{}  1)\n", "  (go v{n} {n})", ["one", "two"]),
    (
        "a.f",
        "      SUBROUTINE ONE(A)\nC     WHAT IT DOES\n{}      END\n\n      INTEGER FUNCTION TWO(A)\n{}      END\n",
        "      CALL GO(V{n}, {n})",
        ["ONE", "TWO"],
    ),
    ("test-a.R", 'test_that("it\'s one", {{\n{}}})\n\ntwo <- \\(a) {{\n{}}}\n', "  go(v{n}, {n})", ["it's one", "two"]),
    ("Makefile", "one: two\n{}\ntwo:\n{}", "\tgo v{n} {n} --flag", ["one", "two"]),
]


@pytest.mark.parametrize(("path", "source", "line", "names"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)])
def test_definitions_are_found_whole_under_their_names(path: str, source: str, line: str, names: list[str]) -> None:
    bodies = [body_of(line, mark) for mark in "12"]
    text = source.format(*bodies)
    chunks = cut(path, text)
    for name, body in zip(names, bodies, strict=False):
        homes = [c for c in chunks if body.rstrip("\n") in c.text]
        assert homes, f"{name} is torn apart: {[(c.name, c.text) for c in chunks]}"
        assert name in (homes[0].name or "").split(", "), [(c.name, c.first_line) for c in chunks]
    assert not [c.text for c in chunks if not any(map(str.isalnum, c.text)) or c.text.strip() == "end"]


@pytest.mark.parametrize("language", sorted(QUERIES))
def test_every_query_fits_its_grammar(language: str) -> None:
    assert has_grammar(language)


def test_every_extension_means_something_that_is_served() -> None:
    served = set(QUERIES) | set(OUTLINES) | {"h", "m", "component", "notebook"}
    assert set(LANGUAGES.values()) <= served


def test_comments_decorators_and_attributes_stay_with_what_they_describe() -> None:
    body = lines("go({n}, {n} + 1)", "    ", 16)
    head = "# Why this exists.\n# In two lines.\n@first\n@second(1)\ndef one():"
    text = f"{lines('import a{n}', '')}\n\n{head}\n{body}\n\ndef two():\n{body}"
    one = next(c for c in cut("a.py", text) if c.name == "one")
    assert one.text.startswith(head)
    body = lines("go({n}, {n} + 1);", "  ", 16)
    head = lines("var a{n} = require(1);", "")
    text = f"{head}\n/**\n * Says what it does.\n */\n\napp.one = function () {{\n{body}}};\n"
    imports, one = cut("a.js", text)
    assert (imports.name, one.name) == (None, "app.one")
    assert one.text.startswith("/**")
    text = f"{lines('use a{n};', '')}\n/// Doc.\n#[derive(Debug)]\npub fn one() {{\n{body}}}\n"
    assert cut("a.rs", text)[-1].text.startswith("/// Doc.\n#[derive(Debug)]\npub fn one()")


def test_small_neighbours_share_a_chunk_and_a_large_one_does_not() -> None:
    body = lines("go({n}, {n} + 1)", "    ", 16)
    small = "import os\nimport sys\n\nLIMIT = 3\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"
    text = f"{small}\n\ndef big():\n{body}"
    assert [(c.name, c.first_line) for c in cut("a.py", text)] == [("one, two", 1), ("big", 15)]


def test_a_class_over_the_ceiling_gives_its_head_and_its_methods() -> None:
    body = lines("self.go({n}, {n} + 1)", "        ")
    doc = lines("Words that explain the class, number {n}.", "    ", 6)
    opening = f'class A(B):\n    """Short.\n\n{doc}    """\n\n    field = 1\n'
    text = f"{opening}\n    def one(self):\n{body}\n    def two(self):\n{body}"
    head, one, two = cut("a.py", text)
    assert (head.name, one.name, two.name) == ("A", "A.one", "A.two")
    assert head.text.startswith("class A(B):")
    assert head.text.endswith("field = 1")
    assert one.text.startswith("    def one(self):")


def test_a_short_class_line_is_not_left_alone() -> None:
    body = lines("self.go({n}, {n} + 1)", "        ")
    text = f"class A(B):\n    def one(self):\n{body}\n    def two(self):\n{body}"
    one, two = cut("a.py", text)
    assert (one.name, two.name) == ("A.one", "A.two")
    assert one.text.startswith("class A(B):\n    def one(self):")


def test_a_long_function_is_cut_between_statements_and_keeps_its_name() -> None:
    blocks = "".join(
        f"    for item{n} in source{n}:\n        if item{n}:\n            use(item{n})\n\n" for n in range(40)
    )
    chunks = cut("a.py", f"def long():\n{blocks}")
    assert len(chunks) > 2
    assert {c.name for c in chunks} == {"long"}
    assert all(c.text.startswith(("def", "    for")) for c in chunks)


def test_closures_do_not_tear_a_function_apart() -> None:
    body = lines("go({n}, {n} + 1)", "    ", 24)
    text = f"def long():\n{body}    def helper(x):\n        return x\n{body}"
    assert {c.name for c in cut("a.py", text)} == {"long"}


def test_a_statement_around_definitions_is_whole_while_it_fits() -> None:
    body = lines("go({n}, {n} + 1)", "        ", 6)
    text = f"try:\n    import fast\nexcept ImportError:\n    def one():\n{body}\n    def two():\n{body}"
    (only,) = cut("a.py", text)
    assert only.name == "one, two"


def test_a_heading_comment_goes_with_what_it_heads() -> None:
    body = lines("go({n}, {n} + 1);", "  ", 16)
    ruled = "// " + "-" * 20
    text = f"int one() {{\n{body}}}\n\n{ruled}\n// Part two\n{ruled}\n\nint two() {{\n{body}}}\n"
    one, two = cut("a.c", text)
    assert one.text.endswith("}")
    assert two.text.startswith(ruled)


def test_a_table_of_constants_has_the_name_of_the_constant() -> None:
    text = "import a\n\nTABLE = {\n" + lines("'key{n}': {n} * 1000,", "    ", 20) + "}\n\nsmall = 1\n"
    assert "TABLE" in [c.name for c in cut("a.py", text)]


def test_files_with_syntax_errors_are_still_cut_at_definitions() -> None:
    body = lines("go({n}, {n} + 1)", "    ", 16)
    text = f"def one(:\n{body}\ndef two():\n{body}\n)))\n\ndef three():\n{body}"
    assert {"two", "three"} <= {c.name for c in cut("a.py", text)}


def test_headers_are_read_in_the_language_they_are_written_in() -> None:
    body = lines("go({n}, {n} + 1);", "    ")
    assert "A.one" in [
        c.name for c in cut("a.h", f"class A {{\n  void one() {{\n{body}  }}\n  void two() {{\n{body}  }}\n}};\n")
    ]
    assert "one" in [c.name for c in cut("a.h", f"int one(int a) {{\n{body}}}\nint two(int a) {{\n{body}}}\n")]
    objc = f"#import <A.h>\n\n@implementation A\n- (void)one {{\n{body}}}\n\n- (void)two {{\n{body}}}\n@end\n"
    assert "A.two" in [c.name for c in cut("a.m", objc)]


def test_two_definitions_on_one_line_do_not_confuse() -> None:
    (only,) = cut("a.js", "function a() {} function b() {}\n")
    assert only.text == "function a() {} function b() {}"


def test_without_a_grammar_the_patterns_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcrop.chunking.grammars.QUERIES", {})
    code._load_grammar.cache_clear()
    try:
        for path, source, line, names in CASES:
            if path.endswith((".py", ".go", ".rs", ".java", "a.rb", ".php", ".swift", ".kt", ".scala")):
                text = source.format(*(body_of(line, mark) for mark in "12"))
                found = {part.rpartition(".")[2] for c in cut(path, text) for part in (c.name or "").split(", ")}
                wanted = {name.rpartition(".")[2] for name in names} - {"init", "A"}
                assert wanted <= found, path
    finally:
        code._load_grammar.cache_clear()


def test_a_grammar_that_does_not_load_is_said_once_and_patterns_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(ENTRY_POINTS, "go", ("no_such_grammar", "language"))
    code._load_grammar.cache_clear()
    try:
        for _ in range(2):
            assert [c.name for c in cut("a.go", "func one() {\n}\n")] == ["one"]
    finally:
        code._load_grammar.cache_clear()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "go files are cut by patterns" in record.getMessage()
    assert "no_such_grammar" in record.getMessage()


def test_the_package_itself() -> None:
    for path in sorted(Path(__file__).parent.parent.parent.joinpath("src").rglob("*.py")):
        text = path.read_text("utf-8")
        chunks = cut(str(path), text)
        assert all(count(c.text) <= CEILING for c in chunks)
        assert "".join("".join(c.text for c in chunks).split()) == "".join(text.split())

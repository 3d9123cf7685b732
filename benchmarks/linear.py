"""Does the time of anything that reads a text grow faster than the text?

usage: linear.py [--only WORD]... [--largest CHARACTERS] [--deadline SECONDS] [--grammars]

Every regular expression of the package (found in its modules and in its source), every format, and what decodes,
classifies, splits and matches gets texts made to be slow: each beginning of what a pattern matches repeated, each of
its repetitions long and then broken off, blanks between two words, blank lines, one long line, deep nesting. A text is
doubled from 1,024 characters until it is large or takes half a second.

It fails (exit 1, each finding named) where a doubling takes more than 2.5 times as long, or a step more than the
deadline. Only steps over 20 ms of processor time count; one that grows too much is measured again, five times, and
must then have grown so over two doublings.
`--only` names what to try (`pattern`, `format markdown`); without `--grammars` code is read by patterns, as it is where
a parser gives up.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import multiprocessing
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import outcrop

GROWTH = 2.5
MEASURABLE = 0.02
ENOUGH = 0.5
SMALLEST = 1 << 10

# Findings of one target after which it is left.
MOST = 4

PACKAGE = Path(outcrop.__file__).parent

# Characters that callers hand to a pattern at most: where it is not linear, this is why it needs not be.
BOUNDS = {
    "chunking.regex_outline.OUTLINES": 400,  # _LONGEST_HEAD
    "chunking.regex_outline._CSS": 400,
    "chunking.regex_outline._OCAML": 400,
    "chunking.regex_outline._LISP": 400,
    "chunking.code:": 400,  # _text
    "chunking.headings._LINK": 2000,  # _LONGEST_TITLE
    "chunking.headings._MARKS": 2000,
    "chunking.artifact._SHEBANG": 256,
    "chunking.rows._CLOSER": 200,  # TextRows.closer
    "chunking.rows._STRONG": 56,  # one word and its white space
    "core.names": 200,
    "evaluation.labels": 4096,
    "text.decoding._GENERATED": 2048,  # _SMALL
    "text.decoding._DO_NOT_EDIT": 2048,
    "text.filetypes._MANUAL": 255,  # a file's name
    "text.decoding._MINIFIED_NAME": 255,
    "sources.secrets._NAME": 255,
    "sources.secrets._HARMLESS": 255,
}


class Adversary(NamedTuple):
    """``before``, ``unit`` as often as fits, ``after``; then ``close`` as often as the unit."""

    before: str
    unit: str
    after: str = ""
    close: str = ""

    def text(self, size: int) -> str:
        times = max(1, (size - len(self.before) - len(self.after)) // (len(self.unit) + len(self.close)))
        return self.before + self.unit * times + self.after + self.close * times

    def __str__(self) -> str:
        parts = [repr(self.before)] if self.before else []
        parts += [f"{self.unit!r} × n"]
        parts += [repr(self.after)] if self.after else []
        parts += [f"{self.close!r} × n"] if self.close else []
        return " + ".join(parts)


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured; ``largest`` are the characters at which its callers stop."""

    run: Callable[[str], object]
    adversaries: tuple[Adversary, ...]
    largest: int = 1 << 30


# ------------------------------------------------------------------------------------------------------ adversaries

TOKENS = (
    *(
        "a",
        "a ",
        " ",
        "\t",
        "\n",
        "\n ",
        " \n",
        "\f\n",
        "\r",
        "é",
        "漢",
        "\u0301",
        ".",
        "a.",
        "0",
        "0:",
        "Aa",
        "_",
        "a_",
    ),
    *("[", "](", "![", "[]", "[a](", "(", ")", "{", "}", "{#", "<", "</", "<a", "<a ", ">", "> ", "&", "&#", "&lt;"),
    *(
        "*",
        "**a",
        "`",
        "``",
        "~",
        "```\n",
        "~~~\n",
        "#",
        "# a\n",
        "# \n",
        "- ",
        "- a\n",
        "* a\n",
        "1. ",
        "1. a\n",
        "+\n",
    ),
    *(
        "> a\n",
        ">\n",
        "| a ",
        "|",
        "|a|b|\n|-|-|\n",
        "=",
        "==",
        "= a\n",
        "a\n=\n",
        "-",
        "--\n",
        "---\n",
        "a\n-\n",
        "\\",
    ),
    *("<!--", "-->", "<h1", "<h1>", "<h1>a</h1>", "<pre", "<pre>", "<title", "<title>", "<script>", "</script", "<v "),
    *("# %%\n", "#%%", "# %% [markdown]\n# # a\n", "%%", "FROM ", "FROM a AS b\n", "@", "@a", "$", "%", "^", "!", "'"),
    *('"', '"a', "/*", "*/", "//", "(*", "*)", "--", ";", ",", "a,\n", ":", "::", "?", "import a\n", "def a():\n"),
    *("00:01.000 --> 00:02.000\na\n\n", "[a]\n", "[a]: b\n", "a = b\n", "begin\n", "end\n", "}\n", "{\n", "(\n", ")\n"),
    *("#if\n", "#endif\n", "u\n", "password", "-----BEGIN PRIVATE KEY-----\n", "\\section{", "\\begin{verbatim}\n"),
)
SHAPES = (
    *(Adversary("", token) for token in TOKENS),
    *(Adversary("# ", token, "\n") for token in TOKENS if "\n" not in token),
    *(Adversary("= ", token, "!") for token in TOKENS if "\n" not in token),
    *(Adversary(word, " ", "b") for word in ("a", "# a", "= a", "FROM a", "<v", "title: a", "- a", "a =")),
    *(Adversary("", " ", "", close) for close in ("\n", "a")),
    *(Adversary("", opening, "a", closing) for opening, closing in ("()", "[]", "{}", "<>", ("<b>", "</b>"))),
    Adversary("a\n", "\n", "a"),
    Adversary("---\ntitle:", " ", "a\n---\n"),
    Adversary("WEBVTT\n\n00:01.000 --> 00:02.000\n<v", " ", "a"),
    Adversary("WEBVTT\n\n00:01.000 --> 00:02.000\n", "<v ", "a"),
    Adversary("WEBVTT\n\n00:01.000 --> 00:02.000\n", "<b ", "a"),
    Adversary("WEBVTT\n\n00:01.000 --> 00:02.000\n", "a\n"),
    Adversary("WEBVTT\n\n", "00:01.000 --> 00:02.000\na\nb\n\n"),
    Adversary("", "1\n00:00:01,000 --> 00:00:02,000\na\n\n"),
    Adversary("# a", " ", "#b\n"),
    Adversary("# a\n\n", "b\n\n"),
    Adversary("", "## a\n\nb\n\n"),
    Adversary("a", " a\n"),
    Adversary("def a():\n", " b\n"),
    Adversary("", "class A:\n    def b(self):\n        c\n"),
)  # fmt: skip


def adversaries_of(pattern: re.Pattern[Any]) -> Iterator[Adversary]:
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = parser.parse(source, pattern.flags & ~re.UNICODE & ~re.DEBUG)
    for choice in range(24):
        steps = list(_steps(tree, choice, []))
        if choice and steps == list(_steps(tree, choice - 1, [])):
            continue
        before = ""
        for at, (piece, repeats) in enumerate(steps):
            ends = ("", "\0", "!\n", "b")
            units = {piece, piece + " ", piece + "\n"}
            if repeats:
                following = next((unit for unit, _ in steps[at + 1 :] if unit != piece), "")
                units |= {piece + following, "a ", " ", "\n"}
            for unit in sorted(units - {""}):
                for end in ends if repeats else ends[:2]:
                    yield Adversary(before, unit, end)
            before += piece
            yield Adversary("", before)
            yield Adversary("", before + " ")
            yield Adversary("", before + "\n")
            yield Adversary("\n", before, "\n")


def _steps(tree: Any, choice: int, groups: list[str]) -> Iterator[tuple[str, bool]]:
    """A text that matches, piece by piece, and whether a piece may be repeated; ``choice`` of each alternation."""
    for op, value in tree:
        if op in (ops.LITERAL, ops.NOT_LITERAL):
            yield (chr(value) if op is ops.LITERAL else "a" if value != 97 else "b"), False
        elif op is ops.ANY:
            yield "a", False
        elif op is ops.IN:
            yield _member(value, choice), False
        elif op is ops.BRANCH:
            yield from _steps(value[1][choice % len(value[1])], choice // max(1, min(len(value[1]), 6)), groups)
        elif op is ops.SUBPATTERN:
            made = list(_steps(value[3], choice, groups))
            groups.append("".join(piece for piece, _ in made))
            yield from made
        elif op is ops.ATOMIC_GROUP:
            yield from _steps(value, choice, groups)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            least, most, inner = value
            piece = "".join(piece for piece, _ in _steps(inner, choice, groups))
            if most == ops.MAXREPEAT or most > 8:
                yield piece * max(1, min(least, 40)), True
            elif least or choice % 2:
                yield piece * max(1, least), False
        elif op is ops.GROUPREF and groups:
            yield groups[-1], False


def _member(members: Any, choice: int) -> str:
    """A character of a class; blanks and punctuation before letters, where it has them."""
    found = re.compile("")
    negated = members[0][0] is ops.NEGATE
    candidates = " a[\n0<(_=:*-#\"'`,.;/\\\tAé"
    candidates = candidates[choice % 4 :] + candidates[: choice % 4]
    del found
    for candidate in candidates:
        inside = any(_has(op, value, candidate) for op, value in members if op is not ops.NEGATE)
        if inside is not negated:
            return candidate
    for op, value in members:
        if op is ops.LITERAL:
            return chr(value)
        if op is ops.RANGE:
            return chr(value[0])
    return "a"


def _has(op: Any, value: Any, character: str) -> bool:
    if op is ops.LITERAL:
        return ord(character) == value
    if op is ops.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    tests: dict[Any, bool] = {
        ops.CATEGORY_SPACE: character.isspace(),
        ops.CATEGORY_NOT_SPACE: not character.isspace(),
        ops.CATEGORY_WORD: character.isalnum() or character == "_",
        ops.CATEGORY_NOT_WORD: not (character.isalnum() or character == "_"),
        ops.CATEGORY_DIGIT: character.isdigit(),
        ops.CATEGORY_NOT_DIGIT: not character.isdigit(),
    }
    return tests.get(value, False)


# --------------------------------------------------------------------------------------------------------- patterns

METHODS = frozenset({"match", "search", "fullmatch", "finditer", "findall", "sub", "split"})


class Use(NamedTuple):
    pattern: re.Pattern[Any]
    method: str


@cache
def patterns() -> Mapping[str, Use]:
    """Every pattern by its place and how it is applied there."""
    found: dict[str, Use] = {}
    for info in pkgutil.walk_packages([str(PACKAGE)], "outcrop."):
        if info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue
        short = info.name.removeprefix("outcrop.")
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        methods = _methods(tree)
        for name, value in vars(module).items():
            for place, pattern in _patterns_in(value, name):
                if place.split("[")[0].split(".")[0] in _assigned(tree):
                    # A pattern in a field is used by the field's name; those of an outline are all matched.
                    used = methods.get(name) or methods.get(place.rpartition(".")[2])
                    for method in used or {
                        "match" if type(value).__name__ == "Outline" or name == "OUTLINES" else "search"
                    }:
                        found[f"{short}.{place} {method}"] = Use(pattern, method)
        for line, method, pattern in _inline(tree):
            found[f"{short}:{line} {method}"] = Use(pattern, method)
    return found


def _assigned(tree: ast.Module) -> set[str]:
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    return {node.id for node in targets if isinstance(node, ast.Name)}


def _patterns_in(value: object, place: str) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield place, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _patterns_in(each, f"{place}[{key}]")
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from _patterns_in(each, f"{place}[{number}]")
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            inner = getattr(value, each.name)
            is_source = type(value).__name__ == "Outline" and each.name in {"pattern", "comment", "ending", "section"}
            if is_source and inner:
                flags = re.IGNORECASE if getattr(value, "ignore_case", False) else 0
                yield f"{place}.{each.name}", re.compile(inner, flags)
            else:
                yield from _patterns_in(inner, f"{place}.{each.name}")


def _methods(tree: ast.AST) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in METHODS
            and isinstance(node.value, ast.Name | ast.Attribute)
        ):
            name = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            found.setdefault(name, set()).add(node.attr)
    return found


def _inline(tree: ast.AST) -> Iterator[tuple[int, str, re.Pattern[Any]]]:
    """``re.match("literal", …)``."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in METHODS):
            continue
        source = node.args[0]
        if isinstance(source, ast.Constant) and isinstance(source.value, str | bytes):
            flags = re.MULTILINE if "MULTILINE" in ast.unparse(node) else 0
            yield node.lineno, node.func.attr, re.compile(source.value, flags)


def _apply(use: Use) -> Callable[[str], object]:
    pattern, method = use

    def run(text: str) -> object:
        data: Any = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
        if method == "sub":
            return pattern.sub(b"" if isinstance(data, bytes) else "", data)
        found = getattr(pattern, method)(data)
        return sum(1 for _ in found) if method == "finditer" else found

    return run


# ---------------------------------------------------------------------------------------------------------- targets


@cache
def targets(grammars: bool) -> Mapping[str, Target]:
    """Everything that reads a text, by name."""
    from outcrop.chunking import artifact, code, headings, notebook, pack, regex_outline, rows
    from outcrop.core.model import Kind
    from outcrop.search import parse
    from outcrop.sources import ignore, secrets
    from outcrop.text import decoding, filetypes, globs, kinds, manifest, terms, tokenizer, transcripts

    found: dict[str, Target] = {}
    for place, use in patterns().items():
        bound = next((bound for start, bound in BOUNDS.items() if place.startswith(start)), 1 << 30)
        made = (*dict.fromkeys(adversaries_of(use.pattern)), *(Adversary("", token) for token in TOKENS))
        found[f"pattern {place}"] = Target(_apply(use), made, bound)

    prose = _of("chunking.headings", "chunking.markup", "chunking.rows._SENTENCE", "chunking.rows._PARAGRAPH")
    cues = _of("text.transcripts", "chunking.transcripts")
    lines = _of("chunking.code", "chunking.notebook", "chunking.rows._OPENER", "chunking.rows._CLOSER")
    secret = _of("sources.secrets")

    def cut(path: str, kind: Kind) -> Callable[[str], object]:
        return lambda text: artifact.chunk(text, path, kind)

    for form in sorted(headings.FORMATS):
        extension = next((ext for ext, name in filetypes.PROSE.items() if name == form), None)
        if extension:
            found[f"format {form}"] = Target(cut(f"a.{extension}", Kind.DOC), (*SHAPES, *prose), 1 << 16)
    for kind in (Kind.WIKI, Kind.TICKET, Kind.FORUM):
        found[f"kind {kind}"] = Target(cut("a", kind), (*SHAPES, *prose), 1 << 16)
    found["kind media"] = Target(cut("a.vtt", Kind.MEDIA), (*SHAPES, *cues), 1 << 16)
    found["format windows"] = Target(cut("a.unknown", Kind.CODE), SHAPES, 1 << 16)

    def by_patterns(language: str) -> Callable[[str], object]:
        def run(text: str) -> object:
            table = rows.TextRows(text)
            return pack.pack(table, *regex_outline.find_definitions(table, language))

        return run

    for language in sorted({*regex_outline.OUTLINES, "generic"}):
        own = _of(f"chunking.regex_outline.OUTLINES[{language}]")
        found[f"outline {language}"] = Target(by_patterns(language), (*SHAPES, *own), 1 << 15)
    for language in sorted({*filetypes.LANGUAGES.values()}) if grammars else ():
        found[f"code {language}"] = Target(lambda text, of=language: code.cut_code(text, of), SHAPES, 1 << 14)  # type: ignore[misc]
    for name in ("h", "m", "component", "css"):
        found[f"extension {name}"] = Target(
            lambda text, of=name: code._resolve_extension(text, of),
            (*SHAPES, *lines),  # type: ignore[misc]
        )
    found["percent script"] = Target(lambda text: list(notebook.cut_percent_script(text)), (*SHAPES, *lines), 1 << 15)
    for path in ("a.c", "a.md", "a.js", "a.html"):
        for codec in ("utf-8", "latin-1", "utf-16"):
            found[f"decode {path} {codec}"] = Target(
                lambda text, of=path, by=codec: decoding.decode(_broken(text, by), of),  # type: ignore[misc]
                (*SHAPES, *_of("text.decoding")),
            )
    for path in ("a.txt", *secrets._TOKENS):
        found[f"secret in {path}"] = Target(
            lambda text, of=path: secrets.secret_by_content(text, of),
            (*SHAPES, *secret),  # type: ignore[misc]
        )
    found["transcript"] = Target(lambda text: (transcripts.parse(text), transcripts.is_silent(text)), (*SHAPES, *cues))
    found["manifest"] = Target(_manifest(manifest), (*SHAPES, *_of("text.manifest")))
    # Paths and patterns have 4,096 bytes at most.
    names = (*SHAPES, *secret, *_of("text.filetypes", "text.decoding"))
    for reader in (secrets.secret_by_name, kinds.kind_of, filetypes.by_path, filetypes.is_prose, decoding.refuse_name):
        found[f"path {reader.__name__}"] = Target(_ignoring_errors(reader), names, 1 << 12)
    globbed = tuple(
        Adversary(before, unit, after)
        for unit in ("*?", "*", "**/", "*a", "[a-z]*", "?", "a*/", "**/a/", "\\*", "[", "[[:alpha:]]", "{a,", "!", " ")
        for before in ("", "/", "!", "a")
        for after in ("", "z", "/", "/**")
    )
    for length in (64, 1024):
        path = "a" * length + "/" + "a/" * length + "b"
        found[f"glob on {length}"] = Target(
            _ignoring_errors(lambda text, of=path: globs.path_matcher([text])(of)), globbed, 1 << 11
        )
        found[f"ignore on {length}"] = Target(
            lambda text, of=path: ignore.compile_rules(text.encode()).verdict(of.encode(), b"b", False),
            globbed,
            1 << 11,
        )
    found["ignore file"] = Target(lambda text: ignore.compile_rules(text.encode()), (*SHAPES, *globbed))
    found["globs of a line"] = Target(globs.split_patterns, SHAPES)
    question = (*SHAPES, *_of("search.parse", "text.terms"))
    found["terms"] = Target(terms.query_words, question)
    found["spans"] = Target(lambda text: terms.spans(text, ["a", "alpha"]), question)
    found["tokens"] = Target(tokenizer.count, question)
    found["encode"] = Target(lambda text: tokenizer.encode(text, 512), question)
    found["question"] = Target(parse.parse, question, 1 << 14)
    return found


def _of(*places: str) -> tuple[Adversary, ...]:
    """The adversaries of the patterns at places."""
    uses = [use for place, use in patterns().items() if place.startswith(places)]
    return tuple(dict.fromkeys(each for use in uses for each in adversaries_of(use.pattern)))


def _broken(text: str, codec: str) -> bytes:
    """Bytes that are not UTF-8, mostly of the text."""
    return ("é" + text if codec == "latin-1" else text).encode(codec, "replace")


def _manifest(manifest: Any) -> Callable[[str], object]:
    def run(text: str) -> object:
        for name in manifest._CHECKS:
            manifest._problem(name, {name: text})
        return _ignoring_errors(manifest.parse_manifest)(text)

    return run


def _ignoring_errors(run: Callable[[str], object]) -> Callable[[str], object]:
    def quiet(text: str) -> object:
        try:
            return run(text)
        except (outcrop.errors.OutcropError, ValueError):
            return None

    return quiet


# -------------------------------------------------------------------------------------------------------- measuring


def measure(grammars: bool, largest: int, parent: Connection) -> None:
    """Work through what the parent names, and say what grows."""
    # A collection amid a step is noise.
    gc.disable()
    known = targets(grammars)
    while (order := parent.recv()) is not None:
        name, at = order
        target = known[name]
        count = 0
        target.run("a b\n")
        for number in range(at, len(target.adversaries)):
            gc.collect(1)
            finding = _double(target, target.adversaries[number], min(largest, target.largest), number, parent)
            if finding:
                count += 1
                parent.send(("found", number, finding))
            if count >= MOST:
                break
        parent.send(("done", 0, ""))


def _double(target: Target, adversary: Adversary, largest: int, number: int, parent: Connection) -> str | None:
    size, before, last = min(SMALLEST, largest), 0.0, 0
    while size <= largest:
        parent.send(("step", number, f"{size:,} characters"))
        text = adversary.text(size)
        seconds = _seconds(target.run, text, 1)
        if seconds > MEASURABLE and last and seconds > GROWTH * max(before, MEASURABLE / 8):
            # One doubling may be noise; two that agree are not.
            times = []
            for each in (size // 4, last, size):
                parent.send(("step", number, f"{each:,} characters"))
                times.append(_seconds(target.run, adversary.text(each), 5))
            least, before, seconds = times
            if seconds > MEASURABLE and seconds > GROWTH * before and seconds > GROWTH**2 * least:
                grown = seconds / before
                return f"{last:,} → {size:,} characters: {before * 1e3:.1f} → {seconds * 1e3:.1f} ms, {grown:.1f} ×"
        if seconds > ENOUGH:
            break
        before, last = seconds, size
        size *= 2
    return None


def _seconds(run: Callable[[str], object], text: str, times: int) -> float:
    best = float("inf")
    for _ in range(times):
        begun = time.process_time()
        run(text)
        best = min(best, time.process_time() - begun)
    return best


class Worker:
    """A process that measures; one that overruns is replaced."""

    def __init__(self, grammars: bool, largest: int) -> None:
        self._arguments = grammars, largest
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=measure, args=(*self._arguments, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def findings(self, name: str, deadline: float) -> Iterator[tuple[Adversary, str]]:
        """What grows too fast in one target."""
        adversaries = targets(self._arguments[0])[name].adversaries
        self._connection.send((name, 0))
        at, step, count = 0, "the start", 0
        while True:
            try:
                late = not self._connection.poll(deadline)
                kind, number, words = ("late", at, "") if late else self._connection.recv()
            except EOFError:
                kind, number, words = "died", at, ""
            if kind == "done":
                return
            if kind == "step":
                at, step = number, words
            elif kind == "found":
                yield adversaries[number], words
                count += 1
            else:
                count += 1
                yield (
                    adversaries[at],
                    f"{step}: " + ("the process died" if kind == "died" else f"over {deadline:.0f} s"),
                )
                self._process.kill()
                self._process.join()
                self._start()
                step = "the start"
                self._connection.send((name, at + 1 if count < MOST else len(adversaries)))

    def stop(self) -> None:
        self._connection.send(None)
        self._process.join(5)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", action="append", default=[], metavar="WORD", help="targets whose name begins so")
    options.add_argument("--largest", type=int, default=1 << 17, metavar="CHARACTERS")
    options.add_argument("--deadline", type=float, default=20.0, metavar="SECONDS", help="for one step")
    options.add_argument("--grammars", action="store_true", help="also parse code with its grammars")
    chosen = options.parse_args()
    names = [name for name in targets(chosen.grammars) if not chosen.only or name.startswith(tuple(chosen.only))]
    worker = Worker(chosen.grammars, chosen.largest)
    count = tried = 0
    for name in names:
        tried += len(targets(chosen.grammars)[name].adversaries)
        for adversary, finding in worker.findings(name, chosen.deadline):
            count += 1
            print(f"{name}: {adversary}: {finding}", flush=True)
    worker.stop()
    print(f"{len(names):,} targets, {tried:,} texts, {count:,} that grow too fast")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()

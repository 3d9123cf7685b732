"""Can a source file end, hang or fill a build?

usage: hostile_sources.py [--size CHARACTERS] [--only WORD]... [--unprotected]

Every grammar gets texts that open something again and again: brackets, calls, operators, strings, comments, blocks, and
levels of indentation, closed at their end and not. Each is cut as a build cuts it, in worker processes; printed are
those that lost their structure and why, how many, and the most memory that a worker took.

It fails (exit 1) where a text has no passages or this process does not survive. `--only` names languages and sorts;
`--unprotected` shows what the grammars alone do: each text in a process of its own that may take 5 GB and 12 s of
processor time. The figures in docs/design.md are of 120,000 characters.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator

from outcrop.chunking.artifact import chunk
from outcrop.chunking.grammars import QUERIES
from outcrop.chunking.workers.pool import Text, cut_all
from outcrop.core.model import Kind
from outcrop.text.filetypes import LANGUAGES

MEMORY = 5 << 30
SECONDS = 12

# A longer line is not parsed.
LINE = 1000

# What is repeated, and what then closes it as often.
SORTS = {
    "parentheses": ("(", ")"),
    "brackets": ("[", "]"),
    "braces": ("{", "}"),
    "angles": ("<", ">"),
    "open parentheses": ("(", ""),
    "open brackets": ("[", ""),
    "open braces": ("{", ""),
    "mixed brackets": ("([{", "}])"),
    "objects": ('{"a":[', "]}"),
    "calls": ("a(", ")"),
    "open calls": ("a(", ""),
    "generics": ("a<", ">"),
    "paths": ("a::<", ">"),
    "indexes": ("a[", "]"),
    "members": ("a.", ""),
    "arrows": ("a=>", ""),
    "thin arrows": ("a->", ""),
    "lambdas": ("\\a->", ""),
    "functions": ("function a(){", "}"),
    "definitions": ("def a():\n", ""),
    "short functions": ("fn a(){", "}"),
    "classes": ("class A{", "}"),
    "ifs": ("if(a){", "}"),
    "else ifs": ("if a {} else ", ""),
    "begins": ("begin ", " end"),
    "do blocks": ("do\n", "end\n"),
    "switches": ("switch(a){case 1:", "}"),
    "ternaries": ("a?b:", ""),
    "negations": ("!", ""),
    "minus signs": ("-", ""),
    "stars": ("*", ""),
    "ampersands": ("&", ""),
    "assignments": ("a=", ""),
    "colons": ("a:", ""),
    "commas": ("a,", ""),
    "sums": ("a+", ""),
    "casts": ("(a)", ""),
    "open comments": ("/*\n", ""),
    "nested comments": ("/*", "*/"),
    "interpolations": ('"${', '}"'),
    "interpolations on lines": ('"${\n', ""),
    "templates": ("`${", "}`"),
    "quotes": ('"', ""),
    "long strings": ("'''\n", ""),
    "dashes": ("- ", ""),
    "tags": ("<a>", "</a>"),
    "conditions": ("#if a\n", "#endif\n"),
    "attributes": ("#[a(", ")]"),
    "decorators": ("@a(", ")"),
    "here documents": ("<<A\n", ""),
    "substitutions": ("$(", ")"),
    "pointers": ("(*", ")"),
    "lets": ("let a = ", " in a"),
    "cases": ("case a of b -> ", ""),
    "PHP tags": ("<?php ", "?>"),
}
INDENTED = {"indented lists": "- a:\n", "indented blocks": "if a:\n"}


def text_of(sort: str, size: int) -> str:
    if sort in INDENTED:
        lines: list[str] = []
        while sum(map(len, lines[-1:])) * len(lines) < 2 * size:
            lines.append(" " * len(lines) + INDENTED[sort])
        return "".join(lines)
    opening, closing = SORTS[sort]
    times = size // len(opening + closing)
    return _lines(opening, times) + _lines(closing, times)


def _lines(unit: str, times: int) -> str:
    if not unit or "\n" in unit:
        return unit * times
    a_line = max(1, LINE // len(unit))
    return "".join(unit * min(a_line, times - done) + "\n" for done in range(0, times, a_line))


def cases(size: int, words: list[str]) -> Iterator[tuple[str, Text]]:
    extensions = {language: extension for extension, language in reversed(LANGUAGES.items())}
    extensions["matlab"] = "m"
    for language in QUERIES:
        for sort in (*SORTS, *INDENTED):
            name = f"{language}: {sort}"
            if not words or any(word in name for word in words):
                yield name, Text(text_of(sort, size), f"a.{extensions[language]}", Kind.CODE)


def unprotected(text: Text) -> str:
    """How a process ends that cuts this text, empty where it comes to its end."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            chunk(*text)
        except MemoryError:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.wait4(child, 0)[1])
    return {0: "", 1: "out of memory", -24: f"over {SECONDS} s"}.get(code, f"ended by signal {-code}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=120_000)
    parser.add_argument("--only", action="append", default=[], metavar="WORD")
    parser.add_argument("--unprotected", action="store_true")
    arguments = parser.parse_args()
    started = time.perf_counter()
    reasons: Counter[str] = Counter()
    total = empty = 0
    for name, reason, passages in _results(arguments):
        total += 1
        empty += passages == 0
        if reason:
            reasons[reason] += 1
            print(f"{name}: {reason}", flush=True)
    print(f"\n{total} texts of {arguments.size:,} characters in {time.perf_counter() - started:,.0f} s")
    for reason, number in reasons.most_common():
        print(f"{number:6} {reason}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"at most {peak // 1024:,} MB in a process; without passages: {empty}")
    return 1 if empty else 0


def _results(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    texts = cases(arguments.size, arguments.only)
    if arguments.unprotected:
        for name, text in texts:
            yield name, unprotected(text), 1
        return
    for name, cut in cut_all(texts):
        if cut is not None:
            yield name, cut.by_lines, len(cut.chunks)


if __name__ == "__main__":
    sys.exit(main())

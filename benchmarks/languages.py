"""How well code is cut, language by language: python benchmarks/languages.py FOLDER [FOLDER ...] [--markdown]

For every definition in the files of the folders: does one chunk hold all of it, and is the chunk called by its name?

Caveats, before the figures
- What counts as a definition comes from another reader than the chunker where possible: Python's own `ast` for Python,
  and the line patterns of `regex_outline.py` for other languages with a parser. Where patterns cut a language, they
  also say what a definition is: "whole" then shows only that what they saw is not divided, not that they saw all.
- Patterns are sometimes wrong (a `class` in a string, a one-line prototype), so no figure can reach 100 %.
- A definition over the ceiling of a chunk cannot be whole and is counted apart ("too long").
- A definition inside one that fits into a chunk is not counted: it is part of that whole.
- "found" asks only for the last part of the name, in any chunk that holds the definition's first line.
- MB/s is processor time of one thread, first loading of the grammar included.
"""

from __future__ import annotations

import argparse
import ast
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from outcrop.chunking import format_of, regex_outline
from outcrop.chunking.artifact import chunk
from outcrop.chunking.code import has_grammar
from outcrop.chunking.pack import Definition
from outcrop.chunking.rows import CEILING, TextRows
from outcrop.core.model import Chunk
from outcrop.text.filetypes import LANGUAGES
from outcrop.text.kinds import kind_of
from outcrop.text.tokenizer import count

LARGEST = 1 << 20
SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__", "vendor", "dist", "build"})
ELSEWHERE = {"h": "c", "m": "objc", "component": "typescript"}


@dataclass
class Tally:
    files: int = 0
    characters: int = 0
    chunks: int = 0
    seconds: float = 0.0
    definitions: int = 0
    found: int = 0
    fitting: int = 0
    whole: int = 0

    def row(self, language: str) -> list[str]:
        how = "parser" if has_grammar(ELSEWHERE.get(language, language)) else "patterns"
        too_long = self.definitions - self.fitting
        return [
            language,
            how,
            str(self.files),
            f"{self.characters / 1e6:.2f}",
            str(self.definitions),
            f"{self.found / self.definitions:.1%}" if self.definitions else "–",
            f"{self.whole / self.fitting:.1%}" if self.fitting else "–",
            str(too_long),
            f"{self.characters / max(self.chunks, 1):.0f}",
            f"{self.characters / 1e6 / self.seconds:.1f}" if self.seconds else "–",
        ]


HEAD = "language,how,files,MB,definitions,found,whole,too long,chars/chunk,MB/s".split(",")


def definitions(text: str, language: str) -> list[Definition]:
    """Definitions with a name, by another reader than the chunker."""
    if language == "python":
        return list(_by_ast(text))
    found, _ = regex_outline.find_definitions(TextRows(text), language)
    return [one for one in found if one.name]


def _by_ast(text: str) -> Iterator[Definition]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    nodes: list[ast.AST] = [tree]
    while nodes:
        for node in ast.iter_child_nodes(nodes.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                yield Definition(first - 1, (node.end_lineno or first) - 1, node.name)
                # Closures are left out: that a function is one piece is the point.
                if not isinstance(node, ast.ClassDef):
                    continue
            nodes.append(node)


def judge(tally: Tally, text: str, language: str, chunks: list[Chunk]) -> None:
    lines = text.split("\n")
    inside = -1
    for one in sorted(definitions(text, language), key=lambda one: (one.first, -one.last)):
        if one.first <= inside:
            continue
        homes = [c for c in chunks if c.first_line - 1 <= one.first <= c.last_line - 1]
        last = one.last
        while last > one.first and not lines[last].strip():
            last -= 1
        tally.definitions += 1
        tally.found += any(_called(one.name or "", c.name) for c in homes)
        if count("\n".join(lines[one.first : last + 1])) <= CEILING:
            inside = last
            tally.fitting += 1
            tally.whole += any(c.last_line - 1 >= last for c in homes)


def _called(name: str, title: str | None) -> bool:
    last = name.replace(":", ".").rpartition(".")[2] or name
    return title is not None and (last in title or title.endswith("…"))


def files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if not SKIPPED.intersection(path.parts) and path.is_file() and path.stat().st_size <= LARGEST:
                yield path


def measure(folders: Iterable[Path]) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    languages = set(LANGUAGES.values()) - {"notebook"}
    for path in files(folders):
        kind = kind_of(path.name)
        language = format_of(path.name, kind)
        if language not in languages:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        tally = tallies.setdefault(language, Tally())
        begun = time.thread_time()
        chunks = chunk(text, path.name, kind)
        tally.seconds += time.thread_time() - begun
        tally.files += 1
        tally.characters += len(text)
        tally.chunks += len(chunks)
        judge(tally, text, language, chunks)
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    arguments = parser.parse_args()
    rows = [tally.row(language) for language, tally in sorted(measure(arguments.folders).items())]
    if arguments.markdown:
        print("| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD), sep="\n")
        print(*("| " + " | ".join(row) + " |" for row in rows), sep="\n")
        return
    widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
    for row in [HEAD, *rows]:
        print(
            "  ".join(
                cell.ljust(w) if n < 2 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
        )


if __name__ == "__main__":
    main()

"""Source code to slices: a parser where there is one, patterns for the rest."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from outcrop.chunking import grammars, regex_outline
from outcrop.chunking.pack import Definition, pack
from outcrop.chunking.rows import Slice, TextRows

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

log = logging.getLogger(__name__)

# Characters. A longer line is data or minified code, in which no definition can be cited by line.
_LONGEST_LINE = 20_000

# Characters of one name.
_LONGEST_NAME = 150

_CPP = re.compile(
    r"^[^\S\n]*+(class\s++\w[^;\n]*+$|namespace\b|template\s*<|using\s+\w|(public|private|protected)\s*:)", re.MULTILINE
)
_OBJC = re.compile(r"^[^\S\n]*+(@(interface|implementation|protocol|import|class|end)\b|#import\b)", re.MULTILINE)
_SECTION = re.compile(r"<(script|template|style)\b[^>]*>")
_STATEMENTS = ("_statement", "call", "lexical_declaration", "variable_declaration")
_FUNCTION = re.compile(
    r"func|method|constructor|accessor|value_def|bind|proc|subroutine|lexical|variable|assign|expression"
)
_SETTINGS = frozenset({"json", "yaml", "toml"})
_JAVASCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_QUOTES = "\"'`"


def cut_code(text: str, language: str) -> list[Slice]:
    rows = TextRows(text)
    return pack(rows, *find_definitions(rows, language))


def find_definitions(rows: TextRows, language: str) -> tuple[list[Definition], set[int]]:
    """Definitions of a text, and the rows that hold only comments, decorators or attributes."""
    language = _resolve_extension(rows.text, language)
    if language == "component":
        return _find_in_component(rows)
    parsed = _parse(rows, language)
    return regex_outline.find_definitions(rows, language) if parsed is None else parsed


def has_grammar(language: str) -> bool:
    return _load_grammar(language) is not None


def _resolve_extension(text: str, language: str) -> str:
    """Which of the languages that share an extension this is."""
    if language == "h":
        if _OBJC.search(text):
            return "objc"
        return "cpp" if _CPP.search(text) else "c"
    if language == "m":
        return "objc" if _OBJC.search(text) else "matlab"
    return language


def _parse(rows: TextRows, language: str) -> tuple[list[Definition], set[int]] | None:
    grammar = _load_grammar(language)
    if grammar is None or any(len(row) > _LONGEST_LINE for row in rows):
        return None
    parser, query = grammar
    # A NUL ends the text for most lexers; a lone surrogate has no UTF-8 form. Rows stay the same.
    data = rows.text.replace("\0", " ").encode("utf-8", "replace")
    # Whole: what a read callback gives the parser is never freed (tree-sitter 0.26).
    tree = parser.parse(data)
    # Dialects of CSS are many: where the grammar stumbles, patterns see more.
    if language == "css" and tree.root_node.has_error:
        return None
    return _collect(rows, language, query, tree.root_node, data)


def _collect(rows: TextRows, language: str, query: Query, root: Node, data: bytes) -> tuple[list[Definition], set[int]]:
    from tree_sitter import QueryCursor  # here for the reason given in _load_grammar

    definitions: dict[tuple[int, int], Definition] = {}
    leads: set[int] = set()
    for _, captures in QueryCursor(query).matches(root):
        for node in captures.get("lead", ()):
            first, column = node.start_point
            line = rows[first]
            if len(line) - len(line.lstrip()) >= column:
                leads.update(range(first, _last_row(node) + 1))
        for node in (*captures.get("def", ()), *captures.get("value", ())):
            ends = captures.get("end")
            first, last = node.start_point.row, _last_row(ends[0] if ends else node)
            if first == last and "value" in captures:
                continue
            name = _name(captures, language, data)
            found = Definition(first, last, name, language in _SETTINGS or _FUNCTION.search(node.type) is not None)
            known = definitions.get((found.first, found.last))
            if known is None or (known.name is None and name):
                definitions[found.first, found.last] = found
    for one in definitions.values():
        leads.discard(one.first)
    for node in root.children:
        # A statement around definitions (an `if`, a call with a closure) is one thing unless it is too long.
        if node.type.endswith(_STATEMENTS):
            span = (node.start_point.row, _last_row(node))
            if span[0] < span[1]:
                definitions.setdefault(span, Definition(*span, None))
    return list(definitions.values()), leads


def _last_row(node: Node) -> int:
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point.row else row


def _name(captures: dict[str, list[Node]], language: str, data: bytes) -> str | None:
    """The name as people write it: no generics, no pointers, a dot between the parts."""
    names = [_plain_name(_text(node, data), language) for node in captures.get("name", ())]
    name = " ".join(filter(None, names))
    owner = captures.get("owner")
    if not owner:
        return name or None
    prefix = _owner_name(_text(owner[0], data), language)
    joint = " " if language in {"haskell", "hcl"} else "."
    return f"{prefix}{joint}{name}" if prefix and name else prefix or name or None


def _text(node: Node, data: bytes) -> str:
    return data[node.start_byte : min(node.end_byte, node.start_byte + 400)].decode("utf-8", "replace")


def _owner_name(text: str, language: str) -> str:
    # A Go receiver is ``(e *Engine[T])``.
    if language == "go":
        words = re.findall(r"\w+", re.sub(r"\[.*", "", text))
        return words[-1] if words else ""
    return "" if text == "self" else text.replace("::", ".")


def _plain_name(raw: str, language: str) -> str:
    if language in {"css", "make"}:
        return " ".join(raw.split())[:_LONGEST_NAME]
    if raw[:1] in _QUOTES and len(raw) > 1:
        return raw.strip(_QUOTES)[:_LONGEST_NAME]
    if "operator" in raw and language in {"cpp", "csharp"}:
        return raw.partition("(")[0].strip().lstrip("*& ").replace("::", ".") or raw
    if language in {"json", "yaml", "toml", "haskell"}:
        return raw.splitlines()[0][:_LONGEST_NAME]
    name = raw[:1] + raw[1:].partition("(")[0]
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    stops = r"\s(?:where|when|extends|do)\b|[{<]" if language in _JAVASCRIPTS else r"\s(?:where|when|do)\b|[\[{<]"
    name = re.split(stops, name)[0]
    words = name.replace("::", ".").replace("\\", ".").replace(":", ".").replace("*", " ").replace("&", " ").split()
    return words[-1].strip("(),;")[:_LONGEST_NAME] if words else ""


@lru_cache(maxsize=64)
def _load_grammar(language: str) -> tuple[Parser, Query] | None:
    source = grammars.QUERIES.get(language)
    if source is None:
        return None
    try:
        # Searching needs no parser: a grammar is loaded when its first file comes.
        from tree_sitter import Language, Parser, Query

        module, function = grammars.ENTRY_POINTS.get(language, (f"tree_sitter_{language}", "language"))
        loaded = Language(getattr(import_module(module), function)())
        return Parser(loaded), Query(loaded, source)
    except (ImportError, AttributeError, OSError, TypeError, ValueError) as error:
        log.warning(
            "%s files are cut by patterns: their grammar does not load (%s); reinstall Outcrop", language, error
        )
        return None


def _find_in_component(rows: TextRows) -> tuple[list[Definition], set[int]]:
    """A Vue, Svelte or Astro file: its sections, and the definitions of its scripts (parsed with the rest blank)."""
    definitions: list[Definition] = []
    scripts = [False] * len(rows)
    row = 0
    while row < len(rows):
        opened = _SECTION.match(rows[row])
        if not opened:
            row += 1
            continue
        closing = f"</{opened[1]}>"
        last = row
        if closing not in rows[row]:
            while last < len(rows) - 1 and not rows[last].startswith(closing):
                last += 1
        definitions.append(Definition(row, last, opened[1]))
        if opened[1] == "script":
            scripts[row + 1 : last] = [True] * max(last - row - 1, 0)
        row = last + 1
    if rows[0].strip() == "---":
        fence = next((n for n in range(1, len(rows)) if rows[n].strip() == "---"), 1)
        scripts[1:fence] = [True] * (fence - 1)
    script = TextRows("\n".join(line if inside else "" for line, inside in zip(rows, scripts, strict=True)))
    inner, leads = find_definitions(script, "typescript")
    return [*definitions, *inner], leads

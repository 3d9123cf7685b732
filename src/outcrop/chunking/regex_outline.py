"""Definitions by pattern, for languages without a grammar (Crystal, COBOL …) and texts on which a parser gives up.

A line that matches begins a definition. It ends by indentation: before the first line that is not deeper, its closing
``end`` or ``}`` included. In flat formats (sections of an ``.ini``, labels in assembly) it ends where the next begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter

from outcrop.chunking.pack import Definition
from outcrop.chunking.rows import TextRows

# Characters of a line in which a definition may begin: on longer ones some patterns take very long.
_LONGEST_HEAD = 400

_NAME = r"(?P<name>[\w.:$!?@~-]+)"


@dataclass(frozen=True, slots=True)
class Outline:
    """The lines that show how a text of a language is divided."""

    # The beginning of a definition, after the indentation of its line.
    pattern: str
    # The beginning of a line that belongs to the definition below it.
    comment: str = r"#|//|--|/\*|\*|;|@"
    # Opening and closing of a comment of several lines.
    block_comment: tuple[str, str] | None = None
    ignore_case: bool = False
    # Definitions do not nest and last until the next one.
    flat: bool = False
    # Definitions begin in the first column only.
    outermost: bool = False
    # Neighbours of one name (a signature and its equations) are one definition.
    clauses: bool = False
    # A list of names may take several lines, each but the last with a comma at its end.
    listed: bool = False
    # The line that ends a definition, where indentation does not show it.
    ending: str | None = None
    # The beginning of a stretch of documentation, which lasts until the next such line.
    section: str | None = None


_MODIFIERS = (
    r"(?:(?:export|default|declare|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|async|override|"
    r"sealed|open|data|case|unsafe|const|virtual|inline|extern|local|readonly|partial|implicit|lazy)\s+)*"
)

# Any form in the first column begins; those that define have a name.
_LISP = Outline(
    r"#?\((?:(?:[\w.-]+/)?(?:cl-|pcase-|ert-)?(?:def[\w*!?+-]*|ns|struct|module[*+]?)\s+(?:\^\S+\s+)*['(]*(?P<name>[^\s()\[\]\"']+))?",
    comment=";",
    flat=True,
    outermost=True,
)
_CSS = Outline(
    r"@(?:mixin|function)\s+(?P<mixin>[\w-]+)[^{]*\{|(?P<name>[^\s{};/][^{};]*?)\s*\{",
    comment=r"/\*|\*|//",
    listed=True,
)
_OCAML = Outline(
    r"(?:let(?:%\w+|\*)?(?:\s+rec)?|and(?:\s+type)?|module(?:\s+type|\s+rec)?|type(?:\s+nonrec)?|class(?:\s+type|\s+virtual)*"
    r"|exception|external|val|method!?(?:\s+(?:private|virtual))*)\s+"
    r"(?:[(\[][^)\]=]*[)\]]\s+|(?:[+-]?'\w+)\s+)?(?:\(\s*(?P<operator>[^\w\s()]+)\s*\)|(?P<name>[A-Za-z_][\w']*))(?!.*\sin\s*$)",
    comment=";;",
    block_comment=("(*", "*)"),
)

# By language; ``generic`` serves every other.
OUTLINES: dict[str, Outline] = {
    "crystal": Outline(
        r"(?:(?:private|protected|abstract)\s+)*"
        r"(?:def|class|module|struct|macro|enum|lib|fun|annotation|union)\s+(?P<name>[^\s(<;]+)"
        r'|(?:describe|context|it|pending)\s+(?:"(?P<title>[^"]+)"|(?P<subject>[A-Z][\w:]*))',
        comment=r"#|@\[",
    ),
    "nim": Outline(
        rf"(?:proc|func|method|iterator|template|macro|converter)\s+(?:`(?P<operator>[^`]+)`|{_NAME})|(?:type|const|let|var)\s*$|type\s+(?P<type>\w+)",
        comment=r"#|\{\.",
    ),
    "cobol": Outline(
        r"(?:\d{6})?\s*(?P<name>[\w-]+(?:\s+(?:division|section))?)\s*\.\s*$",
        r"\*|\d{6}\*",
        flat=True,
        ignore_case=True,
    ),
    "ada": Outline(
        rf"(?:overriding\s+)?(?:procedure|function|package(?:\s+body)?|task(?:\s+(?:body|type))?|protected|type)\s+{_NAME}",
        ignore_case=True,
    ),
    "pascal": Outline(
        rf"(?:class\s+)?(?:procedure|function|constructor|destructor|unit|program)\s+{_NAME}|(?P<type>\w+)\s*=\s*"
        r"(?:class|record|interface)\b",
        comment=r"//|\{|\(\*",
        ignore_case=True,
    ),
    "groovy": Outline(
        rf"{_MODIFIERS}(?:def|class|interface|trait|enum|void|task|stage\(?)\s+['\"]?{_NAME}|(?P<type>\w+)\s*\{{\s*$"
    ),
    "vim": Outline(rf"(?:fu(?:nction)?|def|aug(?:roup)?)!?\s+{_NAME}", comment='"'),
    "tcl": Outline(rf"(?:proc|method|namespace\s+eval|oo::class\s+create)\s+{_NAME}"),
    "verilog": Outline(rf"(?:module|interface|package|class|function|task|program)\s+(?:automatic\s+)?{_NAME}"),
    "vhdl": Outline(
        rf"(?:entity|architecture|package(?:\s+body)?|process|component|function|procedure)\s+{_NAME}", ignore_case=True
    ),
    "v": Outline(rf"{_MODIFIERS}(?:fn(?:\s*\([^)]*\))?|struct|enum|interface|union|type)\s+{_NAME}"),
    "basic": Outline(
        rf"(?:(?:public|private|friend|shared|protected|static|overrides)\s+)*"
        rf"(?:sub|function|class|module|property(?:\s+[gls]et)?|type|enum|structure|interface|namespace)\s+{_NAME}",
        comment="'|rem",
        ignore_case=True,
    ),
    "d": Outline(
        rf"{_MODIFIERS}(?:class|struct|interface|union|enum|template|void|int|bool|string|auto|double|size_t)\s+{_NAME}"
    ),
    "haxe": Outline(rf"{_MODIFIERS}(?:function|class|interface|enum|typedef|abstract)\s+{_NAME}"),
    "coffeescript": Outline(rf"class\s+{_NAME}|(?P<type>@?[\w.$]+)\s*[=:]\s*(?:\([^)]*\))?\s*[-=]>"),
    "awk": Outline(rf"(?:function|func)\s+{_NAME}|(?P<type>BEGIN|END)\b"),
    "assembly": Outline(r"(?P<name>[A-Za-z_]\w*):", comment=r";|#|//|@|\.(?:globl?|type|align|p2align)", flat=True),
    "batch": Outline(r":(?P<name>[A-Za-z]\w*)", comment=r"::|rem\b", flat=True, ignore_case=True),
    "graphql": Outline(
        rf"(?:extend\s+)?(?:type|input|enum|interface|union|scalar|query|mutation|subscription|fragment|directive)\s+{_NAME}"
    ),
    "prolog": Outline(r"(?P<name>[a-z]\w*)\s*(?:\(|:-)", comment="%"),
    "smalltalk": Outline(rf"!?{_NAME} (?:class )?>> "),
    "dockerfile": Outline(r"FROM\s+(?:.*\s+AS\s+)?(?P<name>\S+)", flat=True, ignore_case=True),
    "ini": Outline(r"\[(?P<name>[^\]]+)\]", comment=r"#|;", flat=True),
    "toml": Outline(r"\[+(?P<name>[^\]]+)\]+", comment="#", flat=True),
    "yaml": Outline(r"""["']?(?P<name>[\w./-]+)["']?:(?:\s|$)""", comment="#"),
    "json": Outline(r'"(?P<name>[^"]+)"\s*:'),
    "r": Outline(
        r"[\"'`]?(?P<name>[^\s\"'`<=(]+(?:<-)?)[\"'`]?\s*(?:<<?-|=)\s*(?:function\b|\\\(|$)"
        r"|(?:\w+::)?(?:setClass|setMethod|setGeneric|setRefClass|R6Class|test_that|describe)\(\s*(?:\"(?P<title>[^\"]+)|'(?P<quoted>[^']+))",
        comment="#",
    ),
    "erlang": Outline(
        r"(?P<name>[a-z][\w@]*)\s*\(|'(?P<quoted>[^']+)'\s*\(|-(?:spec|callback)\s+(?P<spec>[a-z][\w@]*)"
        r"|-(?:record|type|opaque|define|nominal)\s*\(?\s*(?P<type>\w+)|-(?P<attribute>)\w+",
        comment="%|-doc",
        flat=True,
        outermost=True,
        clauses=True,
    ),
    "elm": Outline(
        r"(?:type\s+(?:alias\s+)?|port\s+(?!module))?(?P<name>(?!module|import|port|type)[A-Za-z]\w*)\s*(?::(?!:)|(?:[^=:]*)=(?!=)|$)"
        r"|(?P<head>)(?:module|port module|import)\b",
        comment="--",
        flat=True,
        outermost=True,
        clauses=True,
        block_comment=("{-", "-}"),
    ),
    **dict.fromkeys(("ocaml", "ocaml_interface"), _OCAML),
    "fsharp": Outline(
        r"(?:(?:static|abstract|override|default|private|internal|public)\s+)*"
        r"(?:let|and|member|abstract|override|default|type|module|namespace|val|exception)!?\s+"
        r"(?:(?:inline|rec|private|internal|public|mutable|global|member)\s+)*(?:\w+\.(?=[A-Za-z(`])(?!.*\bnamespace))?"
        r"(?:``(?P<quoted>[^`]+)``|\(\s*(?P<operator>[^\w\s()]+)\s*\)|(?P<name>[A-Za-z_][\w'.]*))",
        comment=r"//|\[<",
        block_comment=("(*", "*)"),
    ),
    "fish": Outline(rf"function\s+(?:--\S+\s+)*{_NAME}", comment="#"),
    "gdscript": Outline(rf"(?:static\s+)?(?:func|class|enum|class_name)\s+{_NAME}", comment="#|@"),
    "gleam": Outline(rf"(?:pub\s+)?(?:opaque\s+)?(?:fn|type|const)\s+{_NAME}", comment="//|@"),
    "cmake": Outline(rf"(?:function|macro)\s*\(\s*{_NAME}", comment="#", ignore_case=True),
    "proto": Outline(rf"(?:message|service|enum|extend|oneof|rpc)\s+{_NAME}"),
    "thrift": Outline(rf"(?:struct|service|enum|union|exception|senum)\s+{_NAME}", comment=r"#|//|/\*|\*"),
    "solidity": Outline(
        rf"(?:abstract\s+)?(?:contract|interface|library|function|modifier|struct|enum|event|error)\s+{_NAME}"
        r"|(?P<special>constructor|receive|fallback)\s*\("
    ),
    "perl": Outline(
        rf"(?:sub|package|method|class|role)\s+{_NAME}", comment="#", section=r"=(?:head\d\s+(?P<name>.+)|cut\b)"
    ),
    "julia": Outline(rf"(?:function|macro|module|(?:mutable\s+)?struct|abstract\s+type)\s+{_NAME}", comment='#|"""'),
    "fortran": Outline(
        r"(?:(?:pure|impure|elemental|recursive|module|(?:double\s+)?(?:integer|real|logical|complex|character|precision|type|class)"
        r"(?:\s*\*\s*\d+|\s*\([^)]*\))?)\s+)*(?:subroutine|function|module(?!\s+procedure)|program|submodule\s*\([^)]*\))\s+(?P<name>\w+)"
        r"|type\s*(?:,[^:!]*)?::\s*(?P<type>\w+)|type\s+(?P<plain>(?!is\b)\w+)\s*$|(?:abstract\s+)?interface\b\s*(?P<generic>\w*)",
        comment=r"!|#|[c*]\s",
        ending=r"end\s*(?:(?:subroutine|function|program|module|submodule|interface|type)\b.*)?(?:!.*)?$",
        ignore_case=True,
    ),
    "sql": Outline(
        r"(?:create|alter)\s+(?:or\s+(?:replace|alter)\s+)?(?:\w+\s+)*?(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"`\[\]]+)"
        r"(?:\s*\(|\s+(?:as|on|for|returns|add|is|using|with)\b|\s*;?\s*$)",
        comment="--",
        flat=True,
        ignore_case=True,
    ),
    **dict.fromkeys(("css", "scss"), _CSS),
    "haskell": Outline(r"(?P<name>[a-z_][\w']*)\s+(?:::|[^=]*=)|(?:data|class|instance|newtype|type)\s+(?P<type>\w+)"),
    **dict.fromkeys(("clojure", "scheme", "racket", "commonlisp", "elisp"), _LISP),
    "hcl": Outline(r'(?P<name>\w+(?:\s+"[^"]+")*)\s*\{'),
    "make": Outline(r"(?P<name>[\w./%-]+)\s*:(?!=)", comment="#"),
    "generic": Outline(
        rf"{_MODIFIERS}(?:def|defp|defmodule|defmacro|class|function|fn|func|fun|sub|module|struct|enum|interface|trait|impl|"
        rf"object|type|namespace|macro|record|protocol|extension|proc|union|contract)\b[\s*&]*(?:\([^)]*\)\s*)?{_NAME}(?=[^;]*$)"
        r"|(?:(?:public|private|protected|static|final|inline|virtual|extern|const|unsigned|struct)\s+)+"
        r"[\w<>\[\],.?:*&\s]*?(?P<method>[\w:~]+)\s*\([^;]*$"
        r"|(?!(?:return|new|await|throw|raise|yield|case|try|defer|go|else|if|in|and|or|not|do|puts|print|echo|use|import)\b)"
        r"[A-Za-z_][\w<>:*&]*[\s*&]+(?P<plain>[A-Za-z_][\w:~]*)\s*\([^;=]*$"
    ),
}

_FUNCTION = re.compile(r"\b(def|fun|func|function|fn|sub|proc|method|procedure|subroutine|macro)\b", re.IGNORECASE)
_KEYWORDS = frozenset("if else for while switch return catch do elif when unless until case with and or not in".split())


# The last line of a head that takes several, before the body.
_HEAD_END = re.compile(r"\s*\).*(?:[{=:]|->|\b(?:begin|do|then|is))\s*$")


def find_definitions(rows: TextRows, language: str) -> tuple[list[Definition], set[int]]:
    """Definitions of a text, and the rows that hold only comments."""
    outline = OUTLINES.get(language, OUTLINES["generic"])
    begins, comment = _compiled(outline)
    docs: list[Definition] = []
    if outline.section:
        docs, rows = _sections(rows, outline.section)
    starts: list[tuple[int, int, str | None]] = []
    leads: set[int] = set()
    listed: list[str] = []
    opened = False
    for row, line in enumerate(rows):
        bare = line.strip()
        if not bare:
            listed = []
            continue
        if outline.block_comment and (opened or bare.startswith(outline.block_comment[0])):
            leads.add(row)
            opened = outline.block_comment[1] not in bare
            continue
        found = begins.match((line if outline.outermost else bare)[:_LONGEST_HEAD])
        if found:
            name = next((group for group in found.groupdict().values() if group), None)
            if name is None or name.lower() not in _KEYWORDS:
                names = " ".join([*listed, name.strip("\"'").rstrip(":.")]) if name else None
                starts.append((row - len(listed), row, names))
                listed = []
                continue
        if comment.match(bare):
            leads.add(row)
        if outline.listed and bare.endswith(","):
            listed.append(bare)
        else:
            listed = []
    if outline.flat:
        if outline.clauses:
            starts = [next(same) for _, same in groupby(starts, key=itemgetter(2))]
        edges = [*(first for first, _, _ in starts), len(rows)][1:]
        return [_flat(rows, a, b, name, leads) for (a, _, name), b in zip(starts, edges, strict=True)], leads
    if outline.ending:
        return list(_ended(rows, starts, re.compile(outline.ending, re.IGNORECASE))), leads
    marks = {first for first, _, _ in starts}
    nested = (
        Definition(first, _last(rows, head, marks), name, _FUNCTION.search(rows[head]) is not None)
        for first, head, name in starts
    )
    return [*docs, *nested], leads


def _flat(rows: TextRows, first: int, stop: int, name: str | None, leads: set[int]) -> Definition:
    """Up to the next definition, without the comments above that one."""
    while stop > first + 1 and stop < len(rows) and (stop - 1 in leads or rows.blank(stop - 1)):
        stop -= 1
    return Definition(first, stop - 1, name)


def _ended(rows: TextRows, starts: list[tuple[int, int, str | None]], ending: re.Pattern[str]) -> Iterator[Definition]:
    """Definitions that nest like brackets; one without an end lasts until the end of the text."""
    names = {head: name for _, head, name in starts}
    opened: list[int] = []
    for row, line in enumerate(rows):
        if row in names:
            opened.append(row)
        elif opened and ending.match(line.strip()):
            first = opened.pop()
            yield Definition(first, row, names[first], _FUNCTION.search(rows[first]) is not None)
    for first in opened:
        yield Definition(first, len(rows) - 1, names[first])


def _sections(rows: TextRows, pattern: str) -> tuple[list[Definition], TextRows]:
    """The stretches of documentation, and the text with their rows blank."""
    marks = [(row, found) for row, line in enumerate(rows) if (found := re.match(pattern, line))]
    stops = [*(row for row, _ in marks), len(rows)][1:]
    docs: list[Definition] = []
    rest = list(rows)
    for (row, found), stop in zip(marks, stops, strict=True):
        if found["name"]:
            docs.append(Definition(row, stop - 1, found["name"].strip()))
            rest[row:stop] = [""] * (stop - row)
    return docs, TextRows("\n".join(rest))


@cache
def _compiled(outline: Outline) -> tuple[re.Pattern[str], re.Pattern[str]]:
    flags = re.IGNORECASE if outline.ignore_case else 0
    return re.compile(outline.pattern, flags), re.compile(outline.comment, re.IGNORECASE)


def _last(rows: TextRows, first: int, marks: set[int]) -> int:
    """The last row of what begins at ``first``, by indentation."""
    margin = rows.indent(first)
    last = first
    bodied = False
    for row in range(first + 1, len(rows)):
        if rows.blank(row):
            continue
        if rows.indent(row) > margin:
            last, bodied = row, True
            continue
        if row in marks:
            break
        if rows.indent(row) == margin and _HEAD_END.match(rows[row]):
            last = row
            continue
        if rows.closer(row):
            if rows.indent(row) == margin:
                return row
            break
        bare = rows[row].strip()
        if bare in {"{", "begin", "BEGIN"} and not bodied:
            last = row
            continue
        break
    return last

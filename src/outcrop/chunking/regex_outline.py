"""Definitions by pattern, for languages that have no grammar here (Crystal, COBOL …) or whose grammar gave up.

A line that matches begins a definition. Where it ends is read from the indentation, as a person does: at the first line
that is not deeper, the closing ``end`` or ``}`` included. In flat formats (sections of an ``.ini``, labels in assembly)
it ends where the next begins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from outcrop.chunking.pack import Definition
from outcrop.chunking.rows import TextRows

_NAME = r"(?P<name>[\w.:$!?@~-]+)"


@dataclass(frozen=True, slots=True)
class Outline:
    """How a language looks from afar.

    Attributes:
        pattern: What begins a definition, matched at the start of a line after its indentation.
        comment: What begins a line that belongs to the definition below it.
        flat: Definitions do not nest and last until the next one.
        ignore_case: Keywords may be in capitals.
        section: What begins a stretch of documentation, which lasts until the next such line.
    """

    pattern: str
    comment: str = r"#|//|--|/\*|\*|;|@"
    flat: bool = False
    ignore_case: bool = False
    section: str | None = None


_MODIFIERS = (
    r"(?:(?:export|default|declare|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|async|override|"
    r"sealed|open|data|case|unsafe|const|virtual|inline|extern|local|readonly|partial|implicit|lazy)\s+)*"
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
    "r": Outline(r"(?P<name>[\w.]+)\s*(?:<-|=)\s*function\b", comment="#"),
    "perl": Outline(
        rf"(?:sub|package|method|class|role)\s+{_NAME}", comment="#", section=r"=(?:head\d\s+(?P<name>.+)|cut\b)"
    ),
    "julia": Outline(rf"(?:function|macro|module|(?:mutable\s+)?struct|abstract\s+type)\s+{_NAME}", comment='#|"""'),
    "fortran": Outline(
        rf"(?:(?:pure|elemental|recursive|integer|real|logical|module)\s+)*(?:subroutine|function|module|program)\s+{_NAME}",
        comment="!",
        ignore_case=True,
    ),
    "sql": Outline(
        r"(?:create|alter)\s+(?:or\s+(?:replace|alter)\s+)?(?:\w+\s+)*?(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"`\[\]]+)"
        r"(?:\s*\(|\s+(?:as|on|for|returns|add|is|using|with)\b|\s*;?\s*$)",
        comment="--",
        flat=True,
        ignore_case=True,
    ),
    "css": Outline(r"(?P<name>[^\s{};/][^{};]*?)\s*\{", comment=r"/\*|\*|//|[^{};]+,$"),
    "haskell": Outline(r"(?P<name>[a-z_][\w']*)\s+(?:::|[^=]*=)|(?:data|class|instance|newtype|type)\s+(?P<type>\w+)"),
    "clojure": Outline(rf"\((?:def\w*|ns|define)\s+\(?{_NAME}", comment=";"),
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

_ALIKE = {"scss": "css", "scheme": "clojure", "racket": "clojure", "commonlisp": "clojure", "elisp": "clojure"}
_FUNCTION = re.compile(r"\b(def|fun|func|function|fn|sub|proc|method|procedure|subroutine|macro)\b", re.IGNORECASE)
_KEYWORDS = frozenset("if else for while switch return catch do elif when unless until case with and or not in".split())


def outline_of(language: str) -> Outline:
    """The outline of a language, or the generic one."""
    return OUTLINES.get(_ALIKE.get(language, language), OUTLINES["generic"])


def find(ruler: TextRows, language: str) -> tuple[list[Definition], set[int]]:
    """Definitions and leading rows of a text.

    Args:
        ruler: The text.
        language: A key of :data:`OUTLINES` or any other language.
    """
    outline = outline_of(language)
    begins, comment = _compiled(outline)
    if outline.section:
        docs, ruler = _sections(ruler, outline.section)
    else:
        docs = []
    starts: list[tuple[int, str | None]] = []
    leads: set[int] = set()
    for row, line in enumerate(ruler.rows):
        bare = line.strip()
        if not bare:
            continue
        found = begins.match(bare)
        if found:
            name = next((group for group in found.groupdict().values() if group), None)
            if name is None or name.lower() not in _KEYWORDS:
                starts.append((row, name.strip("\"'").rstrip(":.") if name else None))
                continue
        if comment.match(bare):
            leads.add(row)
    if outline.flat:
        edges = [*(row for row, _ in starts), len(ruler)][1:]
        return [_flat(ruler, a, b, name, leads) for (a, name), b in zip(starts, edges, strict=True)], leads
    marks = {row for row, _ in starts}
    nested = (
        Definition(row, _last(ruler, row, marks), name, _FUNCTION.search(ruler.rows[row]) is not None)
        for row, name in starts
    )
    return [*docs, *nested], leads


def _flat(ruler: TextRows, first: int, stop: int, name: str | None, leads: set[int]) -> Definition:
    """Up to the next definition, without the comments that stand above that one."""
    while stop > first + 1 and stop < len(ruler) and (stop - 1 in leads or ruler.blank(stop - 1)):
        stop -= 1
    return Definition(first, stop - 1, name)


def _sections(ruler: TextRows, pattern: str) -> tuple[list[Definition], TextRows]:
    """The stretches of documentation, and the text without them, row for row."""
    marks = [(row, found) for row, line in enumerate(ruler.rows) if (found := re.match(pattern, line))]
    stops = [*(row for row, _ in marks), len(ruler)][1:]
    docs: list[Definition] = []
    rows = list(ruler.rows)
    for (row, found), stop in zip(marks, stops, strict=True):
        if found["name"]:
            docs.append(Definition(row, stop - 1, found["name"].strip()))
            rows[row:stop] = [""] * (stop - row)
    return docs, TextRows("\n".join(rows))


@cache
def _compiled(outline: Outline) -> tuple[re.Pattern[str], re.Pattern[str]]:
    flags = re.IGNORECASE if outline.ignore_case else 0
    return re.compile(outline.pattern, flags), re.compile(outline.comment, re.IGNORECASE)


def _last(ruler: TextRows, first: int, marks: set[int]) -> int:
    """The last row of what begins at ``first``, by indentation."""
    margin = ruler.indent(first)
    last = first
    bodied = False
    for row in range(first + 1, len(ruler)):
        if ruler.blank(row):
            continue
        if ruler.indent(row) > margin:
            last, bodied = row, True
            continue
        if row in marks:
            break
        if ruler.closer(row):
            if ruler.indent(row) == margin:
                return row
            break
        if ruler.rows[row].strip() in {"{", "begin", "BEGIN"} and not bodied:
            last = row
            continue
        break
    return last

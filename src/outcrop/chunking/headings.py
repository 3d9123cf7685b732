"""Where the headings of a prose format are, and what must not be cut in two."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# Characters kept of a heading.
TITLE_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Heading:
    """``line`` is 0-based, ``level`` 1 for the highest, ``lines`` 0 if other text is on the last line of the title."""

    line: int
    level: int
    title: str
    lines: int = 1
    offset: int = 0


@dataclass(frozen=True, slots=True)
class DocumentStructure:
    """``solid`` has line ranges that are not cut while they fit: fences, tables, literal blocks."""

    headings: list[Heading] = field(default_factory=list)
    solid: list[tuple[int, int]] = field(default_factory=list)
    title: str | None = None


def read_markdown(text: str) -> DocumentStructure:
    """CommonMark by a real parser: headings of both styles at the top level, none inside fences, quotes or HTML."""
    front, title, body = _front_matter(text)
    structure = DocumentStructure(title=title)
    if front:
        structure.solid.append((0, front))
    tokens = _markdown().parse(body)
    for at, token in enumerate(tokens):
        if token.map is None or token.level != 0:
            continue
        first, stop = token.map
        if token.type == "heading_open":
            heading = Heading(first, int(token.tag[1:]), _plain(tokens[at + 1].content), stop - first)
            structure.headings.append(heading)
        elif token.type in {"fence", "code_block", "html_block", "table_open"}:
            structure.solid.append((first, stop))
    return structure


@cache
def _markdown() -> MarkdownIt:
    # Searching needs no parser: it is imported when the first document comes.
    from markdown_it import MarkdownIt

    # Markup inside a paragraph is of no use here, and takes most of the time.
    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])


def _front_matter(text: str) -> tuple[int, str | None, str]:
    """Lines of the front matter, its title, and the text with those lines blank and no carriage returns."""
    lines = text.split("\n")
    end = 0
    if lines[0].rstrip() in {"---", "+++"}:
        end = next((n + 1 for n in range(1, min(len(lines), 200)) if lines[n].rstrip() == lines[0].rstrip()), 0)
    title = None
    for line in lines[1 : end - 1] if end else ():
        if found := _TITLE_FIELD.match(line):
            title = _unquoted(found[1].strip())[:TITLE_LIMIT] or title
    lines[:end] = [""] * end
    # The parser ends lines at a lone carriage return too.
    return end, title, "\n".join(lines).replace("\r", " ")


_TITLE_FIELD = re.compile(r"title\s*[:=](.*)")


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] in "\"'":
        value = value[1:]
    return value[:-1] if len(value) > 1 and value[-1] in "\"'" else value


# Characters of a heading that are looked at: its marks are searched from each of them to the end.
_LONGEST_TITLE = 2000

# Each blank and each ``_`` counts with the run that it is in: else every part of a run is tried.
_LINK = re.compile(r"!?\[([^\]]*+)\](\([^)]*+\)|\[[^\]]*+\])?")
_MARKS = re.compile(r"[*`]++|(?<!\w)_++|(?<!_)_++(?!\w)|<[^>]++>|(?<!\s)\s*+\{[#:.][^}]*+\}\s*+$|(?<!\s)\s++#++\s*+$")


def _plain(title: str) -> str:
    title = title[:_LONGEST_TITLE]
    text = _MARKS.sub("", _LINK.sub(r"\1", title))
    return " ".join(html.unescape(text).split())[:TITLE_LIMIT]


_RULE = re.compile(r"([!-/:-@\[-`{-~])\1+\s*$")


def read_rst(text: str) -> DocumentStructure:
    """Underlined titles, with or without an overline; the level is the order in which the styles appear."""
    structure = DocumentStructure()
    lines = text.split("\n")
    styles: list[tuple[str, bool]] = []
    at = 0
    while at < len(lines) - 1:
        heading = _rst_heading(lines, at, styles)
        if heading:
            structure.headings.append(heading)
            at += heading.lines
        else:
            at += 1
    return structure


def _rst_heading(lines: list[str], at: int, styles: list[tuple[str, bool]]) -> Heading | None:
    if at and lines[at - 1].strip() and not _RULE.match(lines[at - 1]):
        return None
    over = _RULE.match(lines[at])
    title = lines[at + 1] if over else lines[at]
    below = at + 2 if over else at + 1
    under = _RULE.match(lines[below]) if below < len(lines) else None
    if not under or not title.strip() or (not over and title[0].isspace()) or _RULE.match(title):
        return None
    width = len(lines[below].rstrip())
    if width < min(len(title.strip()), 4) or width < len(title.strip()) * 0.7 or (over and over[1] != under[1]):
        return None
    style = (under[1], over is not None)
    if style not in styles:
        styles.append(style)
    return Heading(at, styles.index(style) + 1, _plain(title.replace("``", "")), below - at + 1)


def read_asciidoc(text: str) -> DocumentStructure:
    """``=`` titles outside of delimited blocks."""
    structure = DocumentStructure()
    fence: str | None = None
    opened = 0
    for number, line in enumerate(text.split("\n")):
        bare = line.rstrip()
        if fence:
            if bare == fence:
                structure.solid.append((opened, number + 1))
                fence = None
        elif re.fullmatch(r"-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|\|===|```\w*", bare):
            fence, opened = bare[:3] if bare.startswith("```") else bare, number
        elif found := re.match(r"(={1,6}|#{1,6})\s++(\S.*)", bare):
            mark, title = found[1], found[2]
            if title.endswith(mark) and title[: -len(mark)][-1:].isspace():
                title = title[: -len(mark)].rstrip()
            structure.headings.append(Heading(number, len(mark), _plain(title)))
    return structure


_HTML_TAG = re.compile(r"<!--|<(/?)(h[1-6]|title|script|style|pre|textarea)\b", re.IGNORECASE)
_HTML_TAG_END = re.compile(r"\s*+>")
_HTML_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
_HTML_HIDDEN = frozenset({"script", "style", "pre", "textarea", "!--"})
_NUMBERED = re.compile(r"( {2,}|\t\s*)#")
_REST_IS_BLANK = re.compile(r"[^\S\n]*+(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class _Element:
    """A closed element: what is between its tags is from ``inside`` to ``closing``."""

    name: str
    start: int
    inside: int
    closing: int
    end: int


def _elements(text: str, names: frozenset[str]) -> Iterator[_Element]:
    """The elements of these names (``!--`` for a comment) that have an end, none of them inside another.

    One pass over the tags and one over the ends of those that end an element: an expression with a lazy middle looks
    for the end of every element that has none.
    """
    tags = [tag for tag in _HTML_TAG.finditer(text) if (tag[2] or "!--").lower() in names]
    ends: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    for tag in tags:
        if tag[1] and (closed := _HTML_TAG_END.match(text, tag.end())):
            ends[tag[2].lower()].append((tag.start(), closed.end()))
    past = dict.fromkeys(names, 0)
    at = bracket = 0
    for tag in tags:
        if tag[1] or tag.start() < at:
            continue
        if tag[2] is None:
            name, inside = "!--", tag.end()
            closing = -1 if past[name] < 0 else text.find("-->", inside)
            if closing < 0:
                past[name] = -1
                continue
            yield _Element(name, tag.start(), inside, closing, closing + 3)
            at = closing + 3
            continue
        name, inside = tag[2].lower(), tag.end()
        if name not in _HTML_HIDDEN:
            if 0 <= bracket < inside:
                bracket = text.find(">", inside)
            if bracket < 0:
                continue
            inside = bracket + 1
        found = ends[name]
        while past[name] < len(found) and found[past[name]][0] < inside:
            past[name] += 1
        if past[name] < len(found):
            closing, at = found[past[name]]
            yield _Element(name, tag.start(), inside, closing, at)


def read_html(text: str) -> DocumentStructure:
    """``h1`` to ``h6`` outside of comments, scripts and listings."""
    hidden = list(_elements(text, _HTML_HIDDEN))
    title = next(_elements(text, frozenset({"title"})), None)
    words = _plain(text[title.inside : title.closing]) if title else ""
    structure = DocumentStructure(title=words or None)
    line, at, skip, begin, bare = 0, 0, 0, 0, True
    for found in _elements(text, _HTML_HEADINGS):
        while skip < len(hidden) and hidden[skip].end <= found.start:
            skip += 1
        if skip < len(hidden) and hidden[skip].start <= found.start:
            continue
        line += text.count("\n", at, found.start)
        newline = text.rfind("\n", at, found.start)
        if newline >= 0:
            begin, at, bare = newline + 1, newline + 1, True
        bare = bare and not text[at : found.start].strip()
        at = found.start
        offset = 0 if bare else at - begin
        bare = False
        inner = text[found.inside : min(found.closing, found.inside + _LONGEST_TITLE)]
        height = text.count("\n", at, found.end) + 1 if _REST_IS_BLANK.match(text, found.end) else 0
        structure.headings.append(Heading(line, int(found.name[1]), _plain(inner), height, offset))
    return structure


def read_wiki(text: str) -> DocumentStructure:
    """A Fossil wiki page or technote: no name tells its markup, so headings of Markdown and of HTML both count.

    An indented ``#`` numbers a list there.
    """
    markdown, page = read_markdown(text), read_html(text)
    lines = text.split("\n")
    markdown.headings[:] = [each for each in markdown.headings if not _NUMBERED.match(lines[each.line])]
    inside = {
        line
        for first, stop in markdown.solid
        if next(_elements("\n".join(lines[first:stop]), _HTML_HEADINGS), None) is None
        for line in range(first, stop)
    }
    page.headings[:] = [each for each in page.headings if each.line not in inside]
    return _with_headings_of(markdown, page)


def read_mediawiki(text: str) -> DocumentStructure:
    """``= Title =`` and HTML headings: a ``.wiki`` file is of MediaWiki, or of Fossil, which has only the latter."""
    return _with_headings_of(read_html(text), _read_line_format(text, _LINE_FORMATS["mediawiki"]))


def _with_headings_of(structure: DocumentStructure, other: DocumentStructure) -> DocumentStructure:
    taken = {heading.line for heading in structure.headings}
    headings = structure.headings + [heading for heading in other.headings if heading.line not in taken]
    headings.sort(key=lambda heading: (heading.line, heading.offset))
    return DocumentStructure(headings, structure.solid, structure.title)


@dataclass(frozen=True, slots=True)
class _LineFormat:
    """A format whose headings are one line each; none counts between ``fence`` and ``close``."""

    heading: re.Pattern[str]
    level: Callable[[str], int]
    fence: re.Pattern[str] | None = None
    close: re.Pattern[str] | None = None
    # What may end the line of a heading, repeated, and is no part of the title.
    tail: str = ""


_LATEX = {"part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6}
_TEXINFO = {
    "top": 1, "chapter": 1, "unnumbered": 1, "appendix": 1, "section": 2, "unnumberedsec": 2, "subsection": 3,
    "unnumberedsubsec": 3, "subsubsection": 4,
}  # fmt: skip
_LINE_FORMATS: dict[str, _LineFormat] = {
    "org": _LineFormat(
        re.compile(r"(?P<mark>\*+)\s+(?P<title>.+)"),
        len,
        re.compile(r"\s*#\+begin_", re.IGNORECASE),
        re.compile(r"\s*#\+end_", re.IGNORECASE),
    ),
    "latex": _LineFormat(
        re.compile(r"\s*\\(?P<mark>part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^\]]*\])?\{(?P<title>.+?)\}"),
        _LATEX.__getitem__,
        re.compile(r"\s*\\begin\{(verbatim|lstlisting|minted)\}"),
        re.compile(r"\s*\\end\{(verbatim|lstlisting|minted)\}"),
    ),
    "typst": _LineFormat(
        re.compile(r"(?P<mark>=+)\s+(?P<title>.+)"), len, re.compile(r"\s*```"), re.compile(r"\s*```")
    ),
    "mediawiki": _LineFormat(re.compile(r"(?P<mark>={1,6})\s*(?P<title>[^=\s].*)"), len, tail="="),
    "textile": _LineFormat(re.compile(r"h(?P<mark>[1-6])(?:\([^)]*\))?\.\s+(?P<title>.+)"), int),
    "pod": _LineFormat(re.compile(r"=head(?P<mark>[1-4])\s+(?P<title>.+)"), int),
    "rdoc": _LineFormat(re.compile(r"(?P<mark>={1,6})\s*(?P<title>[^=\s].*)"), len),
    "texinfo": _LineFormat(
        re.compile(rf"@(?P<mark>{'|'.join(_TEXINFO)})\s+(?P<title>.+)"),
        _TEXINFO.__getitem__,
        re.compile(r"@(example|verbatim|lisp)\b"),
        re.compile(r"@end (example|verbatim|lisp)\b"),
    ),
    "man": _LineFormat(
        re.compile(r"\.(?P<mark>SH|SS|Sh|Ss)\s+\"?(?P<title>[^\"]+)"), lambda mark: 1 if mark[1] in "Hh" else 2
    ),
}


def _read_line_format(text: str, style: _LineFormat) -> DocumentStructure:
    structure = DocumentStructure()
    opened: int | None = None
    for number, line in enumerate(text.split("\n")):
        if opened is not None:
            if style.close and style.close.match(line):
                structure.solid.append((opened, number + 1))
                opened = None
        elif style.fence and style.fence.match(line):
            opened = number
        elif found := style.heading.match(line):
            title = found["title"].rstrip().rstrip(style.tail) if style.tail else found["title"]
            structure.headings.append(Heading(number, style.level(found["mark"]), _plain(title)))
    return structure


_READERS: dict[str, Callable[[str], DocumentStructure]] = {
    "markdown": read_markdown,
    "rst": read_rst,
    "text": read_rst,
    "asciidoc": read_asciidoc,
    "html": read_html,
    "wiki": read_wiki,
    "mediawiki": read_mediawiki,
}

# Names of the prose formats.
FORMATS = frozenset(_READERS) | frozenset(_LINE_FORMATS)


def read_headings(text: str, language: str) -> DocumentStructure:
    reader = _READERS.get(language)
    return reader(text) if reader else _read_line_format(text, _LINE_FORMATS[language])

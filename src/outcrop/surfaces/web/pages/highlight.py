"""Lines of untrusted text as HTML, with syntax colours and the question's words marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

from outcrop.core.model import Kind
from outcrop.surfaces.render import Line
from outcrop.text import terms
from outcrop.text.filetypes import extension, is_prose

# Above these characters a text has no colours: of the text, and of one line, where some lexers take quadratic time.
MAX_TEXT = 200_000
MAX_LINE = 2_000

# Seven colours show the structure; the first entry that contains a token decides.
_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment.Preproc, "k"), (Comment, "c"), (String.Doc, "c"), (Keyword, "k"), (String, "s"), (Number, "n"),
    (Name.Function, "f"), (Name.Class, "f"), (Name.Namespace, "f"), (Name.Decorator, "d"), (Name.Tag, "k"),
    (Name.Attribute, "d"), (Name.Builtin, "b"), (Generic.Heading, "h"), (Generic.Subheading, "h"),
    (Generic.Strong, "h"),
)  # fmt: skip

# Lexers of the usual extensions. For others Pygments compares the name with a thousand patterns, the slowest part of a
# page in the CGI.
_LANGUAGES = {
    "c": "c", "cpp": "c++", "cr": "crystal", "cs": "csharp", "css": "css", "go": "go", "h": "c", "hpp": "c++",
    "html": "html", "ini": "ini", "java": "java", "js": "javascript", "json": "json", "kt": "kotlin", "lua": "lua",
    "md": "markdown", "php": "php", "pl": "perl", "py": "python", "pyi": "python", "rb": "ruby", "rs": "rust",
    "rst": "restructuredtext", "scala": "scala", "sh": "bash", "sql": "sql", "swift": "swift", "tcl": "tcl",
    "toml": "toml", "ts": "typescript", "xml": "xml", "yaml": "yaml", "yml": "yaml", "zig": "zig",
}  # fmt: skip

_PROSE_KINDS = frozenset({Kind.WIKI, Kind.TECHNOTE, Kind.TICKET, Kind.FORUM, Kind.MEDIA, Kind.COMMIT})


@dataclass(frozen=True, slots=True)
class HtmlLine:
    """One line for a page; ``number`` is 1-based in the file, ``aligned`` means code or a table inside prose."""

    number: int
    html: Markup
    blank: bool
    aligned: bool


def marked_terms(query: str, corrected: Mapping[str, str]) -> frozenset[str]:
    return frozenset([*terms.query_words(query), *corrected.values()])


def dedent(lines: Sequence[Line]) -> list[Line]:
    filled = [line.text for line in lines if line.text.strip()]
    shared = min((len(text) - len(text.lstrip(" ")) for text in filled), default=0)
    return [
        replace(
            line,
            text=line.text[shared:],
            marks=tuple((max(0, start - shared), end - shared) for start, end in line.marks if end > shared),
        )
        for line in lines
    ]


def reads_as_prose(kind: Kind, path: str | None) -> bool:
    return kind in _PROSE_KINDS or path is None or (kind is not Kind.CODE and is_prose(path))


def highlight(lines: Sequence[Line], path: str | None, kind: Kind) -> list[HtmlLine]:
    coloured = _colour(lines, _lexer_name(kind, path))
    return [
        HtmlLine(line.number, _html(line, classes), not line.text.strip(), aligned)
        for line, classes, aligned in zip(lines, coloured, _aligned(lines), strict=True)
    ]


def _aligned(lines: Sequence[Line]) -> Iterator[bool]:
    """Whether each line is code or part of a table, by the syntax that prose formats share."""
    fenced = False
    for line in lines:
        fence = line.text.lstrip().startswith(("```", "~~~"))
        fenced ^= fence
        yield fenced or fence or line.text.startswith(("    ", "|", "+-"))


# Start, end and CSS class.
Span = tuple[int, int, str]


def _colour(lines: Sequence[Line], name: str | None) -> list[list[Span]]:
    """The coloured spans of each line; none where the language is unknown or the text too large."""
    none: list[list[Span]] = [[] for _ in lines]
    size = sum(len(line.text) + 1 for line in lines)
    if name is None or size > MAX_TEXT or any(len(line.text) > MAX_LINE for line in lines):
        return none
    lexer = _lexer(name)
    if lexer is None:
        return none
    text = "\n".join(line.text for line in lines)
    found: list[list[Span]] = [[]]
    column = length = 0
    for token, value in lexer.get_tokens(text):
        length += len(value)
        css = _class(token)
        for number, part in enumerate(value.split("\n")):
            if number:
                found.append([])
                column = 0
            if part and css:
                found[-1].append((column, column + len(part), css))
            column += len(part)
    # A lexer that changes its input would put colours in the wrong place.
    return found if length == len(text) and len(found) == len(lines) else none


@lru_cache(maxsize=512)
def _class(token: _TokenType) -> str:
    return next((css for parent, css in _CLASSES if token in parent), "")


def _html(line: Line, spans: Sequence[Span]) -> Markup:
    """Marks contain colours; a mark that begins inside a colour cuts it."""
    edges = sorted(
        {0, len(line.text)}
        | {edge for start, end, _ in spans for edge in (start, end)}
        | {edge for start, end in line.marks for edge in (start, end)}
    )
    parts: list[str] = []
    inside = False
    for start, end in pairwise(edges):
        marked = any(a <= start and end <= b for a, b in line.marks)
        if marked != inside:
            parts.append("<mark>" if marked else "</mark>")
            inside = marked
        css = next((css for a, b, css in spans if a <= start and end <= b), "")
        piece = escape(line.text[start:end])
        parts.append(f'<span class="t{css}">{piece}</span>' if css else str(piece))
    if inside:
        parts.append("</mark>")
    # Every piece of the text was escaped above.
    return Markup("".join(parts))


def _lexer_name(kind: Kind, path: str | None) -> str | None:
    if kind is Kind.WIKI or path is None:
        return "page.md"
    if kind in _PROSE_KINDS:
        return None
    return "cell.py" if extension(path) == "ipynb" else path.rpartition("/")[2]


@lru_cache(maxsize=256)
def _lexer(name: str) -> Lexer | None:
    usual = _LANGUAGES.get(extension(name))
    try:
        found = find_lexer_class_by_name(usual) if usual else find_lexer_class_for_filename(name)
    except ClassNotFound:
        return None
    return None if found is None else found(stripnl=False, ensurenl=False, stripall=False)

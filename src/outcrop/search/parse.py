"""Reading a question, once: its words, symbols, quoted phrases, and what it says about the files it wants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from outcrop.core.model import EVERYTHING, Filter, Mode
from outcrop.core.protocols import Vector
from outcrop.errors import EmbedderError
from outcrop.search.file_roles import FileRole
from outcrop.search.query import Query
from outcrop.text import terms

_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|\.|->|#|/)[A-Za-z_$][\w$]*)*(?:\(\))?")
_SYMBOL_SIGNS = re.compile(r"[A-Z_$]|::|\.|->|#|\(")
_SEPARATOR = re.compile(r"::|\.|->|#|/")
_WORD = re.compile(r"(?P<quoted>`)?(?P<word>\w+)(?P<called>\(\)|`)?")
_IDENTIFIER = re.compile(
    r"[A-Za-z]+[a-z0-9]+[A-Z]\w*"  # camelCase
    r"|_*[A-Za-z0-9]+_\w+"  # snake_case
    r"|_+[A-Za-z]\w*"  # _leading
)
# Characters; a longer word is data, and matching it would take time that grows with its square.
LONGEST_IDENTIFIER = 100
_PLAIN_WORD = re.compile(r"(?<![\w.])[A-Za-z]?[a-z]{3,}(?![\w(]|\.\w)")
_PHRASE = re.compile(r'"([^"\n]{3,200})"|“([^”\n]{3,200})”')
_EXPLAIN = re.compile(
    r"\s*(how (do|can|should|to)\b|can (i|we|you)\b|what (is|are|does|do)\b|is it possible|why\b)", re.I
)

# What asks for a change: when, why and by whom. The words "commit" and "regression" alone are those of databases and of
# statistics too.
_CHANGE = re.compile(
    r"\b(?:when|why) (?:was|were)\b|\bwhen did\b|\bwhy did (?:we|they|you)\b|\bsince when\b"
    r"|\bwho (?:added|broke|changed|deleted|dropped|fixed|introduced|made|moved|removed|renamed|replaced|reverted"
    r"|wrote)\b"
    r"|\b(?:introduced|reverted)\b"
    r"|\b(?:a|the|this|that|which|what|last|first|latest) commits?\b|\bcommits (?:that|which|about|to|by|in|for|of)\b"
    r"|\bcommit (?:that|which|message|messages|history|log|[0-9a-f]{7,40})\b"
    r"|\bregress(?:ed|ion (?:since|after|from|introduced|caused|in (?:v?\d|version|release)))\b"
    r"|\b(?:caused|causes|introduce[sd]?) (?:a|the|this) regression\b",
    re.I,
)

_ASKS_FOR = {
    FileRole.TEST: frozenset("test tests testing tested spec specs fixture fixtures mock mocks".split()),
    FileRole.EXAMPLE: frozenset("example examples sample samples demo demos tutorial benchmark benchmarks".split()),
    FileRole.CHANGELOG: frozenset("changelog release releases released version changed history upgrade".split()),
    FileRole.INSTRUCTIONS: frozenset(
        "agent agents prompt prompts skill skills instruction instructions claude copilot".split()
    ),
    FileRole.VENDORED: frozenset("vendor vendored third party legacy compat bundled".split()),
}


def parse(
    text: str,
    mode: Mode = Mode.HYBRID,
    k: int = 1,
    where: Filter = EVERYTHING,
    min_score: float | None = None,
    explain: bool = False,
    vector: Vector | EmbedderError | None = None,
) -> Query:
    words = tuple(terms.query_words(text))
    stripped = text.strip().strip("`")
    symbol = _SEPARATOR.split(stripped.removesuffix("()"))[-1] if _SYMBOL.fullmatch(stripped) else None
    return Query(
        text=text,
        mode=mode,
        k=k,
        where=where,
        min_score=min_score,
        explain=explain,
        vector=vector,
        words=words,
        plain_words=tuple(dict.fromkeys(match[0].lower() for match in _PLAIN_WORD.finditer(text))),
        symbol=symbol,
        certain=symbol is not None and _SYMBOL_SIGNS.search(stripped) is not None,
        identifiers=_identifiers(text) if symbol is None else frozenset(),
        phrases=_phrases(text),
        asks_for_change=asks_for_change(text),
        explains=_EXPLAIN.match(text) is not None,
        file_roles=frozenset(role for role, asked in _ASKS_FOR.items() if not asked.isdisjoint(words)),
    )


def asks_for_change(text: str) -> bool:
    return _CHANGE.search(text) is not None


def with_words_replaced(query: Query, fixes: Mapping[str, str]) -> Query:
    """The same question with mistyped words replaced; a vector of the old text is dropped."""
    vector = query.vector if isinstance(query.vector, EmbedderError) else None
    parsed = parse(replace_words(query.text, fixes), query.mode, query.k, query.where, query.min_score, query.explain)
    return replace(parsed, vector=vector)


def replace_words(text: str, fixes: Mapping[str, str]) -> str:
    """A text with these of its plain words (lower-case) replaced."""
    return _PLAIN_WORD.sub(lambda match: fixes.get(match[0].lower(), match[0]), text)


def _identifiers(text: str) -> frozenset[str]:
    """Words that only programs have: by their case or underscores, quoted as code, or called."""
    return frozenset(
        match["word"].lower()
        for match in _WORD.finditer(text)
        if len(match["word"]) <= LONGEST_IDENTIFIER
        and (
            _IDENTIFIER.fullmatch(match["word"])
            or (match["called"] == "()" and not match["word"][0].isdigit())
            or (match["quoted"] and match["called"] == "`" and not match["word"][0].isdigit())
        )
    )


def _phrases(text: str) -> tuple[str, ...]:
    found = (" ".join((match[1] or match[2]).lower().split()) for match in _PHRASE.finditer(text))
    return tuple(dict.fromkeys(phrase for phrase in found if any(char.isalnum() for char in phrase)))

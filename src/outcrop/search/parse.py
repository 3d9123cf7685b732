"""What sort of question was asked: a symbol, or words; and what it says about the files it wants."""

from __future__ import annotations

import re
from dataclasses import dataclass

from outcrop.search.file_roles import Role
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
# Characters; a longer word is data, and looking into it would take time that grows with its square.
LONGEST_IDENTIFIER = 100
_PHRASE = re.compile(r'"([^"\n]{3,200})"|“([^”\n]{3,200})”')
_EXPLAIN = re.compile(
    r"\s*(how (do|can|should|to)\b|can (i|we|you)\b|what (is|are|does|do)\b|is it possible|why\b)", re.I
)

_ASKS_FOR = {
    Role.TEST: frozenset("test tests testing tested spec specs fixture fixtures mock mocks".split()),
    Role.EXAMPLE: frozenset("example examples sample samples demo demos tutorial benchmark benchmarks".split()),
    Role.CHANGELOG: frozenset("changelog release releases released version changed history upgrade".split()),
    Role.INSTRUCTIONS: frozenset(
        "agent agents prompt prompts skill skills instruction instructions claude copilot".split()
    ),
    Role.VENDORED: frozenset("vendor vendored third party legacy compat bundled".split()),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A question as the ranking understands it.

    Attributes:
        words: Distinct search terms, without stop words.
        symbol: The last part of the name when the whole question is one symbol (``Flask.run`` → ``run``); a single
            word of a language can be one too.
        certain: Whether the symbol is written as only symbols are: capitals, underscores, dots, a call.
        identifiers: Identifiers inside a question of words, lower-case.
        phrases: What it puts in double quotation marks, lower-case, white space folded.
        explains: Whether it asks to be told something rather than where something is; prose answers that.
        roles: Roles of files that it asks for by name.
    """

    words: tuple[str, ...]
    symbol: str | None
    certain: bool
    identifiers: frozenset[str]
    phrases: tuple[str, ...]
    explains: bool
    roles: frozenset[Role]


def read(question: str) -> Reading:
    """Understand a question."""
    words = tuple(terms.query_words(question))
    stripped = question.strip().strip("`")
    symbol = None
    if _SYMBOL.fullmatch(stripped):
        symbol = _SEPARATOR.split(stripped.removesuffix("()"))[-1]
    found = _identifiers(question) if symbol is None else frozenset()
    return Reading(
        words=words,
        symbol=symbol,
        certain=symbol is not None and _SYMBOL_SIGNS.search(stripped) is not None,
        identifiers=found,
        phrases=phrases(question),
        explains=_EXPLAIN.match(question) is not None,
        roles=frozenset(role for role, asked in _ASKS_FOR.items() if not asked.isdisjoint(words)),
    )


def _identifiers(question: str) -> frozenset[str]:
    """Words that only programs have: by their case or underscores, quoted as code, or called."""
    return frozenset(
        match["word"].lower()
        for match in _WORD.finditer(question)
        if len(match["word"]) <= LONGEST_IDENTIFIER
        and (
            _IDENTIFIER.fullmatch(match["word"])
            or (match["called"] == "()" and not match["word"][0].isdigit())
            or (match["quoted"] and match["called"] == "`" and not match["word"][0].isdigit())
        )
    )


def phrases(question: str) -> tuple[str, ...]:
    """What a question puts in double quotation marks, each once, lower-case, white space folded."""
    found = (" ".join((match[1] or match[2]).lower().split()) for match in _PHRASE.finditer(question))
    return tuple(dict.fromkeys(phrase for phrase in found if any(char.isalnum() for char in phrase)))

"""Text to search terms, the same way for passages and questions.

An identifier gives its parts and itself: ``getUserName`` and ``get_user_name`` both give ``get user name getusername``.
Runs of Chinese, Japanese and Korean characters, which have no spaces, give overlapping pairs. Accents and case are
folded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

import Stemmer

# Raised when the same text gives other terms; the store then rebuilds its keyword index.
VERSION = 1

_WORD = re.compile(r"\w+")
_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003134f"
)
_CJK_RUN = re.compile(f"[{_CJK}]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

_STEMMER = Stemmer.Stemmer("porter")

# Words of nearly every English question, which distinguish no passage from another.
STOP_WORDS = frozenset(
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my of "
    "on or our should so than that the their them then there these they this to us was we were what when where which "
    "who why will with would you your".split()
)


def words(text: str) -> list[str]:
    """All terms of a text, in order, repeated as often as they occur."""
    return [term for word in _WORD.findall(text) for term in _split(word)]


def query_words(text: str) -> list[str]:
    """The distinct terms of a question, in order, without stop words (unless there is nothing else)."""
    every = list(dict.fromkeys(words(text)))
    return [word for word in every if word not in STOP_WORDS] or every


@lru_cache(maxsize=65536)
def stem(term: str) -> str:
    """A term without its English ending, as the keyword index takes it off (Porter, "An algorithm for suffix
    stripping", 1980): ``dependency`` and ``dependencies`` both give ``depend``.
    """
    stemmed: str = _STEMMER.stemWord(term)
    return stemmed


def spans(text: str, wanted: Collection[str]) -> list[tuple[int, int]]:
    """Character ranges of wanted terms in a text, whatever their English endings: ascending, not overlapping.

    An identifier that matches whole is one range; else the parts that match are.
    """
    chosen = frozenset(map(stem, wanted))
    found: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        word, at = match.group(), match.start()
        stems = [stem(term) for term in _split(word)]
        if chosen.isdisjoint(stems):
            continue
        if len(stems) == 1 or stems[-1] in chosen:
            found.append((at, match.end()))
            continue
        for start, end, term in _pieces(word):
            if stem(term) not in chosen:
                continue
            if found and at + start <= found[-1][1]:
                found[-1] = (found[-1][0], at + end)
            else:
                found.append((at + start, at + end))
    return found


@lru_cache(maxsize=65536)
def _split(word: str) -> tuple[str, ...]:
    parts = [term for _, _, term in _pieces(word)]
    if len(parts) > 1 and _CJK_RUN.search(word) is None:
        parts.append("".join(parts))
    return tuple(parts)


def _pieces(word: str) -> list[tuple[int, int, str]]:
    # Start, end, folded term.
    if word.isascii():
        if word.islower() and word.isalpha():
            return [(0, len(word), word)]
        return [(m.start(), m.end(), m.group().lower()) for m in _PART.finditer(word)]
    pieces: list[tuple[int, int, str]] = []
    at = 0
    for run in _CJK_RUN.finditer(word):
        pieces += _latin_pieces(word, at, run.start())
        start, end = run.span()
        if end - start == 1:
            pieces.append((start, end, run.group()))
        pieces += [(i, i + 2, word[i : i + 2]) for i in range(start, end - 1)]
        at = end
    return pieces + _latin_pieces(word, at, len(word))


def _latin_pieces(word: str, start: int, end: int) -> list[tuple[int, int, str]]:
    """Parts of a stretch that holds no CJK character; accented letters stay inside their word."""
    stretch = word[start:end]
    folded = "".join(_fold(char) for char in stretch)
    # Case says where a word begins only in ASCII; anything else ("Größe", Cyrillic, ligatures) stays whole.
    if len(folded) != len(stretch) or not folded.isascii():
        return [
            (start + m.start(), start + m.end(), _fold(m.group()).lower()) for m in re.finditer(r"[^\W_]+", stretch)
        ]
    return [(start + m.start(), start + m.end(), m.group().lower()) for m in _PART.finditer(folded)]


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))

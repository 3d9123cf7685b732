"""Text to BERT-uncased word pieces: what the default model reads, and how long a text is in its eyes.

The scheme is that of Devlin et al., "BERT" (2018), section 3, as the published code does it: clean, lower-case, strip
accents, split at white space, punctuation and CJK characters, then take the longest known piece again and again. The
vocabulary is a data file of the package (``data/vocab.txt``, its licence beside it).

Counting runs over whole corpora, so a word is split once and remembered.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

from outcrop.errors import FormatError

VOCAB_PATH = Path(__file__).parents[1] / "data" / "vocab.txt"
VOCAB_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

# What the vocabulary puts before a piece that does not begin a word.
CONTINUES = "##"

# Pieces that ``encode`` adds to a text: one opens it, one closes it.
FRAME = 2

# Characters. A longer word is one unknown piece: it is base64 or a hash, and nothing would be learnt from it.
WORD_LIMIT = 100

# Words in the cache, about 8 MB when full: twice as many as Python's standard library uses.
REMEMBERED_WORDS = 1 << 15

# White space that is not a control character: those vanish, except the three that are spaces in everybody's eyes.
_SPACES = "\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_RUN = re.compile(f"[^{_SPACES}]+")
_ASCII_PUNCTUATION = r"!-/:-@\[-`{-~"
_WORD = re.compile(f"[^ {_ASCII_PUNCTUATION}]+|[{_ASCII_PUNCTUATION}]")

_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Normaliser(dict[int, str]):
    """What each character becomes, worked out when it is first met; for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        made = self[code] = _normalise(chr(code))
        return made


class _Pieces(dict[str, tuple[int, ...]]):
    """The ids of each word's pieces, worked out when it is first met, and bounded."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.unknown = (vocabulary["[UNK]"],)
        self.longest = max(map(len, vocabulary))

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(word) > WORD_LIMIT:
            return self.unknown
        if len(self) >= REMEMBERED_WORDS:
            self.clear()
        made = self[word] = self._split(word)
        return made

    def _split(self, word: str) -> tuple[int, ...]:
        known = self.vocabulary
        found: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self.longest), start, -1):
                piece = known.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return self.unknown
            found.append(piece)
            start, prefix = end, CONTINUES
        return tuple(found)


_normaliser = _Normaliser()


def count(text: str) -> int:
    """How many word pieces a text has, the two that frame it not counted."""
    return sum(map(len, map(_pieces().__getitem__, _WORD.findall(text.translate(_normaliser)))))


def encode(text: str, limit: int) -> list[int]:
    """The ids that the model reads: ``[CLS]``, the word pieces, ``[SEP]``.

    Returns:
        Between 2 and ``limit`` ids.
    """
    if limit < 2:
        raise ValueError(f"limit must be at least 2, not {limit}: one piece opens every text and one closes it")
    pieces = _pieces()
    ids = [pieces.vocabulary["[CLS]"]]
    for run in _RUN.finditer(text):
        for word in _WORD.finditer(run[0].translate(_normaliser)):
            ids += pieces[word[0]]
            if len(ids) >= limit:
                break
        if len(ids) >= limit:
            break
    del ids[limit - 1 :]
    ids.append(pieces.vocabulary["[SEP]"])
    return ids


@lru_cache(maxsize=1)
def _pieces() -> _Pieces:
    data = VOCAB_PATH.read_bytes()
    if hashlib.sha256(data).hexdigest() != VOCAB_SHA256:
        raise FormatError(f"{VOCAB_PATH} is not the vocabulary that Outcrop came with", "Install Outcrop again.")
    words = data.decode("utf-8").split("\n")
    return _Pieces({word: number for number, word in enumerate(words) if word})


def _normalise(character: str) -> str:
    """Clean, set apart, strip accents, lower-case: in this order, as the model's training data was."""
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    if character == "\ufffd" or category in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    if category in {"Zs", "Zl", "Zp"}:
        return " "
    decomposed = unicodedata.normalize("NFD", character)
    text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn").lower()
    return "".join(f" {c} " if _stands_alone(c) else c for c in text)


def _stands_alone(character: str) -> bool:
    """Whether it is a word of its own. ASCII punctuation is too, but the word pattern sees to that, which is faster."""
    if character.isascii():
        return False
    return _is_ideograph(character) or unicodedata.category(character).startswith("P")


def _is_ideograph(character: str) -> bool:
    code = ord(character)
    return code >= 0x3400 and any(first <= code <= last for first, last in _IDEOGRAPHS)

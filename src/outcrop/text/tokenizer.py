"""Text to BERT-uncased word pieces: what the default model reads, and how long a text is for it.

Devlin et al., "BERT" (2018), section 3, as in the published code: clean, lower-case, strip accents, split at white
space, punctuation and CJK characters, then repeat the longest known piece. The vocabulary is ``data/vocab.txt``.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

from outcrop.errors import FormatError

VOCAB_PATH = Path(__file__).parents[1] / "data" / "vocab.txt"
VOCAB_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

# Before a piece that does not begin a word.
CONTINUES = "##"

# Pieces that ``encode`` adds to a text: one opens it, one closes it.
FRAME = 2

# Characters. A longer word (base64, a hash) is one unknown piece.
WORD_LIMIT = 100

# Words in the cache, about 8 MB when full: twice as many as Python's standard library uses.
REMEMBERED_WORDS = 1 << 15

# White space. Control characters vanish, except three that are spaces too.
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
    """Characters to their normal form, on demand; for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        made = self[code] = _normalise(chr(code))
        return made


class _Pieces(dict[str, tuple[int, ...]]):
    """Words to the ids of their pieces, on demand and bounded: counting runs over whole corpora."""

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
    """The number of word pieces of a text, without the two of the frame."""
    return sum(map(len, map(_pieces().__getitem__, _WORD.findall(text.translate(_normaliser)))))


def encode(text: str, limit: int) -> list[int]:
    """The ids that the model reads: ``[CLS]``, word pieces, ``[SEP]``; from 2 to ``limit``, where the work stops."""
    if limit < 2:
        raise ValueError(f"limit must be at least 2, not {limit}: one piece opens every text and one closes it")
    pieces = _pieces()
    words = (word[0] for run in _RUN.finditer(text) for word in _WORD.finditer(run[0].translate(_normaliser)))
    ids = chain.from_iterable(map(pieces.__getitem__, words))
    return [pieces.vocabulary["[CLS]"], *islice(ids, limit - FRAME), pieces.vocabulary["[SEP]"]]


@lru_cache(maxsize=1)
def _pieces() -> _Pieces:
    data = VOCAB_PATH.read_bytes()
    if hashlib.sha256(data).hexdigest() != VOCAB_SHA256:
        raise FormatError(f"{VOCAB_PATH} is not the vocabulary that Outcrop came with", "Install Outcrop again.")
    words = data.decode("utf-8").split("\n")
    return _Pieces({word: number for number, word in enumerate(words) if word})


def _normalise(character: str) -> str:
    # In the order of the model's training data.
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    if character == "\ufffd" or category in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    if category in {"Zs", "Zl", "Zp"}:
        return " "
    decomposed = unicodedata.normalize("NFD", character)
    text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn").lower()
    return "".join(f" {c} " if _is_own_word(c) else c for c in text)


def _is_own_word(character: str) -> bool:
    # ASCII punctuation is a word of its own too: the word pattern does that faster.
    if character.isascii():
        return False
    code = ord(character)
    ideograph = code >= 0x3400 and any(first <= code <= last for first, last in _IDEOGRAPHS)
    return ideograph or unicodedata.category(character).startswith("P")

"""Words of a question that nothing here holds: most likely mistyped, when something here is spelt nearly so.

A word that the default model knows as one piece is an English word, and is left alone however rare it is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from outcrop.core.model import Kind
from outcrop.core.protocols import VectorStore
from outcrop.text import terms, tokenizer

# Letters; a shorter word is near to too many others.
SHORTEST = 4

# Letters from which on a word may differ in two places, if what it becomes is an English word.
TWO_SLIPS = 8

# Nearest entries of the vocabulary whose whole words are looked at.
LOOKED_AT = 12

_PLAIN = re.compile(r"(?<![\w.])[A-Za-z]?[a-z]{3,}(?![\w(]|\.\w)")


def corrections(question: str, store: VectorStore, kinds: Sequence[Kind] = ()) -> dict[str, str]:
    """What each mistyped word of a question was probably meant to be.

    Args:
        question: As it was asked.
        store: What is asked.
        kinds: What the answer may be made of; empty for everything. Words of anything else neither correct nor count
            as held, since who may not see it could otherwise learn of them.

    Returns:
        The nearest word by each mistyped one, both lower-case. Identifiers are never corrected.
    """
    asked = list(dict.fromkeys(match[0].lower() for match in _PLAIN.finditer(question)))
    long = [word for word in asked if len(word) >= SHORTEST and word not in terms.STOP_WORDS]
    found = {}
    for word in sorted(store.unknown(long, kinds)) if long else ():
        if tokenizer.count(word) > 1 and (nearest := _nearest(word, store, kinds)):
            found[word] = nearest
    return found


def corrected(question: str, words: Mapping[str, str]) -> str:
    """A question with its mistyped words replaced."""
    return _PLAIN.sub(lambda match: words.get(match[0].lower(), match[0]), question)


def _nearest(word: str, store: VectorStore, kinds: Sequence[Kind]) -> str | None:
    slips = 2 if len(word) >= TWO_SLIPS else 1
    # Two letters are nearly always right and keep the look-up short; if not, one.
    for beginning in (word[:2], word[:1]):
        best = min(_candidates(word, slips, store, beginning, kinds), default=None)
        if best is not None:
            return best[2]
    return None


def _candidates(
    word: str, slips: int, store: VectorStore, beginning: str, kinds: Sequence[Kind]
) -> Iterator[tuple[int, int, str]]:
    """How far each possible word is, how frequent it is (negative), and the word."""
    near = []
    letters = frozenset(word)
    for stem, count in store.stems(beginning).items():
        # A stem is the word without its ending (and with i for y), so it is compared with the word's beginnings.
        root = stem.removesuffix("i")
        if len(root) < SHORTEST - 1 or len(root) > len(word) + slips or not root.isalpha():
            continue
        if len(letters.union(root)) > len(letters) + slips:
            continue
        away = min(_to_beginnings(root, word, slips))
        if away <= slips:
            near.append((away, -len(stem), -count, stem))
    for _, _, count, stem in sorted(near)[:LOOKED_AT]:
        for form in store.forms(stem, kinds):
            away = distance(word, form, slips)
            if away <= slips and (away == 1 or tokenizer.count(form) == 1):
                yield away, count, form


def distance(one: str, other: str, limit: int) -> int:
    """Letters that were left out, put in, mistaken or swapped with their neighbour between two words.

    Optimal string alignment (Damerau, "A technique for computer detection and correction of spelling errors", 1964).

    Returns:
        The distance, or ``limit + 1`` when it is above the limit.
    """
    return min(_to_beginnings(one, other, limit)[-1], limit + 1)


def _to_beginnings(one: str, other: str, limit: int) -> list[int]:
    """The distance of a word to each beginning of another, the empty one first; above the limit they may be cut off."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        after = [i]
        for j, opposite in enumerate(other, 1):
            least = min(row[j] + 1, after[-1] + 1, row[j - 1] + (letter != opposite))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == opposite:
                least = min(least, before[j - 2] + 1)
            after.append(least)
        before, row = row, after
        if min(before) > limit and min(row) > limit:
            return [limit + 1] * len(row)
    return row

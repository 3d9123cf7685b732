"""Words of a question that no passage holds: probably mistyped, when a word of the index is spelt nearly so.

A word that the default model knows as one piece is an English word, and is left alone however rare it is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from outcrop.core.model import Kind
from outcrop.core.protocols import ChunkIndex
from outcrop.search.query import Query
from outcrop.text import terms, tokenizer

# Letters; a shorter word is near to too many others.
MIN_LETTERS = 4

# Letters from which on a word may differ in two places, if what it becomes is an English word.
TWO_EDITS = 8

# Nearest stems of the vocabulary whose whole words are compared.
MAX_STEMS = 12


def corrections(query: Query, index: ChunkIndex, kinds: Sequence[Kind] = ()) -> dict[str, str]:
    """The word that each mistyped plain word of a question was probably meant to be, both lower-case.

    Words of other kinds than these (none named: any) neither correct nor count as held: a user who may not see them
    could otherwise learn of them.
    """
    long = [word for word in query.plain_words if len(word) >= MIN_LETTERS and word not in terms.STOP_WORDS]
    found = {}
    for word in sorted(index.unknown(long, kinds)) if long else ():
        if tokenizer.count(word) > 1 and (nearest := _nearest(word, index, kinds)):
            found[word] = nearest
    return found


def _nearest(word: str, index: ChunkIndex, kinds: Sequence[Kind]) -> str | None:
    edits = 2 if len(word) >= TWO_EDITS else 1
    # Two letters are nearly always right and keep the look-up short; if not, one.
    for beginning in (word[:2], word[:1]):
        best = min(_candidates(word, edits, index, beginning, kinds), default=None)
        if best is not None:
            return best[2]
    return None


def _candidates(
    word: str, edits: int, index: ChunkIndex, beginning: str, kinds: Sequence[Kind]
) -> Iterator[tuple[int, int, str]]:
    """Edit distance of each possible word, how frequent it is (negative), and the word."""
    near = []
    letters = frozenset(word)
    for stem, count in index.stems(beginning).items():
        # A stem is the word without its ending (and with i for y), so it is compared with the word's beginnings.
        root = stem.removesuffix("i")
        if len(root) < MIN_LETTERS - 1 or len(root) > len(word) + edits or not root.isalpha():
            continue
        if len(letters.union(root)) > len(letters) + edits:
            continue
        edits_needed = min(_to_beginnings(root, word, edits))
        if edits_needed <= edits:
            near.append((edits_needed, -len(stem), -count, stem))
    for _, _, count, stem in sorted(near)[:MAX_STEMS]:
        for form in index.forms(stem, kinds):
            edits_needed = distance(word, form, edits)
            if edits_needed <= edits and (edits_needed == 1 or tokenizer.count(form) == 1):
                yield edits_needed, count, form


def distance(one: str, other: str, limit: int) -> int:
    """Optimal string alignment distance, ``limit + 1`` at most.

    Damerau, "A technique for computer detection and correction of spelling errors", 1964.
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

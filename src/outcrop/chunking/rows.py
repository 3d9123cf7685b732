"""Rows of a text with their weights in tokens, and where a stretch that is too long is best cut."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from outcrop.text.tokenizer import count

# Most tokens of a chunk. Every other limit follows from it.
CEILING = 256

# Tokens up to which small neighbours are joined.
TARGET = CEILING // 2

# Tokens below which a definition may share a chunk.
SMALL = CEILING // 6

# Tokens below which a scrap says nothing by itself.
TINY = CEILING // 10

# A row weighs at least one token per so many characters: base64 is one unknown word, however long it is.
_CHARS_PER_TOKEN = 16

# Share of the ceiling that a cut leaves at least in the first part.
_SMALLEST_SHARE = 0.35

# Start and end as character offsets, and the name.
Slice = tuple[int, int, str | None]

# How bad a cut before a row is: 0 is a good place, 10 is the middle of a thought.
Cost = Callable[["TextRows", int], float]

_CLOSER = re.compile(
    r"""\s*$
    |\s*[)\]}][)\]}>;,\s]*(\s(while|as|else)\b.*)?$
    |\s*</[\w-]+>\s*;?$
    |\W*(end|fi|done|esac|endif|endfunction|endmodule|endclass|endmacro|endforeach|endwhile)\b[\s;,.)}\]]*$
    |\s*end[ \t]+\w+([ \t]+[\w.]+)?[ \t;]*$                        # Fortran, Ada: end subroutine s
    |\s*end(function|macro|if|foreach|while|block)\s*\([^()]*\)\s*$   # CMake
    |\s*[#]\s*(endif|endregion)\b.*$
    |\s*\}[;\s]*(//|/\*|\#).*$                                     # } // namespace
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OPENER = re.compile(r"([{(\[:,\\=]|\b(do|then|begin|else|is|where))\s*$")
_SENTENCE_END = re.compile(r"[.!?:;。！？]['\"”’)\]*_`]*\s*$")
_PARAGRAPH = re.compile(r"\s*(\*|//+!?|\#'?|--|;+|%+|!>?)\s*$")
_WORD = re.compile(r"\S{1,48}\s*|\s{1,48}")
_STRONG = re.compile(r"[.!?;>}。！？]['\"”’)\]*_`]*\s*$")


class TextRows:
    """A text as rows: a row is a line (ended by ``\\n`` only), or a part of one after each offset in ``cuts``."""

    def __init__(self, text: str, cuts: Iterable[int] = ()) -> None:
        self.text = text
        self._rows = text.split("\n")
        self.starts = [0, *accumulate(len(row) + 1 for row in self._rows)]
        extra = {cut for cut in cuts if 0 < cut < len(text)}.difference(self.starts)
        if extra:
            self.starts = sorted(extra.union(self.starts))
            self._rows = [text[a:b].removesuffix("\n") for a, b in pairwise(self.starts)]
        self.starts[-1] = len(text)
        self.sums = [0, *accumulate(max(count(row), len(row) // _CHARS_PER_TOKEN) for row in self._rows)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> str:
        return self._rows[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def weight(self, first: int, stop: int) -> int:
        """Tokens of the rows from ``first`` to before ``stop``."""
        return self.sums[stop] - self.sums[first]

    def blank(self, row: int) -> bool:
        return not self[row].strip()

    def blank_between(self, first: int, stop: int) -> bool:
        return all(map(self.blank, range(first, stop)))

    def is_wordless(self, first: int, stop: int) -> bool:
        """Whether a stretch has no letter or digit: blank rows, or a ruled line between parts of a file."""
        return not any(map(str.isalnum, self.text[self.starts[first] : self.starts[stop]]))

    def closer(self, row: int) -> bool:
        """Whether a row only closes what is above it: ``}``, ``end``, ``#endif``; also a blank row."""
        line = self[row]
        return len(line) < 200 and _CLOSER.match(line) is not None

    def indent(self, row: int) -> int:
        """Columns of white space in front, tabs as four."""
        return self._indents[row]

    @cached_property
    def step(self) -> int:
        """Columns of one level of indentation: 2 or 4."""
        deep = [columns for columns in self._indents if columns]
        return 2 if 4 * sum(columns % 4 == 2 for columns in deep) > len(deep) else 4

    @cached_property
    def _indents(self) -> list[int]:
        leads = (row[: len(row) - len(row.lstrip())] for row in self._rows)
        return [len(lead.expandtabs(4)) if "\t" in lead else len(lead) for lead in leads]

    def slices(self, first: int, stop: int, name: str | None, cost: Cost) -> list[Slice]:
        """The stretch as one slice, or as several under the ceiling.

        Returns:
            Slices without blank edges (rows keep their indentation), in order; none if all is blank.
        """
        parts: list[Slice] = []
        while first < stop:
            if self.blank(first):
                first += 1
                continue
            if self.weight(first, stop) <= CEILING:
                parts.append(self._slice(first, stop, name))
                break
            cut = self._cut(first, stop, cost)
            if cut == first:
                edges = [self.starts[first], *self.cuts_in_row(first, CEILING), self.starts[first + 1]]
                parts += [
                    (a, a + len(piece.rstrip()), name) for a, b in pairwise(edges) if (piece := self.text[a:b]).strip()
                ]
                cut += 1
            else:
                parts.append(self._slice(first, cut, name))
            first = cut
        return parts

    def all_slices(self, name: str | None, cost: Cost) -> list[Slice]:
        return self.slices(0, len(self), name, cost)

    def _slice(self, first: int, stop: int, name: str | None) -> Slice:
        start = self.starts[first]
        return start, start + len(self.text[start : self.starts[stop]].rstrip()), name

    def _cut(self, first: int, stop: int, cost: Cost) -> int:
        """The best row to begin the next part with; ``first`` if not even one row fits."""
        base = self.sums[first]
        furthest = min(bisect_right(self.sums, base + CEILING) - 1, stop - 1)
        nearest = min(max(bisect_right(self.sums, base + int(CEILING * _SMALLEST_SHARE)) - 1, first + 1), furthest)
        if furthest <= first:
            return first
        total = self.weight(first, stop)
        goal = total / -(-total // CEILING)

        def price(row: int) -> float:
            rest = self.weight(row, stop)
            scraps = 8.0 if rest < TINY else 3.0 if rest < SMALL else 0.0
            return cost(self, row) + scraps + 6 * abs(self.weight(first, row) - goal) / CEILING

        return min(range(nearest, furthest + 1), key=price)

    def cuts_in_row(self, row: int, limit: int) -> list[int]:
        """Where to cut inside one row that is too long: at the end of a sentence or statement, else at white space.

        Returns:
            Character offsets, ascending, of the beginnings of all parts but the first.
        """
        start, end = self.starts[row], self.starts[row + 1]
        words = [
            (m.end(), max(count(m[0]), len(m[0]) // _CHARS_PER_TOKEN)) for m in _WORD.finditer(self.text, start, end)
        ]
        cuts: list[int] = []
        place = 0
        while place < len(words):
            weight, strong, spaced, stop = 0, 0, 0, place
            while stop < len(words) and (weight + words[stop][1] <= limit or stop == place):
                weight += words[stop][1]
                stop += 1
                if 2 * weight > limit:
                    tail = self.text[max(start, words[stop - 1][0] - 8) : words[stop - 1][0]]
                    if _STRONG.search(tail):
                        strong = stop
                    elif tail[-1:].isspace():
                        spaced = stop
            if stop < len(words):
                stop = strong or spaced or stop
            # A word in two parts is read as other pieces than the whole, so the sum is not exact.
            while stop > place + 1 and count(self.text[start : words[stop - 1][0]]) > limit:
                stop -= 1
            start, place = words[stop - 1][0], stop
            if place < len(words):
                cuts.append(start)
        return cuts


def code_cost(rows: TextRows, row: int) -> float:
    """A cut in code: best after a blank row and far to the left, never before a closer or after an opener."""
    if rows.blank(row):
        return 12.0
    if rows.closer(row):
        return 30.0
    before = rows[row - 1]
    cost = min(rows.indent(row) / rows.step, 8) * 2.0
    if _PARAGRAPH.match(before):
        cost += 1.0
    elif before.strip():
        cost += 3.0
        if _OPENER.search(before):
            cost += 4.0
        if before.lstrip().startswith(("#", "//", "--", "/*", "* ", "@", "%")):
            cost += 4.0
    return cost


def prose_cost(rows: TextRows, row: int) -> float:
    """A cut in prose: between paragraphs, then between list items or sentences."""
    if rows.blank(row):
        return 12.0
    before = rows[row - 1]
    cost = min(rows.indent(row) / 2, 4)
    if before.strip():
        cost += 2.0 if re.match(r"\s*([-*+•]|\d+[.)])\s", rows[row]) else 4.0
        if not _SENTENCE_END.search(before):
            cost += 4.0
    elif _introduces(rows, row):
        cost += 3.0
    return cost


def avoid_inside(cost: Cost, solid: Sequence[tuple[int, int]]) -> Cost:
    """The same cost, far higher inside the row ranges of ``solid`` (a code fence, a table), which are in order."""
    begins = [first for first, _ in solid]

    def guarded_cost(rows: TextRows, row: int) -> float:
        at = bisect_right(begins, row - 1) - 1
        inside = at >= 0 and solid[at][0] < row < solid[at][1]
        return cost(rows, row) + (25.0 if inside else 0.0)

    return guarded_cost


def _introduces(rows: TextRows, row: int) -> bool:
    """Whether the paragraph above ends with a colon, and so belongs to the row."""
    above = row - 1
    while above > 0 and rows.blank(above):
        above -= 1
    return rows[above].rstrip().endswith(":")

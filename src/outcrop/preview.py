"""One line that stands for a passage."""

from __future__ import annotations

from collections.abc import Sequence

from outcrop import terms

LENGTH = 160
"""Characters of a preview at most."""


def preview(text: str, words: Sequence[str]) -> str:
    """The line that holds most of the distinct search terms (the first of equals), with white space folded, capped."""
    wanted = set(map(terms.stem, words))
    best, most = "", -1
    for line in text.split("\n"):
        folded = " ".join(line.split())
        if not any(char.isalnum() for char in folded):
            continue
        matches = len(wanted.intersection(map(terms.stem, terms.words(folded))))
        if matches > most:
            best, most = folded, matches
    return best if len(best) <= LENGTH else best[: LENGTH - 1].rstrip() + "…"

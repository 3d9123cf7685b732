"""The part of a store that tells what it knows of single words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outcrop.model import Filter, Kind
from outcrop.stores import selection, vocabulary
from outcrop.stores.file import DatabaseFile


class WordTables:
    """Single words of a view, by the keyword index."""

    file: DatabaseFile
    worktree: str
    _chooser: selection.Chooser

    def defining(self, name: str, k: int, filter: Filter) -> Sequence[int]:
        """Passages of code whose own name is this one, those of the same case first."""
        with self.file.snapshot(), self.file.reading() as database:
            visible = self._chooser.allowed(database, filter)
            mine = None if visible is None else set(visible.tolist())
            found = vocabulary.defining(database, name)
            return [id for id in found if mine is None or id in mine][:k]

    def unknown(self, words: Sequence[str], kinds: Sequence[Kind] = ()) -> frozenset[str]:
        """Those words that no passage of these kinds (none named: any) holds, in any form."""
        with self.file.reading() as database:
            return vocabulary.unknown(database, self.worktree, words, kinds)

    def stems(self, beginning: str) -> Mapping[str, int]:
        """The stems that begin so, and how many passages hold each."""
        with self.file.reading() as database:
            return vocabulary.stems(database, beginning)

    def forms(self, stem: str, kinds: Sequence[Kind] = ()) -> frozenset[str]:
        """Words of a stem, as some passages of these kinds (none named: any) have them."""
        with self.file.reading() as database:
            return vocabulary.forms(database, self.worktree, stem, kinds)

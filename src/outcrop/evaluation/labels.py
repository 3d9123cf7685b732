"""What a label of a judged question means: a whole artifact, or the part of it that lines, a name or a cell say.

A label is written as ``outcrop search`` prints a place: ``src/net.py``, ``src/net.py:41`` or ``src/net.py:41-60``,
``src/net.py#Client.connect``, ``lab/roof.ipynb cell 3`` or ``lab/roof.ipynb cell 3:1-9``; where there is no path, a
content hash or its beginning; in an imported project ``peer: src/net.py``. Paths may hold any of these signs, so a
label is read against what there is: the longest part of it that is a path is one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from outcrop.chunking.definitions import parts_of
from outcrop.chunking.workers.pool import lines_of
from outcrop.core.rows import ArtifactKey, PassageRef

FEWEST_HASH_CHARACTERS = 7

_HASH = re.compile(rf"[0-9a-fA-F]{{{FEWEST_HASH_CHARACTERS},64}}")
_LINES = re.compile(r"(.+?)(?::|#L)([1-9]\d{0,8})(?:-L?([1-9]\d{0,8}))?")
_CELL = re.compile(r"(.+?)\s+cell\s+([1-9]\d{0,8})(?::([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?)?")


@dataclass(frozen=True, slots=True)
class LabelPart:
    """Which passages of an artifact are meant; all of them where nothing is said."""

    # Passages that share a line with this range (1-based, inclusive; of a notebook inside the cell)
    lines: tuple[int, int] | None = None
    name: str | None = None  # Passages of this definition or section, or of something inside it
    cell: int | None = None  # Passages of this cell (0-based)

    def holds(self, ref: PassageRef) -> bool:
        if self.name is not None:
            return ref.name is not None and names(ref.name, self.name)
        # Lines of a notebook's file are lines of its JSON, which no passage has.
        if ref.cell != self.cell and self != WHOLE:
            return False
        return self.lines is None or (ref.lines[0] <= self.lines[1] and ref.lines[1] >= self.lines[0])


WHOLE = LabelPart()


@dataclass(frozen=True, slots=True)
class Target:
    """A label that means something in this index."""

    label: str
    grade: int  # How well it answers: above 0 it does
    artifacts: frozenset[ArtifactKey]  # Where it points; several where one path stands in several projects
    part: LabelPart = WHOLE

    @property
    def is_passage(self) -> bool:
        return self.part != WHOLE

    def holds(self, ref: PassageRef) -> bool:
        return ref.artifact in self.artifacts and self.part.holds(ref)


# Gives the text of an artifact, and its format as ``chunking.format_of`` says.
Texts = Callable[[ArtifactKey], tuple[str, str]]


@dataclass(slots=True)
class LabelIndex:
    """Every passage that a question could have been answered with, by path and by hash."""

    _texts: Texts
    _by_path: dict[str, set[ArtifactKey]] = field(default_factory=lambda: defaultdict(set))
    _by_hash: dict[str, set[ArtifactKey]] = field(default_factory=lambda: defaultdict(set))
    _refs: dict[ArtifactKey, list[PassageRef]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, refs: Iterable[PassageRef], texts: Texts = lambda _: ("", "text")) -> LabelIndex:
        """``texts`` are asked where a label names what gave no passage its name."""
        found = cls(texts)
        for ref in refs:
            found._refs[ref.artifact].append(ref)
            found._by_hash[ref.hash].add(ref.artifact)
            for path in ref.paths:
                found._by_path[path].add(ref.artifact)
                if ref.project:
                    found._by_path[f"{ref.project}: {path}"].add(ref.artifact)
        return found

    def find(self, label: str, grade: int) -> Target | None:
        """What a label means, or None when nothing of that is here."""
        for document, part in _readings(label):
            artifacts = self._artifacts(document)
            if self._holds(artifacts, part):
                return Target(label, grade, frozenset(artifacts), part)
        for document, part in _readings(label):
            for artifact in sorted(self._artifacts(document) if part.name is not None else ()):
                lines = lines_of(*self._texts(artifact), part.name or "")
                if lines is not None and self._holds({artifact}, LabelPart(lines)):
                    return Target(label, grade, frozenset({artifact}), LabelPart(lines))
        return None

    def _holds(self, artifacts: Iterable[ArtifactKey], part: LabelPart) -> bool:
        return any(part.holds(ref) for artifact in artifacts for ref in self._refs[artifact])

    def _artifacts(self, document: str) -> set[ArtifactKey]:
        path = document.replace("\\", "/")
        while path.startswith("./"):
            path = path[2:]
        for name in (document, path):
            if name in self._by_path:
                found = self._by_path[name]
                # A path is first of all one of this repository's.
                return {artifact for artifact in found if not artifact[0]} or found
        if not _HASH.fullmatch(document):
            return set()
        beginning = document.lower()
        hashes = [each for each in self._by_hash if each.lower().startswith(beginning)]
        return self._by_hash[hashes[0]] if len(hashes) == 1 else set()


def merged(targets: Iterable[Target]) -> list[Target]:
    """Without labels that say the same twice: one file at two paths is one answer, with the better grade."""
    best: dict[tuple[frozenset[ArtifactKey], LabelPart], Target] = {}
    for target in targets:
        key = target.artifacts, target.part
        if key not in best or best[key].grade < target.grade:
            best[key] = target
    return list(best.values())


def names(own: str, wanted: str) -> bool:
    """Whether a passage's name is the one that is wanted, or one inside it: ``Client.connect`` for ``Client``.

    A passage of several neighbours has all their names, between commas.
    """
    own, wanted = " ".join(own.split()), " ".join(wanted.split())
    if own == wanted:
        return True
    parts = parts_of(wanted)
    return bool(parts) and any(_contains(parts_of(each), parts) for each in (own, *own.split(", ")))


def _contains(whole: Sequence[str], piece: Sequence[str]) -> bool:
    return any(whole[at : at + len(piece)] == piece for at in range(len(whole) - len(piece) + 1))


def _readings(label: str) -> Iterator[tuple[str, LabelPart]]:
    """Each way to read a label, the one with the longest path first."""
    yield label, WHOLE
    if match := _CELL.fullmatch(label):
        yield match[1], LabelPart(_range(match[3], match[4]), cell=int(match[2]) - 1)
    if match := _LINES.fullmatch(label):
        yield match[1], LabelPart(_range(match[2], match[3]))
    for at in reversed([at for at, sign in enumerate(label) if sign == "#"]):
        if label[at + 1 :].strip():
            yield label[:at], LabelPart(name=label[at + 1 :])


def _range(first: str | None, last: str | None) -> tuple[int, int] | None:
    if first is None:
        return None
    ends = int(first), int(last or first)
    return min(ends), max(ends)

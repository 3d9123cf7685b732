"""From nested definitions to slices: small neighbours together, large ones cut at what is nested in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from outcrop.chunking.rows import CEILING, SMALL, TARGET, TINY, Slice, TextRows, code_cost

# Deeper definitions stay in their container: only hostile input nests so deep.
_DEPTH = 40

# Characters of the names of a chunk that holds several definitions.
_NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Definition:
    """Rows ``first`` to ``last`` (included); the name is not qualified, None for a unit without a name.

    What is defined inside a ``function`` seldom says anything alone.
    """

    first: int
    last: int
    name: str | None
    function: bool = False


@dataclass(slots=True)
class DefinitionNode:
    """A definition with its leading comments (up to row ``head``), and the definitions inside it."""

    first: int
    head: int
    stop: int
    name: str | None
    children: list[DefinitionNode] = field(default_factory=list)
    function: bool = False
    filler: bool = False


@dataclass(slots=True)
class _Piece:
    """A stretch under the ceiling that may still be joined with its neighbour."""

    first: int
    stop: int
    names: list[str]
    filler: bool
    weight: int


def pack(rows: TextRows, definitions: Iterable[Definition], leads: Set[int]) -> list[Slice]:
    """Slices in order, none blank, that cover every character that is not blank.

    Definitions may come in any order; where two overlap, the later one loses its first rows. ``leads`` are rows of
    comments, decorators and attributes alone: directly above a definition they are part of it.
    """
    return _cut(rows, leads, DefinitionNode(0, 0, len(rows), None, nest(rows, definitions, leads)))


def nest(rows: TextRows, definitions: Iterable[Definition], leads: Set[int]) -> list[DefinitionNode]:
    """Definitions as trees, with qualified names, each grown upwards over its leading comments."""
    roots: list[DefinitionNode] = []
    trail: list[tuple[DefinitionNode, str | None]] = []
    for one in sorted(definitions, key=lambda d: (d.first, -d.last)):
        while trail and trail[-1][0].stop <= one.first:
            trail.pop()
        if len(trail) > _DEPTH:
            continue
        parent = trail[-1][0] if trail else None
        siblings = parent.children if parent else roots
        first = one.first
        if siblings and siblings[-1].stop > first:
            first = siblings[-1].stop
        last = min(one.last, parent.stop - 1) if parent else one.last
        while last > first and rows.blank(last):
            last -= 1
        while first < last and rows.blank(first):
            first += 1
        if last < first:
            continue
        if parent and last == parent.stop - 1 and (first == parent.first or one.name == trail[-1][1]):
            # A wrapper and the wrapped (template and class, export and function): one definition.
            if parent.name is None:
                parent.name = _qualify(trail[-2][0].name if len(trail) > 1 else None, one.name)
                trail[-1] = (parent, one.name)
            continue
        name = _qualify(parent.name if parent else None, one.name)
        floor = siblings[-1].stop if siblings else parent.first + 1 if parent else 0
        top = _with_comments(rows, first, floor, leads)
        node = DefinitionNode(top, first, last + 1, name, function=one.function)
        siblings.append(node)
        trail.append((node, one.name))
    # A statement that turned out to define nothing is filler like the rows around it.
    return [node for node in roots if node.name or node.children]


def _with_comments(rows: TextRows, first: int, floor: int, leads: Set[int]) -> int:
    """The first row of the comments directly above a row; a block comment may have one blank row below it."""
    top = first
    while top > floor and top - 1 in leads:
        top -= 1
    if top == first and top - 2 >= floor and rows.blank(top - 1) and rows[top - 2].rstrip().endswith("*/"):
        top -= 1
        while top > floor and top - 1 in leads:
            top -= 1
        # The comment that opens the file is its licence, not the comment of its first function.
        return top if top > 0 else first
    return top


def _qualify(owner: str | None, name: str | None) -> str | None:
    if not owner or not name:
        return name or owner
    # Titles of test blocks are sentences, and a dot between sentences cannot be read.
    return f"{owner} > {name}" if " " in name or " " in owner else f"{owner}.{name}"


def _cut(rows: TextRows, leads: Set[int], node: DefinitionNode) -> list[Slice]:
    slices: list[Slice] = []
    pending: list[_Piece] = []

    def flush() -> None:
        for piece in _join(rows, pending):
            slices.extend(rows.slices(piece.first, piece.stop, _title(piece.names), code_cost))
        pending.clear()

    for unit in _units(rows, leads, node):
        weight = rows.weight(unit.first, unit.stop)
        if weight <= CEILING:
            pending.append(_Piece(unit.first, unit.stop, _names(rows, unit), unit.filler, weight))
            continue
        flush()
        if rows.weight(unit.head, unit.stop) <= CEILING and rows.weight(unit.first, unit.head) >= TINY:
            # A definition that fits without its comment stays whole.
            slices += rows.slices(unit.first, unit.head, unit.name, code_cost)
            slices += rows.slices(unit.head, unit.stop, unit.name, code_cost)
        elif _is_worth_cutting(rows, unit, weight):
            slices += _cut(rows, leads, unit)
        else:
            slices += rows.slices(unit.first, unit.stop, unit.name, code_cost)
    flush()
    return slices


def _names(rows: TextRows, node: DefinitionNode) -> list[str]:
    """The names of a chunk that holds a whole node: a class rather than the module around it that holds no more."""
    while len(node.children) == 1 and not node.children[0].function:
        (inner,) = node.children
        if 2 * rows.weight(inner.first, inner.stop) < rows.weight(node.first, node.stop):
            break
        node = inner
    return [node.name] if node.name else [child.name for child in node.children if child.name]


def _is_worth_cutting(rows: TextRows, node: DefinitionNode, weight: int) -> bool:
    """Whether the nested definitions are substantial: closures do not cut a function unless they are most of it."""
    weights = [rows.weight(child.first, child.stop) for child in node.children]
    several = any(w >= SMALL for w in weights)
    most = 2 * sum(weights) >= weight > 0
    return several and most if node.function else several or most


def _units(rows: TextRows, leads: Set[int], node: DefinitionNode) -> list[DefinitionNode]:
    """The children of a node and the rows between them, without a blank row lost or a brace left alone."""
    units: list[DefinitionNode] = []
    at = node.first
    for child in (*node.children, DefinitionNode(node.stop, node.stop, node.stop, None)):
        gap = DefinitionNode(at, at, child.first, node.name, filler=True)
        while gap.first < gap.stop and rows.blank(gap.first):
            gap.first += 1
        if units:
            # Closers belong to what they close.
            closed = gap.first
            while closed < gap.stop and rows.closer(closed):
                closed += 1
            if closed == gap.stop or not rows.blank_between(gap.first, closed):
                units[-1].stop = closed
                gap.first = closed
        if gap.first < gap.stop and not rows.blank_between(gap.first, gap.stop):
            speaking = [row for row in range(gap.first, gap.stop) if not rows.is_wordless(row, row + 1)]
            brief = child.first < node.stop and sum(rows.weight(row, row + 1) for row in speaking) < TINY
            opening = not units and (node.name is not None or rows.weight(child.first, child.stop) > CEILING)
            if brief and (opening or all(row in leads for row in speaking)):
                # The line that opens a class goes with its first member, a heading comment with what it heads, and a
                # lone import with the large class that is all the file has.
                child.first = gap.first
            else:
                units.append(gap)
        if child.first < child.stop:
            units.append(child)
        at = child.stop
    return units


def _join(rows: TextRows, pieces: Sequence[_Piece]) -> list[_Piece]:
    """Put small neighbours together, then give scraps to the nearer neighbour."""
    joined: list[_Piece] = []
    for piece in pieces:
        if joined and _belong(joined[-1], piece):
            _merge(joined[-1], piece)
        else:
            joined.append(piece)
    kept: list[_Piece] = []
    for at, piece in enumerate(joined):
        if not _scrap(rows, piece):
            kept.append(piece)
            continue
        above = kept[-1] if kept else None
        below = joined[at + 1] if at + 1 < len(joined) else None
        fits_above = above is not None and above.weight + piece.weight <= CEILING
        fits_below = below is not None and below.weight + piece.weight <= CEILING
        if above and fits_above and not (fits_below and _nearer_below(rows, above, piece, below)):
            _merge(above, piece)
        elif below and fits_below:
            _merge(piece, below)
            joined[at + 1] = piece
        else:
            kept.append(piece)
    return kept


def _scrap(rows: TextRows, piece: _Piece) -> bool:
    """A ruled line, or a few words that are no definition of more than one line."""
    small = piece.weight < TINY and (piece.filler or piece.stop - piece.first == 1)
    return small or rows.is_wordless(piece.first, piece.stop)


def _nearer_below(rows: TextRows, above: _Piece, piece: _Piece, below: _Piece | None) -> bool:
    if below is None:
        return False

    def edge(first: int, stop: int) -> int:
        return sum(map(rows.blank, range(first, stop)))

    last = piece.stop
    while last > piece.first and rows.blank(last - 1):
        last -= 1
    end = above.stop
    while end > above.first and rows.blank(end - 1):
        end -= 1
    return edge(last, below.first) <= edge(end, piece.first)


def _belong(a: _Piece, b: _Piece) -> bool:
    if a.weight + b.weight > TARGET:
        return False
    if a.names and a.names == b.names and not a.filler:
        return True
    return (a.filler or a.weight <= SMALL) and (b.filler or b.weight <= SMALL)


def _merge(a: _Piece, b: _Piece) -> None:
    a.stop = b.stop
    a.weight += b.weight
    a.names += [name for name in b.names if name not in a.names]
    a.filler = a.filler and b.filler


def _title(names: Sequence[str]) -> str | None:
    """The names of a chunk, as many as are readable."""
    title = ""
    for name in names:
        longer = f"{title}, {name}" if title else name
        if len(longer) > _NAME_LIMIT:
            return f"{title}, …" if title else f"{name[: _NAME_LIMIT - 1]}…"
        title = longer
    return title or None

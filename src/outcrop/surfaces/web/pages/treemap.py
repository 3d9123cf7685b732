"""Sizes as rectangles that fill one, each as close to a square as its neighbours allow.

The layout is "squarified" (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outcrop.app.catalog import Folder

# Units of the picture; it is scaled to the page.
WIDTH, HEIGHT = 960, 420

# Room for the name of a folder that shows its own folders.
HEADER = 22

GAP = 2
# Width of a letter of a label, generously.
CHARACTER = 7.2

SHADES = 6
DEEPEST = 2

# Share of a folder that one folder in it has to have for both to be shown as one.
ONLY = 0.97

# Share of the whole below which a rectangle would be a dot; such folders are summed up.
SMALLEST = 0.004


@dataclass(frozen=True, slots=True)
class Tile:
    """One rectangle.

    Attributes:
        x: Left edge.
        y: Upper edge.
        width: In units of the picture.
        height: Likewise.
        label: What fits on it; may be empty.
        name: What it stands for, in full.
        path: Folder that it leads to; empty where it leads nowhere.
        bytes: Size.
        level: 0 for folders of the root, 1 for folders in them, 2 for folders in those.
        shade: 0 to 5, to tell the folders of the root apart.
    """

    x: float
    y: float
    width: float
    height: float
    label: str
    name: str
    path: str
    bytes: int
    level: int
    shade: int


# x, y, width, height.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    path: str
    bytes: int
    folder: Folder | None


def tiles(root: Folder) -> list[Tile]:
    """The rectangles of a tree, as deep as there is room for names, outer ones before what lies in them."""
    found: list[Tile] = []

    def place(folder: Folder, room: Box, level: int, shade: int | None) -> None:
        items = _items(folder, root.bytes)
        for number, (item, box) in enumerate(zip(items, squarify([each.bytes for each in items], room), strict=True)):
            own = number % SHADES if shade is None else shade
            found.append(_tile(item, box, level, own))
            x, y, width, height = box
            if item.folder is not None and item.folder.children and level < DEEPEST and width > 90 and height > 60:
                place(item.folder, (x + GAP, y + HEADER, width - 3 * GAP, height - HEADER - 2 * GAP), level + 1, own)

    place(root, (0, 0, WIDTH, HEIGHT), 0, None)
    return found


def squarify(sizes: Sequence[int], box: Box) -> list[Box]:
    """Rectangles with areas in proportion to the sizes, in the same order, filling the box.

    Args:
        sizes: Positive, largest first.
        box: What to fill.
    """
    total = sum(sizes)
    if total <= 0:
        return []
    x, y, width, height = box
    scale = width * height / total
    areas = [size * scale for size in sizes]
    placed: list[Box] = []
    while areas:
        side = min(width, height)
        row = 1
        while row < len(areas) and _worst(areas[: row + 1], side) <= _worst(areas[:row], side):
            row += 1
        thick = sum(areas[:row]) / side if side else 0.0
        at = 0.0
        for area in areas[:row]:
            long = area / thick if thick else 0.0
            placed.append((x, y + at, thick, long) if width >= height else (x + at, y, long, thick))
            at += long
        if width >= height:
            x, width = x + thick, max(0.0, width - thick)
        else:
            y, height = y + thick, max(0.0, height - thick)
        areas = areas[row:]
    return placed


def _worst(areas: Sequence[float], side: float) -> float:
    """The least square rectangle of a row laid along a side: its longer edge by its shorter."""
    total = sum(areas)
    if not total or not side:
        return float("inf")
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) if area else float("inf") for area in areas)


def _items(folder: Folder, whole: int) -> list[_Item]:
    """A folder's folders, then what lies in it directly, and what is too small to be seen as one."""
    shown = [each for each in folder.children if each.bytes >= SMALLEST * whole]
    small = [each for each in folder.children if each.bytes < SMALLEST * whole]
    items = [_joined(each) for each in shown]
    own = folder.bytes - sum(each.bytes for each in folder.children)
    if own >= SMALLEST * whole:
        items.append(_Item("files here", folder.path, own, None))
    rest = sum(each.bytes for each in small) + (own if own < SMALLEST * whole else 0)
    if small and rest > 0:
        items.append(_Item(f"{len(small):,} small folders", "", rest, None))
    return sorted((item for item in items if item.bytes > 0), key=lambda item: -item.bytes)


def _joined(folder: Folder) -> _Item:
    """A folder, with the one folder that is nearly all of it."""
    name, last = folder.name, folder
    while last.children and last.children[0].bytes >= ONLY * folder.bytes:
        last = last.children[0]
        name = f"{name}/{last.name}"
    return _Item(name, last.path, folder.bytes, last)


def _tile(item: _Item, box: Box, level: int, shade: int) -> Tile:
    x, y, width, height = (round(value, 1) for value in box)
    fits = int((width - 14) / CHARACTER)
    label = item.name if len(item.name) <= fits else f"{item.name[: fits - 1]}…" if fits >= 4 else ""
    return Tile(
        x=x,
        y=y,
        width=max(0.0, round(width - GAP, 1)),
        height=max(0.0, round(height - GAP, 1)),
        label=label if height >= HEADER else "",
        name=item.name if item.folder is None else item.path,
        path=item.path if item.folder is not None else "",
        bytes=item.bytes,
        level=level,
        shade=shade,
    )

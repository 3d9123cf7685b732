"""Sizes of folders as a squarified treemap (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000)."""

from __future__ import annotations

from dataclasses import dataclass

from squarify import normalize_sizes, squarify

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

# Share of the whole below which a rectangle is invisible beside GAP. It also bounds the ratio of two sizes in one
# layout: beyond 1e15 the space that squarify has left is 0, and it divides by it.
INVISIBLE = 1e-6


@dataclass(frozen=True, slots=True)
class Tile:
    """One rectangle, in units of the picture. ``shade`` tells the folders of the root apart."""

    x: float
    y: float
    width: float
    height: float
    # What fits on it; may be empty.
    label: str
    name: str
    bytes: int
    # 0 for folders of the root.
    level: int
    shade: int


# x, y, width, height.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Item:
    label: str
    name: str
    bytes: int
    folder: Folder | None = None


def tiles(root: Folder) -> list[Tile]:
    """The rectangles of a tree, as deep as names fit, outer ones before those inside them."""
    found: list[Tile] = []

    def place(folder: Folder, box: Box, level: int, shade: int | None) -> None:
        items = _items(folder, root.bytes)
        _, _, width, height = box
        sizes = normalize_sizes([item.bytes for item in items], width, height)
        for number, (item, rect) in enumerate(zip(items, squarify(sizes, *box), strict=True)):
            own = number % SHADES if shade is None else shade
            x, y, width, height = rect["x"], rect["y"], rect["dx"], rect["dy"]
            found.append(_tile(item, (x, y, width, height), level, own))
            if item.folder is not None and item.folder.children and level < DEEPEST and width > 90 and height > 60:
                place(item.folder, (x + GAP, y + HEADER, width - 3 * GAP, height - HEADER - 2 * GAP), level + 1, own)

    place(root, (0, 0, WIDTH, HEIGHT), 0, None)
    return found


def _items(folder: Folder, whole: int) -> list[_Item]:
    shown = [child for child in folder.children if child.bytes >= SMALLEST * whole]
    items = [_merge_single_child(child) for child in shown]
    own = folder.bytes - sum(child.bytes for child in folder.children)
    rest = folder.bytes - own - sum(child.bytes for child in shown)
    if own >= SMALLEST * whole:
        items.append(_Item("files here", "files here", own))
    else:
        rest += own
    small = len(folder.children) - len(shown)
    if small:
        label = f"{small:,} small folders"
        items.append(_Item(label, label, rest))
    return sorted((item for item in items if item.bytes > INVISIBLE * whole), key=lambda item: -item.bytes)


def _merge_single_child(folder: Folder) -> _Item:
    name, last = folder.name, folder
    while last.children and last.children[0].bytes >= ONLY * folder.bytes:
        last = last.children[0]
        name = f"{name}/{last.name}"
    return _Item(name, last.path, folder.bytes, last)


def _tile(item: _Item, box: Box, level: int, shade: int) -> Tile:
    x, y, width, height = (round(value, 1) for value in box)
    fits = int((width - 14) / CHARACTER) if height >= HEADER else 0
    label = item.label if len(item.label) <= fits else f"{item.label[: fits - 1]}…" if fits >= 4 else ""
    width, height = (max(0.0, round(side - GAP, 1)) for side in (width, height))
    return Tile(x, y, width, height, label, item.name, item.bytes, level, shade)

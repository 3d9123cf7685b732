"""The public API of a Python package, from its source alone: signature and docstring of each name, with their lines.

Nothing runs. A name is called by the shortest public path that reaches it; private and deprecated names are left out.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from outcrop.chunking.workers import pool
from outcrop.chunking.workers.pool import Text
from outcrop.core.model import Chunk, Kind, Ref, Skipped, SkipReason
from outcrop.projects.python_env import Package, modules_of
from outcrop.projects.python_modules import (
    UNKNOWN,
    Definition,
    Function,
    Module,
    Star,
    is_decorated,
    is_deprecated,
    parse,
)
from outcrop.projects.python_newdocs import AddedDoc, read_notes
from outcrop.text.files import read_regular

# Raised whenever other names are found, or the same are cut otherwise.
VERSION = 1

# Larger files were written by programs.
MAX_BYTES = 4 << 20

# A class of a stub that is longer is shown by its first line: all the rest are overloads.
STUB_LINES = 80

_PRIVATE_PARTS = frozenset({"test", "tests", "conftest", "__main__", "setup"})
_ALIASES = {"posixpath": "os.path"}
# The standard library says the same of ``os.path`` three times.
_DUPLICATES = frozenset({"ntpath", "genericpath", "nturl2path"})

_SHOWN_DECORATORS = ("property", "cached_property", "classmethod", "staticmethod", "abstractmethod", "contextmanager")

Target = tuple[Module, Definition] | AddedDoc


@dataclass(frozen=True, slots=True)
class ApiFile:
    """What one source file says of public names; ``ref.version`` is a digest of all that it says."""

    ref: Ref
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class PublicNames:
    """What was read of a package, in path order, and the files that could not be."""

    files: tuple[ApiFile, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines of a file that describe one name, 1-based and inclusive."""

    first: int
    last: int
    name: str


def read_api(package: Package, report: Callable[[int, int], None] = lambda done, total: None) -> PublicNames:
    modules: dict[str, Module] = {}
    stubs: dict[str, Module] = {}
    hashes: dict[str, str] = {}
    skipped: list[Skipped] = []
    chosen = [(name, path) for name, path in modules_of(package.paths) if not _is_test(name)]
    with _without_collector():
        for done, (name, path) in enumerate(chosen, start=1):
            report(done, len(chosen))
            found = _read(package.root / path, name, path)
            if isinstance(found, Skipped):
                skipped.append(found)
                continue
            module, hashes[path] = found
            (stubs if path.endswith(".pyi") else modules)[name] = module
    pieces = _Names(modules, stubs).pieces()
    there = {module.path: module for module in (*modules.values(), *stubs.values())}
    described = [
        (path, piece, _text(there[path], piece))
        for path, some in sorted(pieces.items())
        for piece in sorted(some, key=lambda each: (each.first, each.name))
    ]
    cuts = pool.cut_all(((path, piece), Text(text, None, Kind.DOC)) for path, piece, text in described)
    files = [
        _file(path, hashes[path], [(piece, cut.chunks) for (_, piece), cut in some if cut is not None])
        for path, some in groupby(cuts, key=lambda each: each[0][0])
    ]
    return PublicNames(tuple(file for file in files if file.chunks), tuple(skipped))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Syntax trees hold no circles, and looking for some among millions of nodes takes longer than parsing them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _read(place: Path, name: str, path: str) -> tuple[Module, str] | Skipped:
    try:
        if place.stat().st_size > MAX_BYTES:
            return Skipped(path, SkipReason.OVERSIZE)
        data = read_regular(place, MAX_BYTES)
    except OSError as error:
        return Skipped(path, SkipReason.UNREADABLE, error.strerror or str(error))
    try:
        return parse(name, path, data), hashlib.sha3_256(data).hexdigest()
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError) as error:
        return Skipped(path, SkipReason.BROKEN, f"not Python that is understood here ({error})")


def _text(module: Module, piece: _Piece) -> str:
    return textwrap.dedent("\n".join(module.lines[piece.first - 1 : piece.last]))


def _file(path: str, content_hash: str, pieces: Sequence[tuple[_Piece, Sequence[Chunk]]]) -> ApiFile:
    chunks: list[Chunk] = []
    digest_of_names = hashlib.sha256(f"{VERSION}".encode())
    for piece, some in pieces:
        for cut in some:
            above = piece.first - 1
            lines = cut.first_line + above, cut.last_line + above
            chunks.append(
                replace(cut, seq=len(chunks), first_line=lines[0], last_line=lines[1], name=piece.name, start=0, end=0)
            )
            digest_of_names.update(f"{piece.name}\0{lines}\0{cut.text}\0".encode("utf-8", "surrogatepass"))
    return ApiFile(Ref(content_hash, Kind.API, path, digest_of_names.hexdigest()), tuple(chunks))


class _Names:
    """Which names a package makes public, and where each is defined."""

    def __init__(self, modules: dict[str, Module], stubs: dict[str, Module]) -> None:
        self._modules = modules
        self._stubs = stubs
        self._notes: dict[tuple[str, str], AddedDoc] = {}
        for module in modules.values():
            for place, name, member, note in read_notes(module):
                known = self._notes.setdefault((place, name), AddedDoc(module))
                if member is None:
                    known.module, known.node = note.module, note.node
                else:
                    known.members.setdefault(member, note)

    def pieces(self) -> dict[str, list[_Piece]]:
        """By path of the file, what it says of which public name."""
        ways: dict[int, tuple[Target, list[str]]] = {}
        found: dict[str, list[_Piece]] = {}
        for name, module in {**self._stubs, **self._modules}.items():
            if not _is_public(name) or self._is_deprecated(name):
                continue
            shown = _ALIASES.get(name, name)
            if doc := _doc(module.tree):
                piece = _Piece(doc.lineno, doc.end_lineno or doc.lineno, shown)
                found.setdefault(module.path, []).append(piece)
            for exported in dict.fromkeys(self._exports(module, frozenset())):
                target = None if _is_private(exported) else self._resolve(name, exported, frozenset())
                if target is not None:
                    key = id(target[1]) if isinstance(target, tuple) else id(target)
                    ways.setdefault(key, (target, []))[1].append(f"{shown}.{exported}")
        for target, names in ways.values():
            path = min(names, key=lambda each: (each.count("."), len(each), each))
            for module, piece in _describe(target, path):
                found.setdefault(module.path, []).append(piece)
        return found

    def _is_deprecated(self, name: str) -> bool:
        parts = name.split(".")
        above = (self._modules.get(".".join(parts[:count])) for count in range(1, len(parts) + 1))
        return any(module.is_deprecated for module in above if module is not None)

    def _exports(self, module: Module, passed: frozenset[str]) -> Iterator[str]:
        """Its ``__all__``; where there is none, or only running would tell it, what it defines and gathers."""
        if module.name in passed:
            return
        passed |= {module.name}
        if module.exported is not None:
            for each in module.exported:
                if isinstance(each, Star):
                    origin, name = module.imports.get(each.alias, (module.name, each.alias))
                    other = self._modules.get(f"{origin}.{name}" if name else origin)
                    if other is not None:
                        yield from self._exports(other, passed)
                else:
                    yield each
            if UNKNOWN not in module.exported:
                return
        yield from (*module.definitions, *module.overloads, *module.public_imports)
        for star in module.stars:
            if star in self._modules:
                yield from self._exports(self._modules[star], passed)

    def _resolve(self, place: str, name: str, passed: frozenset[tuple[str, str]]) -> Target | None:
        """Where a name of a module is defined, or described; None for what is no class or function, or not ours."""
        if (place, name) in passed:
            return None
        passed |= {(place, name)}
        for module in (self._modules.get(place), self._stubs.get(place)):
            if module is None:
                continue
            if name in module.definitions:
                return module, module.definitions[name]
            ways = [module.imports[name]] if name in module.imports else []
            ways += [(star, name) for star in module.stars]
            for origin, original in ways:
                target = self._resolve(origin, original, passed) if original is not None else None
                if target is not None:
                    return target
            if (place, name) in self._notes:
                return self._notes[place, name]
            if name in module.overloads:
                return module, module.overloads[name][0]
        return self._notes.get((place, name))


def _describe(target: Target, name: str) -> Iterator[tuple[Module, _Piece]]:
    """The lines that say what a public name is, and those of its members."""
    if isinstance(target, AddedDoc):
        for note, called in ((target, name), *((note, f"{name}.{key}") for key, note in target.members.items())):
            if note.node is not None and not _is_private(called.rsplit(".", 1)[-1]):
                yield note.module, _Piece(note.node.lineno, note.node.end_lineno or note.node.lineno, called)
        return
    module, node = target
    if is_deprecated(node):
        return
    if isinstance(node, ast.ClassDef) and module.path.endswith(".pyi"):
        last = node.end_lineno or node.lineno
        yield module, _Piece(node.lineno, last if last - node.lineno < STUB_LINES else node.lineno, name)
        return
    yield module, _piece(node, name)
    if isinstance(node, ast.ClassDef):
        for member in _members(node):
            if isinstance(member, ast.ClassDef):
                yield from _describe((module, member), f"{name}.{member.name}")
            elif not is_deprecated(member):
                yield module, _piece(member, f"{name}.{member.name}")


def _members(node: ast.ClassDef) -> Iterator[Definition]:
    passed: set[str] = set()
    for each in node.body:
        for member in [each] if not isinstance(each, ast.If | ast.Try) else [*each.body, *each.orelse]:
            if not isinstance(member, Definition) or member.name in passed or is_decorated(member, "overload"):
                continue
            if isinstance(member, Function) and member.name in ("__init__", "__call__"):
                arguments = member.args
                if len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs) < 2:
                    continue
            elif _is_private(member.name):
                continue
            passed.add(member.name)
            yield member


def _piece(node: Definition, name: str) -> _Piece:
    """From its signature, with the decorators that change what it is, to the end of its docstring."""
    shown = [each.lineno for each in node.decorator_list if _is_shown(each)]
    first = min([node.lineno, *shown])
    doc = _doc(node)
    if doc is not None:
        return _Piece(first, doc.end_lineno or doc.lineno, name)
    inner = node.body[0]
    begin = min([inner.lineno, *(each.lineno for each in getattr(inner, "decorator_list", ()))])
    return _Piece(first, max(node.lineno, begin - 1), name)


def _is_shown(decorator: ast.expr) -> bool:
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return name in _SHOWN_DECORATORS


def _doc(node: ast.Module | Definition) -> ast.expr | None:
    if ast.get_docstring(node) is None:
        return None
    first = node.body[0]
    return first.value if isinstance(first, ast.Expr) else None


def _is_test(name: str) -> bool:
    parts = name.split(".")
    return not _PRIVATE_PARTS.isdisjoint(parts) or parts[-1].startswith("test_")


def _is_public(name: str) -> bool:
    return name not in _DUPLICATES and not any(map(_is_private, name.split(".")))


def _is_private(name: str) -> bool:
    return name.startswith("_")

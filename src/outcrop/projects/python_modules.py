"""What a Python module says of itself, from its source: definitions, imports, what it exports. Nothing is imported."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef

_DEPRECATED_FIRST = re.compile(r"\s*(?:\[?deprecated\b|.{0,80}\bis deprecated\b)", re.IGNORECASE)
_DEPRECATED_NOTE = re.compile(r"^\.\. deprecated::", re.MULTILINE)
_DEPRECATION_LINES = 12

# The function that gives docstrings to compiled names.
ADD_NEWDOC = "add_newdoc"

# Statements of a function that are looked at: its docstring, and a warning that it is deprecated.
KEPT_STATEMENTS = 3


@dataclass(frozen=True, slots=True)
class Star:
    """``other.__all__`` as a part of ``__all__``."""

    alias: str


# A part of ``__all__`` that only running the code would tell.
UNKNOWN = Star("")


@dataclass
class Module:
    """One source file."""

    name: str
    path: str
    lines: Sequence[str]
    # What it parses to; of functions only how they begin, since the rest would fill the memory. A file that gives
    # docstrings to others is whole.
    tree: ast.Module
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    public_imports: set[str] = field(default_factory=set)
    exported: list[str | Star] | None = None
    overloads: dict[str, list[Function]] = field(default_factory=dict)

    @property
    def is_package(self) -> bool:
        return self.path.rsplit("/", 1)[-1].startswith("__init__.")

    @cached_property
    def is_deprecated(self) -> bool:
        return says_deprecated(ast.get_docstring(self.tree)) or any(map(_warns, self.tree.body))


def parse(name: str, path: str, data: bytes) -> Module:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    with warnings.catch_warnings():
        # Odd escapes in other people's code are not ours to remark on.
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    module = Module(name, path, text.split("\n"), tree)
    _collect(module, tree.body)
    if ADD_NEWDOC not in text:
        _shorten(tree.body)
    return module


def _shorten(body: Sequence[ast.stmt]) -> None:
    for node in body:
        if isinstance(node, Function):
            node.body = node.body[:KEPT_STATEMENTS]
        elif isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With):
            _shorten(node.body if isinstance(node, ast.ClassDef) else list(_inner(node)))


def _collect(module: Module, body: Sequence[ast.stmt]) -> None:
    for node in body:
        if isinstance(node, Definition):
            _define(module, node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    module.imports[alias.asname] = (alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            _import(module, node)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
            _export(module, node)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            _collect(module, node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            _collect(module, list(_inner(node)))


def _inner(node: ast.If | ast.Try | ast.With) -> Iterator[ast.stmt]:
    yield from node.body
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            yield from handler.body
        yield from (*node.orelse, *node.finalbody)
    elif isinstance(node, ast.If):
        yield from node.orelse


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _define(module: Module, node: Definition) -> None:
    if not isinstance(node, ast.ClassDef) and is_decorated(node, "overload"):
        module.overloads.setdefault(node.name, []).append(node)
        return
    there = module.definitions.get(node.name)
    # Of two in branches of an ``if``, the one that says something.
    if there is None or (ast.get_docstring(there) is None and ast.get_docstring(node) is not None):
        module.definitions[node.name] = node


def _import(module: Module, node: ast.ImportFrom) -> None:
    origin = absolute(module, node.level, node.module)
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(origin)
            continue
        name = alias.asname or alias.name
        module.imports.setdefault(name, (origin, alias.name))
        # ``import x as x`` says that it is meant for others, and so does a package that gathers what lies below it.
        if alias.asname == alias.name or (module.is_package and origin.split(".")[0] == module.name.split(".")[0]):
            module.public_imports.add(name)


def absolute(module: Module, level: int, name: str | None) -> str:
    if not level:
        return name or ""
    parts = module.name.split(".")
    base = parts[: len(parts) - level + module.is_package]
    return ".".join([*base, *([name] if name else [])])


def _export(module: Module, node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr) -> None:
    if isinstance(node, ast.Expr):
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _is_all(call.func.value)):
            return
        if call.func.attr in ("extend", "append") and call.args:
            module.exported = [*(module.exported or []), *_names(call.args[0])]
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if node.value is None or not any(map(_is_all, targets)):
        return
    before = (module.exported or []) if isinstance(node, ast.AugAssign) else []
    module.exported = [*before, *_names(node.value)]


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def _names(node: ast.expr) -> Iterator[str | Star]:
    """What an expression for ``__all__`` holds, as far as it can be told without running it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for each in node.elts:
            yield from _names(each.value if isinstance(each, ast.Starred) else each)
    elif isinstance(node, ast.BinOp):
        yield from (*_names(node.left), *_names(node.right))
    elif isinstance(node, ast.Call):
        # ``list(…)``, ``sorted(…)``, ``other.__all__.copy()``
        if isinstance(node.func, ast.Attribute):
            yield from _names(node.func.value)
        elif not node.args:
            yield UNKNOWN
        for argument in node.args:
            yield from _names(argument)
    elif isinstance(node, ast.Attribute) and node.attr == "__all__" and isinstance(node.value, ast.Name):
        yield Star(node.value.id)
    elif not isinstance(node, ast.Constant):
        yield UNKNOWN


def is_decorated(node: Definition, *names: str) -> bool:
    return any(_last_name(each) in names for each in node.decorator_list)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_deprecated(node: Definition) -> bool:
    if any("deprecate" in _last_name(each).lower() for each in node.decorator_list):
        return True
    if says_deprecated(ast.get_docstring(node)):
        return True
    return isinstance(node, Function) and any(map(_warns, node.body))


def says_deprecated(doc: str | None) -> bool:
    if not doc:
        return False
    beginning = "\n".join(doc.split("\n")[:_DEPRECATION_LINES])
    return bool(_DEPRECATED_FIRST.match(doc) or _DEPRECATED_NOTE.search(beginning))


def _warns(node: ast.stmt) -> bool:
    """``warnings.warn(…, DeprecationWarning)`` or ``warnings._deprecated(…)``, not under a condition."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    call = node.value
    name = _last_name(call.func)
    if name == "_deprecated":
        return True
    given = [*call.args, *(each.value for each in call.keywords)]
    return name == "warn" and any(_last_name(each).endswith("DeprecationWarning") for each in given)

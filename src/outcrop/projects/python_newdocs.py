"""Docstrings that a package gives to its compiled names from Python source: ``add_newdoc(place, name, doc)``.

numpy writes most of its core so, directly or through small functions of the same file that call it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from outcrop.projects.python_modules import ADD_NEWDOC, Module


@dataclass(eq=False)
class AddedDoc:
    """What is said of one compiled name."""

    module: Module
    node: ast.expr | None = None  # The docstring, or None where only members have one
    members: dict[str, AddedDoc] = field(default_factory=dict)


def read_notes(module: Module) -> Iterator[tuple[str, str, str | None, AddedDoc]]:
    """Module and name of what is described, name of the member or None, and what is said."""
    if ADD_NEWDOC not in "\n".join(module.lines):
        return
    wrappers = {
        node.name: (node, call)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef) and (call := _inside(node)) is not None
    }
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        found = None
        if node.func.id == ADD_NEWDOC:
            found = _read(node, {}, None)
        elif node.func.id in wrappers:
            function, call = wrappers[node.func.id]
            given = dict(zip((each.arg for each in function.args.args), node.args, strict=False))
            found = _read(call, given, node)
        if found is not None:
            place, name, member, doc = found
            yield place, name, member, AddedDoc(module, doc)


def _inside(function: ast.FunctionDef) -> ast.Call | None:
    if not function.args.args:
        return None
    calls = (each for each in ast.walk(function) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name))
    return next((call for call in calls if isinstance(call.func, ast.Name) and call.func.id == ADD_NEWDOC), None)


def _read(
    call: ast.Call, given: Mapping[str, ast.expr], caller: ast.Call | None
) -> tuple[str, str, str | None, ast.expr] | None:
    """Place, name, member and docstring of a call, with a wrapper's parameters filled in."""
    if len(call.args) < 3:
        return None
    place, name = (_text(each, given) for each in call.args[:2])
    doc: ast.expr | None = call.args[2]
    member: str | None = None
    if isinstance(doc, ast.Tuple) and len(doc.elts) == 2:
        member = _text(doc.elts[0], given)
        doc = doc.elts[1]
    if caller is not None:
        # Of what the wrapper puts together, the docstring is the longest text that its caller gave.
        texts = [each for each in given.values() if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        doc = max(texts, key=lambda each: len(str(each.value)), default=None)
    if place is None or name is None or not isinstance(doc, ast.Constant) or not isinstance(doc.value, str):
        return None
    return place, name, member, doc


def _text(node: ast.expr, given: Mapping[str, ast.expr]) -> str | None:
    if isinstance(node, ast.Name):
        node = given.get(node.id, node)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None

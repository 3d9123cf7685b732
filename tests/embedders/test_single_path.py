"""One way to embed: a walk through the code that looks for a second one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import outcrop

PACKAGE = Path(outcrop.__file__).parent

MODELS_AND_CLIENTS = {
    *("onnxruntime", "onnx", "tokenizers", "sentence_transformers", "model2vec", "torch", "transformers"),
    *("openai", "ollama", "http.client", "urllib.request", "urllib3", "requests", "aiohttp"),
    *("httpx", "httpx2", "httpcore", "httpcore2", "h11"),
}
"""What runs a model, or asks one that runs elsewhere."""

INTERFACE = {f"outcrop.embedders.{name}" for name in ("base", "factory", "check", "salvaged", "http.consent")}
"""The only modules of the folder that others import: none of them names an embedder of its own."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name, ast.parse(path.read_text("utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported anywhere in a file, also inside functions and by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield str(node.args[0].value)


def is_under(name: str, roots: set[str]) -> bool:
    return any(name == root or name.startswith(root + ".") for root in roots)


def test_only_embedders_run_models_or_ask_them() -> None:
    for name, tree in modules():
        if not name.startswith("embedders."):
            found = {each for each in imported(tree) if is_under(each, MODELS_AND_CLIENTS)}
            assert not found, f"{name} imports {found}"


def test_only_the_factory_knows_embedders_by_name() -> None:
    for name, tree in modules():
        if not name.startswith("embedders."):
            found = {each for each in imported(tree) if is_under(each, {"outcrop.embedders"})}
            others = {each for each in found - {"outcrop.embedders"} if not is_under(each, INTERFACE)}
            assert not others, f"{name} imports {others}"


def test_only_the_factory_asks_for_one_with_an_address() -> None:
    for name, tree in modules():
        if name != "embedders.factory":
            assert not {each for each in imported(tree) if is_under(each, {"outcrop.embedders.http.from_settings"})}, (
                name
            )


def test_only_the_seam_has_methods_that_embed() -> None:
    for name, tree in modules():
        if name.startswith("embedders.") or name == "core.protocols":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert node.name not in ("embed_passages", "embed_queries"), f"{name} embeds by itself"


def test_the_walk_sees_what_it_looks_for() -> None:
    hidden = "def f():\n    import onnxruntime as o\n    importlib.import_module('outcrop.embedders.local.embedder')\n"
    found = set(imported(ast.parse(hidden)))
    assert found == {"onnxruntime", "outcrop.embedders.local.embedder"}
    seen = {
        name for name, tree in modules() if any(is_under(each, {"onnxruntime", "httpcore2"}) for each in imported(tree))
    }
    assert {"embedders.local.session", "embedders.http.client", "embedders.http.connection"} <= seen

"""The folders are the architecture: an import goes to an earlier folder of the list, and never in a circle."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import outcrop

PACKAGE = Path(outcrop.__file__).parent
ORDER = (
    "errors core config text chunking vcs sources embedders stores indexing search transfer evaluation"
    " app media projects surfaces.render surfaces.install surfaces.watch surfaces.mcp surfaces.web surfaces.cli"
).split()
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
    if path.parent != PACKAGE or path.name == "errors.py"
}


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name.removeprefix("outcrop.") in MODULES else str(node.module) for name in names}
    return {name.removeprefix("outcrop.") for name in found} & MODULES.keys()


def folder(module: str) -> int:
    return next(index for index, name in enumerate(ORDER) if f"{module}.".startswith(f"{name}."))


def test_imports_go_to_earlier_folders_and_never_in_a_circle() -> None:
    graph = {name: imports(path) for name, path in MODULES.items() if name != "surfaces"}
    for name, targets in graph.items():
        late = [target for target in targets if folder(target) > folder(name)]
        assert not late, f"{name} imports {late}"
    TopologicalSorter({name: targets - {name} for name, targets in graph.items()}).prepare()


def test_the_root_and_each_folder_stay_small() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py"}
    for path in PACKAGE.rglob("__init__.py"):
        files = [file.name for file in path.parent.glob("*.py") if file != path]
        assert len(files) <= 12, f"{path.parent} has {len(files)} files"

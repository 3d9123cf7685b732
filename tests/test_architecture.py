"""An import goes down a floor, never up, and adapters of one seam do not know each other."""

from __future__ import annotations

import ast
from pathlib import Path

import outcrop

PACKAGE = Path(outcrop.__file__).parent

FLOORS: dict[str, int] = {
    "errors": 0,
    "model": 0,
    "ports": 0,
    "records": 0,
    "reports": 0,
    "manifest": 1,
    "transcript": 1,
    "targets": 1,
    "definitions": 1,
    "significance": 1,
    "metrics": 1,
    "figures": 1,
    "vectors": 1,
    "scan": 1,
    "ranking": 1,
    "terms": 1,
    "tokens": 1,
    "preview": 1,
    "questions": 1,
    "roles": 1,
    "formats": 1,
    "schemas": 1,
    "names": 1,
    "kinds": 1,
    "patterns": 1,
    "decoding": 1,
    "blobs": 1,
    "courtesy": 1,
    "git_process": 1,
    "members": 1,
    "chunking": 1,
    "sources": 2,
    "embedders": 2,
    "stores": 2,
    "transfer": 2,
    "loopback": 1,
    "egress": 3,
    "embedder_check": 3,
    "indexer": 3,
    "ingest": 3,
    "sync": 3,
    "strangers": 3,
    "exported": 3,
    "search": 3,
    "spelling": 3,
    "copies": 3,
    "fallback": 3,
    "freshness": 3,
    "hits": 3,
    "request": 3,
    "batch": 3,
    "recording": 3,
    "corpora": 3,
    "matching": 3,
    "probe": 3,
    "context": 3,
    "catalog": 3,
    "evaluate": 3,
    "judged": 3,
    "values": 4,
    "config": 4,
    "own_models": 4,
    "remote": 4,
    "choice": 4,
    "upkeep": 4,
    "pre_turn": 4,
    "shortcuts": 4,
    "capabilities": 4,
    "app": 4,
    "heartbeat": 4,
    "current": 4,
    "sharing": 4,
    "publishing": 4,
    "reading": 4,
    "projects": 4,
    "peers": 4,
    "packages": 4,
    "importing": 3,
    "comparison": 4,
    "media": 4,
    "surfaces": 5,
    "__main__": 5,
}


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if parts:
            found.append((".".join(parts), path))
    return found


def imports(path: Path, module: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.removeprefix("outcrop.") for alias in node.names if alias.name.startswith("outcrop.")}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            if node.module == "outcrop":
                names |= {alias.name for alias in node.names}
            elif node.module and node.module.startswith("outcrop."):
                base = node.module.removeprefix("outcrop.")
                names |= {
                    f"{base}.{alias.name}" if (PACKAGE / base.replace(".", "/")).is_dir() else base
                    for alias in node.names
                }
    return names


def floor(name: str) -> int:
    room = name.split(".")[0]
    assert room in FLOORS, f"{room} has no floor: give it one in FLOORS"
    return FLOORS[room]


def test_every_import_goes_down_or_stays() -> None:
    for name, path in modules():
        for target in imports(path, name):
            assert floor(target) <= floor(name), (
                f"{name} (floor {floor(name)}) imports {target} (floor {floor(target)})"
            )


def test_adapters_do_not_import_each_other() -> None:
    for name, path in modules():
        room = name.split(".")[0]
        if FLOORS[room] != 2:
            continue
        for target in imports(path, name):
            other = target.split(".")[0]
            assert FLOORS[other] < 2 or other == room, f"{name} imports the adapter {target}"


def test_there_is_no_circle() -> None:
    graph = {name: imports(path, name) for name, path in modules()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name in done:
            return
        for target in graph.get(name, ()):
            visit(target, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def test_source_files_stay_readable() -> None:
    for name, path in modules():
        assert len(path.read_text("utf-8").splitlines()) <= 400, f"{name} has grown too large for one room"

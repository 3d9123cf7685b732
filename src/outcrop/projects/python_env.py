"""Python libraries on this machine: which interpreter is meant, and which files belong to one of its packages.

Only an interpreter that the user named or that their PATH finds is ever run, and then without its packages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import Distribution, distributions
from pathlib import Path

from outcrop.errors import SourceError, UsageError
from outcrop.text.files import read_regular

# The name of the standard library among packages.
STDLIB = "stdlib"

_ASK = (
    "import json, site, sys, sysconfig; print(json.dumps([sys.version.split()[0], sysconfig.get_path('stdlib'),"
    " [*site.getsitepackages(), site.getusersitepackages()]]))"
)
_ASK_SECONDS = 30
_ENVIRONMENTS = (".venv", "venv", "env")
_SUFFIXES = (".py", ".pyi")
_NOT_STDLIB = frozenset(
    {"site-packages", "dist-packages", "lib-dynload", "idlelib", "lib2to3", "turtledemo", "ensurepip", "pydoc_data"}
)
_VERSION = re.compile(r"\s*v?(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python installation."""

    place: Path  # Folder of the environment, or path of the program
    version: str  # As ``sys.version`` begins, ``3.11.7``
    stdlib: Path
    packages: tuple[Path, ...]  # Folders that hold installed packages, strongest first


@dataclass(frozen=True, slots=True)
class Package:
    """The source files of a library."""

    name: str
    version: str
    root: Path
    paths: tuple[str, ...]  # Its ``.py`` and ``.pyi`` files, with ``/``, in order

    @property
    def slug(self) -> str:
        """``numpy-2.4``: its name and the first two parts of its version."""
        found = _VERSION.match(self.version)
        return f"{_normal(self.name)}-{found[1] if found else self.version}"


def find_interpreter(named: Path | None, root: Path, environ: Mapping[str, str] = os.environ) -> Interpreter:
    """That which was named, else of the active environment, else of the repository's, else ``python3`` on the PATH."""
    if named is not None:
        return _at(named)
    active = environ.get("VIRTUAL_ENV")
    for folder in (*([Path(active)] if active else []), *(root / name for name in _ENVIRONMENTS)):
        if (folder / "pyvenv.cfg").is_file():
            return _environment(folder)
    program = shutil.which("python3", path=environ.get("PATH")) or shutil.which("python", path=environ.get("PATH"))
    return _at(Path(program or sys.executable))


def find_package(interpreter: Interpreter, name: str) -> Package:
    """A package by its distribution, or a module that one imports; ``stdlib`` for the standard library."""
    if name == STDLIB:
        paths = tuple(sorted(_walk(interpreter.stdlib, _NOT_STDLIB)))
        return Package("python", interpreter.version, interpreter.stdlib, paths)
    found = list(distributions(path=[str(folder) for folder in interpreter.packages]))
    wanted = _normal(name)
    chosen = next((item for item in found if _normal(_name_of(item)) == wanted), None)
    if chosen is None:
        chosen = next((item for item in found if name in _tops(item)), None)
    if chosen is None:
        near = get_close_matches(wanted, sorted({_normal(_name_of(item)) for item in found} | {STDLIB}), n=3)
        raise UsageError(
            f"no package {name!r} is installed for {interpreter.place}",
            f"Did you mean: {', '.join(near)}?" if near else "Name another interpreter with --python-executable",
        )
    return _package(chosen)


def _at(place: Path) -> Interpreter:
    if (place / "pyvenv.cfg").is_file():
        return _environment(place)
    if place.is_dir():
        programs = (place / "bin" / "python3", place / "bin" / "python", place / "python.exe")
        program = next((each for each in programs if each.is_file()), None)
        if program is None:
            raise SourceError(f"{place} is no Python environment", "Name its folder, or the program python in it")
        return _at(program)
    if (place.parent.parent / "pyvenv.cfg").is_file():
        return _environment(place.parent.parent)
    return _asked(place)


def _environment(folder: Path) -> Interpreter:
    """A virtual environment, from its ``pyvenv.cfg``: nothing of it is run."""
    settings = _settings(folder / "pyvenv.cfg")
    version = settings.get("version") or settings.get("version_info") or ""
    short = ".".join(version.split(".")[:2])
    homes = [Path(settings["home"])] if settings.get("home") else []
    homes += [(folder / "bin" / "python3").resolve().parent] if (folder / "bin" / "python3").exists() else []
    stdlib = next(
        (lib for home in homes for lib in (home.parent / "lib" / f"python{short}", home / "Lib") if _is_stdlib(lib)),
        None,
    )
    packages = [folder / "lib" / f"python{short}" / "site-packages", folder / "Lib" / "site-packages"]
    if stdlib is None:
        raise SourceError(
            f"the environment {folder} names no Python that is still there", "Make it anew, or name a python program"
        )
    if settings.get("include-system-site-packages", "").lower() == "true":
        packages.append(stdlib / "site-packages")
    there = tuple(each for each in packages if each.is_dir())
    return Interpreter(folder.absolute(), version, stdlib, there)


def _settings(path: Path) -> dict[str, str]:
    try:
        lines = read_regular(path).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror})", "Name a python program") from error
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _asked(program: Path) -> Interpreter:
    """An interpreter that says itself where its library is. It reads no packages and no variables."""
    try:
        answer = subprocess.run(
            [str(program), "-I", "-S", "-c", _ASK], capture_output=True, timeout=_ASK_SECONDS, check=True
        ).stdout
        version, stdlib, packages = json.loads(answer)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise SourceError(f"{program} is no Python that can be asked ({error})", "Name another") from error
    folders = tuple(Path(each) for each in packages if Path(each).is_dir())
    return Interpreter(program.absolute(), version, Path(stdlib), folders)


def _is_stdlib(folder: Path) -> bool:
    return (folder / "os.py").is_file()


def _package(found: Distribution) -> Package:
    name = _name_of(found)
    root = Path(str(found.locate_file("")))
    paths = sorted(
        {
            path
            for path in _files(found, root)
            if path.endswith(_SUFFIXES) and ".." not in path.split("/") and _is_modular(path)
        }
    )
    if not paths:
        raise SourceError(
            f"{name} has no Python source in {root}",
            "If it is installed from a folder of yours, import that: outcrop import-project FOLDER --kind api",
        )
    return Package(name, found.version, root, tuple(paths))


def _files(found: Distribution, root: Path) -> Iterator[str]:
    """What the installer wrote down, or else the folders of what one imports."""
    if found.files is not None:
        yield from (path.as_posix() for path in found.files)
        return
    for top in _tops(found):
        if (root / f"{top}.py").is_file():
            yield f"{top}.py"
        yield from (f"{top}/{path}" for path in _walk(root / top, frozenset()))


def _tops(found: Distribution) -> set[str]:
    if found.files is not None:
        modular = (path.as_posix() for path in found.files if path.suffix in _SUFFIXES)
        return {path.split("/")[0].removesuffix(".py") for path in modular if _is_modular(path)}
    named = found.read_text("top_level.txt")
    return set(named.split()) if named else {_normal(_name_of(found)).replace("-", "_")}


def _walk(folder: Path, without: frozenset[str]) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in without and name.isidentifier()]
        inside = Path(place).relative_to(folder).as_posix()
        for file in files:
            if file.endswith(_SUFFIXES):
                path = file if inside == "." else f"{inside}/{file}"
                if _is_modular(path):
                    yield path


def _is_modular(path: str) -> bool:
    return all(part.isidentifier() for part in _stem(path).split("/"))


def _stem(path: str) -> str:
    return path.removesuffix(".pyi").removesuffix(".py")


def modules_of(paths: Iterable[str]) -> Sequence[tuple[str, str]]:
    return [(_stem(path).removesuffix("/__init__").replace("/", "."), path) for path in paths]


def _name_of(found: Distribution) -> str:
    # A folder that an interrupted installation left has no name.
    return str((found.metadata.get_all("Name") or [""])[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

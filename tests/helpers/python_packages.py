"""Python packages for tests, whose code must not run, and an environment that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outcrop.projects.python_env import Package

BOMB = "raise SystemExit('this was run')\n"

PACKAGE_FILES = {
    "kettle/__init__.py": BOMB
    + '"""not the docstring"""\nfrom ._boil import boil, Kettle\nfrom .pour import pour as pour\nfrom os import path\n'
    "__version__ = '1'\n",
    "kettle/_boil.py": '''"""Private module."""
import functools

def boil(water, *, degrees=100):
    """Heat water until it boils.

    It whistles.
    """
    return water

def unused():
    """Nobody exports this."""

class Kettle(object):
    """Holds water.
    """

    def __init__(self, litres: float) -> None:
        self.litres = litres

    @property
    def level(self):
        """How full it is."""
        return self._level

    @functools.lru_cache(maxsize=None)
    def whistle(self, loud=True): return "fiuu"

    def _private(self):
        """No."""

    def __enter__(self):
        """No."""

    class Lid:
        """Covers it."""
''',
    "kettle/pour.py": '''"""Pouring.

Slowly."""
__all__ = ["pour", "old", "missing"]

def pour(cup):
    """Fill a cup."""

def spill():
    """Not in __all__."""

def old(cup):
    """Pour as one used to.

    .. deprecated:: 1.0
    """
''',
    "kettle/gone.py": '''"""Old things."""
import warnings
warnings.warn("kettle.gone is deprecated", DeprecationWarning, stacklevel=2)

def antique():
    """Do not use."""
''',
    "kettle/gone_too/__init__.py": '"""Deprecated since 2.0."""\n',
    "kettle/gone_too/inner.py": 'def antique():\n    """Do not use."""\n',
    "kettle/tests/test_kettle.py": 'def helper():\n    """Only for tests."""\n',
    "kettle/fast.pyi": "def stir(speed: int = ...) -> None: ...\n\nclass Spoon:\n    def lift(self) -> None: ...\n",
}


def package(root: Path, files: Mapping[str, str | bytes], name: str = "kettle", version: str = "2.4.6") -> Package:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Package(name, version, root, tuple(sorted(files)))


def environment(folder: Path, home: Path) -> Path:
    """A virtual environment with two distributions, one of which is edited in place. Its program must not be run."""
    site = folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    program = folder / "bin" / "python3"
    program.write_text('#!/bin/sh\ntouch "$(dirname "$0")/ran"\nexit 1\n')
    program.chmod(0o755)
    (home / "lib" / "python3.11").mkdir(parents=True)
    (home / "lib" / "python3.11" / "os.py").write_text('def walk(top):\n    """Walk."""\n')
    (folder / "pyvenv.cfg").write_text(f"home = {home / 'bin'}\nversion = 3.11.9\n")
    package(site, PACKAGE_FILES)
    info = site / "kettle_tools-2.4.6.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Kettle.Tools\nVersion: 2.4.6\n")
    record = [*PACKAGE_FILES, "kettle/data.txt", "../../../bin/kettle", "kettle_tools-2.4.6.dist-info/METADATA"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in record))
    edited = site / "edited-1.0.dist-info"
    edited.mkdir()
    (edited / "METADATA").write_text("Metadata-Version: 2.1\nName: edited\nVersion: 1.0\n")
    (edited / "RECORD").write_text("edited.pth,,\n")
    return folder

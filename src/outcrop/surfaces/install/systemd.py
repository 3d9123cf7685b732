"""A systemd user unit that keeps a watch running."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outcrop.errors import UsageError
from outcrop.sources.paths import to_slug
from outcrop.surfaces.install.plan import Change, Plan, Run, Write, program

_TEMPLATE = """\
# Made by `outcrop watch --install=unit`; `outcrop watch --uninstall` takes it out again.
[Unit]
Description=Outcrop keeps the index of {name} current

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=30
Nice=10
IOSchedulingClass=idle

[Install]
WantedBy=default.target
"""


def install_unit(place: Path, flags: Mapping[str, Any]) -> Plan:
    """What makes the user's systemd keep a watch.

    Args:
        place: The folder, or the Fossil repository's file.
        flags: Settings that were given on the command line.
    """
    if shutil.which("systemctl") is None:
        raise UsageError("there is no systemd here", "Run `outcrop watch` yourself, or take --install=hook")
    path = unit_path(place)
    command = " ".join(_quote(each) for each in program("watch", "-C", str(place), flags=flags))
    fresh = os.fsencode(_TEMPLATE.format(name=_one_line(str(place)).replace("%", "%%"), command=command))
    before = path.read_bytes() if path.exists() else None
    changes: list[Change] = [] if before == fresh else [Write(path, before, fresh, 0o644)]
    if changes:
        changes.append(Run(("systemctl", "--user", "daemon-reload")))
    changes.append(Run(("systemctl", "--user", "enable", "--now", path.name)))
    if before is not None and before != fresh:
        changes.append(Run(("systemctl", "--user", "restart", path.name)))
    return Plan(tuple(changes))


def uninstall_unit(place: Path) -> Plan:
    """What takes the unit out again."""
    path = unit_path(place)
    if not path.exists():
        return Plan(())
    return Plan(
        (
            Run(("systemctl", "--user", "disable", "--now", path.name), optional=True),
            Write(path, path.read_bytes(), None),
            Run(("systemctl", "--user", "daemon-reload"), optional=True),
        )
    )


def unit_path(place: Path) -> Path:
    """Where the unit of a place is; the same place always has the same."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    mark = hashlib.sha256(os.fsencode(place)).hexdigest()[:8]
    return base / "systemd" / "user" / f"outcrop-{to_slug(place.stem) or 'index'}-{mark}.service"


def _quote(argument: str) -> str:
    """One argument as systemd reads command lines: ``%`` and ``$`` stand for themselves only when doubled."""
    if "\n" in argument:
        raise UsageError("a unit cannot name a folder with a line break in its name", "Rename it")
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[^\w@:,./=+-]", argument) or not argument else escaped


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f]", " ", text)

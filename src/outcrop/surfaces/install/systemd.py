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
from outcrop.surfaces.install.plan import ChangePlan, FileChange, PlannedChange, ProgramRun, command_line

_TEMPLATE = """\
# Made by `outcrop watch --install=unit`; `outcrop watch --uninstall` removes it.
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


def install_unit(watched: Path, flags: Mapping[str, Any]) -> ChangePlan:
    if shutil.which("systemctl") is None:
        raise UsageError("there is no systemd here", "Run `outcrop watch` yourself, or use --install=hook")
    path = unit_path(watched)
    command = " ".join(_quote(each) for each in command_line("watch", "-C", str(watched), flags=flags))
    after = os.fsencode(
        _TEMPLATE.format(name=re.sub(r"[\x00-\x1f]", " ", str(watched)).replace("%", "%%"), command=command)
    )
    before = path.read_bytes() if path.exists() else None
    changes: list[PlannedChange] = []
    if before != after:
        changes += [FileChange(path, before, after, 0o644), _systemctl("daemon-reload")]
    changes.append(_systemctl("enable", "--now", path.name))
    if before not in (None, after):
        changes.append(_systemctl("restart", path.name))
    return ChangePlan(tuple(changes))


def uninstall_unit(watched: Path) -> ChangePlan:
    path = unit_path(watched)
    if not path.exists():
        return ChangePlan()
    return ChangePlan(
        (
            _systemctl("disable", "--now", path.name, optional=True),
            FileChange(path, path.read_bytes(), None),
            _systemctl("daemon-reload", optional=True),
        )
    )


def _systemctl(*arguments: str, optional: bool = False) -> ProgramRun:
    return ProgramRun(("systemctl", "--user", *arguments), optional)


def unit_path(watched: Path) -> Path:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    digest = hashlib.sha256(os.fsencode(watched)).hexdigest()[:8]
    return base / "systemd" / "user" / f"outcrop-{to_slug(watched.stem) or 'index'}-{digest}.service"


def _quote(argument: str) -> str:
    """An argument in a systemd command line, where ``%`` and ``$`` have to be doubled."""
    if "\n" in argument:
        raise UsageError("a unit cannot name a folder that has a line break in its name", "Rename it")
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[^\w@:,./=+-]", argument) or not argument else escaped

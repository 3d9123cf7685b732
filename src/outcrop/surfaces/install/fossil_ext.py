"""The script in a Fossil server's ``--extroot`` folder that answers ``/ext/search``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from outcrop.errors import OutcropError, UsageError
from outcrop.surfaces.install.plan import ChangePlan, FileChange

# Our own scripts contain this.
MARK = "# Outcrop's search page"

# A first run converts the model for this machine.
CHECK_SECONDS = 60

# The name of the script: the page is ``/ext/search``.
NAME = "search"

# The variable that makes the script load its model and do nothing else.
CHECK = "CHECK_OUTCROP"


def script(variables: Mapping[str, str], branch: str | None = None, python: str = sys.executable) -> str:
    """The text of the script, with the environment that the page needs: Fossil passes on neither HOME nor PATH."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    command = [python, "-P", "-m", "outcrop.surfaces.web.cgi", *([branch] if branch else [])]
    return "\n".join(
        [
            "#!/bin/sh",
            f"{MARK}, for: fossil server --extroot. Fossil passes on no environment, so this file sets it.",
            "# Made by `outcrop fossil install-ext`, which also replaces it, and removes it with --uninstall.",
            *lines,
            f"exec {shlex.join(command)}",
            "",
        ]
    )


def install_ext(folder: Path, text: str) -> ChangePlan:
    path = script_path(folder)
    return ChangePlan((FileChange(path, path.read_bytes() if path.exists() else None, text.encode()),))


def uninstall_ext(folder: Path) -> ChangePlan:
    path = script_path(folder)
    return ChangePlan((FileChange(path, path.read_bytes(), None),) if path.exists() else ())


def check(path: Path) -> None:
    """Run the script as Fossil would, and have it load the model."""
    try:
        done = subprocess.run(
            [path], env={CHECK: "1"}, cwd="/", capture_output=True, timeout=CHECK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutcropError(f"{path} does not run: {error}", "Correct that, and install it again") from error
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OutcropError(f"{path} does not run: {reason[-1] if reason else done.returncode}", "Install it again")


def script_path(folder: Path) -> Path:
    """The script in the server's ``--extroot``; a file that is not ours is refused."""
    path = folder.absolute() / NAME
    is_ours = not path.is_symlink() and path.is_file() and MARK.encode() in path.read_bytes()[:4096]
    if os.path.lexists(path) and not is_ours:
        raise UsageError(f"outcrop did not write {path}, so it was not changed", "Move it away, or name another folder")
    return path

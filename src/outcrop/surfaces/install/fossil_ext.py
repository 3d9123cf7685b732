"""The script in a Fossil server's ``--extroot`` folder that answers ``/ext/search``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from outcrop.errors import OutcropError, UsageError

# What our own scripts are known by.
MARK = "# Outcrop's search page"

# A first run converts the model for this machine.
CHECK_SECONDS = 60

# What the script is called, so that the page is ``/ext/search``.
NAME = "search"

# Variable by which the script is told to load its model and say nothing more.
CHECK = "CHECK_OUTCROP"


def script(variables: Mapping[str, str], branch: str | None = None, python: str = sys.executable) -> str:
    """The text of the script.

    A CGI gets neither HOME nor PATH from Fossil, nor anything else of the server's environment.

    Args:
        variables: The environment that the page needs.
        branch: The branch whose files are indexed; None for trunk.
        python: The interpreter that has Outcrop.
    """
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    command = [python, "-P", "-m", "outcrop.surfaces.web.cgi", *([branch] if branch else [])]
    return "\n".join(
        [
            "#!/bin/sh",
            f"{MARK}, for: fossil server --extroot. Fossil lends it nothing of the environment, so all is said here.",
            "# Written by outcrop fossil install-ext, which also changes it and takes it away (--uninstall).",
            *lines,
            f"exec {shlex.join(command)}",
            "",
        ]
    )


def install(folder: Path, text: str) -> Path:
    """Put the script into a folder, in place of an earlier one of ours.

    Args:
        folder: The server's ``--extroot``; made when it is not there.
        text: The script.
    """
    target = _target(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # A name with a dot in front is one that Fossil never serves.
    fresh = folder / f".{NAME}.{os.getpid()}"
    try:
        fresh.write_text(text, "utf-8", newline="\n")
        fresh.chmod(0o755)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    return target


def uninstall(folder: Path) -> Path | None:
    """Take the script away; None when there is none."""
    target = _target(folder)
    if not target.exists():
        return None
    target.unlink()
    return target


def check(target: Path) -> None:
    """Run the script as Fossil would, with an empty environment, and have it load the model."""
    try:
        done = subprocess.run(
            [target], env={CHECK: "1"}, cwd="/", capture_output=True, timeout=CHECK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutcropError(f"{target} does not run: {error}", "Correct that, and install it again") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OutcropError(f"{target} does not run: {said[-1] if said else done.returncode}", "Install it again")


def _target(folder: Path) -> Path:
    target = folder.absolute() / NAME
    if target.is_symlink() or (target.exists() and not _is_ours(target)):
        raise UsageError(f"{target} is there and was not written by outcrop", "Move it away, or name another folder")
    return target


def _is_ours(target: Path) -> bool:
    return target.is_file() and MARK.encode() in target.read_bytes()[:4096]

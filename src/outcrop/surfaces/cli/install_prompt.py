"""``outcrop watch --install`` and ``--uninstall``: show what would change, ask, do it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from outcrop.errors import UsageError
from outcrop.sources.discover import FoundRoot, find_root
from outcrop.surfaces.cli.options import show_json
from outcrop.surfaces.cli.terminal import is_terminal, note, show
from outcrop.surfaces.install.hooks import install_fossil, install_git, uninstall_fossil, uninstall_git
from outcrop.surfaces.install.plan import Plan
from outcrop.surfaces.install.systemd import install_unit, uninstall_unit
from outcrop.surfaces.render import harmless_line


def change_installation(
    where: Path, flags: dict[str, Any], install: str | None, *, yes: bool, as_json: bool, quiet: bool
) -> None:
    """Install a hook or a unit, or (``install`` None) take both out."""
    place = find_root(where)
    plan = _uninstall(place) if install is None else _install(place, flags, install)
    for line in _lines(plan) if not quiet or not yes else ():
        note(line) if as_json else show(line)
    if plan.changes and not yes:
        _ask()
    for change in plan.changes:
        change.apply()
    done = "nothing to change" if not plan.changes else "taken out" if install is None else "installed"
    if as_json:
        show_json({"changes": [line for change in plan.changes for line in change.lines()], "result": done})
    elif not quiet:
        show(done)


def _install(place: FoundRoot, flags: dict[str, Any], way: str) -> Plan:
    if way == "auto":
        way = "unit" if place.repository is None or place.fossil is not None else "hook"
    if way == "unit":
        return install_unit(_named(place), flags)
    if place.fossil is not None:
        return install_fossil(place.fossil.repository, flags)
    if place.repository is not None:
        return install_git(place.repository, flags)
    raise UsageError("a plain folder has no hooks", "Take --install=unit, or run `outcrop watch` yourself")


def _uninstall(place: FoundRoot) -> Plan:
    plans = [uninstall_unit(_named(place))]
    if place.fossil is not None:
        plans.append(uninstall_fossil(place.fossil.repository))
    elif place.repository is not None:
        plans.append(uninstall_git(place.repository))
    return Plan(
        tuple(change for plan in plans for change in plan.changes),
        tuple(remark for plan in plans for remark in plan.remarks),
    )


def _named(place: FoundRoot) -> Path:
    """What a unit names: a Fossil repository by its file unless it was found from a checkout."""
    if place.fossil is not None and place.fossil.checkout is None:
        return place.fossil.repository
    return place.root


def _lines(plan: Plan) -> list[str]:
    lines = [harmless_line(line) for change in plan.changes for line in change.lines()]
    return lines + [f"note: {harmless_line(remark)}" for remark in plan.remarks]


def _ask() -> None:
    if not is_terminal(sys.stdin):
        raise UsageError("nobody is there to confirm this", "Add --yes.")
    if not click.confirm("Do this?", err=True):
        note("nothing was changed")
        raise click.exceptions.Exit(1)

"""A plan of changes to other programs: shown, confirmed, applied. ``outcrop watch`` makes its plan here too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outcrop.errors import UsageError
from outcrop.sources.discover import FoundRoot, find_root
from outcrop.surfaces.cli.options import show_json
from outcrop.surfaces.cli.terminal import confirm, note, show
from outcrop.surfaces.install.hooks import install_fossil, install_git, uninstall_fossil, uninstall_git
from outcrop.surfaces.install.plan import ChangePlan
from outcrop.surfaces.install.systemd import install_unit, uninstall_unit
from outcrop.surfaces.render import harmless_line


def confirm_and_apply(plan: ChangePlan, *, yes: bool, as_json: bool = False, quiet: bool = False) -> None:
    """Show a plan, ask about it unless ``yes``, and apply it; with ``as_json`` it is shown on stderr."""
    if not (quiet and yes):
        lines = [*plan.lines(), *(f"note: {remark}" for remark in plan.remarks)]
        for line in map(harmless_line, lines):
            note(line) if as_json else show(line)
    if plan.changes and not yes:
        confirm("Make this change?")
    plan.apply()


def change_watch_installation(
    where: Path, flags: dict[str, Any], install: str | None, *, yes: bool, as_json: bool, quiet: bool
) -> None:
    root = find_root(where)
    if install is not None:
        plan = _install(root, flags, install)
    else:
        plan = uninstall_unit(_watched_path(root))
        if root.fossil is not None:
            plan += uninstall_fossil(root.fossil.repository)
        elif root.repository is not None:
            plan += uninstall_git(root.repository)
    confirm_and_apply(plan, yes=yes, as_json=as_json, quiet=quiet)
    result = "nothing to change" if not plan.changes else "taken out" if install is None else "installed"
    if as_json:
        show_json({"changes": list(plan.lines()), "result": result})
    elif not quiet:
        show(result)


def _install(root: FoundRoot, flags: dict[str, Any], way: str) -> ChangePlan:
    if way == "auto":
        way = "unit" if root.repository is None or root.fossil is not None else "hook"
    if way == "unit":
        return install_unit(_watched_path(root), flags)
    if root.fossil is not None:
        return install_fossil(root.fossil.repository, flags)
    if root.repository is not None:
        return install_git(root.repository, flags)
    raise UsageError("a plain folder has no hooks", "Use --install=unit, or run `outcrop watch` yourself")


def _watched_path(root: FoundRoot) -> Path:
    """What a unit names: a Fossil repository by its file, unless it was found from a checkout."""
    if root.fossil is not None and root.fossil.checkout is None:
        return root.fossil.repository
    return root.root

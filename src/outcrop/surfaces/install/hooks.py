"""Hooks of a git or Fossil repository that bring its index up to date in the background.

A hook that is there stays and still runs. A shell script gets our block after its first line; any other hook is renamed
and run by a script in its place. The block starts a detached process, and does nothing where this installation is gone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcrop.errors import SourceError, UsageError
from outcrop.surfaces.install.plan import (
    ChangePlan,
    FileChange,
    FileMove,
    PlannedChange,
    SettingChange,
    command_line,
    read_setting,
)
from outcrop.text.files import read_regular
from outcrop.vcs.fossil import open_fossil
from outcrop.vcs.git import Repository, start_git

# Commits; merges and pulls; switches of a branch; rebases and amended commits.
GIT_HOOKS = ("post-commit", "post-merge", "post-checkout", "post-rewrite")

# What a bare repository has.
BARE_GIT_HOOKS = ("post-receive",)

UPDATE_ONCE = ("watch", "--once", "--if-indexed", "--quiet")

_WHOLE, _INSIDE, _FRONT = "new file", "inside a script", "before the kept one"
_BEGIN, _END = b"# >>> outcrop watch --install", b"# <<< outcrop watch --install"
_BLOCK = re.compile(rb"# >>> outcrop watch --install \(([a-z ]+)\)\n.*?# <<< outcrop watch --install\n", re.DOTALL)
_SHELL = re.compile(rb"#!\s*(?:\S*/)?(?:env\s+)?(?:\S*/)?(?:sh|bash|dash|ash|ksh|zsh)(?:\s[^\n]*)?\n")
_KEPT = ".before-outcrop"
_FOSSIL_MARK = ": outcrop watch --install"


def install_git(repository: Repository, flags: Mapping[str, Any]) -> ChangePlan:
    hooks, shared = _git_hooks(repository)
    plan = ChangePlan()
    if shared:
        plan = ChangePlan(remarks=(f"core.hooksPath is {hooks[0].parent}; our hooks act in this repository only",))
    for hook in hooks:
        plan += ChangePlan(_insert_block(hook, repository.common_dir if shared else None, flags))
    return plan


def uninstall_git(repository: Repository) -> ChangePlan:
    plan = ChangePlan()
    for hook in _git_hooks(repository)[0]:
        plan += _remove_block(hook)
    return plan


def _git_hooks(repository: Repository) -> tuple[list[Path], bool]:
    """The files of the hooks that we use, and whether other repositories may use their folder too."""
    # Every git that we run has this setting switched off; that is the last of the values that it lists.
    output, _ = start_git(repository, "config", "-z", "--type=path", "--get-all", "core.hooksPath").communicate()
    values = output.decode("utf-8", "surrogateescape").split("\0")[:-2]
    folder = (repository.top / values[-1]).resolve() if values else repository.common_dir / "hooks"
    shared = bool(values) and not folder.is_relative_to(repository.common_dir)
    return [folder / name for name in (BARE_GIT_HOOKS if repository.bare else GIT_HOOKS)], shared


def _insert_block(hook: Path, common_dir: Path | None, flags: Mapping[str, Any]) -> tuple[PlannedChange, ...]:
    def block(kind: str) -> bytes:
        return _block(kind, hook.name, common_dir, flags)

    content = _content(hook)
    if content is None:
        return (FileChange(hook, None, b"#!/bin/sh\n" + block(_WHOLE)),)
    ours = _BLOCK.search(content)
    if ours:
        updated = content[: ours.start()] + block(ours[1].decode()) + content[ours.end() :]
        return () if updated == content else (FileChange(hook, content, updated),)
    script = _SHELL.match(content, 0, 256)
    if script and not hook.is_symlink() and hook.stat().st_mode & stat.S_IXUSR:
        return (FileChange(hook, content, content[: script.end()] + block(_INSIDE) + content[script.end() :]),)
    renamed = _renamed(hook)
    if os.path.lexists(renamed):
        raise SourceError(f"{renamed} is in the way", "Remove or rename it")
    return FileMove(hook, renamed), FileChange(hook, None, b"#!/bin/sh\n" + block(_FRONT) + _handover(hook.name))


def _remove_block(hook: Path) -> ChangePlan:
    renamed = _renamed(hook)
    content = _content(hook)
    ours = _BLOCK.search(content) if content is not None else None
    if content is None or ours is None:
        remark = f"{hook} has been changed since; the hook from before is still there, as {renamed.name}"
        return ChangePlan(remarks=(remark,) if os.path.lexists(renamed) else ())
    rest = content[: ours.start()] + content[ours.end() :]
    kind = ours[1].decode()
    if kind == _FRONT and rest == b"#!/bin/sh\n" + _handover(hook.name):
        restore = (FileMove(renamed, hook),) if os.path.lexists(renamed) else ()
        return ChangePlan((FileChange(hook, content, None), *restore))
    # What was written into it since stays.
    return ChangePlan((FileChange(hook, content, None if kind == _WHOLE and rest == b"#!/bin/sh\n" else rest),))


def _renamed(hook: Path) -> Path:
    return hook.with_name(hook.name + _KEPT)


def _content(hook: Path) -> bytes | None:
    if not os.path.lexists(hook):
        return None
    try:
        return read_regular(hook)
    except FileNotFoundError:
        return b""  # a broken link
    except OSError as error:
        raise SourceError(f"{hook} cannot be read ({error.strerror})", "Check its permissions") from error


def _block(kind: str, name: str, common_dir: Path | None, flags: Mapping[str, Any]) -> bytes:
    """The lines that start an update and always succeed; ``common_dir`` limits them to one repository."""
    command = shlex.join(command_line(*UPDATE_ONCE, flags=flags))
    if name == "post-commit":
        # A rebase makes a commit at a time, and calls post-rewrite when it has made them all.
        command = f'[ ! -d "$(git rev-parse --git-path rebase-merge)" ] && {command}'
    if common_dir is not None:
        where = shlex.quote(str(common_dir))
        command = f'[ "$(cd "$(git rev-parse --git-common-dir)" && pwd -P)" = {where} ] && {command}'
    return os.fsencode(
        f"{_BEGIN.decode()} ({kind})\n"
        "# Brings the index up to date, in the background. `outcrop watch --uninstall` removes this.\n"
        f"if [ -x {shlex.quote(sys.executable)} ]; then\n"
        f"  ( {{ {command}; }} </dev/null >/dev/null 2>&1 & )\n"
        "fi\n"
        f"{_END.decode()}\n"
    )


def _handover(name: str) -> bytes:
    return (f'kept="$(dirname "$0")/{name}{_KEPT}"\nif [ -x "$kept" ]; then\n  exec "$kept" "$@"\nfi\n').encode()


def install_fossil(repository: Path, flags: Mapping[str, Any]) -> ChangePlan:
    value = _fossil_hooks(repository)
    ours = None if value is None else _our_entry(value)
    first = value is None or (ours is not None and ours.was_first)
    entry = _fossil_entry(repository, f"{_FOSSIL_MARK}, {'first' if first else 'added'}", flags)
    if value is None:
        updated = f"[{entry}]"
    elif ours is not None:
        updated = value.replace(ours.text, entry)
    else:
        head = value.rstrip()
        if not head.endswith("]"):
            raise SourceError(f"the hooks of {repository} are not a list", "Look at: fossil hook list")
        comma = "" if head[:-1].strip() == "[" else ","
        updated = f"{head[:-1]}{comma}{entry}]"
    changes = (SettingChange(repository, "hooks", value, updated),) if updated != value else ()
    return ChangePlan(changes, _FOSSIL_REMARKS)


def uninstall_fossil(repository: Path) -> ChangePlan:
    value = _fossil_hooks(repository)
    ours = None if value is None else _our_entry(value)
    if value is None or ours is None:
        return ChangePlan()
    rest: str | None = value.replace(ours.with_comma, "", 1)
    if rest == "[]" and ours.was_first:
        rest = None
    return ChangePlan((SettingChange(repository, "hooks", value, rest),))


_FOSSIL_REMARKS = (
    "Fossil runs this hook within a minute after a push or a change in its pages; after a commit on this machine only "
    "when `fossil backoffice` runs or a page is viewed; after the approval of a moderator not at all. A running "
    "`outcrop watch` has no such gaps.",
)


@dataclass(frozen=True, slots=True)
class _FossilEntry:
    """Our hook in the list: its text, the same with the comma to remove, and whether there was no list before."""

    text: str
    with_comma: str
    was_first: bool


def _fossil_hooks(repository: Path) -> str | None:
    with open_fossil(repository) as database:
        return read_setting(database, "hooks")


def _our_entry(value: str) -> _FossilEntry | None:
    try:
        entries = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UsageError("the hooks of this repository cannot be read", "Look at: fossil hook list") from error
    for entry in entries if isinstance(entries, list) else ():
        command = entry.get("cmd", "") if isinstance(entry, dict) else ""
        mark = re.match(rf"{re.escape(_FOSSIL_MARK)}, (first|added);", str(command))
        if mark:
            # Either as we wrote it, or as Python's default; any other text was written by another program.
            for text in (_json(entry), json.dumps(entry)):
                if text in value:
                    with_comma = next(each for each in (f",{text}", f"{text},", text) if each in value)
                    return _FossilEntry(text, with_comma, mark[1] == "first")
            raise UsageError("another program has written the hooks again", "Remove ours with: fossil hook delete ID")
    return None


def _fossil_entry(repository: Path, mark: str, flags: Mapping[str, Any]) -> str:
    arguments = command_line(*UPDATE_ONCE, "-C", str(repository), flags=flags)
    # Fossil replaces %R and the like, without any escape; quotes keep the letter away from the sign.
    command = " ".join(shlex.quote(each).replace("%", "%''") for each in arguments)
    python = shlex.quote(sys.executable).replace("%", "%''")
    # The input is empty when only unversioned content came, as after our own export: that must start nothing.
    # All of it has to be read, since a closed pipe would end Fossil.
    script = f"{mark}; grep . >/dev/null && [ -x {python} ] && {{ {command} </dev/null >/dev/null 2>&1 & }}; true"
    return _json({"cmd": script, "type": "after-receive", "seq": 90})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""Hooks of a git or Fossil repository that bring its index up to date in the background.

A hook that is there stays and is still run. Into a shell script a block is put after its first line, so that it keeps
its name and place; anything else is renamed and run by a script that stands in for it. The block starts a process that
nobody waits for, and does nothing where this installation is gone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outcrop.errors import SourceError, UsageError
from outcrop.surfaces.install.plan import Change, Move, Plan, Setting, Write, program, setting_of
from outcrop.vcs.fossil import opened
from outcrop.vcs.git import Repository, start

# Commits; merges and pulls; switches of a branch; rebases and amended commits.
AFTER = ("post-commit", "post-merge", "post-checkout", "post-rewrite")

# What a bare repository has.
AFTER_PUSH = ("post-receive",)

ONCE = ("watch", "--once", "--if-indexed", "--quiet")

_WHOLE, _INSIDE, _FRONT = "new file", "inside a script", "before the kept one"
_BEGIN, _END = b"# >>> outcrop watch --install", b"# <<< outcrop watch --install"
_BLOCK = re.compile(rb"# >>> outcrop watch --install \(([a-z ]+)\)\n.*?# <<< outcrop watch --install\n", re.DOTALL)
_SHELL = re.compile(rb"#!\s*(?:\S*/)?(?:env\s+)?(?:\S*/)?(?:sh|bash|dash|ash|ksh|zsh)(?:\s[^\n]*)?\n")
_KEPT = ".before-outcrop"
_FOSSIL_MARK = ": outcrop watch --install"


def install_git(repository: Repository, flags: Mapping[str, Any]) -> Plan:
    """What puts our hooks into a git repository."""
    folder, shared = _hooks_folder(repository)
    changes: list[Change] = []
    for name in AFTER_PUSH if repository.bare else AFTER:
        changes += _put_in(folder / name, repository, shared, flags)
    remarks = []
    if shared:
        remarks.append(f"the hooks of this repository are at {folder} (core.hooksPath); ours act in this one only")
    return Plan(tuple(changes), tuple(remarks))


def uninstall_git(repository: Repository) -> Plan:
    """What takes our hooks out of a git repository again."""
    folder, _ = _hooks_folder(repository)
    changes: list[Change] = []
    remarks: list[str] = []
    for name in AFTER_PUSH if repository.bare else AFTER:
        _take_out(folder / name, changes, remarks)
    return Plan(tuple(changes), tuple(remarks))


def _hooks_folder(repository: Repository) -> tuple[Path, bool]:
    """Where git looks for hooks, and whether other repositories may look there too."""
    # Every git that we run has this setting switched off, which is the last of the values that it lists.
    asked, _ = start(repository, "config", "-z", "--type=path", "--get-all", "core.hooksPath").communicate()
    values = asked.decode("utf-8", "surrogateescape").split("\0")[:-2]
    if not values:
        return repository.common_dir / "hooks", False
    folder = (repository.top / values[-1]).resolve()
    return folder, not folder.is_relative_to(repository.common_dir)


def _put_in(hook: Path, repository: Repository, shared: bool, flags: Mapping[str, Any]) -> list[Change]:
    def block(kind: str) -> bytes:
        return _block(kind, hook.name, repository.common_dir if shared else None, flags)

    content = _content(hook)
    if content is None:
        return [Write(hook, None, b"#!/bin/sh\n" + block(_WHOLE))]
    found = _BLOCK.search(content)
    if found:
        fresh = content[: found.start()] + block(found[1].decode()) + content[found.end() :]
        return [] if fresh == content else [Write(hook, content, fresh)]
    script = _SHELL.match(content)
    if script and not hook.is_symlink() and hook.stat().st_mode & stat.S_IXUSR:
        return [Write(hook, content, content[: script.end()] + block(_INSIDE) + content[script.end() :])]
    kept = hook.with_name(hook.name + _KEPT)
    if os.path.lexists(kept):
        raise SourceError(f"{kept} is in the way", "Remove or rename it")
    return [Move(hook, kept), Write(hook, None, b"#!/bin/sh\n" + block(_FRONT) + _handover(hook.name))]


def _take_out(hook: Path, changes: list[Change], remarks: list[str]) -> None:
    kept = hook.with_name(hook.name + _KEPT)
    content = _content(hook)
    found = _BLOCK.search(content) if content is not None else None
    if content is None or found is None:
        if os.path.lexists(kept):
            remarks.append(f"{hook} was changed since; {kept.name}, which it was before, is left beside it")
        return
    rest = content[: found.start()] + content[found.end() :]
    kind = found[1].decode()
    if kind == _FRONT and rest == b"#!/bin/sh\n" + _handover(hook.name):
        changes.append(Write(hook, content, None))
        if os.path.lexists(kept):
            changes.append(Move(kept, hook))
    elif kind == _WHOLE and rest == b"#!/bin/sh\n":
        changes.append(Write(hook, content, None))
    else:
        # Whatever somebody wrote into it since stays.
        changes.append(Write(hook, content, rest))


def _content(hook: Path) -> bytes | None:
    if not os.path.lexists(hook):
        return None
    try:
        return hook.read_bytes()
    except FileNotFoundError:
        return b""  # a link that leads nowhere
    except OSError as error:
        raise SourceError(f"{hook} cannot be read ({error.strerror})", "Check its permissions") from error


def _block(kind: str, name: str, common_dir: Path | None, flags: Mapping[str, Any]) -> bytes:
    """The lines that start an update; they end well whatever becomes of it."""
    command = shlex.join(program(*ONCE, flags=flags))
    if name == "post-commit":
        # A rebase makes a commit at a time, and calls post-rewrite when it has made them all.
        command = f'[ ! -d "$(git rev-parse --git-path rebase-merge)" ] && {command}'
    if common_dir is not None:
        where = shlex.quote(str(common_dir))
        command = f'[ "$(cd "$(git rev-parse --git-common-dir)" && pwd -P)" = {where} ] && {command}'
    return os.fsencode(
        f"{_BEGIN.decode()} ({kind})\n"
        "# Brings the index up to date, in the background. `outcrop watch --uninstall` takes this out again.\n"
        f"if [ -x {shlex.quote(sys.executable)} ]; then\n"
        f"  ( {{ {command}; }} </dev/null >/dev/null 2>&1 & )\n"
        "fi\n"
        f"{_END.decode()}\n"
    )


def _handover(name: str) -> bytes:
    return (f'kept="$(dirname "$0")/{name}{_KEPT}"\nif [ -x "$kept" ]; then\n  exec "$kept" "$@"\nfi\n').encode()


def install_fossil(repository: Path, flags: Mapping[str, Any]) -> Plan:
    """What adds our hook to those of a Fossil repository."""
    value = _fossil_hooks(repository)
    mark = f"{_FOSSIL_MARK}, {'first' if value is None else 'added'}"
    entry = _fossil_entry(repository, mark, flags)
    if value is None:
        return Plan((Setting(repository, "hooks", None, f"[{entry}]"),), _FOSSIL_REMARKS)
    ours = _our_entry(value)
    if ours:
        if ours[2] == "first":
            entry = _fossil_entry(repository, f"{_FOSSIL_MARK}, first", flags)
        fresh = value.replace(ours[1], entry)
        return Plan((Setting(repository, "hooks", value, fresh),) if fresh != value else (), _FOSSIL_REMARKS)
    inside = value.rstrip()
    if not inside.endswith("]"):
        raise SourceError(f"the hooks of {repository} are not a list", "Look at: fossil hook list")
    comma = "" if inside[:-1].strip() == "[" else ","
    return Plan((Setting(repository, "hooks", value, f"{inside[:-1]}{comma}{entry}]"),), _FOSSIL_REMARKS)


def uninstall_fossil(repository: Path) -> Plan:
    """What takes our hook out of a Fossil repository again."""
    value = _fossil_hooks(repository)
    ours = None if value is None else _our_entry(value)
    if value is None or ours is None:
        return Plan(())
    after: str | None = value.replace(ours[0], "", 1)
    if after == "[]" and ours[2] == "first":
        after = None
    return Plan((Setting(repository, "hooks", value, after),))


_FOSSIL_REMARKS = (
    "Fossil runs it within a minute after a push or a change made through its pages; after a commit at this machine "
    "only when `fossil backoffice` runs or a page is viewed; after a moderator's approval not at all. A running watch "
    "has no such gaps.",
)


def _fossil_hooks(repository: Path) -> str | None:
    with opened(repository) as database:
        return setting_of(database, "hooks")


def _our_entry(value: str) -> tuple[str, str, str] | None:
    """Our hook with the comma before it, without it, and whether it was the first; None where there is none."""
    try:
        entries = json.loads(value)
    except ValueError as error:
        raise UsageError("the hooks of this repository are not readable", "Look at: fossil hook list") from error
    for entry in entries if isinstance(entries, list) else ():
        command = entry.get("cmd", "") if isinstance(entry, dict) else ""
        mark = re.match(rf"{re.escape(_FOSSIL_MARK)}, (first|added);", str(command))
        if mark:
            # The text as it stands: only if nobody wrote the list anew is it the one that we put in.
            for text in (_json(entry), json.dumps(entry)):
                if text in value:
                    with_comma = (each for each in (f",{text}", f"{text},", text) if each in value)
                    return next(with_comma), text, mark[1]
            raise UsageError("another program wrote the hooks anew", "Take ours out with: fossil hook delete ID")
    return None


def _fossil_entry(repository: Path, mark: str, flags: Mapping[str, Any]) -> str:
    arguments = program(*ONCE, "-C", str(repository), flags=flags)
    # Fossil replaces %R and the like, and has no way to write a plain one; quotes keep the letter away from the sign.
    command = " ".join(shlex.quote(each).replace("%", "%''") for each in arguments)
    python = shlex.quote(sys.executable).replace("%", "%''")
    # Nothing comes in when only unversioned content was received, as it is after our own export: that must end here.
    # All of it has to be read, since a closed pipe would end Fossil.
    script = f"{mark}; grep . >/dev/null && [ -x {python} ] && {{ {command} </dev/null >/dev/null 2>&1 & }}; true"
    return _json({"cmd": script, "type": "after-receive", "seq": 90})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""The objects in the commits of this clone."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence

from outcrop.errors import SourceError
from outcrop.vcs.git import Repository, git_complaint, git_output, start_git


def objects(repository: Repository, commits: Collection[str], without: Sequence[str] = ()) -> frozenset[str]:
    """Every object in the trees of these commits, those included that a partial clone does not have.

    With ``without``: in the trees of their histories too, but what those commits and their histories hold.
    """
    if not commits:
        return frozenset()
    walk = () if without else ("--no-walk",)
    switches = ("--objects", "--no-object-names", "--missing=print", *walk, "--stdin")
    process = start_git(repository, "rev-list", *switches, stdin=subprocess.PIPE)
    asked = [*sorted(commits), *(f"^{commit}" for commit in without)]
    output, errors = process.communicate("".join(f"{name}\n" for name in asked).encode())
    if process.returncode:
        raise SourceError(f"git cannot walk its commits: {git_complaint(errors)}", "Look at: git fsck")
    return frozenset(line.lstrip(b"?").decode() for line in output.splitlines())


def tips(repository: Repository, *patterns: str) -> dict[str, str]:
    """The commit of each branch of this clone under these patterns, by the whole name of its ref."""
    form = "--format=%(objecttype) %(objectname) %(refname)"
    listed = git_output(start_git(repository, "for-each-ref", form, *patterns), "list its branches")
    found = {}
    for line in listed.decode("utf-8", "surrogateescape").splitlines():
        kind, commit, name = line.split(" ", 2)
        if kind == "commit":
            found[name] = commit
    return found


def present(repository: Repository, commits: Collection[str]) -> frozenset[str]:
    """Those that this clone has. Nothing is fetched."""
    switches = ("--no-walk", "--ignore-missing", "--missing=allow-any", "--stdin")
    process = start_git(repository, "rev-list", *switches, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output, _ = process.communicate("".join(f"{commit}\n" for commit in commits).encode())
    return frozenset(output.decode().split())

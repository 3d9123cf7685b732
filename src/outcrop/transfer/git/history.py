"""What stands in the commits of this clone, and what of it a remote has too."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence

from outcrop.errors import SourceError
from outcrop.transfer.git.remote import Advertised, followed
from outcrop.vcs.git import Repository, finish, first_line, start


def objects(repository: Repository, commits: Sequence[str], without: Sequence[str] = ()) -> frozenset[str]:
    """Every object that stands in the trees of these commits, those included that a partial clone does not have.

    Args:
        repository: Whose.
        commits: Each by itself, without its history; with ``without``, together with their histories.
        without: Only what these commits do not hold.
    """
    if not commits:
        return frozenset()
    walk = () if without else ("--no-walk",)
    process = start(
        repository,
        *("rev-list", "--objects", "--no-object-names", "--missing=print", *walk, "--stdin"),
        stdin=subprocess.PIPE,
    )
    asked = [*commits, *(f"^{commit}" for commit in without)]
    output, errors = process.communicate("".join(f"{name}\n" for name in asked).encode())
    if process.returncode:
        raise SourceError(f"git cannot walk its commits: {first_line(errors)}", "Look at: git fsck")
    return frozenset(line.lstrip(b"?").decode() for line in output.splitlines())


def tips(repository: Repository, *patterns: str) -> dict[str, str]:
    """The commit of each branch of this clone under these patterns, by the whole name of its ref."""
    listed = finish(
        start(repository, "for-each-ref", "--format=%(objecttype) %(objectname) %(refname)", *patterns),
        "list its branches",
    )
    found = {}
    for line in listed.decode("utf-8", "surrogateescape").splitlines():
        kind, id, name = line.split(" ", 2)
        if kind == "commit":
            found[name] = id
    return found


def present(repository: Repository, commits: Collection[str]) -> frozenset[str]:
    """Those that this clone has. Nothing is fetched."""
    process = start(
        repository,
        *("rev-list", "--no-walk", "--ignore-missing", "--missing=allow-any", "--stdin"),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    output, _ = process.communicate("".join(f"{commit}\n" for commit in commits).encode())
    return frozenset(output.decode().split())


def published(
    repository: Repository, remote: str, there: Advertised, head: str, known: frozenset[str]
) -> frozenset[str]:
    """Objects of a commit that a remote has, as far as this clone can tell.

    Args:
        repository: Whose commit.
        remote: As it was named.
        there: What it says that it has.
        head: The commit.
        known: Commits of its branches that are in this clone.
    """
    whole = objects(repository, [head])
    bases = set(known)
    name = None if set(there.branches.values()) <= known else followed(repository, remote, there)
    if name is not None:
        # Of a branch that moved on, what was there when it was last fetched.
        prefix = f"refs/remotes/{name}/"
        bases |= {id for ref, id in tips(repository, prefix).items() if ref.removeprefix(prefix) in there.branches}
    if not bases:
        return frozenset()
    try:
        return whole - objects(repository, [head], sorted(bases))
    except SourceError:
        return frozenset()

"""Moving the vectors between copies of a git repository, by git itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from outcrop.errors import StoreError, UsageError
from outcrop.transfer.git.network import SECONDS, SECONDS_TO_ANSWER, LostRace, is_watched, progress_switch, run, shown
from outcrop.transfer.git.ref import REF, remove, resolve
from outcrop.vcs.git import Repository, start

BRANCHES = "refs/heads/"

# Under which what is fetched has a name while it is looked at, with the number of the process that looks.
INCOMING = "refs/outcrop/incoming/"


@dataclass(frozen=True, slots=True)
class Advertised:
    """What a remote says that it has.

    Attributes:
        branches: The commit of each branch, by its name.
        vectors: The commit that holds vectors, or None.
    """

    branches: dict[str, str]
    vectors: str | None


def choose(repository: Repository, remote: str | None) -> str:
    """The remote that is meant: the one named, else ``origin``, else the only one."""
    if remote is not None:
        if not remote or remote.startswith("-"):
            raise UsageError(f"{remote!r} is no remote", "Name a remote that git remote shows, or an address")
        # git will run at the top of the working tree; a path is meant from where the user is.
        is_path = remote not in _remotes(repository) and Path(remote).is_dir()
        return str(Path(remote).resolve()) if is_path else remote
    known = _remotes(repository)
    if "origin" in known:
        return "origin"
    if len(known) == 1:
        return next(iter(known))
    raise UsageError(
        "there is no remote called origin" if known else "this repository has no remote",
        f"Name one: {', '.join(sorted(known))}"
        if known
        else "Name an address, or add one: git remote add origin ADDRESS",
    )


def destinations(repository: Repository, remote: str) -> list[str]:
    """Where a push to a remote goes: the remote itself, or its addresses where git pushes elsewhere than it fetches.

    What is there has to be asked there: the place that is fetched from may hold what the other must never see.
    """
    if remote not in _remotes(repository):
        return [remote]
    fetched = _addresses(repository, remote)
    pushed = _addresses(repository, remote, "--push")
    return [remote] if pushed == fetched[:1] or not pushed else pushed


def followed(repository: Repository, remote: str, there: Advertised) -> str | None:
    """Under which name a remote's branches are followed here; None where they are not.

    Args:
        repository: Where.
        remote: Its name or an address.
        there: What it says that it has.
    """
    known = _remotes(repository)
    if remote in known:
        return remote
    for name in known:
        if remote in _addresses(repository, name)[:1]:
            return name
        if remote in _addresses(repository, name, "--push"):
            # One repository of two addresses, as one for those who log in, or two repositories.
            return name if ask(repository, name) == there else None
    return None


def ask(repository: Repository, remote: str) -> Advertised:
    """Ask a remote which branches it has, and whether it has vectors."""
    output = run(
        repository,
        ("ls-remote", "--refs", remote, f"{BRANCHES}*", REF),
        f"reach {shown(remote)}",
        SECONDS if is_watched() else SECONDS_TO_ANSWER,
    )
    found: dict[str, str] = {}
    for line in output.decode("utf-8", "surrogateescape").splitlines():
        id, _, ref = line.partition("\t")
        found[ref] = id
    vectors = found.pop(REF, None)
    # What git looks for at the end of a name it finds there too, as in refs/x/refs/heads/main.
    branches = {ref.removeprefix(BRANCHES): id for ref, id in found.items() if ref.startswith(BRANCHES)}
    return Advertised(branches, vectors)


def fetch(repository: Repository, remote: str) -> str:
    """Bring a remote's vectors into this repository, under no name of ours.

    Returns:
        The commit that holds them.
    """
    _clear_left_behind(repository)
    incoming = f"{INCOMING}{os.getpid()}"
    # Blobs that a partial clone leaves out are what is wanted here.
    partial = ("--no-filter",) if repository.is_partial() else ()
    refspec = f"+{REF}:{incoming}"
    plain = (
        *progress_switch(),
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
        # A refspec of the user's own would move our ref before what is only here is taken over.
        "--refmap=",
        *partial,
    )
    what = f"fetch the vectors of {shown(remote)}"
    try:
        with _only_what_is_new(repository) as more:
            run(repository, ("fetch", *plain, remote, refspec), what, SECONDS, more)
        commit = resolve(repository, incoming)
        if commit is None:
            raise StoreError(f"what {shown(remote)} has as {REF} is not a commit", f"Delete it there: {REF}")
        if partial and any(line.startswith("?") for line in _missing(repository, commit)):
            # A plain git fetch left them out before, and git does not ask twice for what it takes to be here.
            run(repository, ("fetch", "--refetch", *plain, remote, refspec), what, SECONDS)
        return commit
    finally:
        remove(repository, incoming)


def push(repository: Repository, remote: str, commit: str, expected: str | None) -> bool:
    """Let a remote's vectors be those of a commit, provided that they are still what they were.

    Args:
        repository: Where the commit is.
        remote: Whose vectors.
        commit: What they will be.
        expected: The commit that they are at now; None where there are none.

    Returns:
        False when somebody else was faster.
    """
    lease = f"--force-with-lease={REF}:{expected or ''}"
    # Deltas between vectors save nothing and cost minutes.
    quietly = ("--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")
    arguments = ("-c", "pack.window=0", "push", *progress_switch(), *quietly, lease)
    try:
        with _as_its_child(commit, expected) as more:
            run(repository, (*arguments, remote, f"{commit}:{REF}"), f"push to {shown(remote)}", SECONDS, more)
    except LostRace:
        return False
    return True


@contextlib.contextmanager
def _as_its_child(commit: str, before: str | None) -> Iterator[dict[str, str]]:
    """Variables that let git take a commit for the child of another, in this process only.

    What the other holds is then not sent again: of commits without parents git compares nothing.
    """
    if before is None:
        yield {}
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "grafts"
        file.write_text(f"{commit} {before}\n", "ascii")
        yield {"GIT_GRAFT_FILE": str(file)}


@contextlib.contextmanager
def _only_what_is_new(repository: Repository) -> Iterator[dict[str, str]]:
    """Variables with which a remote does not send again what the vectors that are here hold.

    It compares commits without parents only for a clone that it takes for shallow; so we say that our own commit is
    where history ends, which it is.
    """
    here = resolve(repository, REF)
    if here is None or (repository.common_dir / "shallow").exists():
        yield {}
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shallow"
        file.write_text(f"{here}\n", "ascii")
        yield {"GIT_SHALLOW_FILE": str(file)}


def _remotes(repository: Repository) -> frozenset[str]:
    """Those that have an address."""
    asked = ("config", "-z", "--name-only", "--get-regexp", r"^remote\..*\.(url|pushurl)$")
    output, _ = start(repository, *asked).communicate()
    keys = output.decode("utf-8", "surrogateescape").split("\0")
    return frozenset(key.removeprefix("remote.").rpartition(".")[0] for key in keys if key)


def _addresses(repository: Repository, remote: str, *more: str) -> list[str]:
    output, _ = start(repository, "remote", "get-url", "--all", *more, "--", remote).communicate()
    return output.decode("utf-8", "surrogateescape").splitlines()


def _clear_left_behind(repository: Repository) -> None:
    """Delete the names that killed processes left: they would keep old vectors alive."""
    listed, _ = start(repository, "for-each-ref", "--format=%(refname)", INCOMING).communicate()
    for ref in listed.decode("utf-8", "surrogateescape").split():
        number = ref.removeprefix(INCOMING)
        if not number.isascii() or not number.isdigit() or not _is_running(int(number)):
            remove(repository, ref)


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _missing(repository: Repository, commit: str) -> list[str]:
    process = start(repository, "rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print", commit)
    return process.communicate()[0].decode().splitlines()

"""Other copies of a git repository: their branches and vectors, moved by git itself."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from outcrop.errors import StoreError, UsageError
from outcrop.transfer.git.network import ANSWER_TIMEOUT, TRANSFER_TIMEOUT, LostRace, is_interactive, run
from outcrop.transfer.git.ref import REF, delete_ref
from outcrop.vcs.git import Repository, answer, find_commit, hide_password, missing_objects
from outcrop.vcs.git_config import pushed_instead

BRANCHES = "refs/heads/"

# Run by a shell, with the path as its last argument.
_QUIET_RECEIVER = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c receive.autogc=false receive-pack"
)

# What git takes for an address rather than a path: a colon before the first slash.
_ELSEWHERE = re.compile(r"[^/]{2,}:")

# Names of what is fetched while it is looked at, each with the number of the process that looks.
INCOMING = "refs/outcrop/incoming/"


@dataclass(frozen=True, slots=True)
class Advertised:
    """What a remote has: the commit of each branch by its name, and the commit that holds vectors, or None."""

    branches: dict[str, str]
    vectors: str | None


@dataclass(frozen=True, slots=True)
class GitRemote:
    """Another copy of a repository, by a name or an address."""

    repository: Repository
    name: str

    @property
    def shown(self) -> str:
        return hide_password(self.name)

    def destinations(self) -> list[GitRemote]:
        """Where a push goes: the remote itself, or its addresses where git pushes elsewhere than it fetches.

        Each is then asked for itself: the place that is fetched from may hold what the other must never see.
        """
        if self.name not in _remotes(self.repository):
            return [self]
        pushed = self._addresses(self.name, "--push")
        if not pushed or pushed == self._addresses(self.name)[:1]:
            return [self]
        return [GitRemote(self.repository, address) for address in pushed]

    def tracking_name(self, there: Advertised) -> str | None:
        """The name under which this clone follows the remote's branches; None where it does not."""
        known = _remotes(self.repository)
        if self.name in known:
            return self.name
        for name in known:
            if self.name in self._addresses(name)[:1]:
                return name
            if self.name in self._addresses(name, "--push"):
                # One repository of two addresses, as one for those who log in, or two repositories.
                return name if GitRemote(self.repository, name).ask() == there else None
        return None

    def ask(self) -> Advertised:
        timeout = TRANSFER_TIMEOUT if is_interactive() else ANSWER_TIMEOUT
        listed = ("ls-remote", "--refs", self.name, f"{BRANCHES}*", REF)
        output = run(self.repository, listed, f"reach {self.shown}", timeout)
        found: dict[str, str] = {}
        for line in output.decode("utf-8", "surrogateescape").splitlines():
            commit, _, ref = line.partition("\t")
            found[ref] = commit
        vectors = found.pop(REF, None)
        # What git looks for at the end of a name it finds there too, as in refs/x/refs/heads/main.
        branches = {ref.removeprefix(BRANCHES): commit for ref, commit in found.items() if ref.startswith(BRANCHES)}
        return Advertised(branches, vectors)

    def fetch(self) -> str:
        """Bring its vectors into the repository, under no lasting name, and return the commit that holds them."""
        repository = self.repository
        _clear_abandoned(repository)
        incoming = f"{INCOMING}{os.getpid()}"
        # Without --refmap a refspec of the user's own would move our ref before what is only here is copied over.
        plain = "--no-tags --no-write-fetch-head --no-recurse-submodules --no-auto-maintenance --refmap=".split()
        switches = [*_progress_switch(), *plain]
        if repository.is_partial():
            # Blobs that a partial clone leaves out are what is wanted here.
            switches.append("--no-filter")
        wanted = (*switches, self.name, f"+{REF}:{incoming}")
        what = f"fetch the vectors of {self.shown}"
        try:
            with _only_new(repository) as variables:
                run(repository, ("fetch", *wanted), what, variables=variables)
            commit = find_commit(repository, incoming)
            if commit is None:
                raise StoreError(f"what {self.shown} has as {REF} is not a commit", f"Delete it there: {REF}")
            if repository.is_partial() and missing_objects(repository, commit):
                # A plain git fetch left them out before, and git does not ask twice for what it takes to be here.
                run(repository, ("fetch", "--refetch", *wanted), what)
            return commit
        finally:
            delete_ref(repository, incoming)

    def push(self, commit: str, expected: str | None) -> bool:
        """Make its vectors those of a commit, provided that they are still what they were (None: not there).

        Returns:
            False when another push was faster.
        """
        # Without a window git looks for no deltas: between vectors they save nothing and cost minutes.
        plain = "--porcelain --no-verify --no-signed --no-follow-tags --recurse-submodules=no".split()
        lease = f"--force-with-lease={REF}:{expected or ''}"
        switches = [*_progress_switch(), *plain, *self._receiver(), lease]
        push = ("-c", "pack.window=0", "push", *switches, self.name, f"{commit}:{REF}")
        # Git takes the commit for the child of the other, and does not send again what that one holds: of commits
        # without parents it compares nothing.
        grafts = "" if expected is None else f"{commit} {expected}\n"
        try:
            with _variable("GIT_GRAFT_FILE", grafts) as variables:
                run(self.repository, push, f"push to {self.shown}", variables=variables)
        except LostRace:
            return False
        return True

    def _receiver(self) -> tuple[str, ...]:
        """Of a repository on this machine, which may be as foreign as this one: a receiver that runs no hooks."""
        if self.name in _remotes(self.repository):
            addresses = self._addresses(self.name, "--push")
        else:
            addresses = [answer(self.repository, "ls-remote", "--get-url", "--", self.name)]
            addresses += pushed_instead(self.repository, self.name)
        is_here = any(address.startswith("file:") or not _ELSEWHERE.match(address) for address in addresses)
        return (f"--receive-pack={_QUIET_RECEIVER}",) if is_here else ()

    def _addresses(self, name: str, *switches: str) -> list[str]:
        return answer(self.repository, "remote", "get-url", "--all", *switches, "--", name).splitlines()


def find_remote(repository: Repository, name: str | None) -> GitRemote:
    """The remote of this name or address; None for ``origin``, else the only one."""
    known = _remotes(repository)
    if name is not None:
        if not name or name.startswith("-"):
            raise UsageError(f"{name!r} is no remote", "Name a remote that git remote shows, or an address")
        # git will run at the top of the working tree; a path is meant from where the user is.
        is_path = name not in known and Path(name).is_dir()
        return GitRemote(repository, str(Path(name).resolve()) if is_path else name)
    if not known:
        raise UsageError("this repository has no remote", "Name an address, or add one: git remote add origin ADDRESS")
    if "origin" not in known and len(known) > 1:
        raise UsageError("there is no remote called origin", f"Name one: {', '.join(sorted(known))}")
    return GitRemote(repository, "origin" if "origin" in known else next(iter(known)))


def _progress_switch() -> tuple[str, ...]:
    return ("--progress",) if is_interactive() else ()


@contextlib.contextmanager
def _variable(name: str, content: str) -> Iterator[dict[str, str]]:
    """A variable for git that names a file of this content; none without content."""
    if not content:
        yield {}
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.write_text(content, "ascii")
        yield {name: str(file)}


def _only_new(repository: Repository) -> contextlib.AbstractContextManager[dict[str, str]]:
    """Variables with which a remote does not send again what the vectors that are here hold.

    It compares commits without parents only for a shallow clone; so our own commit is declared as where history ends,
    which it is.
    """
    here = None if (repository.common_dir / "shallow").exists() else find_commit(repository, REF)
    return _variable("GIT_SHALLOW_FILE", f"{here}\n" if here else "")


def _remotes(repository: Repository) -> frozenset[str]:
    """Those that have an address."""
    pattern = r"^remote\..*\.(url|pushurl)$"
    keys = answer(repository, "config", "-z", "--name-only", "--get-regexp", pattern).split("\0")
    return frozenset(key.removeprefix("remote.").rpartition(".")[0] for key in keys if key)


def _clear_abandoned(repository: Repository) -> None:
    """Delete the names that killed processes left: they would keep old vectors alive."""
    for ref in answer(repository, "for-each-ref", "--format=%(refname)", INCOMING).split():
        number = ref.removeprefix(INCOMING)
        if not number.isascii() or not number.isdigit() or not _is_running(int(number)):
            delete_ref(repository, ref)


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True

"""Moving the vectors between copies of a git repository, by git itself.

These are the only calls of git that may use a network, and the only ones that heed what the user's configuration says
of it (credential helpers, ``core.sshCommand``, ``url.*.insteadOf``), as ``git fetch`` and ``git push`` do. Hooks stay
off. On a terminal git asks for passwords there; elsewhere it must not wait for an answer that nobody can give.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass

from outcrop.errors import StoreError, UsageError
from outcrop.git_process import Repository, command, environment, first_line, start
from outcrop.transfer.git_ref import REF, remove, resolve

SECONDS = 3600.0
"""How long one transfer may take."""

SECONDS_TO_ANSWER = 60.0
"""How long a remote may take to say what it has, when no person is there who may have to type a password first."""

SECONDS_SILENT = "60"
"""After as long without a byte, an HTTP connection is given up."""

_NOT_HERE = ("GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER", "GIT_TERMINAL_PROMPT", "GIT_NO_LAZY_FETCH")
_RACE = (b"(stale info)", b"(fetch first)", b"cannot lock ref", b"failed to update ref")
_PASSWORD = re.compile(r"://[^/@\s]*@")
_NO_LOGIN = re.compile(
    r"Authentication failed|could not read (Username|Password)|Permission denied|Invalid username|terminal prompts"
    r"|returned error: 40[13]|Host key verification failed",
    re.IGNORECASE,
)


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
    """The remote that is meant: the one named, else ``origin``, else the only one.

    Raises:
        UsageError: There is none, or there are several and none is called ``origin``.
    """
    if remote is not None:
        if not remote or remote.startswith("-"):
            raise UsageError(f"{remote!r} is no remote", "Name a remote that git remote shows, or an address")
        return remote
    known = _remotes(repository)
    if "origin" in known:
        return "origin"
    if len(known) == 1:
        return next(iter(known))
    raise UsageError(
        "there is no remote called origin" if known else "this repository has no remote",
        f"Name one: {', '.join(known)}" if known else "Name an address, or add one: git remote add origin ADDRESS",
    )


def name_of(repository: Repository, remote: str) -> str | None:
    """Under which name a remote's branches are followed here; None where they are not."""
    known = _remotes(repository)
    if remote in known:
        return remote
    return next((name for name, addresses in known.items() if remote in addresses), None)


def ask(repository: Repository, remote: str) -> Advertised:
    """Ask a remote which branches it has, and whether it has vectors.

    Raises:
        StoreError: It cannot be reached.
    """
    output = _run(
        repository,
        ("ls-remote", "--refs", remote, "refs/heads/*", REF),
        f"reach {shown(remote)}",
        SECONDS if _is_watched() else SECONDS_TO_ANSWER,
    )
    found: dict[str, str] = {}
    for line in output.decode("utf-8", "surrogateescape").splitlines():
        id, _, ref = line.partition("\t")
        found[ref] = id
    vectors = found.pop(REF, None)
    return Advertised({ref.removeprefix("refs/heads/"): id for ref, id in found.items()}, vectors)


def fetch(repository: Repository, remote: str) -> str:
    """Bring a remote's vectors into this repository, under no name of ours.

    Returns:
        The commit that holds them.

    Raises:
        StoreError: They cannot be fetched.
    """
    incoming = f"refs/outcrop/incoming/{os.getpid()}"
    # Blobs that a partial clone leaves out are what is wanted here.
    partial = ("--no-filter",) if repository.is_partial() else ()
    refspec = f"+{REF}:{incoming}"
    plain = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", *partial)
    what = f"fetch the vectors of {shown(remote)}"
    try:
        _run(repository, ("fetch", *plain, remote, refspec), what, SECONDS)
        commit = resolve(repository, incoming)
        if commit is None:
            raise StoreError(f"what {shown(remote)} has as {REF} is not a commit", f"Delete it there: {REF}")
        if partial and any(line.startswith("?") for line in _missing(repository, commit)):
            # A plain git fetch left them out before, and git does not ask twice for what it takes to be here.
            _run(repository, ("fetch", "--refetch", *plain, remote, refspec), what, SECONDS)
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

    Raises:
        StoreError: The remote cannot be reached, or refuses.
    """
    lease = f"--force-with-lease={REF}:{expected or ''}"
    # Deltas between vectors save nothing and cost minutes.
    arguments = ("-c", "pack.window=0", "push", "--porcelain", "--no-verify", "--no-signed", lease)
    try:
        _run(repository, (*arguments, remote, f"{commit}:{REF}"), f"push to {shown(remote)}", SECONDS)
    except _LostRace:
        return False
    return True


def shown(remote: str) -> str:
    """A remote as it may be shown: without a password."""
    return _PASSWORD.sub("://", remote)


class _LostRace(Exception):
    """The remote's ref is not what it was."""


def _remotes(repository: Repository) -> dict[str, list[str]]:
    """The addresses of each remote, by its name."""
    output, _ = start(repository, "config", "-z", "--get-regexp", r"^remote\..*\.(url|pushurl)$").communicate()
    found: dict[str, list[str]] = {}
    for record in output.decode("utf-8", "surrogateescape").split("\0"):
        key, _, address = record.partition("\n")
        if key:
            found.setdefault(key.removeprefix("remote.").rpartition(".")[0], []).append(address)
    return found


def _missing(repository: Repository, commit: str) -> list[str]:
    process = start(repository, "rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print", commit)
    return process.communicate()[0].decode().splitlines()


def _is_watched() -> bool:
    """Whether a person is there who can be asked."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def _environment(watched: bool) -> dict[str, str]:
    """As for every git, but with the network, and with what the user says of it."""
    variables = {name: value for name, value in environment().items() if name not in _NOT_HERE}
    variables |= {name: os.environ[name] for name in _NOT_HERE if name in os.environ}
    if not watched:
        variables["GIT_TERMINAL_PROMPT"] = "0"
    variables.setdefault("GIT_HTTP_LOW_SPEED_LIMIT", "1")
    variables.setdefault("GIT_HTTP_LOW_SPEED_TIME", SECONDS_SILENT)
    return variables


def _run(repository: Repository, arguments: tuple[str, ...], what: str, seconds: float) -> bytes:
    watched = _is_watched()
    place = [f"--git-dir={repository.git_dir}"]
    if not repository.bare:
        place.append(f"--work-tree={repository.top}")
    process = subprocess.Popen(
        command(repository.top, *place, "-c", "core.logAllRefUpdates=false", *arguments),
        env=_environment(watched),
        stdin=None if watched else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Away from the terminal, so that neither git nor ssh can find one to ask at.
        start_new_session=not watched,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise StoreError(
            f"git could not {what} within {seconds:.0f} s", "Check the connection, or try it with git itself"
        ) from error
    finally:
        if process.poll() is None:
            _stop(process, alone=watched)
    if not process.returncode:
        return output
    if any(words in output for words in _RACE):
        raise _LostRace
    raise _explain(what, shown(_reason(output, errors)))


def _stop(process: subprocess.Popen[bytes], alone: bool) -> None:
    """End git, and what it started (ssh, a helper for HTTP) where that has a group of its own."""
    with contextlib.suppress(OSError):
        if alone:
            process.terminate()
        else:
            os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5.0)
    process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _reason(output: bytes, errors: bytes) -> str:
    """Why git failed: what the remote said of our ref, else what git says."""
    rejected = [line for line in output.decode("utf-8", "replace").splitlines() if line.startswith("!")]
    if rejected:
        return rejected[0].rpartition("\t")[2]
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if _NO_LOGIN.search(line)]
    return telling[0].strip() if telling else first_line(errors)


def _explain(what: str, reason: str) -> StoreError:
    words = f"git could not {what} ({reason[:300]})"
    if _NO_LOGIN.search(reason):
        return StoreError(words, "Log in as for git push: a credential helper, an ssh agent, or run it on a terminal")
    return StoreError(words, "Try it with git itself: git ls-remote")

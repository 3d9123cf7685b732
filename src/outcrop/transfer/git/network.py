"""The calls of git that may use a network: how they ask for passwords, how long they may take, and why they failed.

They heed what the user's configuration says of the network (credential helpers, ``core.sshCommand``,
``url.*.insteadOf``), as ``git fetch`` and ``git push`` do. Hooks stay off. On a terminal git asks for passwords there;
elsewhere it must not wait for an answer that nobody can give.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO

from outcrop.errors import StoreError
from outcrop.vcs.git import Repository, command, environment, first_line

# How long one transfer may take.
SECONDS = 3600.0

# How long a remote may take to say what it has, when no person is there who may have to type a password first.
SECONDS_TO_ANSWER = 60.0

# After as long without a byte, an HTTP connection is given up.
SECONDS_SILENT = "60"

# How long git may take to end when it is told to.
SECONDS_TO_END = 5.0

NOTHING: Mapping[str, str] = {}

_NOT_HERE = ("GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER", "GIT_TERMINAL_PROMPT", "GIT_NO_LAZY_FETCH")
_RACE = (b"(stale info)", b"(fetch first)", b"cannot lock ref", b"failed to update ref")
_PROGRESS = re.compile(rb"(?:Writing|Receiving|Compressing|Resolving) [a-z]+: +\d+% \(\d+/\d+\)[ -~]{0,40}")
_PASSWORD = re.compile(r"://[^/@\s]*@")
_NO_LOGIN = re.compile(
    r"Authentication failed|could not read (Username|Password)|Permission denied|Invalid username|terminal prompts"
    r"|returned error: 40[13]|Host key verification failed",
    re.IGNORECASE,
)


class LostRace(Exception):
    """The remote's ref is not what it was."""


def shown(remote: str) -> str:
    """A remote as it may be shown: without a password."""
    return _PASSWORD.sub("://", remote)


def is_watched() -> bool:
    """Whether a person is there who can be asked."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def progress_switch() -> tuple[str, ...]:
    """What makes git say how far it is."""
    return ("--progress",) if is_watched() else ()


def _environment(watched: bool) -> dict[str, str]:
    """As for every git, but with the network, and with what the user says of it."""
    variables = {name: value for name, value in environment().items() if name not in _NOT_HERE}
    variables |= {name: os.environ[name] for name in _NOT_HERE if name in os.environ}
    if not watched:
        variables["GIT_TERMINAL_PROMPT"] = "0"
    variables.setdefault("GIT_HTTP_LOW_SPEED_LIMIT", "1")
    variables.setdefault("GIT_HTTP_LOW_SPEED_TIME", SECONDS_SILENT)
    return variables


def run(
    repository: Repository, arguments: tuple[str, ...], what: str, seconds: float, more: Mapping[str, str] = NOTHING
) -> bytes:
    """Run git where it may use a network.

    Args:
        repository: In which repository.
        arguments: The command and what follows it.
        what: What it is for, in words.
        seconds: How long it may take.
        more: Further variables.

    Returns:
        What it says.
    """
    watched = is_watched()
    place = [f"--git-dir={repository.git_dir}"]
    if not repository.bare:
        place.append(f"--work-tree={repository.top}")
    place += ["-c", "core.logAllRefUpdates=false", "-c", "advice.graftFileDeprecated=false"]
    process = subprocess.Popen(
        command(repository.top, *place, *arguments),
        env=_environment(watched) | dict(more),
        stdin=None if watched else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Away from the terminal, so that neither git nor ssh can find one to ask at.
        start_new_session=not watched,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said, complained = bytearray(), bytearray()
    readers = [
        threading.Thread(target=_read, args=(process.stdout, said, False), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, complained, watched), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise StoreError(
            f"git could not {what} within {seconds:g} s", "Check the connection, or try it with git itself"
        ) from error
    finally:
        if process.poll() is None:
            _stop(process, alone=watched)
        for reader in readers:
            reader.join(SECONDS_TO_END)
    output, errors = bytes(said), bytes(complained)
    if not process.returncode:
        return output
    if any(words in output for words in _RACE):
        raise LostRace
    raise _explain(what, shown(_reason(output, errors)))


def _read(stream: IO[bytes], kept: bytearray, show: bool) -> None:
    """Keep what git says, and let a person see how far it is."""
    shown_one = False
    with stream:
        while data := os.read(stream.fileno(), 4096):
            kept += data
            found = _PROGRESS.findall(data) if show else ()
            if found:
                shown_one = True
                sys.stderr.write(f"\r{found[-1].decode():<72}")
                sys.stderr.flush()
    if shown_one:
        sys.stderr.write(f"\r{'':72}\r")
        sys.stderr.flush()


def _stop(process: subprocess.Popen[bytes], alone: bool) -> None:
    """End git, and what it started (ssh, a helper for HTTP) where that has a group of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            if alone:
                process.send_signal(number)
            else:
                os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)


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

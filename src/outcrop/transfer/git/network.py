"""The calls of git that may use a network: how they ask for passwords, how long they may take, and why they failed.

They follow the user's configuration of the network (credential helpers, ``core.sshCommand``, ``url.*.insteadOf``), as
``git fetch`` and ``git push`` do; a repository whose own configuration names programs for it is refused. Hooks stay
off. On a terminal git asks for passwords there; elsewhere it must not wait for an answer.
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
from outcrop.vcs.git import Repository, git_command, git_complaint, git_environment, hide_password
from outcrop.vcs.git_config import network_transports

# How long one transfer may take.
TRANSFER_TIMEOUT = 3600.0

# How long a remote may take to list its refs, when no person is there who may have to type a password first.
ANSWER_TIMEOUT = 60.0

# After as long without a byte, git gives up an HTTP connection.
SILENCE_TIMEOUT = "60"

# How long git may take to end after a signal.
STOP_TIMEOUT = 5.0

_USERS = ("GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER", "GIT_TERMINAL_PROMPT", "GIT_NO_LAZY_FETCH")
_RACE = (b"(stale info)", b"(fetch first)", b"cannot lock ref", b"failed to update ref")
_PROGRESS = re.compile(rb"(?:Writing|Receiving|Compressing|Resolving) [a-z]+: +\d+% \(\d+/\d+\)[ -~]{0,40}")
_NO_LOGIN = re.compile(
    r"Authentication failed|could not read (Username|Password)|Permission denied|Invalid username|terminal prompts"
    r"|returned error: 40[13]|Host key verification failed",
    re.IGNORECASE,
)

_NO_TRANSPORT = re.compile(r"transport '.*' not allowed")


class LostRace(Exception):
    """The remote's ref is not what it was."""


def is_interactive() -> bool:
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def _environment(interactive: bool, transports: str) -> dict[str, str]:
    """As for every git, but with the network, and with the user's own settings of it."""
    variables = {name: value for name, value in git_environment().items() if name not in _USERS}
    variables["GIT_ALLOW_PROTOCOL"] = transports
    variables |= {name: os.environ[name] for name in _USERS if name in os.environ}
    if not interactive:
        variables["GIT_TERMINAL_PROMPT"] = "0"
    variables.setdefault("GIT_HTTP_LOW_SPEED_LIMIT", "1")
    variables.setdefault("GIT_HTTP_LOW_SPEED_TIME", SILENCE_TIMEOUT)
    return variables


def run(
    repository: Repository,
    arguments: tuple[str, ...],
    what: str,
    timeout: float = TRANSFER_TIMEOUT,
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """Run git where it may use a network, and return its output; ``what`` it does is for messages."""
    interactive = is_interactive()
    transports = network_transports(repository)
    place = [f"--git-dir={repository.git_dir}"]
    if not repository.bare:
        place.append(f"--work-tree={repository.top}")
    place += ["-c", "core.logAllRefUpdates=false", "-c", "advice.graftFileDeprecated=false"]
    process = subprocess.Popen(
        git_command(repository.top, *place, *arguments),
        env=_environment(interactive, transports) | dict(variables or {}),
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Away from the terminal, so that neither git nor ssh can find one to ask at.
        start_new_session=not interactive,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    kept, kept_errors = bytearray(), bytearray()
    readers = [
        threading.Thread(target=_read, args=(process.stdout, kept, False), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, kept_errors, interactive), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired as error:
        raise StoreError(
            f"git could not {what} within {timeout:g} s", "Check the connection, or try it with git itself"
        ) from error
    finally:
        if process.poll() is None:
            _stop(process, alone=interactive)
        for reader in readers:
            reader.join(STOP_TIMEOUT)
    output, errors = bytes(kept), bytes(kept_errors)
    if not process.returncode:
        return output
    if any(words in output for words in _RACE):
        raise LostRace
    reason = hide_password(_reason(output, errors))
    fix = "Try it with git itself: git ls-remote"
    if _NO_TRANSPORT.search(reason):
        fix = "To allow a transport that is not git's own: git config --global protocol.NAME.allow always"
    if _NO_LOGIN.search(reason):
        fix = "Log in as for git push: a credential helper, an ssh agent, or run it on a terminal"
    raise StoreError(f"git could not {what} ({reason[:300]})", fix)


def _read(stream: IO[bytes], kept: bytearray, show: bool) -> None:
    has_shown = False
    with stream:
        while data := os.read(stream.fileno(), 4096):
            kept += data
            found = _PROGRESS.findall(data) if show else ()
            if found:
                has_shown = True
                sys.stderr.write(f"\r{found[-1].decode():<72}")
                sys.stderr.flush()
    if has_shown:
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
            process.wait(STOP_TIMEOUT)


def _reason(output: bytes, errors: bytes) -> str:
    """Why git failed: what the remote said of our ref, else what git says."""
    rejected = [line for line in output.decode("utf-8", "replace").splitlines() if line.startswith("!")]
    if rejected:
        return rejected[0].rpartition("\t")[2]
    found = [line for line in errors.decode("utf-8", "replace").splitlines() if _NO_LOGIN.search(line)]
    return found[0].strip() if found else git_complaint(errors)

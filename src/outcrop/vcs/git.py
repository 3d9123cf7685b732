"""The real ``git``, run so that nothing in the repository can make it execute anything or reach for the network.

A repository is untrusted: its configuration may name programs (``core.fsmonitor``, filters, hooks, lazy transports),
and ``git status`` alone would start some of them. Every command runs with these switched off, without locks, prompts,
replacement objects or translated messages, and without the variables that git sets for its own hooks, so that a hook
can call Outcrop.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcrop.core.protocols import override
from outcrop.errors import SourceError
from outcrop.text.files import read_regular, walk

_DROPPED = frozenset(
    """
    GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_INDEX_VERSION GIT_PREFIX GIT_COMMON_DIR GIT_OBJECT_DIRECTORY
    GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_GRAFT_FILE GIT_SHALLOW_FILE GIT_NAMESPACE GIT_REPLACE_REF_BASE
    GIT_EXTERNAL_DIFF GIT_INTERNAL_SUPER_PREFIX GIT_IMPLICIT_WORK_TREE GIT_QUARANTINE_PATH
    GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS
    """.split()
)
_SET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    # Versions before 2.44 know no GIT_NO_LAZY_FETCH; without an allowed transport their fetch fails at once.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
    "LANGUAGE": "",
}
_SWITCHES = ("-c", "core.fsmonitor=", "-c", f"core.hooksPath={os.devnull}")
_PASSWORD = re.compile(r"://[^/@\s]*@")
# Seconds after which a git that still runs is suspected to wait for a pipe.
PIPE_TIMEOUT = 5.0

# What git reads of a working tree for itself.
_RULE_FILES = frozenset({".git", ".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})

# Bytes of a configuration or of another file of git's own that is read here.
MAX_FILE_BYTES = 16 << 20

# Requests sent ahead to ``cat-file``: few enough to fit the smallest pipe buffer (4 KiB), so that neither side blocks.
_WINDOW = 48


@dataclass(frozen=True, slots=True)
class Repository:
    """Where the parts of one repository are.

    Attributes:
        top: Root of the working tree; of a bare repository the repository itself.
        git_dir: This working tree's own part.
        common_dir: What all working trees share.
        object_format: ``sha1`` or ``sha256``.
    """

    top: Path
    git_dir: Path
    common_dir: Path
    bare: bool
    object_format: str

    def config(self) -> bytes:
        """The text of the repository's own configuration, without the files that it includes."""
        found = []
        for path in (self.common_dir / "config", self.git_dir / "config.worktree"):
            try:
                found.append(read_regular(path, MAX_FILE_BYTES))
            except OSError:
                continue
        return b"\n".join(found)

    def is_partial(self) -> bool:
        """Whether some objects may be only at the remote."""
        return b"promisor" in self.config().lower()


class GitProcess(subprocess.Popen[bytes]):
    """A git that is ended, with a ``SourceError``, where it waits for a pipe in place of one of its own files.

    Git opens these files whatever they are, and a pipe that no process writes to has no end.
    """

    def __init__(self, command: Sequence[str], folders: Collection[Path], **named: Any) -> None:
        self._folders = folders
        self._pipe: Path | None = None
        super().__init__(command, **named)
        self._watchdog = threading.Timer(PIPE_TIMEOUT, self._end_if_blocked)
        self._watchdog.daemon = True
        self._watchdog.start()

    @override
    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        self._watchdog.cancel()
        if self._pipe is not None:
            raise SourceError(f"{self._pipe} is a pipe or a device, where git expects a file", "Delete it")
        return code

    def discard(self) -> None:
        """End it, whatever it is doing and for whatever reason."""
        self._watchdog.cancel()
        self.kill()
        self._pipe = None
        self.communicate()

    def _end_if_blocked(self) -> None:
        self._pipe = next((path for folder in self._folders for path in _special_files(folder)), None)
        if self._pipe is not None:
            self.kill()


def _special_files(top: Path) -> Iterator[Path]:
    """Pipes and devices among what git reads for itself in a folder: all of a repository, a few names elsewhere."""
    is_repository = (top / "HEAD").exists() and (top / "objects").exists()
    for entry in walk(top):
        if is_repository or entry.name in _RULE_FILES or ".git" in Path(entry.path).parts:
            try:
                mode = entry.stat().st_mode
            except OSError:
                continue
            if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                yield Path(entry.path)


def run_git(folder: Path, *arguments: str) -> tuple[bytes, bytes]:
    """Output and complaints of git in a folder, whatever repository that is in; both also where it fails."""
    process = GitProcess(
        git_command(folder, *arguments),
        (folder, *(above / ".git" for above in folder.parents)),
        env=git_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return process.communicate()


def git_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _DROPPED} | _SET


def git_command(folder: Path, *arguments: str) -> list[str]:
    return ["git", "-C", str(folder), "--no-pager", *_SWITCHES, *arguments]


def start_git(
    repository: Repository,
    *arguments: str,
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.PIPE,
    variables: Mapping[str, str] | None = None,
) -> GitProcess:
    """Start git in a repository; its output is piped."""
    # With both named, git neither searches the folders above nor obeys core.worktree.
    where = [f"--git-dir={repository.git_dir}"]
    if not repository.bare:
        where.append(f"--work-tree={repository.top}")
    return GitProcess(
        git_command(repository.top, *where, *arguments),
        # Objects alone are read without a look at the working tree, which may take long.
        {repository.git_dir, repository.common_dir, *(() if "cat-file" in arguments else (repository.top,))},
        env=git_environment() | dict(variables or {}),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def git_output(process: subprocess.Popen[bytes], what: str) -> bytes:
    """The output of a started git; ``what`` completes the message "git cannot …"."""
    output, errors = process.communicate()
    if process.returncode:
        raise SourceError(f"git cannot {what}: {git_complaint(errors)}")
    return output


def answer(repository: Repository, *arguments: str) -> str:
    """What git prints, without white space around it, also where it fails."""
    output, _ = start_git(repository, *arguments).communicate()
    return os.fsdecode(output).strip()


def find_commit(repository: Repository, name: str) -> str | None:
    """The full id of the commit that a name means, or None where it is none, or not in this clone."""
    return answer(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") or None


def hide_password(address: str) -> str:
    """A remote, or a text that names one, as it may be shown."""
    return _PASSWORD.sub("://", address)


def git_complaint(errors: bytes) -> str:
    """git's own first line of complaint."""
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (fatal or lines or ["no reason given"])[0].removeprefix("fatal: ").removeprefix("error: ")


def blob_id(data: bytes, object_format: str) -> str:
    """The object id of a blob; ``object_format`` is ``sha1`` or ``sha256``."""
    hasher = hashlib.new(object_format, b"blob %d\0" % len(data), usedforsecurity=False)
    hasher.update(data)
    return hasher.hexdigest()


def missing_objects(repository: Repository, commit: str) -> frozenset[str]:
    """Objects of a commit that a partial clone does not have; reading one of them would start a fetch."""
    process = start_git(
        repository, "rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print", commit
    )
    output, _ = process.communicate()
    return frozenset(line[1:].decode() for line in output.splitlines() if line.startswith(b"?"))


def blob_sizes(repository: Repository, names: Sequence[str]) -> dict[str, int]:
    """Bytes by blob id; ids that are unknown, or of other objects, are missing."""
    process = start_git(repository, "cat-file", "--batch-check", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output, _ = process.communicate("".join(f"{name}\n" for name in names).encode())
    found = {}
    for line in output.splitlines():
        parts = line.split(b" ")
        if len(parts) == 3 and parts[1] == b"blob":
            found[parts[0].decode()] = int(parts[2])
    return found


def stream_blobs(repository: Repository, names: Sequence[str]) -> Iterator[bytes | None]:
    """The bytes of each blob, in order; None for one that cannot be read."""
    done = 0
    while done < len(names):
        for data in _stream(repository, names[done:]):
            done += 1
            yield data
        # git exits at a damaged object; another one reads the rest.
        if done < len(names):
            done += 1
            yield None


def read_blobs(
    repository: Repository, wanted: Sequence[tuple[str, int]], missing: frozenset[str]
) -> Iterator[bytes | int | None]:
    """Per blob and the most bytes that it may have: its bytes; its size if it is larger; None if it cannot be read.

    A partial clone does not have the ``missing`` ones, and is not asked for them.
    """
    known = blob_sizes(repository, [name for name, _ in wanted if name not in missing])
    found = stream_blobs(repository, [name for name, limit in wanted if known.get(name, limit + 1) <= limit])
    for name, limit in wanted:
        size = known.get(name)
        yield next(found) if size is not None and size <= limit else size


def _stream(repository: Repository, names: Sequence[str]) -> Iterator[bytes | None]:
    """As :func:`stream_blobs`, ending early when git does."""
    process = start_git(repository, "cat-file", "--batch", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for answered in range(len(names)):
            if answered % _WINDOW == 0:
                ahead = names[answered : answered + _WINDOW]
                process.stdin.write("".join(f"{name}\n" for name in ahead).encode())
                process.stdin.flush()
            header = process.stdout.readline().split()
            if not header:
                process.wait()
                return
            if len(header) != 3:
                yield None
                continue
            size = int(header[2])
            data = process.stdout.read(size + 1)
            if len(data) != size + 1:
                return
            yield data[:-1] if header[1] == b"blob" else None
    except BrokenPipeError:
        return
    finally:
        process.discard()

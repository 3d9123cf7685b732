"""The real ``git``, run so that nothing in the repository can make it execute anything or reach for the network.

A repository is somebody else's: its configuration may name programs (``core.fsmonitor``, filters, hooks, transports for
a lazy fetch), and ``git status`` alone would start some of them. Every command here runs with these switched off,
without locks, prompts, replacement objects or a translated message, and away from the variables that git sets for its
own hooks, so that Outcrop can be called from one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from outcrop.errors import NotARepository, SourceError

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
_SWITCHES = (
    *("-c", "core.fsmonitor="),
    *("-c", f"core.hooksPath={os.devnull}"),
)
_WINDOW = 48
"""Requests sent ahead to ``cat-file``: few enough to fit the smallest pipe buffer (4 KiB), so that nobody waits."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Where the parts of one repository are.

    Attributes:
        top: Root of the working tree; for a bare repository the repository itself.
        git_dir: This working tree's own part.
        common_dir: What all working trees share.
        bare: Whether there is no working tree.
        object_format: ``sha1`` or ``sha256``.
    """

    top: Path
    git_dir: Path
    common_dir: Path
    bare: bool
    object_format: str

    def config(self) -> bytes:
        """The repository's own settings, lower case, to look for words in."""
        found = []
        for path in (self.common_dir / "config", self.git_dir / "config.worktree"):
            try:
                found.append(path.read_bytes().lower())
            except OSError:
                continue
        return b"\n".join(found)

    def is_partial(self) -> bool:
        """Whether some objects may have been left at the remote."""
        return b"promisor" in self.config()


def environment() -> dict[str, str]:
    """The variables that every git runs with."""
    return {name: value for name, value in os.environ.items() if name not in _DROPPED} | _SET


def command(folder: Path, *arguments: str) -> list[str]:
    """A full command line."""
    return ["git", "-C", str(folder), "--no-pager", *_SWITCHES, *arguments]


def start(
    repository: Repository, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start git in a repository; its output is piped.

    The repository is named outright, so that git neither looks for another one above nor heeds ``core.worktree``.
    """
    where = [f"--git-dir={repository.git_dir}"]
    if not repository.bare:
        where.append(f"--work-tree={repository.top}")
    return subprocess.Popen(
        command(repository.top, *where, *arguments),
        env=environment(),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def filters_off(repository: Repository) -> list[str]:
    """Switches against the filters (programs that rewrite content) which the repository's own configuration defines.

    The file is looked at first, because hardly any defines one and asking git costs half as much as the listing.
    """
    config = repository.config()
    if b"filter" not in config and b"include" not in config:
        return []
    pattern = r"^filter\..*\.(clean|smudge|process)$"
    asked, _ = start(repository, "config", "-z", "--name-only", "--get-regexp", pattern).communicate()
    keys = asked.decode("utf-8", "surrogateescape").split("\0")
    switches = []
    for name in sorted({key.removeprefix("filter.").rpartition(".")[0] for key in keys if key}):
        for value in ("clean=", "smudge=", "process=", "required=false"):
            switches += ["-c", f"filter.{name}.{value}"]
    return switches


def finish(process: subprocess.Popen[bytes], what: str) -> bytes:
    """The output of a started git.

    Raises:
        SourceError: It failed.
    """
    output, errors = process.communicate()
    if process.returncode:
        raise SourceError(f"git cannot {what}: {first_line(errors)}")
    return output


def first_line(errors: bytes) -> str:
    """What git complained of."""
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (fatal or lines or ["no reason given"])[0].removeprefix("fatal: ").removeprefix("error: ")


def discover(path: Path) -> Repository | None:
    """The repository that encloses a path, or None where there is none.

    Raises:
        SourceError: There is one and it cannot be used: git is missing, the owner is another user, it is damaged, or
            the path lies inside the ``.git`` folder.
    """
    folder = path if path.is_dir() else path.parent
    if not any((parent / ".git").exists() or _looks_bare(parent) for parent in (folder, *folder.parents)):
        return None
    asked = ("--is-bare-repository", "--is-inside-work-tree", "--show-object-format")
    places = ("--absolute-git-dir", "--git-common-dir", "--show-toplevel")
    lines, errors = _rev_parse(folder, *asked, *places)
    if len(lines) < len(asked):
        _raise_refusal(folder, errors)
        return None
    bare = lines[0] == b"true"
    if not bare and lines[1] != b"true":
        raise SourceError(f"{folder} is not inside the working tree of its git repository", "Name the working tree")
    wanted = places[:2] if bare else places
    found = lines[len(asked) :]
    if len(found) != len(wanted):
        # A newline in a folder's name. Each place alone, then, is all of the output.
        found = [b"\n".join(_rev_parse(folder, place)[0]) for place in wanted]
    git_dir, common_dir, *top = (Path(os.fsdecode(line)) for line in found)
    if top and not (top[0] / ".git").exists():
        raise SourceError(
            f"The git repository at {git_dir} has its working tree somewhere else, at {top[0]} (core.worktree)",
            "Outcrop indexes a working tree only from its own folder",
        )
    return Repository(
        top=top[0] if top else git_dir,
        git_dir=git_dir,
        common_dir=(folder / common_dir).resolve(),
        bare=bare,
        object_format=os.fsdecode(lines[2]),
    )


def is_ignored(repository: Repository, folder: Path) -> bool:
    """Whether a repository keeps a folder of its working tree out, so that asking for the folder means the folder."""
    top = repository.top.resolve()
    if repository.bare or folder == top or not folder.is_relative_to(top):
        return False
    process = start(repository, "check-ignore", "--quiet", "--", str(folder.relative_to(top)))
    process.communicate()
    return process.returncode == 0


def submodule(top: Path, object_format: str) -> Repository | None:
    """The repository checked out at ``top``, found without asking git; None when nothing is checked out there."""
    marker = top / ".git"
    try:
        if marker.is_dir():
            git_dir = marker
        else:
            text = marker.read_text("utf-8", "surrogateescape")
            if not text.startswith("gitdir: "):
                return None
            git_dir = (top / text.removeprefix("gitdir: ").rstrip("\r\n")).resolve()
        if not (git_dir / "HEAD").exists():
            return None
        common = git_dir / "commondir"
        common_dir = (git_dir / common.read_text("utf-8").strip()).resolve() if common.exists() else git_dir
    except OSError:
        return None
    found = Repository(top, git_dir, common_dir, False, object_format)
    config = found.config()
    if b"objectformat" in config:
        object_format = "sha256" if b"sha256" in config else "sha1"
    return Repository(top, git_dir, common_dir, False, object_format)


def _looks_bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _rev_parse(folder: Path, *arguments: str) -> tuple[list[bytes], bytes]:
    try:
        answer = subprocess.run(
            command(folder, "rev-parse", *arguments), env=environment(), capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise SourceError(
            "This is a git repository and the git program is not installed",
            "Install git and make sure it is on the PATH",
        ) from error
    return answer.stdout.removesuffix(b"\n").split(b"\n") if answer.stdout else [], answer.stderr


def _raise_refusal(folder: Path, errors: bytes) -> None:
    """Say why git refuses a repository. Returns where there is none after all."""
    reason = first_line(errors)
    if "dubious ownership" in reason or "unsafe repository" in reason:
        raise SourceError(
            f"git does not trust the repository at {folder}, because another user owns it",
            f"If you trust it: git config --global --add safe.directory '{folder}'",
        )
    if reason.startswith("not a git repository (or any"):
        return
    if reason.startswith(("not a git repository", "invalid gitfile")):
        raise NotARepository(
            f"{folder} points to a git repository that is not there: {reason}",
            "If the repository was moved, run git worktree repair there; if it is gone, delete the .git file",
        )
    raise SourceError(f"git cannot use the repository at {folder}: {reason}")


def blob_id(data: bytes, object_format: str) -> str:
    """The name that git gives to these bytes.

    Args:
        data: The content as it would be stored.
        object_format: ``sha1`` or ``sha256``.
    """
    hasher = hashlib.new(object_format, b"blob %d\0" % len(data), usedforsecurity=False)
    hasher.update(data)
    return hasher.hexdigest()


def absent(repository: Repository, commit: str) -> frozenset[str]:
    """Objects of a commit that a partial clone does not have. Asking for one of them would start a fetch."""
    process = start(repository, "rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print", commit)
    output, _ = process.communicate()
    return frozenset(line[1:].decode() for line in output.splitlines() if line.startswith(b"?"))


def sizes(repository: Repository, names: Sequence[str]) -> dict[str, int]:
    """Bytes per blob; names that are not there, or are no blobs, are missing."""
    process = start(repository, "cat-file", "--batch-check", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output, _ = process.communicate("".join(f"{name}\n" for name in names).encode())
    found = {}
    for line in output.splitlines():
        parts = line.split(b" ")
        if len(parts) == 3 and parts[1] == b"blob":
            found[parts[0].decode()] = int(parts[2])
    return found


def contents(repository: Repository, names: Sequence[str]) -> Iterator[bytes | None]:
    """The bytes of each blob, in order; None for one that cannot be read.

    git gives up at a damaged object, and is then asked anew for the rest.
    """
    done = 0
    while done < len(names):
        for data in _stream(repository, names[done:]):
            done += 1
            yield data
        if done < len(names):
            done += 1
            yield None


def _stream(repository: Repository, names: Sequence[str]) -> Iterator[bytes | None]:
    """As :func:`contents`, ending early when git does."""
    process = start(repository, "cat-file", "--batch", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
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
        process.kill()
        process.communicate()

"""Finding git repositories, and what their configuration would run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from outcrop.errors import NotARepository, SourceError
from outcrop.vcs.git import Repository, git_command, git_complaint, git_environment, start_git


def filter_switches(repository: Repository) -> list[str]:
    """Switches against the filters (programs that rewrite content) which the repository's own configuration defines."""
    # Few repositories define one, and to ask git costs half as much as the listing.
    config = repository.config()
    if b"filter" not in config and b"include" not in config:
        return []
    pattern = r"^filter\..*\.(clean|smudge|process)$"
    output, _ = start_git(repository, "config", "-z", "--name-only", "--get-regexp", pattern).communicate()
    keys = output.decode("utf-8", "surrogateescape").split("\0")
    switches = []
    for name in sorted({key.removeprefix("filter.").rpartition(".")[0] for key in keys if key}):
        for value in ("clean=", "smudge=", "process=", "required=false"):
            switches += ["-c", f"filter.{name}.{value}"]
    return switches


def find_repository(path: Path) -> Repository | None:
    """The repository that encloses a path."""
    folder = path if path.is_dir() else path.parent
    if not any((parent / ".git").exists() or _looks_bare(parent) for parent in (folder, *folder.parents)):
        return None
    flags = ("--is-bare-repository", "--is-inside-work-tree", "--show-object-format")
    paths = ("--absolute-git-dir", "--git-common-dir", "--show-toplevel")
    lines, errors = _rev_parse(folder, *flags, *paths)
    if len(lines) < len(flags):
        _raise_refusal(folder, errors)
        return None
    bare = lines[0] == b"true"
    if not bare and lines[1] != b"true":
        raise SourceError(f"{folder} is not inside the working tree of its git repository", "Name the working tree")
    wanted = paths[:2] if bare else paths
    found = lines[len(flags) :]
    if len(found) != len(wanted):
        # A folder's name holds a newline; asked alone, each path is the whole output.
        found = [b"\n".join(_rev_parse(folder, name)[0]) for name in wanted]
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
    """Whether a repository ignores a folder of its working tree."""
    top = repository.top.resolve()
    if repository.bare or folder == top or not folder.is_relative_to(top):
        return False
    process = start_git(repository, "check-ignore", "--quiet", "--", str(folder.relative_to(top)))
    process.communicate()
    return process.returncode == 0


def find_submodule(top: Path, object_format: str) -> Repository | None:
    """The repository checked out at ``top``, found without running git."""
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
    return replace(found, object_format=object_format)


def _looks_bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _rev_parse(folder: Path, *arguments: str) -> tuple[list[bytes], bytes]:
    try:
        answer = subprocess.run(
            git_command(folder, "rev-parse", *arguments), env=git_environment(), capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise SourceError(
            "This is a git repository and the git program is not installed",
            "Install git and make sure it is on the PATH",
        ) from error
    return answer.stdout.removesuffix(b"\n").split(b"\n") if answer.stdout else [], answer.stderr


def _raise_refusal(folder: Path, errors: bytes) -> None:
    """Raise what git's refusal means; return where there is no repository at all."""
    reason = git_complaint(errors)
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

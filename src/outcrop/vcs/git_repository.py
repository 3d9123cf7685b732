"""Finding git repositories."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from outcrop.errors import NotARepository, SourceError
from outcrop.text.files import read_regular, walk
from outcrop.vcs.git import MAX_FILE_BYTES, Repository, git_complaint, run_git, start_git

# A setting of ``core``: no other section that git knows has one of this name.
_WORKTREE = re.compile(rb"^[ \t]*(?:\[core\][ \t]*)?worktree[ \t]*=([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_ESCAPE = re.compile(r"\\(.)")
_LITERAL = ("--literal-pathspecs",)
_MOST_ALTERNATES = 100


def find_repository(path: Path) -> Repository | None:
    """The repository that encloses a path."""
    folder = _place_of_repository(path if path.is_dir() else path.parent)
    if folder is None:
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
    repository = Repository(
        top=top[0] if top else git_dir,
        git_dir=git_dir,
        common_dir=(folder / common_dir).resolve(),
        bare=bare,
        object_format=os.fsdecode(lines[2]),
    )
    if not _belongs_here(repository):
        raise SourceError(
            f"{folder} points to the git repository at {git_dir}, which does not name it as its working tree",
            f"If it is: git worktree repair; without git worktree: git -C '{repository.top}' config core.worktree"
            f" '{repository.top}'",
        )
    _refuse_foreign_parts(repository)
    _refuse_foreign_objects(repository)
    return repository


def _place_of_repository(folder: Path) -> Path | None:
    """The nearest folder around (or at) this one that git may take for a repository's.

    A committed folder that looks like a bare repository is none: its settings are those of whoever committed it.
    """
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return place
        if _looks_bare(place) and not _is_tracked(place):
            return folder
    return None


def _is_tracked(bare: Path) -> bool:
    """Whether a folder that looks like a bare repository is content of a working tree around it."""
    outer = next((above for above in bare.parents if (above / ".git").exists()), None)
    if outer is None or (outer / ".git").samefile(bare):
        return False
    listed = ("ls-files", "-z", "--", str((bare / "HEAD").relative_to(outer)))
    return bool(run_git(outer, *_LITERAL, *listed)[0])


def _belongs_here(repository: Repository) -> bool:
    """Whether a repository takes the working tree that led to it for its own.

    A ``.git`` that is a file or a link, and a ``commondir``, may name the repository of another working tree, whose
    index would be replaced.
    """
    git_dir, common_dir, marker = repository.git_dir, repository.common_dir, repository.top / ".git"
    try:
        if not git_dir.samefile(common_dir):
            linked = line_of(git_dir / "gitdir")
            return git_dir.resolve().parent == common_dir / "worktrees" and (git_dir / linked).samefile(marker)
        if repository.bare:
            return True
        if not _leads_to(marker).samefile(git_dir):
            return False
        if marker.is_dir() and not marker.is_symlink():
            return True
        named = _WORKTREE.findall(repository.config())
        return bool(named) and (git_dir / _unquoted(os.fsdecode(named[-1]))).samefile(repository.top)
    except OSError:
        return False


def _leads_to(marker: Path) -> Path:
    """The repository that a ``.git`` is, or that it names as a file."""
    if marker.is_dir():
        return marker
    return marker.parent / line_of(marker).removeprefix("gitdir: ")


def line_of(file: Path) -> str:
    """The text of a file that names a path."""
    return os.fsdecode(read_regular(file, MAX_FILE_BYTES)).rstrip("\r\n")


def _unquoted(value: str) -> str:
    """A value of a configuration file as git reads it."""
    return _ESCAPE.sub(r"\1", value.strip().removeprefix('"').removesuffix('"'))


def _refuse_foreign_parts(repository: Repository) -> None:
    """Refuse a repository of which a part is a link to somewhere else: it would show what another repository holds.

    git itself links only within a repository.
    """
    common = repository.common_dir
    whole = {repository.git_dir, common, common / "info", common / "objects"}
    parts = [path for folder in whole if folder.is_dir() for path in folder.iterdir()]
    parts += [Path(entry.path) for entry in walk(common / "refs") if entry.is_symlink()]
    inside = (common.resolve(), repository.git_dir.resolve())
    for path in parts:
        # Hooks never run, and the place of the index is looked at before it is used.
        if (
            path.is_symlink()
            and path.name not in ("hooks", "outcrop")
            and not any(map(path.resolve().is_relative_to, inside))
        ):
            raise SourceError(
                f"{path} is a link out of the git repository at {repository.git_dir}, to {path.resolve()}",
                "Replace it by what it leads to, or clone that repository",
            )


def _refuse_foreign_objects(repository: Repository) -> None:
    """Refuse a repository that borrows objects from one that another user owns.

    ``git clone --shared`` and ``--reference`` borrow as well, mostly within what one user has. To be read, an object
    has to be named by its full id in a commit of the borrower.
    """
    waiting, seen = [repository.common_dir / "objects"], set[Path]()
    owners: set[int] = {os.geteuid(), 0, waiting[0].stat().st_uid} if hasattr(os, "geteuid") else set()
    while owners and waiting:
        folder = waiting.pop()
        try:
            lines = read_regular(folder / "info" / "alternates", MAX_FILE_BYTES).splitlines()
        except OSError:
            continue
        for line in lines:
            if not line or line.startswith(b"#") or len(seen) > _MOST_ALTERNATES:
                continue
            other = (folder / _unquoted(os.fsdecode(line))).resolve()
            if other in seen or not other.exists():
                continue
            if other.stat().st_uid not in owners:
                raise SourceError(
                    f"the git repository at {repository.git_dir} reads objects from {other}, which another user owns",
                    "Copy them into it: git repack -a -d, then delete objects/info/alternates",
                )
            seen.add(other)
            waiting.append(other)


def is_ignored(repository: Repository, folder: Path) -> bool:
    """Whether a repository ignores a folder of its working tree."""
    top = repository.top.resolve()
    if repository.bare or folder == top or not folder.is_relative_to(top):
        return False
    process = start_git(repository, "check-ignore", "--quiet", "--", str(folder.relative_to(top)))
    process.communicate()
    return process.returncode == 0


def find_submodule(outer: Path, path: str, object_format: str) -> Repository | None:
    """The repository checked out at a path of a working tree, found without running git.

    None where a link on the way, or in place of ``.git``, leads to another repository.
    """
    top = outer / path
    marker = top / ".git"
    try:
        if top.resolve() != outer.resolve().joinpath(*path.split("/")):
            return None
        git_dir = marker if marker.is_dir() else _leads_to(marker).resolve()
        if not (git_dir / "HEAD").exists():
            return None
        common = git_dir / "commondir"
        common_dir = (git_dir / line_of(common).strip()).resolve() if common.exists() else git_dir
    except OSError:
        return None
    found = Repository(top, git_dir, common_dir, False, object_format)
    if not _belongs_here(found):
        return None
    config = found.config().lower()
    if b"objectformat" in config:
        object_format = "sha256" if b"sha256" in config else "sha1"
    return replace(found, object_format=object_format)


def _looks_bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _rev_parse(folder: Path, *arguments: str) -> tuple[list[bytes], bytes]:
    try:
        output, errors = run_git(folder, "rev-parse", *arguments)
    except FileNotFoundError as error:
        raise SourceError(
            "This is a git repository and the git program is not installed",
            "Install git and make sure it is on the PATH",
        ) from error
    return output.removesuffix(b"\n").split(b"\n") if output else [], errors


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

"""One commit of a git repository: listed from its tree, without a working tree."""

from __future__ import annotations

from outcrop.core.model import Skipped, SkipReason
from outcrop.errors import SourceError
from outcrop.sources.file_state import refuse_size
from outcrop.sources.git.snapshot import UNBORN
from outcrop.sources.ignore import PathFilter, Rules, compile_globs, compile_rules
from outcrop.sources.options import Options
from outcrop.sources.paths import IGNORE_FILE, to_text
from outcrop.sources.selection import Collector, Selection
from outcrop.vcs.git import Repository, git_complaint, git_output, start_git, stream_blobs

# Path, mode, name and size (where listed) of one record of ``ls-tree -z``.
_TreeEntry = tuple[bytes, bytes, str, int | None]


def resolve(repository: Repository, rev: str) -> str:
    if rev.startswith("-"):
        raise SourceError(f"{rev} is not the name of a commit", "Name a branch, a tag or a commit id")
    output, errors = start_git(repository, "rev-parse", "--verify", f"{rev}^{{commit}}").communicate()
    if not output.strip():
        raise SourceError(
            f"{rev} is not a commit of the repository at {repository.top}: {git_complaint(errors)}",
            "Name a branch, a tag or a commit id that git log shows",
        )
    return output.decode().strip()


def blobs_by_path(repository: Repository, commit: str) -> dict[str, str]:
    """The object that each path is in a commit, whatever it is."""
    return {to_text(path): name for path, _, name, _ in _entries(repository, commit)}


def collect(repository: Repository, commit: str, options: Options, selection: Selection) -> Collector:
    files = Collector(selection)
    if commit == UNBORN:
        return files
    # Sizes would have to be fetched where blobs are missing.
    entries = _entries(repository, commit, *(() if repository.is_partial() else ("-l",)))
    keep = PathFilter(_rules(repository, entries), compile_globs(options.exclude))
    for name, mode, blob, size in entries:
        special: Skipped | None = None
        if mode == b"160000":
            detail = f"at {blob[:12]}; not entered when a commit is indexed"
            special = Skipped(to_text(name), SkipReason.SUBMODULE, detail)
        elif mode == b"120000":
            special = Skipped(to_text(name), SkipReason.SYMLINK)
        path = files.accept(name, keep, special, refuse_size(to_text(name), size, selection.limit(to_text(name))))
        if path is not None:
            files.add(path, blob, size)
    return files


def _entries(repository: Repository, commit: str, *switches: str) -> list[_TreeEntry]:
    tree = git_output(
        start_git(repository, "ls-tree", "-r", "-z", *switches, "--full-tree", commit), f"list the commit {commit}"
    )
    found: list[_TreeEntry] = []
    for record in filter(None, tree.split(b"\0")):
        meta, _, path = record.partition(b"\t")
        mode, _, name, *size = meta.split()
        found.append((path, mode, name.decode(), int(size[0]) if size and size[0].isdigit() else None))
    return found


def _rules(repository: Repository, entries: list[_TreeEntry]) -> dict[bytes, Rules]:
    """The commit's own ignore files, by folder."""
    files = {
        name.rpartition(b"/")[0]: blob
        for name, mode, blob, _ in entries
        if name.rpartition(b"/")[2] == IGNORE_FILE and mode.startswith(b"100")
    }
    found = zip(files, stream_blobs(repository, list(files.values())), strict=True)
    return {folder: compile_rules(data) for folder, data in found if data is not None}

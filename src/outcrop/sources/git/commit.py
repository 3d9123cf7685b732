"""One commit of a git repository: listed from its tree, without a working tree."""

from __future__ import annotations

from outcrop.core.model import Listing, Ref, Skipped, SkipReason
from outcrop.errors import SourceError
from outcrop.sources.file_state import oversize
from outcrop.sources.git.snapshot import UNBORN
from outcrop.sources.ignore import PathFilter, Rules, compile_globs, compile_rules
from outcrop.sources.options import Options
from outcrop.sources.paths import to_text
from outcrop.sources.selection import IGNORE_FILE, Selection
from outcrop.vcs.git import Repository, contents, finish, first_line, start


def resolve(repository: Repository, rev: str) -> str:
    """The full id of the commit that ``rev`` names."""
    if rev.startswith("-"):
        raise SourceError(f"{rev} is not the name of a commit", "Name a branch, a tag or a commit id")
    output, errors = start(repository, "rev-parse", "--verify", f"{rev}^{{commit}}").communicate()
    if not output.strip():
        raise SourceError(
            f"{rev} is not a commit of the repository at {repository.top}: {first_line(errors)}",
            "Name a branch, a tag or a commit id that git log shows",
        )
    return output.decode().strip()


def head(repository: Repository) -> str:
    """The commit at HEAD, or ``unborn``."""
    output, _ = start(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").communicate()
    return output.decode().strip() or UNBORN


def paths(repository: Repository, commit: str) -> dict[str, str]:
    """The blob that each path is in a commit, whatever it is."""
    tree = finish(start(repository, "ls-tree", "-r", "-z", "--full-tree", commit), f"list the commit {commit}")
    entries = map(_entry, filter(None, tree.split(b"\0")))
    return {to_text(path): hash for path, _, hash, _ in entries}


def artifacts(repository: Repository, commit: str, options: Options, selection: Selection) -> Listing:
    """Everything that the commit's tree holds."""
    if commit == UNBORN:
        return Listing(commit, (), ())
    # Sizes would have to be fetched where blobs are missing.
    long = () if repository.is_partial() else ("-l",)
    tree = finish(start(repository, "ls-tree", "-r", "-z", *long, "--full-tree", commit), f"list the commit {commit}")
    entries = [_entry(record) for record in tree.split(b"\0") if record]
    keep = PathFilter(_rules(repository, entries), compile_globs(options.exclude))
    refs: list[Ref] = []
    skipped: dict[str, Skipped] = {}
    for name, mode, hash, size in entries:
        path = to_text(name)
        out = keep.ignored_by(name)
        if out is not None:
            where = to_text(out)
            refusal: Skipped | None = Skipped(where, SkipReason.EXCLUDED, "by a setting or .outcropignore")
        elif mode == b"160000":
            refusal = Skipped(path, SkipReason.SUBMODULE, f"at {hash[:12]}; not entered when a commit is indexed")
        elif mode == b"120000":
            refusal = Skipped(path, SkipReason.SYMLINK)
        else:
            refusal = selection.refuse_name(path)
            if refusal is None and size is not None and size > selection.limit(path):
                refusal = oversize(path, size, selection.limit(path))
        if refusal is None:
            refs.append(Ref(hash, selection.kind(path), path, hash, size))
        else:
            skipped[refusal.path] = refusal
    refs.sort(key=lambda ref: ref.path or "")
    return Listing(commit, refs, sorted(skipped.values(), key=lambda item: item.path))


def too_large(ref: Ref, size: int, limit: int) -> Skipped:
    """The verdict on a blob over the limit."""
    return oversize(ref.path or ref.hash, size, limit)


def not_stored(ref: Ref) -> Skipped:
    """The verdict on a blob that the repository does not have."""
    return Skipped(ref.path or ref.hash, SkipReason.UNREADABLE, "its content is not in this clone")


def _entry(record: bytes) -> tuple[bytes, bytes, str, int | None]:
    """Path, mode, name and size (where listed) of one record of ``ls-tree -z``."""
    meta, _, path = record.partition(b"\t")
    mode, _, hash, *size = meta.split()
    return path, mode, hash.decode(), int(size[0]) if size and size[0].isdigit() else None


def _rules(repository: Repository, entries: list[tuple[bytes, bytes, str, int | None]]) -> dict[bytes, Rules]:
    """The commit's own ignore files, by folder."""
    files = {
        name.rpartition(b"/")[0]: hash
        for name, mode, hash, _ in entries
        if name.rpartition(b"/")[2] == IGNORE_FILE and mode.startswith(b"100")
    }
    found = zip(files, contents(repository, list(files.values())), strict=True)
    return {folder: compile_rules(data) for folder, data in found if data is not None}

"""The commits behind a git commit, as refs and as texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from outcrop.core.model import Artifact, CommitListing, History, Kind, Ref, Skipped, SkipReason
from outcrop.sources.paths import to_text
from outcrop.sources.selection import Selection
from outcrop.text.commits import MOST_FILES, commit_text
from outcrop.vcs.git import Repository
from outcrop.vcs.git_history import Commit, is_treeless, list_commits, read_commits, shallow_commits

# Ends the version of a commit whose files this clone does not know. No object has such a name, so it never travels.
_NO_FILES = "+no-files"


def list_history(repository: Repository, commit: str, most: History) -> CommitListing:
    ids = list_commits(repository, commit, most) if most else []
    shallow = shallow_commits(repository)
    bare = frozenset(ids) if is_treeless(repository) else shallow
    refs = [Ref(each, Kind.COMMIT, None, f"{each}{_NO_FILES}" if each in bare else each) for each in ids]
    is_short = bool(shallow) and (most == "all" or len(ids) < most)
    return CommitListing(refs, "a shallow clone has no older ones" if is_short else "")


def read_history(repository: Repository, refs: Sequence[Ref], selection: Selection) -> Iterator[Artifact | Skipped]:
    """One result per ref, in order."""
    bare = frozenset(ref.hash for ref in refs if ref.version.endswith(_NO_FILES))
    with_files = read_commits(repository, [ref.hash for ref in refs if ref.hash not in bare], files=True)
    without = read_commits(repository, [ref.hash for ref in refs if ref.hash in bare], files=False)
    ahead: dict[bool, Commit | None] = {}
    for ref in refs:
        is_bare = ref.hash in bare
        commits = without if is_bare else with_files
        if ahead.get(is_bare) is None:
            ahead[is_bare] = next(commits, None)
        commit = ahead[is_bare]
        if commit is None or commit.hash != ref.hash:
            yield Skipped(ref.hash, SkipReason.UNREADABLE, "its commit is not in this clone")
            continue
        ahead[is_bare] = None
        yield selection.to_commit(ref, _text(commit))


def _text(commit: Commit) -> str:
    # A path with a line break would not be one line; as the index writes paths, it has none.
    files = [to_text(name) for name in commit.files[:MOST_FILES]]
    return commit_text(_decode(commit.message), _decode(commit.author), commit.date, files, commit.count)


def _decode(data: bytes) -> str:
    """git converts what says its encoding; what does not, and is not UTF-8, is nearly always Western European."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")

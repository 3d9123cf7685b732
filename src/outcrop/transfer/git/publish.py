"""What may leave with the vectors, and how the vectors of several people become one set in a git repository.

A blob is named by its artifact, so two people's blobs are never of different texts, and merging is a union. The
branches decide what is old: a blob goes when its artifact is at the tip of none of them.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from outcrop.core.model import Kind, Space
from outcrop.core.protocols import Source, VectorStore
from outcrop.core.reports import SyncReport
from outcrop.core.rows import TransferCounts
from outcrop.errors import IndexMissing, SourceError, SpaceMismatch, StoreError
from outcrop.indexing.ingest import list_all
from outcrop.sources.git import commit
from outcrop.transfer import blob, folder_export, sync
from outcrop.transfer.git import history
from outcrop.transfer.git.ref import REF, GitTransfer
from outcrop.transfer.git.remote import Advertised, GitRemote, find_remote
from outcrop.transfer.sync import Outgoing
from outcrop.vcs.git import Repository, find_commit
from outcrop.vcs.git_history import reachable
from outcrop.vcs.git_repository import find_repository

# How often a push is tried while others keep pushing.
ATTEMPTS = 8

# Between attempts, at most, times their number: by chance, so that two do not keep meeting.
RETRY_PAUSE = 0.5

_log = logging.getLogger("outcrop.transfer.git.publish")


def outgoing(source: Source, store: VectorStore) -> Outgoing:
    """What may leave: artifacts that are indexed as they are in the source now, and in git are in the commit at HEAD.

    Warns of those that are not indexed yet.
    """
    state = store.state() if store.exists else None
    if state is None:
        raise IndexMissing("there is no index to share", "Run: outcrop index")
    listing = list_all(source, store.seen())
    known = store.known()
    now = {ref.hash: ref.version for ref in listing.refs}
    here = {member.hash for member in folder_export.members_of(store)}
    fit = {each for each in here if each in now and each in known and known[each].version == now[each]}
    versions = {each: frozenset(now[each].split("+")) if source.type == "git" else frozenset({each}) for each in fit}
    files = {ref.hash for ref in listing.refs if ref.kind is not Kind.COMMIT}
    stale = {each for each in files - fit if each not in known or known[each].skip is None}
    paths = None
    if source.type == "git":
        repository = repository_of(source)
        head = _head(repository)
        paths = commit.blobs_by_path(repository, head)
        at_head = _objects(repository, [head])
        fit = {each for each in fit if versions[each] <= at_head}
        stale &= at_head
    if stale:
        words = "it does not travel: 1 file" if len(stale) == 1 else f"they do not travel: {len(stale):,} files"
        _log.warning("not indexed yet, so that %s. Run first: outcrop index", words)
    return Outgoing(state.space, listing.revision, fit, versions, paths)


def repository_of(source: Source) -> Repository:
    found = find_repository(source.root)
    if found is None:
        raise SourceError(f"{source.root} is not in a git repository any more", "Look whether it was moved")
    return found


def export(source: Source, store: VectorStore) -> TransferCounts:
    """Put the vectors of an index into the repository's ref, beside those of other branches that are alive."""
    going = outgoing(source, store)
    repository = repository_of(source)
    here = GitTransfer(repository)
    detached = GitTransfer(repository, here.commit)
    keep = _alive(repository) if _space(detached) == going.space else frozenset()
    counts = sync.export(store, detached, replace(going, revision=""), keep=keep)
    if detached.commit != here.commit:
        detached.publish()
    return counts


def push(source: Source, store: VectorStore, remote: str | None, unpublished: bool = False) -> SyncReport:
    repository = repository_of(source)
    going = outgoing(source, store)
    places = find_remote(repository, remote).destinations()
    reports = [_push_to(place, going, store, unpublished) for place in places]
    return SyncReport(
        sent=sum(item.sent for item in reports),
        received=sum(item.received for item in reports),
        refused=False,
        withdrawn=sum(item.withdrawn for item in reports),
        withheld=max(item.withheld for item in reports),
    )


def _push_to(remote: GitRemote, going: Outgoing, store: VectorStore, unpublished: bool) -> SyncReport:
    repository = remote.repository
    for attempt in range(ATTEMPTS):
        there = remote.ask()
        base = None if there.vectors is None else remote.fetch()
        detached = GitTransfer(repository, base)
        _check_space(detached, going.space, remote)
        known = history.present(repository, there.branches.values())
        allowed = _allowed(remote, there, known, unpublished)
        hashes = {each for each in going.hashes if going.versions[each] <= allowed}
        withheld = len(going.hashes) - len(hashes)
        before = detached.ids()
        keep = _kept(detached, allowed, known, there)
        sync.export(store, detached, replace(going, hashes=hashes, revision=""), keep=keep)
        local = GitTransfer(repository)
        if _space(local) == going.space:
            detached.copy_blobs(local, allowed)
        after = detached.ids()
        if not before and not blob.hashes_of(after):
            raise _nothing_sent(remote, withheld)
        if detached.commit == base or remote.push(detached.commit or "", base):
            report = SyncReport(
                sent=_differing(after, before),
                received=_differing(before, local.ids()),
                refused=False,
                withdrawn=len(before.keys() - after.keys()),
                withheld=withheld,
            )
            detached.publish()
            return report
        time.sleep(random.uniform(0, RETRY_PAUSE * (attempt + 1)))
    raise StoreError(
        f"others pushed vectors to {remote.shown} faster than this process could, {ATTEMPTS} times",
        "Try again in a moment",
    )


def pull(source: Source, expected: Space, remote: str | None) -> SyncReport:
    """Bring a remote's vectors (of the embedder's space) into the ref of a repository, beside its own."""
    repository = repository_of(source)
    place = find_remote(repository, remote)
    if place.ask().vectors is None:
        raise StoreError(f"{place.shown} has no vectors yet", "Where the repository is indexed, run: outcrop push")
    detached = GitTransfer(repository, place.fetch())
    _check_space(detached, expected, place)
    local = GitTransfer(repository)
    received = _differing(detached.ids(), local.ids())
    if _space(local) == _space(detached):
        detached.copy_blobs(local, _alive(repository))
    detached.publish()
    return SyncReport(0, received, False)


def _head(repository: Repository) -> str:
    found = find_commit(repository, "HEAD")
    if found is None:
        raise SourceError("there is no commit yet, and only what is in a commit travels", "Commit first")
    return found


def _objects(repository: Repository, commits: Collection[str]) -> frozenset[str]:
    """Every object in the trees of these commits, and every commit that they come from."""
    return history.objects(repository, commits) | reachable(repository, commits)


def _alive(repository: Repository) -> frozenset[str]:
    """Objects at the tip of any branch that this clone knows, its own and those of remotes."""
    branches = history.tips(repository, "refs/heads", "refs/remotes")
    return _objects(repository, {_head(repository), *branches.values()})


def _allowed(remote: GitRemote, there: Advertised, known: frozenset[str], unpublished: bool) -> frozenset[str]:
    """Objects that the remote has already, as far as this clone can tell, or that it may have all the same.

    ``known`` are the commits of its branches that are in this clone.
    """
    repository = remote.repository
    head = _head(repository)
    at_tips = _objects(repository, known)
    at_head = _objects(repository, [head])
    if unpublished:
        return at_tips | at_head
    bases = set(known)
    name = None if set(there.branches.values()) <= known else remote.tracking_name(there)
    if name is not None:
        # Of a branch that moved on, what was there when it was last fetched.
        prefix = f"refs/remotes/{name}/"
        tips = history.tips(repository, prefix)
        bases |= {tip for ref, tip in tips.items() if ref.removeprefix(prefix) in there.branches}
    if not bases:
        return at_tips
    try:
        return at_tips | at_head - history.objects(repository, [head], sorted(bases))
    except SourceError:
        return at_tips


def _kept(theirs: GitTransfer, allowed: frozenset[str], known: frozenset[str], there: Advertised) -> Collection[str]:
    """Artifacts whose blobs stay at the remote: of branches that are alive, or all where not every branch is known.

    A remote without branches is there for vectors alone, and says nothing about what is old.
    """
    if _space(theirs) is None:
        # Of an unknown model: they cannot be beside ours.
        return ()
    if there.branches and set(there.branches.values()) <= known:
        return allowed
    return blob.hashes_of(theirs.names())


def _space(transfer: GitTransfer) -> Space | None:
    note = sync.note_of(transfer)
    return None if note is None else note.space


def _check_space(theirs: GitTransfer, space: Space, remote: GitRemote) -> None:
    found = _space(theirs)
    if found is not None and found != space:
        raise SpaceMismatch(
            f"{remote.shown} has vectors of {found.id}, and these are of {space.id}",
            f"Use theirs (--model {found.model}, or the setting), or replace them for everybody: "
            f"git push {remote.shown} --delete {REF}",
        )


def _differing(some: Mapping[str, str], others: Mapping[str, str]) -> int:
    return sum(others.get(name) != found for name, found in some.items() if blob.hash_of(name) is not None)


def _nothing_sent(remote: GitRemote, withheld: int) -> StoreError:
    if withheld:
        return StoreError(
            f"nothing was sent: {remote.shown} does not have the commits of the {withheld:,} indexed files",
            "Push these first (git push), or send their texts ahead: outcrop push --unpublished",
        )
    return StoreError("there is nothing to send: no indexed file is in a commit", "Commit, then: outcrop index")

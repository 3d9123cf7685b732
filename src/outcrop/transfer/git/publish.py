"""What may leave with the vectors, and how several people's vectors become one set in a git repository.

A blob is named by its artifact, so two people's blobs never stand for different texts, and merging is a union. What is
old is decided by the branches: a blob goes when its artifact stands at the tip of none of them.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from outcrop.core.model import Space
from outcrop.core.protocols import Source, VectorStore
from outcrop.core.reports import SyncReport
from outcrop.core.rows import TransferCounts
from outcrop.errors import IndexMissing, SourceError, SpaceMismatch, StoreError
from outcrop.sources.git import commit
from outcrop.transfer import blob, folder_export, sync
from outcrop.transfer.git import history
from outcrop.transfer.git import remote as git_exchange
from outcrop.transfer.git.network import shown
from outcrop.transfer.git.ref import REF, GitTransfer, resolve
from outcrop.transfer.git.remote import Advertised
from outcrop.vcs.git import Repository
from outcrop.vcs.git_repository import discover

# How often a push is tried while others keep pushing.
ATTEMPTS = 8

# Between attempts, at most, times their number: by chance, so that two do not keep meeting.
SECONDS_APART = 0.5

_log = logging.getLogger("outcrop.transfer.git.publish")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What of an index may leave.

    Attributes:
        space: The space of its vectors.
        revision: What the index is current to.
        hashes: Artifacts that are indexed as they stand in the source now; of a git repository only those of the
            commit that is checked out.
        versions: What each of them depends on.
        places: The blob that each path is in the commit that is checked out; None where there is no such thing.
    """

    space: Space
    revision: str
    hashes: frozenset[str]
    versions: dict[str, frozenset[str]]
    places: dict[str, str] | None = None


def outgoing(source: Source, store: VectorStore) -> Outgoing:
    """Find out what may leave."""
    state = store.state() if store.exists else None
    if state is None:
        raise IndexMissing("there is no index to share", "Run: outcrop index")
    listing = source.artifacts(store.seen())
    known = store.known()
    now = {ref.hash: ref.version for ref in listing.refs}
    here = {member.hash for member in folder_export.members_of(store)}
    fit = {hash for hash in here if hash in now and hash in known and known[hash].version == now[hash]}
    versions = {hash: frozenset(now[hash].split("+")) if source.type == "git" else frozenset({hash}) for hash in fit}
    behind = {hash for hash in now.keys() - fit if hash not in known or known[hash].skip is None}
    places = None
    if source.type == "git":
        repository = repository_of(source)
        head = _head(repository)
        places = commit.blobs_by_path(repository, head)
        at_head = history.objects(repository, [head])
        fit = {hash for hash in fit if versions[hash] <= at_head}
        behind &= at_head
    if behind:
        words = "it does not travel: 1 file" if len(behind) == 1 else f"they do not travel: {len(behind):,} files"
        _log.warning("not indexed yet, so that %s. Run first: outcrop index", words)
    return Outgoing(state.space, listing.revision, frozenset(fit), versions, places)


def repository_of(source: Source) -> Repository:
    """The git repository that a source is."""
    found = discover(source.root)
    if found is None:
        raise SourceError(f"{source.root} is not in a git repository any more", "Look whether it was moved")
    return found


def lay_out(source: Source, store: VectorStore) -> TransferCounts:
    """Put the vectors of a git repository's index into its ref, beside those of other branches that are alive."""
    going = outgoing(source, store)
    repository = repository_of(source)
    here = GitTransfer(repository)
    apart = GitTransfer(repository, here.commit)
    keep = _alive(repository) if _space(apart) == going.space else frozenset()
    moved = sync.export(store, apart, going.hashes, going.space, "", keep=keep)
    if apart.commit != here.commit:
        apart.publish()
    return moved


def push(source: Source, store: VectorStore, remote: str | None, unpublished: bool = False) -> SyncReport:
    """Merge the vectors of a git repository's index into a remote's.

    Args:
        source: The repository.
        store: Its index.
        remote: Name or address; None for ``origin``, or the only one.
        unpublished: Also what stands in commits that the remote has not got.
    """
    repository = repository_of(source)
    going = outgoing(source, store)
    name = git_exchange.choose(repository, remote)
    done = [
        _push_to(repository, going, store, place, unpublished) for place in git_exchange.destinations(repository, name)
    ]
    return SyncReport(
        sent=sum(item.sent for item in done),
        received=sum(item.received for item in done),
        refused=False,
        withdrawn=sum(item.withdrawn for item in done),
        withheld=max(item.withheld for item in done),
    )


def _push_to(repository: Repository, going: Outgoing, store: VectorStore, name: str, unpublished: bool) -> SyncReport:
    for attempt in range(ATTEMPTS):
        there = git_exchange.ask(repository, name)
        base = None if there.vectors is None else git_exchange.fetch(repository, name)
        apart = GitTransfer(repository, base)
        _refuse_other_space(apart, going.space, name)
        known = history.present(repository, there.branches.values())
        allowed = _allowed(repository, name, there, known, unpublished)
        hashes = {hash for hash in going.hashes if going.versions[hash] <= allowed}
        withheld = len(going.hashes) - len(hashes)
        before = dict(apart.ids())
        keep = _kept(repository, apart, allowed, known, there)
        sync.export(store, apart, hashes, going.space, "", keep=keep)
        local = GitTransfer(repository)
        if _space(local) == going.space:
            apart.take(local, allowed)
        if not any(blob.hash_of(name) for name in apart.names()) and not before:
            raise _nothing(name, withheld)
        after = apart.ids()
        done = SyncReport(
            sent=_differing(after, before),
            received=_differing(before, local.ids()),
            refused=False,
            withdrawn=len(before.keys() - after.keys()),
            withheld=withheld,
        )
        if apart.commit == base or git_exchange.push(repository, name, apart.commit or "", base):
            apart.publish()
            return done
        time.sleep(random.uniform(0, SECONDS_APART * (attempt + 1)))
    raise StoreError(
        f"others pushed vectors to {shown(name)} faster than this could, {ATTEMPTS} times",
        "Try again in a moment",
    )


def pull(source: Source, expected: Space, remote: str | None) -> SyncReport:
    """Bring a remote's vectors into the ref of a git repository, beside its own.

    Args:
        source: The repository.
        expected: The embedder's space.
        remote: Name or address; None for ``origin``, or the only one.
    """
    repository = repository_of(source)
    name = git_exchange.choose(repository, remote)
    if git_exchange.ask(repository, name).vectors is None:
        raise StoreError(f"{shown(name)} has no vectors yet", "Where the repository is indexed, run: outcrop push")
    apart = GitTransfer(repository, git_exchange.fetch(repository, name))
    _refuse_other_space(apart, expected, name)
    local = GitTransfer(repository)
    received = _differing(apart.ids(), local.ids())
    if _space(local) == _space(apart):
        apart.take(local, _alive(repository))
    apart.publish()
    return SyncReport(0, received, False)


def _head(repository: Repository) -> str:
    found = resolve(repository, "HEAD")
    if found is None:
        raise SourceError("there is no commit yet, and only what is in a commit travels", "Commit first")
    return found


def _alive(repository: Repository) -> frozenset[str]:
    """Objects at the tip of any branch that this clone knows, its own and those of remotes."""
    branches = history.tips(repository, "refs/heads", "refs/remotes")
    return history.objects(repository, sorted({_head(repository), *branches.values()}))


def _allowed(
    repository: Repository, remote: str, there: Advertised, known: frozenset[str], unpublished: bool
) -> frozenset[str]:
    """Objects that the remote has already, as far as this clone can tell, or that it shall have all the same."""
    head = _head(repository)
    at_tips = history.objects(repository, sorted(known))
    if unpublished:
        return at_tips | history.objects(repository, [head])
    return at_tips | history.published(repository, remote, there, head, known)


def _kept(
    repository: Repository, theirs: GitTransfer, allowed: frozenset[str], known: frozenset[str], there: Advertised
) -> Collection[str]:
    """Artifacts whose blobs stay at the remote: of branches that are alive, or all where not every branch is known.

    A remote without branches is there for vectors alone, and says nothing about what is old.
    """
    if _space(theirs) is None:
        # Of a model that nobody knows: they cannot stand beside ours.
        return ()
    if there.branches and set(there.branches.values()) <= known:
        return allowed
    return frozenset(hash for name in theirs.names() if (hash := blob.hash_of(name)) is not None)


def _space(transfer: GitTransfer) -> Space | None:
    found = sync.current(transfer)
    return None if found is None else found[0]


def _refuse_other_space(theirs: GitTransfer, space: Space, remote: str) -> None:
    found = _space(theirs)
    if found is not None and found != space:
        raise SpaceMismatch(
            f"{shown(remote)} has vectors of {found.id}, and these are of {space.id}",
            f"Use theirs (--model {found.model}, or the setting), or replace them for everybody: "
            f"git push {shown(remote)} --delete {REF}",
        )


def _differing(some: Mapping[str, str], others: Mapping[str, str]) -> int:
    """Blobs that are not the same in another set."""
    return sum(others.get(name) != id for name, id in some.items() if blob.hash_of(name) is not None)


def _nothing(remote: str, withheld: int) -> StoreError:
    where = shown(remote)
    if withheld:
        return StoreError(
            f"nothing was sent: {where} has not got the commits that the {withheld:,} indexed files stand in",
            "Push these first (git push), or send their texts ahead: outcrop push --unpublished",
        )
    return StoreError("there is nothing to send: no indexed file stands in a commit", "Commit, then: outcrop index")

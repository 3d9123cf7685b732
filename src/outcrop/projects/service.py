"""Many repositories in one index: peers and installed packages imported as projects, and kept current.

A peer is read from its own index and never changed, and no model is asked; public names of a package are embedded here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from outcrop.app.index import Index
from outcrop.config.validation import FILE_KINDS
from outcrop.core.model import Kind, Skipped, Space
from outcrop.core.names import check_project
from outcrop.core.reports import Progress, ProjectReport, ProjectStatus
from outcrop.core.rows import Member, Project, StoredArtifact
from outcrop.errors import NotARepository, OutcropError, SpaceMismatch, StoreLocked, UnknownProject, UsageError
from outcrop.projects import copy, python_package
from outcrop.projects import peer as peers
from outcrop.projects.copy import ImportCounts, Material
from outcrop.projects.peer import Peer
from outcrop.projects.python_package import PYTHON
from outcrop.text.globs import path_matcher
from outcrop.transfer import service

# How often a peer that changes while it is read is read again.
ATTEMPTS = 3

Report = Callable[[Progress], None]


def import_project(
    index: Index,
    peer: Path,
    *,
    name: str | None = None,
    kind: Kind | None = None,
    paths: Sequence[str] = (),
    progress: Report | None = None,
) -> ProjectReport:
    """Bring in a peer's index: of a Fossil or git repository, a checkout, a plain folder, or an export.

    Nothing is embedded, and nothing in the peer is changed.

    Args:
        name: None for what it calls itself.
        kind: What all of it, its commits left out, counts as here; None for what it counts as there.
        paths: Only paths that match one of these patterns, written as in a .gitignore.
    """
    index.require_settings()
    if name is not None:
        check_project(name)
    if kind is Kind.COMMIT:
        raise UsageError("files cannot be imported as commits", f"Another kind: {', '.join(FILE_KINDS)}")
    wanted = tuple(path.removeprefix("./") for path in paths)
    return _import_peer(index, peer, name, kind, wanted, progress or (lambda _: None))


def import_package(
    index: Index,
    package: str,
    *,
    name: str | None = None,
    executable: Path | None = None,
    progress: Report | None = None,
) -> ProjectReport:
    """Read the public names of an installed Python package, and embed what is new or changed.

    Args:
        package: What one installs or imports it as; ``stdlib`` for the standard library.
        name: None for its name and version, ``numpy-2.4``.
        executable: The interpreter whose packages are meant; see ``python_env.find_interpreter``.
    """
    index.require_settings()
    found = python_package.find(index, package, executable)
    called = check_project(name) if name is not None else found.package.slug
    return _import_package(index, found, called, "", progress or (lambda _: None))


def refresh(index: Index, name: str, *, progress: Report | None = None) -> ProjectReport:
    """Read a project's peer again; only what changed is read."""
    index.require_settings()
    project = project_named(index, name)
    report = progress or (lambda _: None)
    if project.type == PYTHON:
        found = python_package.find(index, project.item, peers.path_of(project.peer))
        # A newer version of a package takes the place of the older, unless the project has a name without a version.
        chosen = name != python_package.slug_of(project.item, project.revision)
        called = name if chosen else found.package.slug
        return _import_package(index, found, called, "" if called == name else name, report)
    place = peers.path_of(project.peer)
    if not place.exists():
        raise NotARepository(
            f"the peer of {name} is gone: {place}",
            f"Keep it as it is; or import it from where it is now with --as {name}; or: outcrop projects remove {name}",
        )
    return _import_peer(index, place, name, project.kind, project.paths, report)


def remove(index: Index, name: str) -> int:
    """Take a project out of the index, and give the room back. Returns bytes freed on disk."""
    index.require_settings()
    project_named(index, name)
    before = index.store.size()
    with index.store.writing():
        index.store.remove_project(name)
        index.store.file.shrink()
    return max(0, before - index.store.size())


def listing(index: Index, names: Collection[str] | None = None) -> list[ProjectStatus]:
    """These projects (None: all), and whether each has all that its peer has now. Reads, and writes nothing."""
    projects = {project.name: project for project in index.store.projects() if names is None or project.name in names}
    statuses = [status for status in index.store.project_statuses() if status.name in projects]
    return [_compared(index, projects[status.name], status) for status in statuses]


def project_named(index: Index, name: str) -> Project:
    projects = {project.name: project for project in index.store.projects()}
    if name not in projects:
        known = f"There is: {', '.join(projects)}" if projects else "Import one: outcrop import-project PEER"
        raise UnknownProject(f"no project {name!r} was imported here", known)
    return projects[name]


def _import_peer(
    index: Index, path: Path, named: str | None, kind: Kind | None, paths: tuple[str, ...], report: Report
) -> ProjectReport:
    started = time.perf_counter()
    space = _space(index)
    for _ in range(ATTEMPTS):
        with peers.opened(path, index.settings, space, index.source.store_path(), report) as peer:
            name = peers.name_of(peer, named, index.source.project)
            _check_name_is_free(index, name, peer.type, peer.place, "")
            project = Project(name, peer.type, peer.place, "", kind, paths, peer.revision, space, time.time())
            try:
                return _report(index, project, _copy_peer(index, peer, project, report), started)
            except _PeerChanged:
                continue
    raise StoreLocked(f"{path} cannot be imported: its index keeps changing", "Wait until it is done there")


class _PeerChanged(Exception):
    """The peer's index changed while it was read."""


def _copy_peer(index: Index, peer: Peer, project: Project, report: Report) -> ImportCounts:
    """Copy what is wanted of a peer, as it is at one moment."""
    matches = path_matcher(project.paths) if project.paths else None
    there, known = _contents(peer)
    left_out = peers.withheld(peer.source, {member.hash: known[member.hash].version for member in there})
    if peer.complete:
        left_out |= _unembedded(peer, {member.hash for member in there})
    members = copy.as_members((item for item in there if item.hash not in left_out), project.kind, matches)
    if not members:
        raise UsageError(
            f"nothing of {project.peer} is to be imported",
            "No path matches: write --path as in a .gitignore" if there else "Index something there first",
        )
    first: dict[str, Member] = {}
    for member in members:
        first.setdefault(member.hash, member)

    def read(hashes: Sequence[str]) -> list[copy.Read]:
        with peers.importing(peers.path_of(peer.place)):
            found = list(copy.entries_of(peer.store, hashes, first, known, project.space))
            if peer.store.moment() != peer.moment:
                raise _PeerChanged
        return found

    with index.store.writing():
        counts = copy.copy_project(index.store, project, Material(members, known, read), report)
    if index.store.is_shared:
        service.warn_of_readers(index.source, index.store.names().kinds)
    return counts


def _contents(peer: Peer) -> tuple[Sequence[Member], Mapping[str, StoredArtifact]]:
    """What a peer's own builds put into it, and what it remembers of that, as it was when it was opened."""
    with peers.importing(peers.path_of(peer.place)), peer.store.snapshot():
        known = peer.store.known()
        members = [member for member in peer.store.members() if member.hash in known]
        if peer.store.moment() != peer.moment:
            raise _PeerChanged
    return members, known


def _unembedded(peer: Peer, hashes: Collection[str]) -> frozenset[str]:
    return frozenset(
        key
        for key in hashes
        if any(chunk.vector is None for chunk in peer.store.embedded_chunks(peer.space, [key])[key])
    )


def _import_package(
    index: Index, found: python_package.FoundPackage, name: str, replaced: str, report: Report
) -> ProjectReport:
    started = time.perf_counter()
    space = _space(index)
    if name == index.source.project:
        raise UsageError(f"this repository itself is called {name!r}", "Give the package another name: --as NAME")
    peer = peers.spelled(found.interpreter.place)
    _check_name_is_free(index, name, PYTHON, peer, found.item)
    project = Project(name, PYTHON, peer, found.item, Kind.API, (), found.package.version, space, time.time())
    with index.store.writing():
        done = python_package.import_public_names(index, found, project, report)
        if replaced:
            index.store.remove_project(replaced)
    return _report(index, project, done.counts, started, done.embedded, replaced, done.skipped)


def _space(index: Index) -> Space:
    state = index.store.state() if index.store.exists else None
    wanted = index.embedder.space
    if state is not None and state.space != wanted:
        raise SpaceMismatch(
            f"this index holds vectors of {state.space.id}, but the embedder is {wanted.id}",
            "Set the embedder that it was made with, or make it anew first: outcrop index",
        )
    return wanted


def _check_name_is_free(index: Index, name: str, peer_type: str, peer: str, item: str) -> None:
    """Make sure that a name is free, or belongs to the same peer, or to one that is not there any more."""
    for project in index.store.projects():
        same = (project.type == PYTHON) == (peer_type == PYTHON) and (project.peer, project.item) == (peer, item)
        moved = peer_type != PYTHON and project.type == peer_type and not peers.path_of(project.peer).exists()
        # Another environment's packages may take the place of those of the same name.
        other_environment = peer_type == PYTHON == project.type and project.item == item
        if project.name == name and not (same or moved or other_environment):
            origin = f"{project.item} of {project.peer}" if project.item else project.peer
            raise UsageError(
                f"there is a project {name!r} already, from {origin}",
                f"Give this one another name with --as, or first: outcrop projects remove {name}",
            )


def _compared(index: Index, project: Project, status: ProjectStatus) -> ProjectStatus:
    try:
        reason = _difference(index, project, status)
    except OutcropError as error:
        return replace(status, current=False, reason=str(error))
    return replace(status, current=reason is None, reason=reason)


def _difference(index: Index, project: Project, status: ProjectStatus) -> str | None:
    refresh = f"outcrop projects refresh {project.name}"
    if status.embedded < status.chunks:
        return f"{status.chunks - status.embedded:,} passages have no vector of what is searched here. Run: {refresh}"
    if project.type == PYTHON:
        version = python_package.find(index, project.item, peers.path_of(project.peer)).package.version
        return None if version == project.revision else f"version {version} is installed now. Run: {refresh}"
    if not peers.path_of(project.peer).exists():
        return f"its peer is gone. Run: outcrop projects remove {project.name}, or import it from where it is now"
    look = peers.look(peers.path_of(project.peer), index.settings, project.space, index.source.store_path())
    if look.revision != project.revision:
        return f"its peer was indexed anew since. Run: {refresh}"
    if look.behind:
        command = peers.index_command(peers.path_of(project.peer), index.settings)
        return f"its peer changed and was not indexed since. Run: {command}, then {refresh}"
    versions = {key: known.version for key, known in index.store.known(project.name).items()}
    gone = peers.withheld(look.source, versions)
    return f"its peer has taken back {len(gone)} artifacts. Run: {refresh}" if gone else None


def _report(
    index: Index,
    project: Project,
    counts: ImportCounts,
    started: float,
    embedded: int = 0,
    replaced: str = "",
    skipped: Sequence[Skipped] = (),
) -> ProjectReport:
    status = next(each for each in index.store.project_statuses() if each.name == project.name)
    return ProjectReport(
        name=project.name,
        type=project.type,
        peer=project.peer,
        item=project.item,
        artifacts=status.artifacts,
        chunks=status.chunks,
        added=counts.added,
        unchanged=counts.unchanged,
        removed=counts.removed,
        embedded=embedded,
        reused=counts.reused,
        replaced=replaced,
        skipped=tuple(skipped),
        seconds=time.perf_counter() - started,
    )

"""Opening a peer: another repository, folder or export, of which only its index or its blobs are read.

What has no index of its own (a fresh clone with vectors, an export) is put together in memory, without any model.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from outcrop.config.settings import Settings, load_settings
from outcrop.core.model import Filter, Space
from outcrop.core.names import check_project
from outcrop.core.protocols import Source, TransferStore, Withholding
from outcrop.core.reports import Progress
from outcrop.errors import BlobError, IndexMissing, OutcropError, SpaceMismatch, StoreError, UsageError
from outcrop.search.staleness import compare
from outcrop.sources.discover import FoundRoot, find_root, open_source
from outcrop.sources.folder import FolderSource
from outcrop.sources.options import Options
from outcrop.sources.paths import to_bytes, to_slug, to_text
from outcrop.stores.sqlite.store import SqliteStore
from outcrop.transfer import folder_export, service, sync
from outcrop.transfer.directory import DirectoryTransfer
from outcrop.transfer.members import MembersFile

# Type of a peer that is a folder of exported blobs.
EXPORT = "blobs"

# What an export that can be imported without its source has.
MEMBERS = Path("vec", "members.json")


_COMMANDS = re.compile(r"\boutcrop (index|rebuild|normalize|pull)\b(?! -C)")


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that was opened."""

    type: str  # ``fossil``, ``git``, ``folder`` or ``blobs``
    place: str
    slug: str
    store: SqliteStore  # What it holds: its own index, or one in memory that was filled from blobs
    source: Source | None  # Where its material comes from, or None for an export
    revision: str  # What the store is current to, as one word
    space: Space
    moment: str  # ``store.moment()`` when it was opened: what is read later belongs together while this is unchanged
    # Whether only artifacts all of whose passages have a vector are meant, as others came from no blob
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What a peer is current to, without reading what it holds, and whether its source has changed since."""

    revision: str
    behind: bool
    source: Source | None


@contextmanager
def opened(
    path: Path, settings: Settings, space: Space, own_store: Path, report: Callable[[Progress], None]
) -> Iterator[Peer]:
    """Open a Fossil repository, a folder of a git repository or of a checkout, a plain folder, or an export.

    The settings are those of the index that asks; they say how a peer's index would have to be made.
    """
    if _is_export(path):
        yield _of_export(path.resolve(), settings, space, report)
        return
    place, source = _found(path, own_store)
    with closing(_store_of(source)) as store:
        if _is_indexed(store, path):
            moment = store.moment()
            look = _look_at(store, source, settings, space, path)
            yield Peer(source.type, _place(place), source.project, store, source, look.revision, space, moment)
        else:
            yield _of_blobs(place, source, settings, space, path, report)


def look(path: Path, settings: Settings, space: Space, own_store: Path) -> Look:
    """As :func:`opened`."""
    if _is_export(path):
        return Look(_word({"": _members(path).revision}), False, None)
    _, source = _found(path, own_store)
    with closing(_store_of(source)) as store:
        if _is_indexed(store, path):
            return _look_at(store, source, settings, space, path)
    transfer = _blobs_of(source, settings, path)
    return Look(_blob_revision(transfer), False, source)


def withheld(source: Source | None, versions: Mapping[str, str]) -> frozenset[str]:
    """Of a peer's artifacts (version by hash), those that it does not show to the public any more."""
    return source.withheld(versions) if isinstance(source, Withholding) else frozenset()


def _found(path: Path, own_store: Path) -> tuple[FoundRoot, Source]:
    place = find_root(path)
    settings = load_settings(place.root)
    options = Options(
        settings.max_bytes, settings.exclude, settings.include_secrets, settings.kinds, history=settings.history
    )
    source = open_source(place, options)
    if source.store_path() == own_store:
        raise UsageError(
            f"{path} is this repository itself, or another view of it", "Only others are imported: outcrop index"
        )
    return place, source


def _store_of(source: Source) -> SqliteStore:
    return SqliteStore(source.store_path(), source.worktree, shared=source.type == "fossil", read_only=True)


def index_command(path: Path, settings: Settings) -> str:
    """The command that makes a peer's index with the same embedder."""
    words = ["outcrop", "index", "-C", str(path), *embedder_flags(settings)]
    return " ".join(map(shlex.quote, words))


def embedder_settings(settings: Settings) -> dict[str, object]:
    """What another index has to be set to so that its vectors are of the same space."""
    names = ("model", "dim", "endpoint_url", "query_prefix", "passage_prefix", "max_tokens")
    chosen = {name: getattr(settings, name) for name in names if getattr(settings, name) is not None}
    return {"embedder": settings.embedder, **chosen}


def embedder_flags(settings: Settings) -> list[str]:
    """The same as options of a command; what has none is left to the settings."""
    names = {"embedder", "model", "dim", "endpoint_url"}
    chosen = {name: value for name, value in embedder_settings(settings).items() if name in names}
    return [word for name, value in chosen.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def _is_export(path: Path) -> bool:
    return (path / MEMBERS).is_file() and not any((path / name).exists() for name in (".git", ".outcrop"))


def _is_indexed(store: SqliteStore, path: Path) -> bool:
    with importing(path):
        return store.exists


def _look_at(store: SqliteStore, source: Source, settings: Settings, space: Space, path: Path) -> Look:
    with importing(path):
        state, revisions = store.state(), store.revisions()
        if state is None or not revisions:
            raise StoreError("its first build was never completed", "Wait for it, or run there: outcrop index")
        if state.space != space:
            raise SpaceMismatch(
                f"its index holds vectors of {state.space.id}, and this one searches {space.id}",
                f"Make them there with the same embedder: {index_command(path, settings)}",
            )
        embedded, chunks = store.progress(space, Filter(imported=False))
        if embedded < chunks:
            raise StoreError(
                f"{chunks - embedded:,} of its {chunks:,} passages have no vector yet: it is being indexed, or that was"
                " stopped",
                f"Wait, or go on there: {index_command(path, settings)}",
            )
        now = source.revision(store.seen())
    return Look(_word(revisions), compare(revisions, now) is not None, source)


def _of_blobs(
    place: FoundRoot,
    source: Source,
    settings: Settings,
    space: Space,
    path: Path,
    report: Callable[[Progress], None],
) -> Peer:
    transfer = _blobs_of(source, settings, path)
    memory = SqliteStore(None, source.worktree)
    with importing(path):
        sync.import_blobs(source, memory, transfer, space, report)
    return Peer(
        *(source.type, _place(place), source.project, memory, source, _blob_revision(transfer), space),
        moment=memory.moment(),
        complete=True,
    )


def _blobs_of(source: Source, settings: Settings, path: Path) -> TransferStore:
    transfer = service.transfer_of(source)
    if transfer is None or not any(name.endswith(".bin") for name in transfer.names()):
        raise IndexMissing(
            f"{path} has no index, and no vectors came with it",
            f"Make one there: {index_command(path, settings)}; or let it be made: outcrop import-project --build",
        )
    return transfer


def _blob_revision(transfer: TransferStore) -> str:
    """What blobs are current to; where that is not said, a digest of their names."""
    note = sync.note_of(transfer)
    return _word({"": note.revision} if note else dict.fromkeys(transfer.names(), ""))


def _of_export(path: Path, settings: Settings, space: Space, report: Callable[[Progress], None]) -> Peer:
    transfer = DirectoryTransfer(path)
    source = FolderSource(path, Options())
    memory = SqliteStore(None)
    found = _members(path)
    with importing(path):
        try:
            folder_export.import_export(source, memory, transfer, space, report)
        except SpaceMismatch as error:
            error.fix = f"Export it from an index made by the same: {' '.join(embedder_flags(settings))}"
            raise
    slug = found.project or to_slug(path.name)
    return Peer(EXPORT, spelled(path), slug, memory, None, _word({"": found.revision}), space, memory.moment(), True)


def _members(path: Path) -> MembersFile:
    with importing(path):
        found = folder_export.read_members(DirectoryTransfer(path))
    if found is None:
        raise BlobError(f"{path} is no export that was finished", "Export it again: outcrop export")
    return found


def _place(place: FoundRoot) -> str:
    """The path that finds it again: of a Fossil repository that of its file, unless it was found from a checkout."""
    alone = place.fossil is not None and place.fossil.checkout is None
    return spelled(place.fossil.repository if place.fossil is not None and alone else place.root)


def spelled(path: Path) -> str:
    """A path as text that a database takes, whatever bytes it has."""
    return to_text(os.fsencode(path))


def path_of(peer: str) -> Path:
    return Path(os.fsdecode(to_bytes(peer)))


def _word(revisions: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for builder, revision in sorted(revisions.items()):
        digest.update(f"{builder}\0{revision}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


@contextmanager
def importing(path: Path) -> Iterator[None]:
    """Errors name the peer; what they say to run has to be run there."""
    try:
        yield
    except OutcropError as error:
        fix = _COMMANDS.sub(lambda found: f"outcrop {found[1]} -C {shlex.quote(str(path))}", error.fix)
        raise type(error)(f"{path} cannot be imported: {error.what}", fix) from error


def name_of(peer: Peer, named: str | None, own: str) -> str:
    name = check_project(named) if named is not None else peer.slug
    if name == own:
        raise UsageError(f"this repository itself is called {own!r}", f"Give the other one another name: --as {own}-2")
    return name

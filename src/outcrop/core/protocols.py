"""The ports: what an adapter must offer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from outcrop.core import rows
from outcrop.core.model import (
    EVERYTHING,
    Artifact,
    CommitListing,
    FileState,
    Filter,
    Kind,
    Listing,
    Ref,
    Skipped,
    Space,
)
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.core.reports import CollectionStatus, CutByLines, ProjectStatus, SpaceStatus

if TYPE_CHECKING:
    from typing_extensions import override as override
else:

    def override(method):
        """Mark an implementation of a port's method; its docstring is at the port."""
        return method


# float32 ``[n, dim]``, rows L2-normalised.
Matrix = npt.NDArray[np.float32]

# float32 ``[dim]``, L2-normalised.
Vector = npt.NDArray[np.float32]


class Source(Protocol):
    """Where artifacts come from: a folder, a git or a Fossil repository. ``SourceError`` where it cannot be read."""

    @property
    def type(self) -> str:
        """``folder``, ``git`` or ``fossil``."""

    @property
    def root(self) -> Path: ...

    @property
    def project(self) -> str: ...

    @property
    def worktree(self) -> str:
        """Which view of a shared store this is; empty where there is only one."""

    @property
    def rules(self) -> str:
        """The settings that decide whether an artifact is read; under other rules each is checked again."""

    def worktrees(self) -> frozenset[str]:
        """Every view of the store that still exists, this one included."""

    def store_path(self) -> Path:
        """The database file that the index lives in; it need not exist yet."""

    def revision(self, seen: Mapping[str, FileState]) -> str:
        """Where the source is now, cheaply: equal to ``Listing.revision`` when nothing changed since ``seen``."""

    def artifacts(self, seen: Mapping[str, FileState]) -> Listing:
        """List everything, reading only files whose state is not in ``seen``."""

    def read(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        """One result per ref, in order; a bad one comes back as ``Skipped``, never raised.

        Where the content changed since the listing, the artifact carries a ref with its true hash.
        """


@runtime_checkable
class Historied(Protocol):
    """A source with a history. ``SourceError`` where it cannot be read."""

    @property
    def has_history(self) -> bool:
        """Whether commits of it are wanted."""

    def commits(self, revision: str) -> CommitListing:
        """The commits that belong to a listing of this revision; :meth:`Source.read` reads them like other refs."""


@runtime_checkable
class Withholding(Protocol):
    """A source whose material can be withheld from the public later. ``SourceError`` where it cannot be read."""

    def withheld(self, versions: Mapping[str, str]) -> frozenset[str]:
        """Of indexed artifacts (version by hash), those that may not be shown any more."""

    def foreign_artifacts(self, hashes: Collection[str]) -> frozenset[str]:
        """Those artifacts that this copy of the source has never had: they are another copy's."""


class Embedder(Protocol):
    """Turns texts into vectors. All embedding goes through it."""

    @property
    def space(self) -> Space:
        """Model id and dimension, known without loading the model."""

    @property
    def address(self) -> str | None:
        """Where the text goes; None when it stays in this process."""

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads of one text, special tokens included; the rest is cut."""

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """float32 ``[len(texts), dim]``, L2-normalised. ``EmbedderError`` as soon as one text fails."""

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Same shape and errors as :meth:`embed_passages`."""


class IndexState(Protocol):
    """How far the index of one view (``worktree``) of its source is: what every reader of a store asks first."""

    @property
    def exists(self) -> bool:
        """Whether anything was ever stored."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Reads inside see one moment of the store."""

    def state(self) -> rows.State | None:
        """The space that is searched, or None before the first build."""

    def seen(self) -> Mapping[str, FileState]:
        """File states of this view's last build."""

    def has_members(self) -> bool: ...

    def holds_others(self) -> bool:
        """Whether there is anything that does not come from this source: a caller's records, or imported projects."""

    def revisions(self) -> Mapping[str, str]:
        """Per corpus of this view, the revision of its last complete build."""

    def built(self) -> str | None:
        """The revision of this view's last complete build of the two corpora that every index has, or None."""

    def interrupted(self) -> bool:
        """Whether artifacts were stored since a build of any view was last complete."""

    def progress(self, space: Space, where: Filter = EVERYTHING) -> tuple[int, int]:
        """Chunks of this view with a vector in that space, or refused by its embedder, and all chunks of this view."""

    def refused(self, space: Space, where: Filter = EVERYTHING) -> Sequence[rows.RefusedChunk]:
        """Chunks of this view that the embedder of that space refused, those first that were not tried for longest."""

    def skipped(self) -> Sequence[Skipped]:
        """What this view's last build left out."""

    def cut_by_lines(self) -> Sequence[CutByLines]:
        """Artifacts of this view that are stored without their structure, in path order."""

    def members(self, builder: str | None = None) -> Sequence[rows.Member]:
        """What the last build of a corpus, or of each of them, put into this view."""

    def known(self, project: str = "") -> Mapping[str, rows.StoredArtifact]:
        """Per hash, what is stored of the artifacts of this source, or of an imported project."""

    def close(self) -> None:
        """Closing twice is fine."""


class ChunkIndex(IndexState, Protocol):
    """What a search reads: chunks, vectors and words of one view."""

    def names(self) -> rows.Names: ...

    def nearest(self, query: Vector, k: int, where: Filter) -> Sequence[rows.ScoredChunk]:
        """The chunks of the searched space nearest to the query, best first, exact."""

    def keyword(self, terms: Sequence[str], k: int, where: Filter) -> Sequence[rows.ScoredChunk]:
        """The chunks that hold any of the terms, best first."""

    def defining(self, name: str, k: int, where: Filter) -> Sequence[int]:
        """Chunks whose own name (the last part of a qualified one) is this, those of the same case first."""

    def unknown(self, words: Sequence[str], kinds: Sequence[Kind] = ()) -> frozenset[str]:
        """Those words that no passage of these kinds (none named: any) holds, in any form."""

    def stems(self, beginning: str) -> Mapping[str, int]:
        """Stems (``terms.stem``) that begin so, and how many passages hold each, of every view and kind."""

    def forms(self, stem: str, kinds: Sequence[Kind] = ()) -> frozenset[str]:
        """Words of a stem, as some passages of these kinds (none named: any) of this view have them."""

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Vectors of chunks in the searched space, where there are any."""

    def passages(self, ids: Sequence[int], where: Filter) -> Mapping[int, rows.Passage]:
        """Chunks by id; ids that are gone are missing."""

    def damaged(self, ids: Sequence[int], with_vectors: bool) -> frozenset[int]:
        """Those chunks that do not hold what was written: the passage, or also its vector in the searched space."""


class Inventory(IndexState, Protocol):
    """What status and catalog read: how much of what one view holds."""

    def projects(self) -> Sequence[rows.Project]:
        """What was imported from peers, by name."""

    def project_statuses(self) -> Sequence[ProjectStatus]:
        """The imported projects with their sizes; no peer is asked."""

    def moment(self) -> str:
        """Equal as long as nothing in the store changes."""

    def artifacts(self) -> int:
        """How many artifacts belong to this view."""

    def collections(self) -> Sequence[CollectionStatus]: ...

    def holdings(self) -> Sequence[rows.InventoryRow]:
        """Every artifact of this view at each of its places, with how much is stored of it."""

    def spaces(self) -> Sequence[SpaceStatus]:
        """Every space that has vectors, of all views."""

    def size(self) -> int:
        """Bytes on disk."""


class ChunkWriter(IndexState, Protocol):
    """What a build writes. Readers see all of an artifact or nothing; an interrupted write keeps whole artifacts."""

    @property
    def is_shared(self) -> bool:
        """Whether another program owns the database and waits for every write, so that a build writes seldom."""

    def writing(self) -> AbstractContextManager[None]:
        """Be the one writer; ``StoreLocked`` while another process is."""

    def set_space(self, space: Space) -> None:
        """Search this space from now on. No revision counts as built any more when the space changed."""

    def write(
        self, entries: Sequence[rows.Entry], space: Space | None = None, view: rows.View | None = None
    ) -> rows.Written:
        """Store artifacts with their chunks. A chunk whose digest has a vector already reuses it.

        With a space it first does :meth:`set_space`, with a view :meth:`replace` at the end. In a shared database it is
        several short transactions, each of whole artifacts, which no view names before the last.
        """

    def replace(self, view: rows.View) -> rows.Replaced:
        """Set what belongs to this view; drop artifacts that no view names any more. One transaction."""

    def upsert(self, corpus: str, records: Sequence[rows.RecordEntry], space: Space) -> rows.Upserted:
        """Write records of a caller, which every view sees and no build prunes, and search that space from now on."""

    def remove_records(self, corpus: str, ids: Sequence[str]) -> int:
        """Returns how many of them were there."""

    def pending(self, space: Space, where: Filter = EVERYTHING) -> Sequence[rows.Digested]:
        """Distinct passages of this view without a vector in that space that were not refused, in index order."""

    def embedded(self, space: Space, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Which of these digests have a vector in that space already."""

    def add_vectors(
        self, space: Space, digests: Sequence[bytes], vectors: Matrix, completion: rows.Completion | None = None
    ) -> None:
        """Store vectors (float32 ``[len(digests), dim]``, L2-normalised) for every chunk with one of these digests.

        For a completion, in the same transaction, do what :meth:`finish` does.
        """

    def refuse(self, space: Space, reasons: Mapping[bytes, str]) -> None:
        """Remember by digest that the embedder of that space cannot embed passages now, and why."""

    def copy_in(
        self, project: str, entries: Sequence[rows.Entry], space: Space, digests: Sequence[bytes], vectors: Matrix
    ) -> rows.Written:
        """Store artifacts of an imported project, and vectors as :meth:`add_vectors` takes; no view sees them yet.

        An artifact that this project has already is replaced. Where no space is searched yet, that one is from now on.
        """

    def place_project(self, project: rows.Project, members: Sequence[rows.Member]) -> rows.Replaced:
        """Set what an imported project is and what belongs to it, for every view; drop what nothing names any more."""

    def remove_project(self, name: str) -> rows.Replaced:
        """Records that name the same project stay."""

    def embedded_chunks(self, space: Space, hashes: Sequence[str]) -> Mapping[str, Sequence[rows.Embedded]]:
        """What this view holds of each of this source's artifacts, by hash, with vectors of a space."""

    def normalise(self) -> tuple[int, int]:
        """Scale every stored vector to length 1. Returns how many had another length, and how many were dropped."""

    def finish(self, revision: str, builders: Sequence[str] = DEFAULT_BUILDERS) -> None:
        """Declare what these corpora's builds put into the view complete at this revision."""

    def clear(self, corpus: str | None = None, space: Space | None = None) -> None:
        """Drop a corpus of this view, a space of all views, or everything, and give the space on disk back."""


class ChunkStore(ChunkIndex, ChunkWriter, Protocol):
    """What is searched by the code that fills it."""


class VectorStore(ChunkStore, Inventory, Protocol):
    """Keeps chunks, vectors and membership: all ports of one store."""


class Publisher(Protocol):
    """Shares what a build of everything indexed, and withdraws what may not be shared any more.

    ``SourceError`` where the source cannot be read, ``StoreError`` where nothing can be written.
    """

    def withdraw_hidden(self) -> int:
        """Before a build: withdraw what may not be shown any more (private, shunned, gone). Returns how many."""

    def withdraw_others(self, hashes: Collection[str], space: Space) -> None:
        """Withdraw everything but these artifacts and what another copy of the source has published.

        ``BlobError`` where the note beside the blobs is damaged.
        """

    def publish(self, outcome: rows.BuildOutcome, on_start: Callable[[], None]) -> rows.TransferCounts:
        """Share what was indexed, withdraw the rest; ``on_start`` is called before anything is written."""


class TransferStore(Protocol):
    """Keeps transfer blobs where they can travel. Names are whole: ``vec/HASH.bin``, ``vec/space.json``."""

    def names(self) -> frozenset[str]: ...

    def read(self, name: str) -> bytes | Skipped | None:
        """None when it is not there."""

    def read_all(self) -> Iterator[tuple[str, bytes | Skipped]]:
        """By name, in name order. A damaged file comes back as ``Skipped``, never raised."""

    def replace(self, adds: Mapping[str, bytes], removes: Collection[str]) -> rows.TransferCounts:
        """Store files and withdraw others, by name; ``adds`` wins. What is so already is left alone.

        ``BlobError`` for a name that is not of the transfer store, ``StoreError`` where nothing can be written.
        """

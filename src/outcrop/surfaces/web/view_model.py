"""One open index for the views, restricted to what the reader may see."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace

from outcrop.app import documents
from outcrop.app.catalog import Catalog, catalog, shown_revision
from outcrop.app.documents import Document
from outcrop.app.index import Index
from outcrop.app.warm_index import WarmIndex
from outcrop.core.model import Answer, Filter, Kind, Mode, Stale
from outcrop.core.rows import Names
from outcrop.errors import StoreError, UnknownKind
from outcrop.indexing.ingest import list_all
from outcrop.search.parse import asks_for_change
from outcrop.search.query import resolve
from outcrop.stores.sqlite import inventory
from outcrop.stores.sqlite.connection import moment
from outcrop.stores.sqlite.inventory import FacetCount
from outcrop.surfaces.web.http import Reader

# Seconds that a question waits for the model to load before keyword search answers it.
MODEL_TIMEOUT = 1.0


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """A question with its filters, as :meth:`outcrop.app.index.Index.search` takes them. Empty means no restriction."""

    query: str
    mode: str = Mode.HYBRID
    k: int = 10
    kind: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    corpus: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    min_score: float | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Facets:
    """The values of the filters, for one reader."""

    exists: bool
    facets: tuple[FacetCount, ...] = ()
    # Share of the passages that have a vector.
    complete: float = 1.0
    # Why the index cannot be used; empty without an index.
    error: str = ""
    # Whether a process builds what is missing just now.
    building: bool = False

    def kinds(self, projects: Collection[str] = (), corpus: str = "") -> dict[Kind, int]:
        """Passages per kind, of these projects (empty: all) and of one corpus (empty: all)."""
        found: dict[Kind, int] = {}
        for facet in self.facets:
            if facet.corpus == corpus and (not projects or facet.project in projects):
                found[facet.kind] = found.get(facet.kind, 0) + facet.chunks
        return {kind: found[kind] for kind in Kind if kind in found}

    @property
    def corpora(self) -> tuple[str, ...]:
        return tuple(sorted({facet.corpus for facet in self.facets} - {""}))

    @property
    def projects(self) -> tuple[str, ...]:
        """Slugs; empty for this repository."""
        return tuple(sorted({facet.project for facet in self.facets}))

    @property
    def chunks(self) -> int:
        return sum(facet.chunks for facet in self.facets if not facet.corpus)


class Site:
    """One index for every view and thread; it does not close the index."""

    def __init__(self, index: Index, model_timeout: float = MODEL_TIMEOUT) -> None:
        self.index = index
        self._service = WarmIndex(lambda: index, closes=False, timeout=model_timeout)
        self._cached_facets: tuple[tuple[str, Reader], Facets] | None = None

    @property
    def project(self) -> str:
        return self.index.source.project

    def load_model(self) -> None:
        self._service.start()

    def facets(self, reader: Reader) -> Facets:
        store = self.index.store
        try:
            if not store.exists:
                return Facets(False, building=store.file.is_being_written())
            with store.file.snapshot() as database:
                key = (moment(database), reader)
                if self._cached_facets is not None and self._cached_facets[0] == key:
                    return self._with_builder(self._cached_facets[1])
                stored = inventory.facets(database, store.worktree)
                state = store.state()
                embedded, chunks = store.progress(state.space) if state is not None else (0, 0)
        except StoreError as error:
            return Facets(False, error=self.redact_paths(reader, str(error)))
        facets = Facets(
            exists=bool(stored),
            facets=tuple(facet for facet in stored if reader.may_see(facet.kind)),
            complete=embedded / chunks if chunks else 1.0,
        )
        self._cached_facets = (key, facets)
        return self._with_builder(facets)

    def _with_builder(self, facets: Facets) -> Facets:
        if facets.exists and facets.complete == 1:
            return facets
        return replace(facets, building=self.index.store.file.is_being_written())

    def search(self, reader: Reader, arguments: SearchArguments) -> Answer:
        kinds: Sequence[str] = arguments.kind
        if reader.kinds is not None:
            kinds = self._visible_kinds(reader, arguments)
            if not kinds:
                return Answer(Mode(arguments.mode), "nothing that you may read is indexed", None, None, ())
        answer = self._service.search(**asdict(replace(arguments, kind=tuple(kinds))))
        reason = answer.reason if answer.reason is None else self.redact_paths(reader, answer.reason)
        stale = answer.stale
        if stale is not None:
            current = shown_revision(stale.current, reader.kinds) or ""
            indexed = shown_revision(stale.indexed, reader.kinds)
            stale = (
                replace(stale, indexed=indexed, current=current) if reader.kinds is None else Stale(indexed, current)
            )
        return replace(answer, reason=reason, stale=stale)

    def read(self, reader: Reader, *, path: str | None, content_hash: str | None, project: str) -> Document:
        return documents.read(self.index, path=path, content_hash=content_hash, project=project, kinds=reader.kinds)

    def catalog(self, reader: Reader) -> Catalog:
        index = self.index
        return catalog(index.store, index.source, index.embedder, kinds=reader.kinds)

    def redact_paths(self, reader: Reader, text: str) -> str:
        """A message without the paths of this machine, unless the reader uses it."""
        if reader.local:
            return text
        store = self.index.store.path
        for path, shown in ((store, store.name), (self.index.source.root, self.project)):
            text = text.replace(str(path), shown)
        return text

    def _visible_kinds(self, reader: Reader, arguments: SearchArguments) -> tuple[str, ...]:
        facets = self.facets(reader)
        visible: Collection[Kind] = facets.kinds()
        if facets.exists:
            names = Names(frozenset(facets.corpora), frozenset(visible), frozenset(facets.projects))
            resolve(Filter(corpora=arguments.corpus, projects=arguments.project), names, self.project)
        else:
            listed = {ref.kind for ref in list_all(self.index.source, {}).refs}
            visible = [kind for kind in Kind if kind in listed and reader.may_see(kind)]
        for name in arguments.kind:
            # A kind that the reader may not see is refused like one that does not exist.
            if name not in visible:
                raise UnknownKind(f"no kind {str(name)!r} in this index", f"There is: {', '.join(visible) or 'none'}")
        if arguments.kind:
            return arguments.kind
        with_commits = asks_for_change(arguments.query)
        return tuple(kind for kind in visible if with_commits or kind is not Kind.COMMIT)

"""What the views show: one open index, asked on behalf of a reader who may not be allowed to see all of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from outcrop.app import documents
from outcrop.app.catalog import Catalog, catalog
from outcrop.app.documents import Document
from outcrop.app.index import Index
from outcrop.app.warm_index import WarmIndex
from outcrop.core.model import Answer, Kind, Mode, Stale
from outcrop.errors import StoreError, UnknownCorpus, UnknownKind, UnknownProject
from outcrop.stores.sqlite import inventory
from outcrop.stores.sqlite.connection import moment
from outcrop.stores.sqlite.inventory import Facet
from outcrop.surfaces.web.http import Reader

# Seconds that a question waits for a model that is being loaded before words alone answer it.
PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
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
    """What filters can be set to, for one reader.

    Attributes:
        exists: Whether anything is indexed.
        facets: Passages per corpus, kind and project.
        complete: Share of the passages that have a vector, 0 to 1.
        trouble: Why the index that there is cannot be used; empty where it can, or there is none.
    """

    exists: bool
    facets: tuple[Facet, ...] = ()
    complete: float = 1.0
    trouble: str = ""

    def kinds(self, projects: Collection[str] = (), corpus: str = "") -> dict[Kind, int]:
        """Passages per kind, of these projects (none named: all) and of one corpus (empty: all)."""
        found: dict[Kind, int] = {}
        for facet in self.facets:
            if facet.corpus == corpus and (not projects or facet.project in projects):
                found[facet.kind] = found.get(facet.kind, 0) + facet.chunks
        return {kind: found[kind] for kind in Kind if kind in found}

    @property
    def corpora(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(sorted({facet.corpus for facet in self.facets} - {""}))

    @property
    def projects(self) -> tuple[str, ...]:
        """Slugs, in order; empty for this repository."""
        return tuple(sorted({facet.project for facet in self.facets}))

    @property
    def chunks(self) -> int:
        """All passages."""
        return sum(facet.chunks for facet in self.facets if not facet.corpus)


class Site:
    """One index for every view and thread.

    Args:
        index: Stays the caller's to close.
        patience: Seconds that a question waits for a model that is being loaded.
    """

    def __init__(self, index: Index, patience: float = PATIENCE) -> None:
        self.index = index
        self._service = WarmIndex(lambda: index, closes=False, timeout=patience)
        self._shelved: tuple[tuple[str, Reader], Facets] | None = None

    @property
    def project(self) -> str:
        """Slug of this repository."""
        return self.index.source.project

    def load_model(self) -> None:
        """Load the model in the background, so that the first question need not wait for it."""
        self._service.start()

    def shelf(self, reader: Reader) -> Facets:
        """What there is to choose from."""
        store = self.index.store
        try:
            if not store.exists:
                return Facets(False)
            with store.file.snapshot() as database:
                key = (moment(database), reader)
                if self._shelved is not None and self._shelved[0] == key:
                    return self._shelved[1]
                facets = inventory.facets(database, store.worktree)
                state = store.state()
                embedded, chunks = store.progress(state.space) if state is not None else (0, 0)
        except StoreError as error:
            return Facets(False, trouble=self.harmless(reader, str(error)))
        shelf = Facets(
            exists=bool(facets),
            facets=tuple(facet for facet in facets if reader.may_see(facet.kind)),
            complete=embedded / chunks if chunks else 1.0,
        )
        self._shelved = (key, shelf)
        return shelf

    def search(self, reader: Reader, asked: Asked) -> Answer:
        """Answer a question with what the reader may see."""
        kinds: Sequence[str] = asked.kind
        if reader.kinds is not None:
            kinds = self._visible(reader, asked)
            if not kinds:
                return Answer(Mode(asked.mode), "nothing that you may read is indexed", None, None, ())
        answer = self._service.search(
            asked.query,
            k=asked.k,
            kind=kinds,
            project=asked.project,
            corpus=asked.corpus,
            path=asked.path,
            mode=asked.mode,
            min_score=asked.min_score,
            explain=asked.explain,
        )
        return self._for(reader, answer)

    def read(self, reader: Reader, *, path: str | None, hash: str | None, project: str) -> Document:
        """One artifact, if it is indexed and the reader may see it."""
        return documents.read(self.index, path=path, content_hash=hash, project=project, kinds=reader.kinds)

    def catalog(self, reader: Reader) -> Catalog:
        """What is indexed, counting only what the reader may see."""
        index = self.index
        return catalog(index.store, index.source, index.embedder, kinds=reader.kinds)

    def harmless(self, reader: Reader, text: str) -> str:
        """A message without the places on this machine, for somebody who is not at it."""
        if reader.local:
            return text
        store = self.index.store.path
        for place, shown in ((store, store.name), (self.index.source.root, self.project)):
            text = text.replace(str(place), shown)
        return text

    def _visible(self, reader: Reader, asked: Asked) -> tuple[str, ...]:
        """The kinds that are left of the ones asked for."""
        shelf = self.shelf(reader)
        there: Collection[Kind] = shelf.kinds()
        if not shelf.exists:
            listed = {ref.kind for ref in self.index.source.artifacts({}).refs}
            there = [kind for kind in Kind if kind in listed and reader.may_see(kind)]
        else:
            own = tuple("" if name == self.project else name for name in asked.project)
            _refuse("corpus", asked.corpus, shelf.corpora, UnknownCorpus)
            _refuse("project", own, shelf.projects, UnknownProject)
        _refuse("kind", asked.kind, there, UnknownKind)
        return asked.kind or tuple(there)

    def _for(self, reader: Reader, answer: Answer) -> Answer:
        reason = answer.reason if answer.reason is None else self.harmless(reader, answer.reason)
        stale = answer.stale
        if stale is not None and not reader.sees_files:
            # Revisions name check-ins, which are not for a reader without files.
            stale = Stale(None, "")
        return replace(answer, reason=reason, stale=stale)


def _refuse(
    noun: str,
    asked: Collection[str],
    there: Collection[str],
    error: type[UnknownCorpus] | type[UnknownKind] | type[UnknownProject],
) -> None:
    for name in asked:
        if name not in there:
            known = ", ".join(entry or "this one" for entry in there) or "none"
            raise error(f"no {noun} {str(name)!r} in this index", f"There is: {known}")

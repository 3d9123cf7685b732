"""``Index``, the public API; the only module that chooses adapters by name."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from outcrop.app import maintenance
from outcrop.config.settings import Settings, load_usable_settings
from outcrop.core.model import Answer, Mode, Record
from outcrop.core.names import check_corpus
from outcrop.core.protocols import Embedder, Source, TransferStore
from outcrop.core.reports import (
    BuildReport,
    CheckReport,
    ExportReport,
    ImportReport,
    NormaliseReport,
    Plan,
    Progress,
    Status,
    SyncReport,
    UpsertReport,
)
from outcrop.embedders.factory import is_model, make_embedder, other
from outcrop.errors import BadConfig, IndexMissing, OutcropError, UsageError
from outcrop.search.engine import search, search_all
from outcrop.search.parse import parse
from outcrop.search.query import Choice, Query, filter_of, mode_of
from outcrop.search.staleness import update_commands
from outcrop.sources.discover import find_root, open_source
from outcrop.sources.options import Options, exclude_store
from outcrop.stores.sqlite.store import SqliteStore
from outcrop.transfer import service

if TYPE_CHECKING:
    from outcrop.embedders.http.consent import Consent
    from outcrop.evaluation.probe import Candidate, Probe
    from outcrop.indexing.scope import Scope
    from outcrop.search.match import Matches


log = logging.getLogger(__name__)


class SearchOptions(TypedDict, total=False):
    """What :meth:`Index.search` takes beside the question, except ``explain``."""

    k: int
    kind: Choice
    project: Choice
    corpus: Choice
    path: Choice
    mode: str
    min_score: float | None


def open(  # noqa: A001
    path: str | os.PathLike[str] = ".",
    *,
    settings: Settings | Mapping[str, object] | None = None,
    rev: str | None = None,
    branch: str | None = None,
    consent: Consent | None = None,
) -> Index:
    """Open the repository or folder that a path is in. Nothing is written until ``build``.

    Args:
        path: A folder, any folder inside a git working tree or a Fossil checkout, or a Fossil repository file.
        settings: Whole ``Settings``, or single ones by name (``{"embedder": "hash"}``) over files and environment.
        rev: A commit to look at instead of the working tree (git only).
        branch: The branch whose files are meant instead of trunk's (Fossil only).
        consent: Asks before text leaves the machine, and remembers; None: it goes only where ``allow_remote`` says.

    Raises:
        NotARepository: No such folder, or ``rev`` outside a git repository.
        UsageError: ``branch`` outside a Fossil repository.
        BadConfig: A setting is wrong. If it is one of the user's own file, the index opens without that file, and only
            what would build, change or send something raises it.
    """
    found = find_root(Path(path), rev, branch)
    if not isinstance(settings, Settings):
        settings = load_usable_settings(found.root, settings)
    if settings.problem is not None:
        log.warning("%s; until that is corrected, nothing is built, changed or sent", settings.problem.what)
    options = Options(
        max_bytes=settings.max_bytes,
        exclude=(*settings.exclude, *exclude_store(settings.store, found.root)),
        include_secrets=settings.include_secrets,
        kinds=settings.kinds,
        raw_cells=settings.raw_cells,
        history=settings.history,
    )
    return Index(open_source(found, options), settings, consent)


class Index:
    """A repository or folder with its index, to be closed. ``store`` is not part of the public API."""

    def __init__(self, source: Source, settings: Settings, consent: Consent | None = None) -> None:
        self.source = source
        self.settings = settings
        self.embedder = make_embedder(settings, consent)
        self.consent = consent
        self.store = SqliteStore(
            settings.store or source.store_path(), source.worktree, shared=_is_shared(settings.store, source)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closing twice is fine."""
        self.store.close()

    def require_settings(self) -> None:
        """Raise where the user's own settings are not known: what they exclude, allow or name must not be guessed."""
        problem = self.settings.problem
        if problem is not None:
            raise BadConfig(problem.what, problem.fix)

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        kind: Choice = None,
        project: Choice = None,
        corpus: Choice = None,
        path: Choice = None,
        mode: str = "hybrid",
        min_score: float | None = None,
        explain: bool = False,
    ) -> Answer:
        """Find the passages that answer a question, best first, by default by meaning and by words.

        Args:
            kind: Only these kinds (``code``, ``doc`` …).
            project: Only these projects; ``''`` or this repository's own slug for this one.
            corpus: Only these corpora, searched as one ranking.
            path: Only paths that match one of these patterns, written as in a .gitignore (``*.py``, ``src/**``).
            mode: ``hybrid``, ``semantic`` or ``keyword``; the answer says where another one was used, and why.
            min_score: Leave out hits whose dot product is lower; keyword answers ignore it and say so.
            explain: Each hit says how its rank came about.

        Raises:
            UsageError: Empty query, unknown mode, or a kind, project or corpus that does not exist.
            StoreError: The index exists and cannot be used.
        """
        parsed = _query(query, k, kind, project, corpus, path, mode, min_score, explain)
        return self._with_update(search(parsed, self.store, self.source, self.embedder, self._search_files))

    def query(self, texts: Sequence[str], **options: Unpack[SearchOptions]) -> list[Answer]:
        """Answer several questions, embedded in one call, each as :meth:`search` does."""
        queries = [_query(text, **options) for text in texts]
        answers = search_all(queries, self.store, self.source, self.embedder, self._search_files)
        return [self._with_update(answer) for answer in answers]

    def _with_update(self, answer: Answer) -> Answer:
        problem, stale = self.settings.problem, answer.stale
        if problem is not None and answer.reason is not None:
            answer = replace(answer, reason=f"{problem.what}, so that its settings do not count; {answer.reason}")
        if stale is None:
            return answer
        return replace(answer, stale=replace(stale, update=update_commands(stale.corpora, dict(self.settings.corpora))))

    def _search_files(self, query: Query, reason: str | None) -> Answer:
        # Imported here: only a source without an index needs it.
        from outcrop.search.fallback import search_files

        self.require_settings()
        if reason is None and self.store.file.is_being_written():
            reason = "another process is making the first index"
        scopes = [self._scope(name, None, True) for name, _ in self.settings.corpora]
        return search_files(query, self.source, SqliteStore(None, self.source.worktree), scopes, reason)

    def match(self, documents: Sequence[str], queries: Sequence[str], *, k: int = 1) -> Matches:
        """Score every document for every query, with the ``k`` best; the ``hash`` embedder scores none, and says why.

        Raises:
            UsageError: A blank text.
            EmbedderError: As the embedder does.
        """
        # Imported here, as what follows: a search needs neither.
        from outcrop.search import match as matching

        if not is_model(self.settings):
            return matching.off(queries)
        return matching.match(documents, queries, self.embedder, k)

    def probe(self, notebook: Path | None = None, question: str | None = None, expected: str | None = None) -> Probe:
        """Test whether a passage is found by its meaning, with every embedder that is available here.

        Args:
            notebook: An ``.ipynb`` file, with which both others are needed; None for the bundled one.
            question: Worded unlike its answer.
            expected: A piece of the cell that answers it, and of no other.

        Raises:
            UsageError: Something is missing, or not exactly one cell holds the expected text.
        """
        from outcrop.evaluation import probe

        task = probe.load_task(notebook, question, expected)
        return probe.probe(task, list(probe_candidates(self.settings, self.consent)), lambda: SqliteStore(None))

    def build(
        self,
        *,
        corpus: str | None = None,
        paths: Iterable[str | os.PathLike[str]] | None = None,
        prune: bool = True,
        progress: Callable[[Progress], None] | None = None,
        rebuild: bool = False,
    ) -> BuildReport:
        """Bring the index up to date: chunk and embed what is new or changed, drop what was deleted.

        Args:
            corpus: A custom corpus; None for ``code`` and ``docs``, which hold everything there is.
            paths: All that belongs to that corpus: files, folders and patterns (``notes/**/*.ipynb``), absolute or from
                the root; None for those of the setting ``corpora``. Markdown cells of notebooks go to ``docs``.
            prune: Drop what an earlier build of this corpus put in and the list no longer names.
            rebuild: Embed it all again, into a new index that takes the place of the old one when it is complete; this
                also repairs a damaged index.

        Raises:
            UsageError: A corpus without paths or the other way round, or a path outside of the source.
            StoreLocked: Another process is building.
            EmbedderError: What was done so far is kept; the next build continues.
            StoreError: The index cannot be written.
        """
        self.require_settings()
        scope = self._scope(corpus, paths, prune)
        if rebuild and corpus is not None:
            raise UsageError("a rebuild is of the whole index, not of one corpus", "Clear that corpus, then build it")
        return self._build(self.embedder, scope, progress, rebuild=rebuild)

    def _build(
        self, embedder: Embedder, scope: Scope, progress: Callable[[Progress], None] | None, *, rebuild: bool
    ) -> BuildReport:
        # Imported here: a search never chunks.
        from outcrop.indexing.build import build

        named = self.settings.store is not None
        # With an index kept elsewhere the user has not asked for blobs in the repository.
        publisher = None if named or scope.corpus is not None else service.publisher(self.source, self.store)
        if rebuild:
            report = maintenance.rebuild(self.source, self.store, embedder, progress, publisher, scope, named=named)
        else:
            report = build(self.source, self.store, embedder, progress, publisher, scope)
        if self.store.is_shared:
            service.warn_of_readers(self.source, self.store.names().kinds)
        return report

    def import_blobs(
        self, folder: str | os.PathLike[str] | None = None, *, progress: Callable[[Progress], None] | None = None
    ) -> ImportReport:
        """Fill the index from vectors that came with the repository, or from an exported folder. No model is loaded.

        Raises:
            UsageError: A source that vectors do not travel with, or an export of something else.
            SpaceMismatch: The vectors are another model's than the embedder's.
            StoreError: There are none, or the index cannot be written.
        """
        self.require_settings()
        place = None if folder is None else Path(folder)
        return service.import_blobs(self.source, self.store, self.embedder.space, place, progress or (lambda _: None))

    def export(self, folder: str | os.PathLike[str] | None = None) -> ExportReport:
        """Write the vectors to a folder, or to the repository.

        Only what is in the commit that is checked out (git) or public at the tip (Fossil) is ever exported.
        """
        self.require_settings()
        return service.export(self.source, self.store, None if folder is None else Path(folder))

    def push(self, remote: str | None = None, *, unpublished: bool = False) -> SyncReport:
        """See :func:`outcrop.transfer.service.push`."""
        self.require_settings()
        return service.push(self.source, self.store, remote, unpublished)

    def pull(self, remote: str | None = None) -> SyncReport:
        """Fetch the vectors of another copy of the repository; ``import_blobs`` then fills the index."""
        self.require_settings()
        return service.pull(self.source, self.embedder.space, remote)

    def normalize(self) -> NormaliseReport:
        """Scale every stored vector to length 1, and rewrite every blob of the repository in the present format.

        Raises:
            FormatError: Blobs of older tools do not say how long their vectors are.
            StoreError: The index cannot be written.
        """
        from outcrop.transfer.sync import normalise

        self.require_settings()
        return normalise(self.store, service.transfer_of(self.source), self.embedder.space)

    def plan(
        self, *, corpus: str | None = None, paths: Iterable[str | os.PathLike[str]] | None = None, prune: bool = True
    ) -> Plan:
        """What ``build`` would do. Writes nothing and embeds nothing."""
        from outcrop.indexing.build import plan

        self.require_settings()
        return plan(self.source, self.store, self.embedder, self._scope(corpus, paths, prune))

    def _scope(self, corpus: str | None, paths: Iterable[str | os.PathLike[str]] | None, prune: bool) -> Scope:
        from outcrop.indexing.scope import Scope, custom_scope

        if corpus is not None and paths is None:
            paths = dict(self.settings.corpora).get(corpus)
        if (corpus is None) != (paths is None):
            raise UsageError(
                "a custom corpus needs a name and the paths that belong to it",
                "Give both, or set the paths permanently: corpora",
            )
        if corpus is None or paths is None:
            return Scope(raw_cells=self.settings.raw_cells)
        return custom_scope(corpus, paths, self.source.root, prune, self.settings.raw_cells)

    def upsert(self, records: Sequence[Record], *, corpus: str = "records") -> UpsertReport:
        """Add texts of the caller, or replace those of the same id; what did not change is not embedded again.

        They belong to every view, no build prunes them, and they are never exported.

        Raises:
            UsageError: One of them is not valid; nothing is stored then.
            StoreLocked: Another process is writing.
            EmbedderError: The records are stored; the next call embeds what is left.
        """
        from outcrop.indexing.upsert import upsert

        self.require_settings()
        return upsert(records, check_corpus(corpus), self.store, self.embedder)

    def remove(self, ids: Collection[str], *, corpus: str = "records") -> int:
        """Returns how many of them were there."""
        from outcrop.indexing.upsert import remove

        self.require_settings()
        return remove(ids, corpus, self.store)

    def status(self) -> Status:
        """What is indexed, and whether it is current. Sends nothing, loads no model."""
        return maintenance.status(self.source, self.store, self.embedder, dict(self.settings.corpora))

    def check(self, *, repair: bool = False, progress: Callable[[Progress], None] | None = None) -> CheckReport:
        """Compare every stored passage, vector and word with its checksum and with each other, and blobs with them.

        Args:
            repair: Make again what is damaged, and only that.

        Raises:
            IndexMissing: There is no index.
            StoreLocked: Another process is building.
            EmbedderError: As of ``build``; what is damaged is removed then, and the next build makes it.
        """
        started = time.perf_counter()
        if repair:
            self.require_settings()
        if not self.store.path.exists():
            raise IndexMissing("there is no index to check", "Run: outcrop index")
        transfer = None if self.settings.store else service.transfer_of(self.source)
        found = left = maintenance.find_damage(self.store, transfer)
        embedded, lost = 0, list[str]()
        if repair and (found.damage or found.tables.pending):
            with self.store.file.locked():
                embedded, lost = self._repair(found, transfer, progress)
            left = maintenance.find_damage(self.store, transfer)
        return CheckReport(
            store=str(self.store.path),
            passages=left.tables.passages,
            vectors=left.tables.vectors,
            blobs=left.blobs,
            damage=found.damage,
            left=left.damage,
            repaired=repair and bool(found.damage or found.tables.pending),
            embedded=embedded,
            pending=left.tables.pending,
            lost=tuple(lost),
            seconds=time.perf_counter() - started,
        )

    def _repair(
        self, found: maintenance.Checked, transfer: TransferStore | None, progress: Callable[[Progress], None] | None
    ) -> tuple[int, list[str]]:
        """Returns how many passages were embedded again, and records that are lost."""
        lost: list[str] = []
        custom: list[str] = []
        if found.tables.is_broken:
            # The present vectors are lost with the tables only where they cannot be read.
            salvaged = maintenance.salvage(self.store, self.embedder)
            report = self._build(salvaged, self._scope(None, None, True), progress, rebuild=True)
            embedded = report.embedded - salvaged.reused
        else:
            built = self.store.revisions()
            custom = [name for name, _ in self.settings.corpora if name in built]
            lost = self.store.remove_damage(found.tables)
            embedded = self.build(progress=progress).embedded
        embedded += sum(self.build(corpus=name, progress=progress).embedded for name in custom)
        if transfer is not None and found.damaged_blobs:
            transfer.replace({}, [item.path for item in found.damaged_blobs])
            service.export(self.source, self.store, None)
        return embedded, lost

    def clear(self, *, corpus: str | None = None, space: str | None = None) -> int:
        """Drop a corpus of this view with its records, a space, or (without arguments) everything. Returns bytes freed.

        Raises:
            UsageError: No such corpus or space.
            StoreLocked: Another process is building.
        """
        self.require_settings()
        return maintenance.clear(self.store, corpus, space, named=self.settings.store is not None)


def _query(
    text: str,
    k: int = 10,
    kind: Choice = None,
    project: Choice = None,
    corpus: Choice = None,
    path: Choice = None,
    mode: str = Mode.HYBRID,
    min_score: float | None = None,
    explain: bool = False,
) -> Query:
    return parse(text, mode_of(mode), k, filter_of(kind, project, corpus, path), min_score, explain)


def _is_shared(store: Path | None, source: Source) -> bool:
    if store is None:
        return source.type == "fossil"
    # Imported here: a path for the index is rarely given.
    from outcrop.vcs.fossil import is_repository

    return store.is_file() and is_repository(store)


def probe_candidates(settings: Settings, consent: Consent | None = None) -> Iterator[Candidate]:
    """The embedder that is set, then every other one that may be usable without sending text off the machine."""
    # Imported here: an index needs none of this.
    from outcrop.embedders import check
    from outcrop.evaluation.probe import Candidate

    yield Candidate(settings.embedder, make_embedder(settings, consent), True, is_model(settings))
    for name in ("local", "ollama", "endpoint", "hash"):
        if name == settings.embedder or (name == "endpoint" and settings.endpoint_url is None):
            continue
        chosen = other(settings, name)
        try:
            embedder: Embedder | OutcropError = make_embedder(chosen, consent)
        except OutcropError as error:
            embedder = error
        if not isinstance(embedder, OutcropError) and check.status(embedder).leaves is not False:
            continue
        yield Candidate(name, embedder, False, is_model(chosen))

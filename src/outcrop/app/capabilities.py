"""What a host can ask for by name, with plain JSON values: the ``vectors.*`` registry, for ``outcrop call`` too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt
from pydantic_core import to_jsonable_python

from outcrop.app import index as app
from outcrop.app.index import Index
from outcrop.chunking.workers import pool
from outcrop.chunking.workers.pool import Cut, Text
from outcrop.core import model
from outcrop.core.model import Kind, Mode
from outcrop.core.reports import BuildReport, Status, UpsertReport
from outcrop.core.schema import CONFIG, Operation
from outcrop.embedders import check
from outcrop.errors import UsageError
from outcrop.text.kinds import kind_of

Names = str | list[str] | None
Paths = Annotated[str | list[str] | None, Field(description="only paths that match a pattern in .gitignore syntax")]
Corpora = Annotated[Names, Field(description="only these corpora, as one ranking")]


class DocumentFields(BaseModel):
    """A text to be cut."""

    model_config = CONFIG

    text: Annotated[str, Field(description="the whole text; a notebook's JSON")]
    path: Annotated[str | None, Field(description="its path: decides how it is cut, and its kind")] = None
    kind: Annotated[Kind | None, Field(description="what it is, where the path does not say it")] = None


class RecordFields(BaseModel):
    """A text of the caller's own."""

    model_config = CONFIG

    id: Annotated[str, Field(description="the caller's own name for it, unique in its corpus")]
    text: Annotated[str, Field(description="what is embedded and found")]
    kind: Annotated[Kind, Field(description="doc unless given")] = Kind.DOC
    path: Annotated[str | None, Field(description="a path to be shown and filtered by")] = None
    project: Annotated[str, Field(description="slug of the project it belongs to; empty for this one")] = ""
    metadata: Annotated[dict[str, Any], Field(description="any JSON object; comes back in hits")] = {}


def embed(
    index: Index,
    *,
    texts: Annotated[list[str], Field(description="what to embed")],
    role: Annotated[Literal["passage", "query"], Field(description="a text to be found, or a question")] = "passage",
) -> dict[str, Any]:
    """Turn texts into vectors with the embedder that is set.

    Returns ``space``, ``dim``, ``address`` (null when the text stayed in the process) and ``vectors``, one list of
    numbers a text, each of length 1.
    """
    embedder = index.embedder
    made = embedder.embed_passages(texts) if role == "passage" else embedder.embed_queries(texts)
    return {
        "space": embedder.space.id,
        "dim": embedder.space.dim,
        "address": embedder.address,
        "vectors": made.tolist(),
    }


def chunk(
    index: Index, *, documents: Annotated[list[DocumentFields], Field(description="what to cut")]
) -> dict[str, Any]:
    """Cut documents into passages exactly as a build does, storing and embedding nothing.

    Returns ``documents``: for each its ``path``, ``kind``, ``chunks`` (with ``seq``, ``text``, ``first_line``,
    ``last_line``, ``name``, ``part``, ``cell``, ``cell_id`` and ``seconds``), ``error`` (null, or why it could not be
    cut) and ``cut_by_lines`` (null, or why its structure could not be read).
    """
    texts = [Text(each.text, each.path, _kind(index, each)) for each in documents]
    return {
        "documents": [
            _fields(text, cut) for text, cut in pool.cut_all((text, text) for text in texts) if cut is not None
        ]
    }


def _kind(index: Index, document: DocumentFields) -> Kind:
    path = document.path
    return document.kind or (Kind.DOC if path is None else kind_of(path, index.settings.kinds))


def _fields(text: Text, cut: Cut) -> dict[str, Any]:
    error = cut.error and cut.error.what
    return {
        "path": text.path,
        "kind": text.kind,
        "chunks": cut.chunks,
        "error": error,
        "cut_by_lines": cut.by_lines or None,
    }


def build(
    index: Index,
    *,
    corpus: Annotated[
        str | None, Field(description="name of a custom corpus; null for the two that every index has")
    ] = None,
    paths: Annotated[
        list[str] | None, Field(description="files, folders and patterns that are the corpus, from the root")
    ] = None,
    prune: Annotated[
        StrictBool, Field(description="forget what this corpus's builds put in and the list no longer names")
    ] = True,
    rebuild: Annotated[StrictBool, Field(description="drop everything first and embed it all again")] = False,
) -> BuildReport:
    """Bring a corpus up to date: the paths that are named are the corpus, what is unchanged is left alone.

    Returns ``revision``, the counts ``added``, ``unchanged``, ``removed``, ``chunks``, ``embedded``, ``reused``,
    ``characters`` and ``cut``, ``skipped`` (each with ``path``, ``reason`` and ``detail``),
    ``cut_by_lines`` (each with ``path`` and ``reason``), ``seconds`` and ``complete``.
    """
    return index.build(corpus=corpus, paths=paths, prune=prune, rebuild=rebuild)


def upsert(
    index: Index,
    *,
    records: Annotated[list[RecordFields], Field(description="texts of the caller's own")],
    corpus: Annotated[str, Field(description="the corpus that they are found in")] = "records",
) -> UpsertReport:
    """Put records in, or replace those of the same id; what did not change is not embedded again.

    Returns the counts ``added``, ``changed``, ``unchanged``, ``embedded``, ``reused`` and ``characters``, and
    ``seconds``.
    """
    return index.upsert([model.Record(**dict(record)) for record in records], corpus=corpus)


def index_status(index: Index) -> Status:
    """Say what is indexed, where, and how current it is. Sends nothing, loads no model.

    Returns what ``outcrop status --json`` prints: ``collections`` with their sizes, ``stale``, ``complete``, ``space``,
    ``embedder`` and ``address`` among others.
    """
    return index.status()


def query(
    index: Index,
    *,
    texts: Annotated[list[str], Field(description="the questions")],
    corpus: Corpora = None,
    kind: Annotated[Names, Field(description="only these kinds")] = None,
    project: Annotated[Names, Field(description="only these projects; empty for this one")] = None,
    path: Paths = None,
    k: Annotated[StrictInt, Field(description="how many hits for each question at most")] = 10,
    min_score: Annotated[StrictFloat | None, Field(description="leave out hits whose vectors are less near")] = None,
    mode: Annotated[Mode, Field(description="by meaning and words, by meaning, or by words")] = Mode.HYBRID,
) -> dict[str, Any]:
    """Answer several questions at once; they are embedded in one call.

    Returns ``answers``, one a question, in order, each with ``mode``, ``reason``, ``stale``, ``space`` and ``hits``.
    """
    answers = index.query(
        texts, corpus=corpus, kind=kind, project=project, path=path, k=k, min_score=min_score, mode=mode
    )
    return {"answers": answers}


def clear(
    index: Index,
    *,
    corpus: Annotated[
        str | None, Field(description="drop this corpus, or only the records of it that ids names")
    ] = None,
    ids: Annotated[list[str] | None, Field(description="drop the records with these ids")] = None,
    space: Annotated[str | None, Field(description="drop the vectors of this space")] = None,
    everything: Annotated[StrictBool, Field(description="drop the whole index")] = False,
) -> dict[str, Any]:
    """Drop records by id, a corpus, the vectors of a space, or everything. The files themselves are not touched.

    Returns ``freed`` (bytes on disk) and ``removed`` (records that were named by id).
    """
    if ids is not None and not space and not everything:
        return {"freed": 0, "removed": index.remove(ids, corpus=corpus or "records")}
    if sum(map(bool, (corpus, space, everything))) != 1 or ids is not None:
        raise UsageError("vectors.index.clear takes exactly one of corpus, space, ids and everything", "Name one")
    return {"freed": index.clear(corpus=corpus, space=space), "removed": 0}


def embedder_status(index: Index) -> check.EmbedderStatus:
    """Say which embedder is set and where it sends text. Sends nothing.

    Returns ``space``, ``model``, ``dim``, ``max_tokens``, ``address``, ``leaves``, ``allowed``, ``token`` (its name)
    and ``proxy``.
    """
    return check.status(index.embedder)


def embedder_test(index: Index) -> check.EmbedderTest:
    """Embed four test sentences in one real call, and say whether meaning brings two of them together.

    Returns ``space``, ``address``, ``seconds``, ``dim``, ``norm``, ``near``, ``far`` and ``understands``.
    """
    return check.test(index.embedder)


def probe(
    index: Index,
    *,
    notebook: Annotated[str | None, Field(description="an .ipynb file; null for the bundled one")] = None,
    question: Annotated[str | None, Field(description="worded unlike its answer")] = None,
    expected: Annotated[str | None, Field(description="a piece of the cell that answers it")] = None,
) -> Any:
    """Ask one notebook a question through the shipped query, with every embedder that is available.

    Returns ``question``, ``expected``, ``cell``, ``cells``, ``columns`` (one an embedder), ``control`` (the same words
    by keyword) and ``passed``.
    """
    return index.probe(None if notebook is None else Path(notebook), question, expected)


# Every capability by its name.
REGISTRY: Mapping[str, Operation] = {
    each.name: each
    for each in (
        Operation("vectors.embed", embed),
        Operation("vectors.chunk", chunk),
        Operation("vectors.index.build", build),
        Operation("vectors.index.upsert", upsert),
        Operation("vectors.index.status", index_status),
        Operation("vectors.query", query),
        Operation("vectors.index.clear", clear),
        Operation("vectors.embedder.status", embedder_status),
        Operation("vectors.embedder.test", embedder_test),
        Operation("vectors.probe", probe),
    )
}


def call(
    name: str,
    args: Mapping[str, Any] | None = None,
    *,
    index: Index | None = None,
    directory: str | os.PathLike[str] = ".",
) -> Any:
    """Run a capability of :data:`REGISTRY` on an index (None: the one of ``directory``) and return plain JSON values.

    Raises:
        UsageError: No such capability, or an argument that is missing, unknown or mistyped; it is named.
        OutcropError: As the capability does.
    """
    capability = REGISTRY.get(name)
    if capability is None:
        raise UsageError(f"there is no capability {name!r}", f"There is: {', '.join(REGISTRY)}")
    arguments = capability.check(args or {})
    if index is not None:
        return to_jsonable_python(capability.function(index, **arguments))
    with app.open(directory) as opened:
        return to_jsonable_python(capability.function(opened, **arguments))

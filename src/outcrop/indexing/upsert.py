"""Records: a caller's own texts, which belong to no file and are found like any passage."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from outcrop import chunking
from outcrop.chunking import digest
from outcrop.chunking.workers import pool
from outcrop.chunking.workers.pool import Cut, Text
from outcrop.core.model import Filter, Kind, Part, Record, Ref
from outcrop.core.protocols import ChunkWriter, Embedder
from outcrop.core.reports import UpsertReport
from outcrop.core.rows import Digested, Entry, RecordEntry
from outcrop.errors import UsageError
from outcrop.indexing.build import embed_pending, words_only

# SQLite stores none.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def upsert(records: Sequence[Record], corpus: str, store: ChunkWriter, embedder: Embedder) -> UpsertReport:
    """Of two records with the same id the last one counts. The embedder's space is searched from now on."""
    started = time.perf_counter()
    texts = [(record, _text(record, place)) for place, record in enumerate(records)]
    entries = {record.id: _entry(record, cut) for record, cut in pool.cut_all(texts) if cut is not None}
    with store.writing():
        done = store.upsert(corpus, list(entries.values()), embedder.space)
        # Records have no builder, so that no build removes them.
        wanted = Filter(corpora=(corpus,), builders=("",))
        counts = embed_pending(store, embedder, lambda _: None, wanted)
    return UpsertReport(
        added=done.added,
        changed=done.changed,
        unchanged=done.unchanged,
        embedded=counts.embedded,
        reused=done.reused,
        characters=counts.characters,
        cut=counts.cut,
        seconds=time.perf_counter() - started,
        words_only=words_only(store, embedder.space, wanted),
    )


def remove(ids: Collection[str], corpus: str, store: ChunkWriter) -> int:
    if not ids or not store.exists:
        return 0
    with store.writing():
        return store.remove_records(corpus, [each for each in ids if not _LONE_SURROGATE.search(each)])


def _text(record: Record, place: int) -> Text:
    """What is cut of a record that is valid."""
    where = f"records[{place}]"
    if not record.id or "\0" in record.id:
        raise UsageError(f"{where}.id cannot be {record.id!r}", "It takes a text")
    if not record.text.strip():
        raise UsageError(f"{where}.text is blank", "Leave the record out")
    if record.kind is Kind.COMMIT:
        raise UsageError(f"{where}.kind cannot be commit", "Commits are those of the repository itself")
    for name in ("id", "text", "path", "project"):
        if _LONE_SURROGATE.search(getattr(record, name) or ""):
            raise UsageError(f"{where}.{name} holds half a surrogate pair, which is no character", "It takes Unicode")
    try:
        _json(record)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}.metadata is not JSON ({error})", "It takes an object of plain values") from None
    # A record is one text, whatever its path ends in.
    path = None if chunking.format_of(record.path, record.kind) == "notebook" else record.path
    return Text(record.text, path, record.kind)


def _entry(record: Record, cut: Cut) -> RecordEntry:
    # JSON has an escape for a lone surrogate.
    metadata = _json(record).encode("utf-8", "backslashreplace").decode()
    # A file that begins with a zero byte is no text, so no artifact of a source has this hash.
    key = hashlib.sha3_256(f"\0{record.id}\0{record.text}".encode("utf-8", "surrogatepass")).hexdigest()
    chunks = [replace(each, part=Part.WHOLE, seconds=None) for each in cut.chunks]
    recipe = f"{chunking.VERSION}/record/{record.kind}/{record.path or ''}"
    ref = Ref(key, record.kind, record.path, key)
    entry = Entry(ref, recipe, [Digested(each, digest(each)) for each in chunks], detail=cut.by_lines)
    return RecordEntry(record.id, record.project, metadata, entry)


def _json(record: Record) -> str:
    return json.dumps(record.metadata, ensure_ascii=False, sort_keys=True, allow_nan=False)

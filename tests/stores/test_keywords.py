"""The keyword index answers alike however its rows were written."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from outcrop.core.model import Chunk, Filter, Kind, Part, Ref, Space
from outcrop.core.rows import Digested, Entry, Member, View
from outcrop.stores.sqlite import writer
from outcrop.stores.sqlite.store import SqliteStore


def entry(number: int) -> Entry:
    name = f"h{number:03}"
    texts = [f"word{number % 7} part{part} text of {name}" for part in range(5)]
    cut = [
        Digested(Chunk(seq, text, 0, len(text), seq + 1, seq + 1), hashlib.sha256(text.encode()).digest())
        for seq, text in enumerate(texts)
    ]
    return Entry(Ref(name, Kind.CODE, f"src/{name}.py", name), "1/toy", cut)


def view(count: int) -> View:
    members = [Member("code", "code", f"h{n:03}", Part.WHOLE, f"src/h{n:03}.py", Kind.CODE) for n in range(count)]
    return View(("code", "docs"), members, {}, (), frozenset({""}))


def test_a_shared_database_gets_whole_artifacts_in_short_transactions(
    tmp_path: Path, sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader between two transactions sees all of an artifact or nothing, and a stopped write keeps what it wrote."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(writer, "SHARED_BATCH", 12)
    entries = [entry(number) for number in range(30)]
    repository = sample.copy(tmp_path)
    seen: list[set[int]] = []
    whole = writer.prepare

    def prepare(some, project=""):
        with sqlite3.connect(repository) as reader:
            if reader.execute("SELECT 1 FROM sqlite_master WHERE name = 'fx_vec_chunk'").fetchone():
                seen.append({row[0] for row in reader.execute("SELECT count(*) FROM fx_vec_chunk GROUP BY hash")})
                assert not reader.execute("SELECT 1 FROM fx_vec_member").fetchone()
        reader.close()
        if len(seen) == 10 and stop:
            raise KeyboardInterrupt
        return whole(some, project)

    monkeypatch.setattr(writer, "prepare", prepare)
    stop = True
    store = SqliteStore(repository, shared=True)
    with store.writing():
        with pytest.raises(KeyboardInterrupt):
            store.write(entries, Space("toy", 2), view(30))
        assert set().union(*seen) == {5}
        assert 10 < len(store.known()) < 30
        assert store.interrupted()
        assert store.keyword(["word1"], 99, Filter()) == []
        assert store.built() is None
        stop = False
        assert store.write(entries, Space("toy", 2), view(30)).chunks == 150
    monkeypatch.setattr(writer, "prepare", whole)
    plain = SqliteStore(tmp_path / "plain.sqlite")
    with plain.writing():
        plain.write(entries, Space("toy", 2), view(30))

    def answers(one: SqliteStore, word: str) -> list[tuple[str, int, float]]:
        found = one.keyword([word], 200, Filter())
        passages = one.passages([item.id for item in found], Filter())
        return sorted((passages[item.id].hash, passages[item.id].chunk.seq, round(item.score, 9)) for item in found)

    for word in ("word1", "part3", "h007", "src"):
        assert answers(store, word) == answers(plain, word)
        assert answers(store, word)
    store.close()
    plain.close()


def test_scores_among_some_kinds_are_those_of_an_index_that_holds_no_others() -> None:
    def ticket(number: int) -> Entry:
        text = f"word1 part2 ticket {number} " * number
        cut = [Digested(Chunk(0, text, 0, len(text), 1, 1), hashlib.sha256(text.encode()).digest())]
        return Entry(Ref(f"t{number}", Kind.TICKET, None, "1"), "1/toy", cut)

    def filled(tickets: int) -> SqliteStore:
        plain = view(30)
        members = [Member("docs", "docs", f"t{number}", Part.WHOLE, None, Kind.TICKET) for number in range(tickets)]
        entries = [*(entry(number) for number in range(30)), *(ticket(number) for number in range(tickets))]
        store = SqliteStore(None)
        with store.writing():
            store.write(entries, Space("toy", 2), replace(plain, members=[*plain.members, *members]))
        return store

    words = ["word1", "part2", "text of", "src", "h003", "ticket", "absent"]
    alone, among = (filled(tickets).keyword(words, 99, Filter(kinds=(Kind.CODE, Kind.FORUM))) for tickets in (0, 150))
    assert [(each.id, each.score) for each in among] == [
        (each.id, pytest.approx(each.score, rel=1e-12)) for each in alone
    ]
    assert len({each.score for each in alone}) > 3
    assert among == filled(1).keyword(words, 99, Filter(kinds=(Kind.CODE,)))
    assert filled(1).keyword(words, 99, Filter(kinds=(Kind.FORUM,))) == []

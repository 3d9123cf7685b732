"""Fossil's formats: deltas, compressed contents, structured artifacts."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import zlib
from pathlib import Path

import pytest
from fossil_program import SampleRepository
from hypothesis import given
from hypothesis import strategies as st

from outcrop.errors import ArtifactUnreadable
from outcrop.vcs import fossil_artifacts as fossil
from outcrop.vcs.fossil import read_content

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"


def number(value: int) -> bytes:
    digits = ""
    while value or not digits:
        digits = DIGITS[value % 64] + digits
        value //= 64
    return digits.encode()


def checksum(data: bytes) -> int:
    padded = data + b"\0" * (-len(data) % 4)
    return sum(int.from_bytes(padded[at : at + 4], "big") for at in range(0, len(padded), 4)) % 2**32


def stored(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + zlib.compress(data)


@st.composite
def deltas(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A source, a valid delta against it, and what it gives."""
    source = draw(st.binary(min_size=1, max_size=300))
    result, body = b"", b""
    for literal in draw(st.lists(st.booleans(), max_size=6)):
        if literal:
            part = draw(st.binary(min_size=1, max_size=100))
            body += number(len(part)) + b":" + part
        else:
            offset = draw(st.integers(0, len(source) - 1))
            length = draw(st.integers(1, len(source) - offset))
            part = source[offset : offset + length]
            body += number(length) + b"@" + number(offset) + b","
        result += part
    return source, number(len(result)) + b"\n" + body + number(checksum(result)) + b";", result


@given(deltas())
def test_a_delta_gives_what_it_was_made_for(case: tuple[bytes, bytes, bytes]) -> None:
    source, delta, result = case
    assert fossil.apply_delta(source, delta) == result


@given(deltas(), st.data())
def test_a_damaged_delta_is_an_error_or_harmless(case: tuple[bytes, bytes, bytes], data: st.DataObject) -> None:
    source, delta, result = case
    at = data.draw(st.integers(0, len(delta) - 1))
    damaged = delta[:at] + bytes([delta[at] ^ data.draw(st.integers(1, 255))]) + delta[at + 1 :]
    with contextlib.suppress(ArtifactUnreadable):
        assert len(fossil.apply_delta(source, damaged)) == len(result)


@given(deltas())
def test_a_truncated_delta_is_an_error(case: tuple[bytes, bytes, bytes]) -> None:
    source, delta, _ = case
    with pytest.raises(ArtifactUnreadable):
        fossil.apply_delta(source, delta[:-1])


def test_a_delta_of_the_real_program(sample: SampleRepository, tmp_path: Path) -> None:
    old, new, delta = tmp_path / "old", tmp_path / "new", tmp_path / "delta"
    old.write_bytes(b"".join(b"line %d of many\n" % n for n in range(2000)))
    new.write_bytes(old.read_bytes().replace(b"line 77 ", b"LINE 77 ") + b"the end\n")
    sample.fossil.run("test-delta-create", old, new, delta)
    assert len(delta.read_bytes()) < 400
    assert fossil.apply_delta(old.read_bytes(), delta.read_bytes()) == new.read_bytes()


@given(st.binary(max_size=500))
def test_a_content_is_inflated_whole(data: bytes) -> None:
    assert fossil.inflate(stored(data)) == data
    with pytest.raises(ArtifactUnreadable):
        fossil.inflate(stored(data + b"x")[:-1])


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\x05" + zlib.compress(b"four"),
        b"\0\0\0\x03" + zlib.compress(b"four"),
        b"\0\0\0\x04nothing compressed",
        b"\xff\xff\xff\xff" + zlib.compress(b"four"),
    ],
)
def test_a_content_that_is_not_what_it_says(damaged: bytes) -> None:
    with pytest.raises(ArtifactUnreadable):
        fossil.inflate(damaged)


@given(st.binary(max_size=200))
def test_nothing_but_unreadable_comes_out_of_any_bytes(data: bytes) -> None:
    for read in (fossil.inflate, lambda delta: fossil.apply_delta(b"source", delta), fossil.parse_cards):
        with contextlib.suppress(ArtifactUnreadable):
            read(data)


def test_both_hashes_are_checked() -> None:
    data = b"content"
    assert fossil.is_authentic(data, hashlib.sha1(data).hexdigest())
    assert fossil.is_authentic(data, hashlib.sha3_256(data).hexdigest())
    assert not fossil.is_authentic(data, hashlib.sha256(data).hexdigest())


MANIFEST = b"""\
C a\\scomment
D 2024-05-06T07:08:09.123
F README.md 1111
F a\\sb.md 2222 x
F link 3333 l
F new.py 4444 w old.py
U alice
Z 0
"""


def test_the_files_of_a_manifest() -> None:
    assert fossil.files_of(fossil.parse_cards(MANIFEST)) == [
        fossil.FileCard(b"README.md", "1111", False),
        fossil.FileCard(b"a b.md", "2222", False),
        fossil.FileCard(b"link", "3333", True),
        fossil.FileCard(b"new.py", "4444", False),
    ]


def test_a_delta_manifest_changes_adds_and_removes() -> None:
    baseline = fossil.files_of(fossil.parse_cards(MANIFEST))
    cards = fossil.parse_cards(b"B base\nC x\nF README.md 5555\nF link\nF more 6666\nZ 0\n")
    assert fossil.baseline_of(cards) == "base"
    merged = fossil.merge_files(baseline, fossil.files_of(cards))
    assert {card.name: card.uuid for card in merged} == {
        b"README.md": "5555",
        b"a b.md": "2222",
        b"new.py": "4444",
        b"more": "6666",
    }


def test_a_clear_signed_manifest_reads_the_same() -> None:
    signed = b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\n" + MANIFEST
    signed += b"-----BEGIN PGP SIGNATURE-----\n\niQEzBAEB\n-----END PGP SIGNATURE-----\n"
    assert fossil.parse_cards(signed) == fossil.parse_cards(MANIFEST)


def test_text_may_hold_whatever_looks_like_cards() -> None:
    text = b"F not a card\n\nZ neither\n"
    cards = fossil.parse_cards(b"D 2024\nL Page\nW %d\n%s\nZ 0\n" % (len(text), text))
    assert fossil.text_of(cards) == text
    assert cards[-1].letter == b"Z"


@pytest.mark.parametrize("text", [b"lower case\n", b"W 9\nshort\n", b"W x\n\n", b"AB c\n"])
def test_what_is_no_artifact(text: bytes) -> None:
    with pytest.raises(ArtifactUnreadable):
        fossil.parse_cards(text)


@given(st.binary(max_size=60))
def test_escapes_are_undone(argument: bytes) -> None:
    escaped = argument.replace(b"\\", b"\\\\")
    for char, letter in ((b" ", b"s"), (b"\n", b"n"), (b"\t", b"t"), (b"\r", b"r"), (b"\v", b"v"), (b"\f", b"f")):
        escaped = escaped.replace(char, b"\\" + letter)
    assert fossil.unescape(escaped.replace(b"\0", b"\\0")) == argument


def change(*fields: tuple[str, str]) -> list[fossil.Card]:
    return [fossil.Card(b"J", (name.encode(), value.replace(" ", "\\s").encode())) for name, value in fields]


def test_a_ticket_is_its_title_and_one_post_per_comment() -> None:
    changes = [
        change(("comment", "first"), ("title", "It broke")),
        change(("+comment", "second")),
        change(("icomment", "third"), ("status", "Closed")),
    ]
    assert fossil.ticket_text(changes) == b"It broke\n\nfirst\n\f\nsecond\n\f\nthird"


def test_a_rewritten_comment_replaces_all_of_the_field_and_keeps_its_place() -> None:
    changes = [
        change(("comment", "first"), ("title", "It broke")),
        change(("+comment", "second")),
        change(("icomment", "third")),
        change(("comment", "rewritten"), ("title", "It is broken")),
    ]
    assert fossil.ticket_text(changes) == b"It is broken\n\nrewritten\n\f\nthird"


def test_a_ticket_may_lack_a_title_or_comments() -> None:
    assert fossil.ticket_text([change(("title", "Only a title"))]) == b"Only a title"
    assert fossil.ticket_text([change(("icomment", "only words"))]) == b"\nonly words"
    assert fossil.ticket_text([change(("status", "Open"))]) == b""


def test_a_form_feed_in_a_comment_does_not_part_it() -> None:
    assert fossil.post_text(b"T", [b"one\n\f\ntwo\n", b"\nthree"], titled=True) == b"T\n\none\n \ntwo\n\f\nthree"


def test_a_reply_stands_below_the_title_of_its_thread() -> None:
    assert fossil.post_text(b"Thread", [b"reply"], titled=False) == b"Thread\n\f\nreply"


def test_a_chain_of_deltas_makes_so_many_bytes_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"water boils at a hundred degrees\n"
    same = number(len(text)) + b"\n" + number(len(text)) + b"@" + number(0) + b"," + number(checksum(text)) + b";"
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE blob(rid INTEGER PRIMARY KEY, size INTEGER, content BLOB)")
    database.execute("CREATE TABLE delta(rid INTEGER PRIMARY KEY, srcid INTEGER)")
    database.execute("INSERT INTO blob VALUES(0, ?, ?)", (len(text), stored(text)))
    for rid in range(1, 9):
        database.execute("INSERT INTO blob VALUES(?, ?, ?)", (rid, len(text), stored(same)))
        database.execute("INSERT INTO delta VALUES(?, ?)", (rid, rid - 1))
    name = hashlib.sha3_256(text).hexdigest()
    assert read_content(database, name, 8) == text
    monkeypatch.setattr("outcrop.vcs.fossil._MAX_CHAIN_BYTES", 8 * len(text))
    assert read_content(database, name, 7) == text
    with pytest.raises(ArtifactUnreadable, match="more than any content needs"):
        read_content(database, name, 8)
    database.close()

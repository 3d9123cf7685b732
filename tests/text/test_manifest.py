"""Media manifests: what is one, what is wrong with one, where its transcript is, and the URI of a moment."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.core.model import Manifest
from outcrop.errors import IntegrityError, ManifestError
from outcrop.text.manifest import (
    FIELDS,
    LARGEST,
    check_asset,
    parse_manifest,
    serialize_manifest,
    transcript_paths,
    with_time,
)

GOLDEN = (Path(__file__).parent.parent / "golden" / "manifest.json").read_text("utf-8")
EMPTY = "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"
TALK = Manifest(
    uri="https://media.example.org/talks/2026-06-fossil.mp4",
    sha3=EMPTY,
    mime="video/mp4",
    bytes=812345678,
    transcript="media/talks/2026-06-fossil.txt",
)


def changed(**values: object) -> str:
    return json.dumps(json.loads(GOLDEN) | values)


def without(*names: str) -> str:
    return json.dumps({name: value for name, value in json.loads(GOLDEN).items() if name not in names})


def test_the_golden_manifest_is_read_and_written_to_the_byte() -> None:
    assert parse_manifest(GOLDEN) == TALK
    assert serialize_manifest(TALK) == GOLDEN


def test_the_golden_hash_is_sha3_256() -> None:
    assert hashlib.sha3_256(b"").hexdigest() == EMPTY


def test_a_manifest_may_hold_more_and_be_written_anyhow() -> None:
    assert parse_manifest("\ufeff\n" + changed(title="A talk", sha3=EMPTY.upper(), tags=[1, {"a": None}])) == TALK


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (without("uri"), "uri is missing"),
        (without("sha3", "bytes"), "sha3 is missing; bytes is missing"),
        (changed(uri=""), "uri is empty"),
        (changed(uri="my talk.mp4"), "uri has a space or a control character (write %20 for a space)"),
        (changed(uri="a\nb"), "uri has a space or a control character (write %20 for a space)"),
        (changed(uri="JavaScript:alert(1)"), "uri cannot name an asset: JavaScript:alert(1)"),
        (changed(uri="data:video/mp4;base64,AAAA"), "uri cannot name an asset: data:video/mp4;base64,AAAA"),
        (changed(uri=["https://a"]), "uri is not a string"),
        (changed(uri="https://a/\ud800"), "uri has half of a character (a lone surrogate)"),
        (changed(sha3=EMPTY[:-1]), "sha3 is not 64 hexadecimal digits"),
        (changed(sha3="g" * 64), "sha3 is not 64 hexadecimal digits"),
        (changed(sha3=EMPTY + "\n"), "sha3 is not 64 hexadecimal digits"),
        (changed(mime="mp4"), "mime is not a media type"),
        (changed(mime=""), "mime is not a media type"),
        (changed(bytes="812345678"), "bytes is not a whole number"),
        (changed(bytes=-1), "bytes is not a whole number"),
        (changed(bytes=True), "bytes is not a whole number"),
        (changed(bytes=1.5), "bytes is not a whole number"),
        (changed(bytes=1 << 63), "bytes is not a whole number"),
        (changed(transcript=None), "transcript is not a string"),
        (changed(transcript=""), "transcript is not a path"),
        (changed(transcript="a\0b"), "transcript is not a path"),
        (changed(transcript="/etc/passwd"), "transcript is not a path inside the repository: /etc/passwd"),
        (changed(transcript="C:\\talk.txt"), "transcript is not a path inside the repository: C:\\talk.txt"),
        (changed(transcript="\\\\h\\a.txt"), "transcript is not a path inside the repository: \\\\h\\a.txt"),
        (changed(transcript="https://a/t.vtt"), "transcript is not a path inside the repository: https://a/t.vtt"),
        (GOLDEN[:-2], "not JSON: Expecting ',' delimiter, line 7"),
        (
            GOLDEN.replace('  "mime"', '  // a remark\n  "mime"'),
            "not JSON: Expecting property name enclosed in double quotes, line 4",
        ),
        (GOLDEN.replace("812345678", "9" * 5000), "not JSON: too large or deep"),
        (GOLDEN.replace("812345678", "[" * 30000), "not JSON: too large or deep"),
    ],
)
def test_a_broken_manifest_says_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(ManifestError) as error:
        parse_manifest(text)
    assert error.value.what == reason


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1, 2]",
        '"uri sha3"',
        '{"name": "media", "uri": "https://example.org"}',
        '{"bytes": [1, 2, 3]}',
        "not json, but it says uri and sha3",
        '{"frames": [' + "1," * LARGEST + '1], "uri": 1, "sha3": 2}',
    ],
)
def test_any_other_json_file_is_none(text: str) -> None:
    assert parse_manifest(text) is None


@pytest.mark.parametrize(
    ("path", "transcript", "expected"),
    [
        ("media/a/talk.json", "media/a/talk.txt", ("media/a/talk.txt", "media/a/media/a/talk.txt")),
        ("media/a/talk.json", "talk.txt", ("talk.txt", "media/a/talk.txt")),
        ("media/a/talk.json", "./talk.txt", ("media/a/talk.txt",)),
        ("media/a/talk.json", "../b/talk.txt", ("media/b/talk.txt",)),
        ("media/a/talk.json", "../../talk.txt", ("talk.txt",)),
        ("media/a/talk.json", "x/../talk.txt", ("talk.txt", "media/a/talk.txt")),
        ("media/talk.json", "x/../../talk.txt", ("talk.txt",)),
        ("talk.json", "talk.txt", ("talk.txt",)),
    ],
)
def test_a_transcript_is_looked_for_from_the_root_and_then_beside(
    path: str, transcript: str, expected: tuple[str, ...]
) -> None:
    assert transcript_paths(path, transcript) == expected


@pytest.mark.parametrize("transcript", ["../../talk.txt", "../../../../etc/passwd", "x/../../../talk.txt", "..", "../"])
def test_a_transcript_stays_in_the_repository(transcript: str) -> None:
    with pytest.raises(ManifestError, match="is outside of the repository"):
        transcript_paths("media/talk.json", transcript)


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40),
    st.lists(st.sampled_from(["..", ".", "a", "media", ""]), max_size=6).map("/".join),
)
def test_no_transcript_ever_leaves_the_root(name: str, folder: str) -> None:
    try:
        found = transcript_paths("media/talks/a.json", f"{folder}/{name}".lstrip("/") or "x")
    except ManifestError:
        return
    assert all(not place.startswith("/") and ".." not in place.split("/") for place in found)


def test_an_asset_is_checked_by_size_and_hash() -> None:
    whole = Manifest("a.mp4", EMPTY, "video/mp4", 0, "a.txt")
    check_asset(whole, 0, EMPTY.upper())
    with pytest.raises(IntegrityError, match="has 1 bytes, its manifest says 0"):
        check_asset(whole, 1, EMPTY)
    with pytest.raises(IntegrityError, match="has the SHA3-256 0000"):
        check_asset(whole, 0, "0" * 64)


@pytest.mark.parametrize(
    ("uri", "seconds", "expected"),
    [
        ("https://a/b.mp4", (12.5, 31.0), "https://a/b.mp4#t=12.5,31"),
        ("https://a/b.mp4", (0.0, 0.04), "https://a/b.mp4#t=0,0.04"),
        ("https://a/b.mp4", (3600.1234, 7200.0), "https://a/b.mp4#t=3600.123,7200"),
        ("https://a/b.mp4", (5.0, 5.0), "https://a/b.mp4#t=5"),
        ("https://a/b.mp4", (100.0, 200.0), "https://a/b.mp4#t=100,200"),
        ("https://a/b.mp4", None, "https://a/b.mp4"),
        ("https://a/b?v=1#track=2&t=9,10", (1.0, 2.0), "https://a/b?v=1#track=2&t=1,2"),
        ("https://a/b#", (1.0, 2.0), "https://a/b#t=1,2"),
    ],
)
def test_a_moment_has_a_uri_of_its_own(uri: str, seconds: tuple[float, float] | None, expected: str) -> None:
    assert with_time(uri, seconds) == expected


words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=30)


@given(words, st.binary(min_size=32, max_size=32), st.integers(0, (1 << 63) - 1), words)
def test_what_is_written_is_read_again(name: str, digest: bytes, size: int, file: str) -> None:
    made = Manifest(f"https://a/{name}", digest.hex(), "audio/ogg", size, f"media/{file}")
    assert parse_manifest(serialize_manifest(made)) == made


values = st.none() | st.text() | st.integers() | st.lists(st.text())


@given(st.text(max_size=200) | st.dictionaries(st.sampled_from([*FIELDS, "x"]), values).map(json.dumps))
def test_whatever_is_read_is_a_manifest_an_error_or_nothing(text: str) -> None:
    try:
        found = parse_manifest(text)
    except ManifestError:
        return
    assert found is None or parse_manifest(serialize_manifest(found)) == found

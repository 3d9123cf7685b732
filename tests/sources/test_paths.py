"""Names on disk and paths in the index are the same thing in two forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.sources.paths import to_bytes, to_slug, to_text


@given(st.binary(max_size=40) | st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_every_name_comes_back(name: bytes) -> None:
    text = to_text(name)
    assert to_bytes(text) == name
    assert text.encode("utf-8").decode("utf-8") == text
    assert not any(char < " " or "\x7f" <= char <= "\x9f" for char in text)


@given(st.lists(st.binary(max_size=8).map(lambda part: part.replace(b"/", b"\\"))))
def test_parts_can_be_converted_one_by_one(parts: list[bytes]) -> None:
    assert to_text(b"/".join(parts)) == "/".join(map(to_text, parts))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"plain/name.py", "plain/name.py"),
        ("größe/日本.md".encode(), "größe/日本.md"),
        (b"a\nb", "a\\x0ab"),
        (b"\xff.txt", "\\xff.txt"),
        (b'it\'s "quoted"', 'it\'s "quoted"'),
        (b"back\\slash", "back\\slash"),
        (b"\\xff", "\\x5cxff"),
        (b"\\\xff", "\\\\xff"),
    ],
)
def test_only_what_cannot_be_stored_is_escaped(name: bytes, text: str) -> None:
    assert to_text(name) == text
    assert to_bytes(text) == name


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("My Project", "my-project"),
        ("outcrop", "outcrop"),
        ("größe.v2", "größe.v2"),
        ("--", "project"),
        ("", "project"),
    ],
)
def test_slugs(name: str, slug: str) -> None:
    assert to_slug(name) == slug

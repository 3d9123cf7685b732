"""Bytes to text: encodings are recognised, and what is not text or not written by people is refused."""

from __future__ import annotations

import codecs
import json
import random
from typing import Any

import charset_normalizer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.core.model import SkipReason
from outcrop.text.decoding import decode, refuse_name

SENTENCES = {
    "cp1252": "Größe der Straße überprüfen – „Öl“ kostet 5 €. Où est passé le garçon ? Él soñó mañana.\n",
    "latin-1": "Größe der Fläche überprüfen. Où est passé le garçon ? Él soñó mañana.\n",
    "cp1251": "Это пример текста на русском языке, который нужно правильно распознать.\n",
    "koi8-r": "Это пример текста на русском языке, который нужно правильно распознать.\n",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Toto je příklad textu v češtině.\n",
    "cp1253": "Αυτό είναι ένα παράδειγμα κειμένου στα ελληνικά για την αναγνώριση.\n",
    "cp932": "これは日本語のテキストの例です。文字コードを正しく判定する必要があります。\n",
    "euc-jp": "これは日本語のテキストの例です。文字コードを正しく判定する必要があります。\n",
    "gb18030": "这是一个中文文本的例子，需要正确识别编码。该函数返回一个值，并写入数据库中。\n",
    "big5": "這是一個中文文本的例子，需要正確識別編碼。該函數返回一個值，並寫入數據庫中。\n",
    "cp949": "이것은 한국어 텍스트의 예입니다. 인코딩을 올바르게 감지해야 합니다.\n",
    "utf-16-le": "Größe – 日本語 and plain words that say what this is about.\n",
    "utf-16-be": "Größe – 日本語 and plain words that say what this is about.\n",
    "utf-32-le": "Größe – 日本語 and plain words that say what this is about.\n",
    "utf-32-be": "Größe – 日本語 and plain words that say what this is about.\n",
}


@pytest.mark.parametrize("encoding", SENTENCES)
@pytest.mark.parametrize("times", [1, 25])
def test_encodings_are_recognised_without_a_mark(encoding: str, times: int) -> None:
    text = SENTENCES[encoding] * times
    assert decode(text.encode(encoding), "notes.txt") == text


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_byte_order_marks_are_obeyed_and_dropped(mark: bytes, encoding: str) -> None:
    assert decode(mark + "naïve 日本\n".encode(encoding), "a.py") == "naïve 日本\n"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t"), max_size=300))
def test_utf8_comes_out_as_it_went_in(text: str) -> None:
    assert decode(text.encode(), "notes.txt") == text.removeprefix("\ufeff")


@given(st.binary(max_size=400), st.sampled_from(["a.txt", "a.py", "a.json", "a.ipynb", "README"]))
def test_anything_gives_clean_text_or_a_reason(data: bytes, path: str) -> None:
    result = decode(data, path)
    if not isinstance(result, SkipReason):
        result.encode("utf-8")
        assert "\r" not in result
        assert "\0" not in result


def test_newlines_become_one_kind() -> None:
    assert decode(b"a\r\nb\rc\nd", "a.txt") == "a\nb\nc\nd"


def test_an_empty_file_is_empty_text() -> None:
    assert decode(b"", "a.txt") == ""


def test_a_few_broken_bytes_do_not_spoil_utf8() -> None:
    text = "Überall stehen schöne Häuser; größer, älter. " * 3
    assert decode(text.encode() + b"\xff ok", "a.txt") == text + "\ufffd ok"


def test_an_encoded_lone_surrogate_does_not_come_out() -> None:
    result = decode(b"name = '\xed\xa0\x80'\n", "a.py")
    assert not isinstance(result, SkipReason)
    assert not any("\ud800" <= char <= "\udfff" for char in result)


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"%PDF-1.7\nnot text at all\n",
        b"\x1f\x8b\x08rest",
        b"text with\0a zero byte in the middle",
        bytes(range(1, 32)) * 4,
        random.Random(5).randbytes(4096).replace(b"\0", b"\1"),
        codecs.BOM_UTF16_LE + b"\x00\xd8\x00\xd8",
    ],
    ids=["png", "pdf", "gzip", "zero", "control", "random", "utf-16 with surrogates"],
)
def test_binary_is_refused(data: bytes) -> None:
    assert decode(data, "innocent.txt") is SkipReason.BINARY


def test_terminal_colours_are_text() -> None:
    assert decode(b"\x1b[31mfailed\x1b[0m\n" * 20, "build.log") != SkipReason.BINARY


@pytest.mark.parametrize(
    "data",
    [
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        b"/annex/objects/SHA256E-s31390--f50d.bin\n",
        b"../.git/annex/objects/Wx/0K/SHA256E-s31390--f50d.bin/SHA256E-s31390--f50d.bin\n",
    ],
)
def test_pointers_are_recognised(data: bytes) -> None:
    assert decode(data, "model.weights") is SkipReason.POINTER


def test_writing_about_pointers_is_no_pointer() -> None:
    assert decode(b"Look below .git/annex/objects/ for it.\n", "a.md") == "Look below .git/annex/objects/ for it.\n"


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"function a(b){return b+1};" * 200, "app.js"),
        (b".a{color:red}" * 300, "site.css"),
        (json.dumps([{"key": number} for number in range(500)]).encode(), "data.json"),
        (b"x = '" + b"a" * 5000 + b"'\n", "blob.py"),
        (b"a" * 1_000_000, "line.txt"),
        (b"a = 1\n" * 3000 + b"b = '" + b"x" * 900_000 + b"'\n", "mixed.py"),
        (b"anything", "jquery.min.js"),
        (b"anything", "static/app.js.map"),
        (b"{}", "web/package-lock.json"),
        (b"// Code generated by protoc-gen-go. DO NOT EDIT.\npackage a\n", "a.pb.go"),
        (b"/**\n * @generated SignedSource<<1234>>\n */\nvar a;\n", "a.js"),
        (b"# This file is automatically @generated by Cargo.\n", "weird.toml"),
        (b"# This file was generated by mktables.\n# Do not edit it by hand.\nX = 1\n", "tables.py"),
        (b"# autogenerated - DO NOT EDIT\nX = 1\n", "version.py"),
    ],
)
def test_what_programs_wrote_for_programs_is_refused(data: bytes, path: str) -> None:
    assert decode(data, path) is SkipReason.MINIFIED


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"A paragraph is one long line. " * 100 + b"\n", "essay.md"),
        (b"<p>" + b"A page may have long lines. " * 30 + b"</p>\n", "page.html"),
        (b'{"cells": [' + b'"' + b"x" * 100_000 + b'"' + b"]}", "plot.ipynb"),
        (b"x = 1\n" * 10_000, "long.py"),
        (b"{" + b'"a": 1,' * 50 + b'"b": 2}', "small.json"),
        (b'"""Finds files marked as @generated, or with Code generated by x."""\n', "linguist.py"),
        (b"# Do not edit the configuration while the server runs.\n", "server.conf"),
        (b"# The report generated here is weekly.\nrun()\n", "report.py"),
        (b"Files with 'Code generated by x. DO NOT EDIT.' are skipped.\n", "guide.md"),
    ],
)
def test_what_people_wrote_is_kept(data: bytes, path: str) -> None:
    assert decode(data, path) == data.decode()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a/logo.PNG", SkipReason.BINARY),
        ("dist/x.min.css", SkipReason.MINIFIED),
        ("Cargo.lock", SkipReason.MINIFIED),
        ("bin/jar", None),
        ("src/map.ts", None),
        ("lock.py", None),
        ("Makefile", None),
    ],
)
def test_names_alone_can_be_enough(path: str, reason: SkipReason | None) -> None:
    assert refuse_name(path) is reason


def test_the_encoding_of_a_large_file_is_guessed_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def recorded(sample: bytes, **options: Any) -> charset_normalizer.CharsetMatches:
        sizes.append(len(sample))
        return from_bytes(sample, **options)

    from_bytes = charset_normalizer.from_bytes
    monkeypatch.setattr(charset_normalizer, "from_bytes", recorded)
    data = ("ascii only\n" * 20_000).encode() + (SENTENCES["cp1251"] * 8000).encode("cp1251")
    result = decode(data, "a.txt")
    assert len(sizes) == 1
    assert sizes[0] <= 1 << 16
    assert not isinstance(result, SkipReason)
    assert result.endswith(SENTENCES["cp1251"])

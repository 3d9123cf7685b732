"""Word pieces against the reference implementation (the `tokenizers` package), and the promises about cost."""

from __future__ import annotations

import hashlib
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from outcrop.errors import FormatError
from outcrop.text import tokenizer

CLS, SEP, UNK = 101, 102, 100


def build_reference() -> Tokenizer:
    words = tokenizer.VOCAB_PATH.read_text("utf-8").splitlines()
    vocabulary = {word: number for number, word in enumerate(words)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


REFERENCE = build_reference()


def is_old(character: str) -> bool:
    """Whether the character and what it is have not changed since Unicode 3.2: the reference's own tables are old."""
    category = unicodedata.ucd_3_2_0.category(character)
    return category != "Cn" and category == unicodedata.category(character)


OLD = [c for c in map(chr, range(0x110000)) if not 0xD800 <= ord(c) < 0xE000 and is_old(c)]
EMOJI = "😀🚀👩🏽\u200d💻🇩🇪❤️✂︎⌘"
WORDS = [
    "the",
    "Embedding",
    "unaffable",
    "getHTTPResponse",
    "snake_case_name",
    "naïve",
    "don't",
    "3.14",
    "##ing",
    "[MASK]",
]
SCRIPTS = [
    "ΑΣ",
    "Ǆ",
    "ﬁ",
    "İ",
    "北京大学",
    "ひらがな",
    "한국어",
    "——",
    "«»",
    "\u037e",
    "\u1fef",
    "\U0002f800",
    "\uf900",
]
ODD = ["\u200b", "\ufffd", "x" * 100, "y" * 101, "a\x00b", "c\x0bd", "e\x85f", " ", "\n", "\t", "\u00a0", "\u3000"]
PARTS = st.one_of(st.text(st.sampled_from(OLD), max_size=12), st.sampled_from([*EMOJI, *WORDS, *SCRIPTS, *ODD]))
TEXTS = st.lists(PARTS, max_size=40).map("".join)


@given(TEXTS)
@example("")
@example("x" * 100 + " " + "y" * 101)
@example("Hello, world! Über-naïve 北京 e\u0301")
def test_pieces_are_those_of_the_reference(text: str) -> None:
    expected = REFERENCE.encode(text).ids
    assert tokenizer.encode(text, 100_000) == [CLS, *expected, SEP]
    assert tokenizer.count(text) == len(expected)


@given(TEXTS, st.integers(2, 40))
def test_limit_keeps_the_beginning(text: str, limit: int) -> None:
    whole = tokenizer.encode(text, 100_000)
    cut = tokenizer.encode(text, limit)
    assert cut == (whole if len(whole) <= limit else [*whole[: limit - 1], SEP])


def test_every_old_character_between_two_letters() -> None:
    assert len(OLD) > 90_000
    for start in range(0, len(OLD), 4096):
        text = " ".join(f"a{c}b" for c in OLD[start : start + 4096])
        assert tokenizer.encode(text, 1 << 20)[1:-1] == REFERENCE.encode(text).ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", [CLS, SEP]),
        ("hello world", [CLS, 7592, 2088, SEP]),
        ("unaffable", [CLS, 14477, 20961, 3468, SEP]),
        ("x" * 101, [CLS, UNK, SEP]),
        ("\ud800hello\udfff", [CLS, 7592, SEP]),
        ("[SEP]", [CLS, 1031, 19802, 1033, SEP]),
    ],
)
def test_known_ids(text: str, ids: list[int]) -> None:
    assert tokenizer.encode(text, 128) == ids
    assert tokenizer.count(text) == len(ids) - 2


def test_limit_below_two_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        tokenizer.encode("hello", 1)


def test_encoding_stops_at_the_limit() -> None:
    pieces = tokenizer._pieces()
    pieces.clear()
    assert len(tokenizer.encode(" ".join(f"q{n}z" for n in range(5000)), 128)) == 128
    assert len(pieces) < 128


def test_memory_of_words_is_bounded() -> None:
    for start in range(0, 3 * tokenizer.REMEMBERED_WORDS, 1000):
        assert tokenizer.count(" ".join(f"q{n}z" for n in range(start, start + 1000))) >= 1000
    assert len(tokenizer._pieces()) <= tokenizer.REMEMBERED_WORDS


def test_a_word_is_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = tokenizer._pieces()
    pieces.clear()
    words: list[str] = []
    split = pieces._split
    monkeypatch.setattr(pieces, "_split", lambda word: words.append(word) or split(word))
    text = "def search(self, query: str) -> list[Hit]:  # the nearest passages, best first\n"
    assert tokenizer.count(text * 1000) == 1000 * tokenizer.count(text)
    assert len(words) == len(set(words))


def test_bundled_vocabulary_is_the_original() -> None:
    assert hashlib.sha256(tokenizer.VOCAB_PATH.read_bytes()).hexdigest() == tokenizer.VOCAB_SHA256
    assert "Apache License" in tokenizer.VOCAB_PATH.with_name("vocab.txt.LICENSE").read_text("utf-8")


def test_damaged_vocabulary_is_refused(tmp_path, monkeypatch) -> None:
    damaged = tmp_path / "vocab.txt"
    damaged.write_text("[PAD]\n[UNK]\n", "utf-8")
    monkeypatch.setattr(tokenizer, "VOCAB_PATH", damaged)
    tokenizer._pieces.cache_clear()
    with pytest.raises(FormatError, match="not the vocabulary"):
        tokenizer.count("hello")
    monkeypatch.undo()
    tokenizer._pieces.cache_clear()
    assert tokenizer.count("hello") == 1

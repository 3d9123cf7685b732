"""What every surface shows: errors and their codes, safe text, excerpts, JSON, numbers."""

from __future__ import annotations

import errno
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop import errors
from outcrop.core.model import Answer, Hit, Kind, Mode, Stale
from outcrop.surfaces.render import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    columns,
    counted,
    duration,
    excerpt,
    explain,
    harmless,
    harmless_line,
    message,
    outcome,
    passage,
    size,
    to_json,
)


def every_error(root: type[errors.OutcropError] = errors.OutcropError) -> list[type[errors.OutcropError]]:
    return [root, *(each for child in root.__subclasses__() for each in every_error(child))]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_codes_and_only_usage_errors_exit_with_2(kind: type[errors.OutcropError]) -> None:
    codes = outcome(kind("x"))
    assert codes.exit == (2 if issubclass(kind, errors.UsageError) else 1)
    assert 400 <= codes.http <= 599
    assert codes.mcp in (INVALID_PARAMS, INTERNAL_ERROR)


@pytest.mark.parametrize(
    ("error", "codes"),
    [
        (errors.UnknownKind("x"), (2, 400, -32602)),
        (errors.EmbedderTimeout("x"), (1, 504, -32603)),
        (errors.EgressRefused("x"), (1, 403, -32603)),
        (errors.DimensionMismatch("x"), (1, 502, -32603)),
        (errors.StoreFull("x"), (1, 507, -32603)),
        (errors.IndexMissing("x"), (1, 404, -32603)),
        (KeyboardInterrupt(), (130, 503, -32603)),
        (ValueError("x"), (1, 500, -32603)),
    ],
)
def test_the_nearest_class_decides_the_codes(error: BaseException, codes: tuple[int, int, int]) -> None:
    found = outcome(error)
    assert (found.exit, found.http, found.mcp) == codes


def test_an_error_is_what_happened_and_what_to_do() -> None:
    assert message(errors.IndexMissing("there is no index", "Run outcrop index.")) == (
        "outcrop: there is no index\n  → Run outcrop index."
    )
    assert message(errors.SourceError("it is gone")) == "outcrop: it is gone"


def test_an_error_cannot_write_to_the_terminal() -> None:
    shown = message(errors.ArtifactUnreadable("a\x1b]0;owned\x07\nb cannot be read"))
    assert shown == "outcrop: a\\x1b]0;owned\\x07\\nb cannot be read"


def test_a_full_disk_and_a_locked_door_say_what_to_do() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/var/index.sqlite")
    assert explain(full) == (
        "/var/index.sqlite: No space left on device",
        "Free some space; earlier work is kept.",
    )
    what, fix = explain(PermissionError(errno.EACCES, "Permission denied", "/home/me/x"))
    assert what == "/home/me/x: Permission denied"
    assert "--store" in fix
    assert explain(OSError("odd"))[0] == "odd"


def test_an_unexpected_error_is_one_line_with_the_way_to_its_traceback() -> None:
    what, fix = explain(KeyError("x"))
    assert what == "unexpected error: KeyError: 'x'"
    assert "OUTCROP_DEBUG=1" in fix


def tags(text: str) -> str:
    """Text that only machines see."""
    return "".join(chr(0xE0000 + ord(letter)) for letter in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a\\rb"),
        ("bell\x07 del\x7f nul\x00", "bell\\x07 del\\x7f nul\\x00"),
        ("if admin\u202e", "if admin\\u202e"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("line\u2028break", "line\\u2028break"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud83d alone", "\\ud83d alone"),
        ("tab\tand\nnewline stay", "tab\tand\nnewline stay"),
        ("naïve 漢字 👩‍💻 עברית", "naïve 漢字 👩‍💻 עברית"),
        # Joiners, selectors and tags where people write them.
        *((text, text) for text in ("می\u200cخواهم PDF\u200cها", "क्\u200d ष", "❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ☎\ufe0e")),
        *((text, text) for text in ("葛\U000e0100", "ᠠ\u180b", f"🏴{tags('gbsct')}\U000e007f!")),
        # The same where they hide something.
        ("pass\u200dword \u200c", "pass\\u200dword \\u200c"),
        ("می\u200c\u200d\u200cخ", "می\\u200c\\u200d\\u200cخ"),
        ("a\ufe0f☎\ufe0f\ufe01\ufe02", "a\\ufe0f☎\ufe0f\\ufe01\\ufe02"),
        (f"x{tags('hi')}", "x\\U000e0068\\U000e0069"),
        (f"🏴{tags('run')}", "🏴\\U000e0072\\U000e0075\\U000e006e"),
        ("a\U000e0101b", "a\\U000e0101b"),
        ("zero\u200bwidth\u2060 \ufeff\xad\u3164\u180e", "zero\\u200bwidth\\u2060 \\ufeff\\xad\\u3164\\u180e"),
        ("form\x0cfeed \x9b31m", "form\\x0cfeed \\x9b31m"),
    ],
)
def test_what_acts_on_a_terminal_is_spelled_out(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_path_stays_on_one_line() -> None:
    assert harmless_line("a\nb\tc") == "a\\nb\\tc"


@given(st.text(st.characters()))
def test_nothing_harmful_survives(text: str) -> None:
    for char in harmless(text):
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(char) not in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    assert harmless(harmless(text)) == harmless(text)
    harmless(text).encode()


CODE = """
def read(path):
    return path.read_text()


def write_index(path, rows):
\twith path.open("w") as file:
        file.write(rows)
"""


def test_lines_keep_their_numbers_and_say_what_matches() -> None:
    lines = passage(CODE, 10, {"write", "index"})
    assert [line.number for line in lines] == [11, 12, 13, 14, 15, 16, 17]
    by_number = {line.number: line for line in lines}
    definition = by_number[15]
    assert [definition.text[a:b] for a, b in definition.marks] == ["write", "index"]
    assert by_number[16].text == '    with path.open("w") as file:'
    assert [by_number[17].text[a:b] for a, b in by_number[17].marks] == ["write"]


def test_the_excerpt_is_where_the_words_are() -> None:
    lines = passage(CODE, 1, {"write", "rows"})
    assert [line.number for line in excerpt(lines, 3)] == [6, 7, 8]
    assert [line.number for line in excerpt(lines, 1)] == [6]
    assert excerpt(lines, 100) == lines


def test_without_a_matching_word_the_excerpt_is_the_beginning() -> None:
    lines = passage(CODE, 1, {"nothing"})
    assert [line.number for line in excerpt(lines, 2)] == [2, 3]


def test_different_words_count_before_repeated_ones() -> None:
    lines = passage("cat cat cat\n\n\ncat dog\n", 1, {"cat", "dog"})
    assert [line.number for line in excerpt(lines, 1)] == [4]


@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n"])
def test_a_blank_passage_has_no_lines(text: str) -> None:
    assert passage(text, 1, {"x"}) == []
    assert excerpt([], 3) == []


@given(st.text(), st.integers(1, 9), st.sets(st.text(min_size=1), max_size=3))
def test_an_excerpt_is_a_run_of_the_passage_and_marks_lie_inside_their_line(
    text: str, limit: int, wanted: set[str]
) -> None:
    lines = passage(text, 1, wanted)
    shown = excerpt(lines, limit)
    assert len(shown) == min(limit, len(lines))
    assert [line.number for line in shown] == list(
        range(shown[0].number, shown[0].number + len(shown)) if shown else []
    )
    for line in lines:
        assert "\n" not in line.text
        assert all(0 <= start < end <= len(line.text) for start, end in line.marks)


def answer(text: str) -> Answer:
    hit = Hit(0.5, Kind.DOC, "", "a.md", "ff", text, (1, 2), None, ("a.md",), ("docs",), Mode.HYBRID, "x")
    return Answer(Mode.HYBRID, None, Stale(None, "b"), "m-1", (hit,))


def test_an_answer_is_plain_json() -> None:
    found = json.loads(to_json(answer("é\n")))
    assert found["mode"] == "hybrid"
    assert found["stale"] == {"indexed": None, "current": "b", "corpora": [], "update": "outcrop index"}
    assert found["hits"][0]["kind"] == "doc"
    assert found["hits"][0]["lines"] == [1, 2]
    assert found["hits"][0]["text"] == "é\n"


def test_json_knows_paths_and_refuses_what_it_does_not_know() -> None:
    assert to_json({"at": Path("a/b")}) == '{"at": "a/b"}'
    with pytest.raises(TypeError, match="set is not JSON"):
        to_json({"x": {1}})
    assert to_json("é", ascii_only=True) == '"\\u00e9"'


def test_json_has_null_for_a_number_that_it_does_not_know() -> None:
    value = {"a": float("nan"), "b": [float("inf"), 0.5], "at": Path("x")}
    assert to_json(value) == '{"a": null, "b": [null, 0.5], "at": "x"}'


@given(st.text(st.characters()), st.booleans())
def test_json_keeps_every_text_and_is_safe_to_show(text: str, ascii_only: bool) -> None:
    written = to_json({"text": text}, ascii_only=ascii_only)
    # A pair of lone surrogates becomes the one character that it stands for, in any JSON.
    assert json.loads(written)["text"] == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert "\n" not in written
    assert harmless_line(written) == written
    assert written.isascii() or not ascii_only


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (812, "812 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_951, "1.0 MB"), (11_800_000, "11.8 MB")],
)
def test_sizes(number: int, shown: str) -> None:
    assert size(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0 s"), (0.44, "0.4 s"), (9.96, "10 s"), (59.9, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_counts_and_columns() -> None:
    assert [counted(n, "passage") for n in (0, 1, 2143)] == ["0 passages", "1 passage", "2,143 passages"]
    assert list(columns([("name", "n"), ("a", "1,000")], right={1})) == ["name      n", "a     1,000"]
    assert list(columns([])) == []

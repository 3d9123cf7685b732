"""WebVTT and SubRip as they are found in the world, and the chunks that are cut from them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outcrop.chunking.artifact import chunk
from outcrop.chunking.rows import CEILING
from outcrop.chunking.transcripts import SILENCE
from outcrop.core.model import Chunk, Kind
from outcrop.text.tokenizer import count
from outcrop.text.transcripts import Cue, is_silent, parse


def said(text: str) -> list[tuple[float, float, str]]:
    return [(cue.start, cue.end, cue.text) for cue in parse(text)]


def vtt(*cues: str) -> str:
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def test_webvtt_has_times_lines_and_voices() -> None:
    text = (
        "WEBVTT\n\n00:01.000 --> 00:04.500 align:left\n<v Ada>One\ntwo\n\nname\n01:00:00.000 --> 01:00:01.25\nthree\n"
    )
    assert parse(text) == [Cue("One two", 1.0, 4.5, 4, 5, "Ada"), Cue("three", 3600.0, 3601.25, 9, 9)]


def test_subrip_has_times_and_lines() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,500\nOne\n\n2\n00:01:00,000 --> 00:01:02,000\nTwo\nthree\n"
    assert parse(text) == [Cue("One", 1.0, 2.5, 3, 3), Cue("Two three", 60.0, 62.0, 7, 8)]


@pytest.mark.parametrize(
    "text", ["", "Just words.\n", "WEBVTT\n\nno cues here\n", "a --> b\n", "12 --> 13\n", "1\n2\n3\n"]
)
def test_anything_else_has_no_times(text: str) -> None:
    assert parse(text) == []


def test_minutes_may_go_on_past_the_hour() -> None:
    text = "1\n99:59,000 --> 100:01,500\nOne\n\n2\n125:00 --> 2:05:02\nTwo\n"
    assert said(text) == [(5999.0, 6001.5, "One"), (7500.0, 7502.0, "Two")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\n",
        "WEBVTT",
        "\ufeffWEBVTT - title\n\n",
        vtt("00:01.000 --> 00:02.000\n"),
        "1\n00:01,0 --> 00:02,0\n\n",
    ],
)
def test_a_transcript_in_which_nothing_is_said(text: str) -> None:
    assert is_silent(text)
    assert chunk(text, "a.vtt", Kind.DOC) == []


@pytest.mark.parametrize(
    "text", ["Hello", "42\n", "WEBVTT\n\nno cues here\n", vtt("00:01.000 --> 00:02.000\n42"), "[00:01 --> 00:02] words"]
)
def test_a_transcript_in_which_something_is_said(text: str) -> None:
    assert not is_silent(text)
    assert "".join(each.text for each in chunk(text, "a.vtt", Kind.DOC)).strip()


@pytest.mark.parametrize("ends", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_line_ends_and_a_byte_order_mark_change_nothing(ends: str, mark: str) -> None:
    text = "WEBVTT\n\nNOTE\nnot said\n\n00:01.000 --> 00:02.000\nOne\ntwo\n\n00:03.000 --> 00:04.000\nthree\n"
    assert parse(mark + text.replace("\n", ends)) == parse(text)
    assert said(text) == [(1.0, 2.0, "One two"), (3.0, 4.0, "three")]


def test_what_speech_recognition_prints() -> None:
    text = "[00:00.000 --> 00:04.000]  And so we begin.\n[00:04.000 --> 01:00:07.500]  And go on\nand on.\n"
    assert parse(text) == [Cue("And so we begin.", 0.0, 4.0, 1, 1), Cue("And go on and on.", 4.0, 3607.5, 2, 3)]


def test_notes_styles_and_regions_are_not_said() -> None:
    text = vtt(
        "STYLE\n::cue { color: red }",
        "REGION\nid:fred",
        "NOTE a remark",
        "NOTE\n00:01.000 --> 00:02.000\ntaken out",
        "00:05.000 --> 00:06.000\nNOTE is said here",
    )
    assert said(text) == [(5.0, 6.0, "NOTE is said here")]


@pytest.mark.parametrize(
    ("line", "start", "end"),
    [
        ("00:01.000 --> 00:02.000", 1.0, 2.0),
        ("1:02:03.5 --> 1:02:04.25", 3723.5, 3724.25),
        ("00:00:01,000-->00:00:02,000", 1.0, 2.0),
        ("  00:00:01.000  -->  00:00:02,000  line:90%", 1.0, 2.0),
        ("00:00:01 --> 00:00:02", 1.0, 2.0),
        ("00:00:01 , 000 -> 00:00:02 , 000", 1.0, 2.0),
        ("100:00:00.000 --> 100:00:01.000", 360000.0, 360001.0),
        ("00:00:05,000 --> 00:00:04,000", 5.0, 5.0),
        ("00:00:05,05 --> 00:00:06,5", 5.05, 6.5),
    ],
)
def test_times_are_read_as_players_read_them(line: str, start: float, end: float) -> None:
    assert said(f"1\n{line}\nhello\n") == [(start, end, "hello")]


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ("<i>one</i> <b>two</b> <u>three</u>", "one two three"),
        ('<font color="#fff">one</font>', "one"),
        ("<c.yellow.bg_blue>one</c> <lang en>two</lang>", "one two"),
        ("<ruby>東<rt>ひがし</rt></ruby>", "東ひがし"),
        ("one<00:00:01.500> two<00:01.750><c> three</c>", "one two three"),
        ("{\\an8}{\\i1}one{\\i0}", "one"),
        ("one &amp; two &lt;three&gt; &#39;four&#39;&nbsp;five&lrm;", "one & two <three> 'four' five\u200e"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("{not markup} <nor this>", "{not markup} <nor this>"),
        ("one\\Ntwo\\hthree<br/>four", "one two three four"),
        ("- One.\n- Two.", "- One.\n- Two."),
        ("  one   two  ", "one two"),
    ],
)
def test_markup_goes_and_words_stay(payload: str, text: str) -> None:
    assert [cue.text for cue in parse(f"1\n00:00:01,000 --> 00:00:02,000\n{payload}\n")] == [text]


def test_two_voices_of_one_caption_are_two_cues() -> None:
    cues = parse(vtt("00:01.000 --> 00:02.000\n<v.loud Ada Byron>Yes.</v> <v Grace>No.\nReally."))
    assert [(cue.voice, cue.text, cue.start) for cue in cues] == [
        ("Ada Byron", "Yes.", 1.0),
        ("Grace", "No. Really.", 1.0),
    ]


def test_a_missing_blank_line_or_number_loses_nothing() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\nOne\n2\n00:00:03,000 --> 00:00:04,000\nTwo\n"
        "00:00:05,000 --> 00:00:06,000\nThree\n"
    )
    assert [cue.text for cue in parse(text)] == ["One", "Two", "Three"]


def test_a_number_that_is_said_stays() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\nHow many?\n42\n\n2\n00:00:03,000 --> 00:00:04,000\n7\n\n"
        "3\n00:00:05,000 --> 00:00:06,000\n8\n"
    )
    assert [cue.text for cue in parse(text)] == ["How many? 42", "7", "8"]


def test_captions_out_of_order_are_put_in_order() -> None:
    text = "2\n00:00:05,000 --> 00:00:06,000\nTwo\n\n1\n00:00:01,000 --> 00:00:02,000\nOne\n"
    assert [(cue.text, cue.first_line) for cue in parse(text)] == [("One", 7), ("Two", 3)]


def test_captions_that_roll_up_are_given_once() -> None:
    text = vtt(
        "00:01.000 --> 00:02.000\nfirst line",
        "00:02.000 --> 00:03.000\nfirst line\nsecond line",
        "00:03.000 --> 00:04.000\nsecond line\nthird line",
        "00:04.000 --> 00:04.010\nthird line",
    )
    assert said(text) == [(1.0, 2.0, "first line"), (2.0, 3.0, "second line"), (3.0, 4.01, "third line")]


def test_captions_that_grow_word_by_word_are_given_once() -> None:
    text = vtt(
        "00:01.000 --> 00:02.000\nwe are",
        "00:02.000 --> 00:03.000\nwe are here",
        "00:03.000 --> 00:04.000\nwe are here now\nand stay",
    )
    assert said(text) == [(1.0, 2.0, "we are"), (2.0, 3.0, "here"), (3.0, 4.0, "now and stay")]


def test_an_empty_upper_line_is_no_end() -> None:
    text = vtt(
        "00:01.000 --> 00:02.000\n\nhello<00:01.500><c> there</c>",
        "00:02.000 --> 00:02.010\nhello there\n ",
        "00:02.010 --> 00:03.000\nhello there\nagain",
    )
    assert said(text) == [(1.0, 2.01, "hello there"), (2.01, 3.0, "again")]


def test_an_empty_caption_does_not_take_the_name_of_the_next() -> None:
    text = vtt("00:01.000 --> 00:02.000", "name\n00:02.000 --> 00:03.000\nhello", "NOTE\nsaid by nobody")
    assert said(text) == [(2.0, 3.0, "hello")]


def test_what_is_said_twice_is_given_twice() -> None:
    text = vtt(
        "00:01.000 --> 00:02.000\nAgain.",
        "00:05.000 --> 00:06.000\nAgain.",
        "00:06.000 --> 00:07.000\nNo way.",
        "00:07.000 --> 00:08.000\nNo",
    )
    assert [cue.text for cue in parse(text)] == ["Again.", "Again.", "No way.", "No"]


def test_a_file_of_a_megabyte_is_read_whole() -> None:
    cue = "{0}\n{1:02}:{2:02}:{3:02},000 --> {1:02}:{2:02}:{3:02},900\n<i>Words and words</i> and < more {{ words.\n\n"
    text = "".join(cue.format(n, n // 3600, n // 60 % 60, n % 60) for n in range(13_000))
    hostile = "1\n00:00:01,000 --> 00:00:02,000\n" + "<v " * 60_000 + "{\\" * 60_000 + "&" * 60_000
    assert len(parse(text)) == 13_000
    assert len(parse(hostile)) == 1


words = st.lists(st.sampled_from("the pump runs dry before noon and again".split()), min_size=1, max_size=8).map(
    " ".join
)


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    """Captions in order, in whole milliseconds, none of them adjoining the next."""
    at = 0
    script = []
    for text in draw(st.lists(words, max_size=30)):
        start = at + draw(st.integers(100, 90_000))
        at = start + draw(st.integers(0, 9_000))
        script.append((start, at, text))
    return script


def written(script: list[tuple[int, int, str]], mark: str) -> str:
    def when(ms: int) -> str:
        return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{mark}{ms % 1000:03}"

    head = "WEBVTT\n\n" if mark == "." else ""
    return head + "".join(f"{n}\n{when(a)} --> {when(b)}\n{text}\n\n" for n, (a, b, text) in enumerate(script, 1))


@given(scripts(), st.sampled_from(",."))
def test_what_was_written_comes_back(script: list[tuple[int, int, str]], mark: str) -> None:
    cues = parse(written(script, mark))
    assert [(round(cue.start * 1000), round(cue.end * 1000), cue.text) for cue in cues] == script


odd_lines = st.sampled_from(
    [
        *("WEBVTT", "", " ", "1", "2", "NOTE", "word", "--> ", "\r", "&amp;"),
        *("<v A>x", "</v>", "<i>", "{\\an8}y"),
        *("00:00:01.000 --> 00:00:02.000", "00:01 --> 00:02", "00:03.5 --> 99:99:99.999 x"),
    ]
)


@given(st.lists(odd_lines, max_size=25).map("\n".join) | st.text(max_size=80))
@settings(max_examples=400)
def test_whatever_the_file_holds_the_cues_are_whole(text: str) -> None:
    cues = parse(text)
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [cue.start for cue in cues] == sorted(cue.start for cue in cues)
    for cue in cues:
        assert 0 <= cue.start <= cue.end
        assert cue.text.strip() == cue.text != ""
        assert 1 <= cue.first_line <= cue.last_line <= len(lines)
    check_chunks(chunk(text, None, Kind.MEDIA), len(lines))


def check_chunks(chunks: list[Chunk], lines: int) -> None:
    assert [each.seq for each in chunks] == list(range(len(chunks)))
    for each in chunks:
        assert each.text.strip()
        assert count(each.text) <= CEILING
        assert 1 <= each.first_line <= each.last_line <= lines
        assert each.seconds is None or 0 <= each.seconds[0] <= each.seconds[1]


@given(scripts())
@settings(max_examples=50)
def test_chunks_hold_every_word_once_and_know_its_time(script: list[tuple[int, int, str]]) -> None:
    chunks = chunk(written(script, ","), "media/a.json", Kind.MEDIA)
    assert " ".join(each.text for each in chunks).split() == " ".join(text for *_, text in script).split()
    check_chunks(chunks, 4 * len(script) + 1)
    times = [each.seconds for each in chunks if each.seconds]
    assert len(times) == len(chunks)
    assert all(before[1] <= after[0] for before, after in pairwise(times))
    if script:
        assert (times[0][0], times[-1][1]) == (script[0][0] / 1000, script[-1][1] / 1000)
    starts = {start / 1000 for start, *_ in script}
    assert all(start in starts for start, _ in times)


def test_chunks_of_a_long_talk_end_with_sentences() -> None:
    sentence = "This is what was said in caption number {} of the talk, and then the sentence"
    cues = [
        (3000 * n, 3000 * n + 2990, f"{sentence.format(n)}{' ends.' if n % 3 == 2 else ' goes on'}") for n in range(120)
    ]
    chunks = chunk(written(cues, "."), None, Kind.MEDIA)
    assert len(chunks) > 5
    assert all(each.text.endswith("ends.") for each in chunks)
    assert all(count(each.text) > CEILING // 3 for each in chunks)


def test_a_long_silence_is_in_no_chunk() -> None:
    late = SILENCE + 2
    cues = [(0, 1000, "Before the silence."), (int(1000 + SILENCE * 1000), int(late * 1000), "After the silence.")]
    assert [(each.text, each.seconds) for each in chunk(written(cues, "."), None, Kind.MEDIA)] == [
        ("Before the silence.", (0.0, 1.0)),
        ("After the silence.", (1.0 + SILENCE, late)),
    ]


def test_one_endless_caption_is_cut_and_keeps_its_time() -> None:
    text = "1\n00:00:01,000 --> 00:59:00,000\n" + "And so on it went. " * 300
    chunks = chunk(text, None, Kind.MEDIA)
    assert len(chunks) > 3
    assert {each.seconds for each in chunks} == {(1.0, 3540.0)}
    check_chunks(chunks, 3)


def test_plain_text_has_lines_and_no_times() -> None:
    text = "Ada speaks first.\n\nThen Grace does, on one line that never ends. " + "More words follow here. " * 200
    chunks = chunk(text, "media/a.json", Kind.MEDIA)
    assert len(chunks) > 2
    assert {each.seconds for each in chunks} == {None}
    assert (chunks[0].first_line, chunks[-1].last_line) == (1, 3)
    check_chunks(chunks, 3)


def test_captions_are_cut_by_time_wherever_they_are() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nOne\n"
    assert [each.seconds for each in chunk(text, "subs/film.srt", Kind.DOC)] == [(1.0, 2.0)]
    assert [each.seconds for each in chunk(text, "film.txt", Kind.DOC)] == [None]

"""How answers, reports and progress look to a person, from values made by hand."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.config.settings import Settings, load_settings
from outcrop.core.model import Answer, Hit, Kind, Mode, Ref, Skipped, SkipReason, Stale
from outcrop.core.reports import BuildReport, CollectionStatus, Plan, Progress, SpaceStatus, Status
from outcrop.surfaces.cli.answer_view import AnswerView, answer_lines, suggestions
from outcrop.surfaces.cli.progress import PlainLines
from outcrop.surfaces.cli.report_view import build_lines, plan_lines, settings_lines, status_lines
from outcrop.surfaces.cli.terminal import Paint, cells, choose_paint, cut, fit
from outcrop.surfaces.render import Line, passage

PLAIN = Paint(False)
CODE = "def connect(host):\n    # retries\n    return retry(host)\n"


def hit(**changes: object) -> Hit:
    values: dict[str, object] = {
        "score": 0.7123,
        "kind": Kind.CODE,
        "project": "",
        "path": "src/net.py",
        "hash": "0123456789abcdef",
        "text": CODE,
        "lines": (41, 43),
        "name": "Client.connect",
        "paths": ("src/net.py",),
        "corpus": ("code",),
        "mode": Mode.HYBRID,
        "preview": "return retry(host)",
    }
    return Hit(**(values | changes))  # type: ignore[arg-type]


def shown(
    *hits: Hit,
    query: str = "retry",
    mode: Mode = Mode.HYBRID,
    reason: str | None = None,
    stale: Stale | None = None,
    here: str = "/repo",
    width: int = 80,
    full: bool = False,
    color: Paint = PLAIN,
) -> list[str]:
    space = None if mode is Mode.KEYWORD else "mini-384"
    view = AnswerView(Path("/repo"), Path(here), color, width, full)
    return list(answer_lines(Answer(mode, reason, stale, space, hits), query, view))


def test_a_hit_is_place_name_score_and_passage_and_the_answer_ends_with_its_mode() -> None:
    assert shown(hit()) == [
        "src/net.py:41  Client.connect  0.71",
        "  41  def connect(host):",
        "  42      # retries",
        "  43      return retry(host)",
        "",
        "hybrid · mini-384 · 1 hit",
    ]


def test_paths_start_from_the_current_folder() -> None:
    assert shown(hit(), here="/repo/src")[0].startswith("net.py:41  ")
    assert shown(hit(), here="/repo/docs")[0].startswith("../src/net.py:41  ")
    assert shown(hit(), here="/home/me")[0].startswith("../../repo/src/net.py:41  ")


@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({"kind": Kind.TICKET, "path": None, "name": None}, "ticket 0123456789ab  0.71"),
        ({"kind": Kind.WIKI, "path": "Home Page", "name": None}, "Home Page:41  0.71 · wiki"),
        ({"kind": Kind.INSTRUCTION, "path": "AGENTS.md", "name": None}, "AGENTS.md:41  0.71 · instruction"),
        ({"kind": Kind.DOC, "path": "a.md", "name": "Install > Source"}, "a.md:41  Install > Source  0.71"),
        ({"path": "n.ipynb", "cell": 3, "name": None}, "n.ipynb cell 4  0.71"),
        ({"project": "peer", "name": None}, "peer: src/net.py:41  0.71"),
        ({"mode": Mode.KEYWORD, "name": None}, "src/net.py:41  0.71 · by keyword"),
        ({"mode": Mode.SEMANTIC, "name": None}, "src/net.py:41  0.71"),
        ({"path": "evil\n\x1b[2J.py", "name": "a\x1bb"}, "evil\\n\\x1b[2J.py:41  a\\x1bb  0.71"),
    ],
)
def test_headers(changes: dict[str, object], header: str) -> None:
    assert shown(hit(**changes))[0] == header


def test_other_paths_are_named() -> None:
    copies = tuple(f"copy{n}/net.py" for n in range(6))
    assert "  also at copy0/net.py" in shown(hit(paths=("src/net.py", copies[0])))
    assert "  also at copy0/net.py, copy1/net.py, copy2/net.py and 3 more" in shown(hit(paths=("src/net.py", *copies)))


def test_words_are_marked_on_a_terminal_only() -> None:
    lines = shown(hit(), query="retry the host", color=Paint(True))
    assert "\x1b[1;31mretry\x1b[0m(\x1b[1;31mhost\x1b[0m)" in lines[3]
    assert not any("\x1b" in line for line in shown(hit(), query="retry the host"))
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert plain == shown(hit(), query="retry the host")


def test_a_long_passage_shows_the_lines_that_match_and_full_shows_all() -> None:
    text = "".join(f"line {n}\n" for n in range(30)) + "the needle\n" + "".join(f"line {n}\n" for n in range(30))
    lines = shown(hit(text=text, lines=(1, 61)), query="needle")
    assert "  31  the needle" in lines
    assert len(lines) == 1 + 6 + 1 + 2
    assert lines[7] == "      … 55 more lines"
    everything = shown(hit(text=text, lines=(1, 61)), query="needle", full=True)
    assert len(everything) == 1 + 61 + 2


def test_escapes_in_a_passage_are_harmless() -> None:
    lines = shown(hit(text="a\x1b]0;owned\x07\u202eb\r\n"), full=True)
    assert lines[1] == "  41  a\\x1b]0;owned\\x07\\u202eb\\r"


def test_a_long_line_is_cut_around_its_match() -> None:
    text = "x " * 5000 + "needle " + "y " * 5000
    line = shown(hit(text=text), query="needle")[1]
    assert "needle" in line
    assert cells(line) <= 80
    assert line.startswith("  41  …")
    assert line.endswith("…")
    assert len(shown(hit(text=text), query="needle", full=True)[1]) > 10000


def test_the_mode_is_never_hidden() -> None:
    assert shown(mode=Mode.KEYWORD, reason="there is no index yet") == [
        "keyword only · nothing found",
        "there is no index yet",
    ]
    assert shown(hit(), mode=Mode.KEYWORD)[-1] == "keyword · 1 hit"
    assert shown(hit(), hit(), mode=Mode.HYBRID, reason="index 40 % complete")[-2:] == [
        "hybrid · mini-384 · 2 hits",
        "index 40 % complete",
    ]


@pytest.mark.parametrize(
    ("stale", "line"),
    [
        (
            Stale("a" * 40, "b" * 40),
            f"the index is behind: made at {'a' * 12}, the source is at {'b' * 12} → outcrop index",
        ),
        (
            Stale("a" * 40 + "1", "a" * 40 + "2"),
            "the index is behind: files, commits or settings changed since it was made → outcrop index",
        ),
        (
            Stale("a", "unknown: /tmp/x is a pipe"),
            "the index is behind: what is there now cannot be read (outcrop status says why) → outcrop index",
        ),
        (
            Stale(None, "b"),
            "the index is behind: a part was not built, or was removed → outcrop index",
        ),
    ],
)
def test_an_index_that_is_behind_says_so(stale: Stale, line: str) -> None:
    assert shown(hit(), stale=stale)[-1] == line


def test_nothing_found_suggests_what_could_help() -> None:
    empty = Answer(Mode.HYBRID, None, None, "m-1", ())
    assert "outcrop status" in suggestions(empty, filtered=False, min_score=False)
    assert suggestions(empty, filtered=True, min_score=True) == (
        "try fewer of --kind --project --corpus --path, or a lower --min-score"
    )
    by_words = Answer(Mode.KEYWORD, None, None, None, ())
    assert "other words" in suggestions(by_words, filtered=False, min_score=False)


@pytest.mark.parametrize(("text", "number"), [("", 0), ("abc", 3), ("漢字", 4), ("e\u0301", 1), ("naïve", 5)])
def test_cells(text: str, number: int) -> None:
    assert cells(text) == number


@given(st.text(), st.integers(2, 40), st.sets(st.text(min_size=1), max_size=2))
def test_a_fitted_line_fits_and_its_marks_stay_on_what_they_marked(text: str, room: int, wanted: set[str]) -> None:
    for line in passage(text * 5, 1, wanted):
        fitted = fit(line, room)
        assert cells(fitted.text) <= room
        assert cells(cut(line.text, room)) <= room
        for (a, b), (c, d) in zip(fitted.marks, line.marks, strict=False):
            assert 0 <= a < b <= len(fitted.text)
            assert line.text[c:d].startswith(fitted.text[a:b])


def test_a_short_line_is_left_alone() -> None:
    line = Line(1, "漢" * 10, ((0, 1),))
    assert fit(line, 20) is line
    assert cells(fit(line, 19).text) <= 19


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_and_can_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert choose_paint("auto", Terminal()).on
    assert not choose_paint("auto", io.StringIO()).on
    assert choose_paint("always", io.StringIO()).on
    assert not choose_paint("never", Terminal()).on
    monkeypatch.setenv("NO_COLOR", "1")
    assert not choose_paint("auto", Terminal()).on
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not choose_paint("auto", Terminal()).on


def report(**changes: object) -> BuildReport:
    values: dict[str, object] = {
        "revision": "r",
        "added": 3,
        "unchanged": 1200,
        "removed": 1,
        "chunks": 5000,
        "embedded": 100,
        "reused": 2,
        "characters": 40000,
        "cut": 0,
        "skipped": (),
        "seconds": 2.0,
        "complete": True,
    }
    return BuildReport(**(values | changes))  # type: ignore[arg-type]


SKIPS = (
    Skipped("a.bin", SkipReason.BINARY),
    Skipped("big\x1b.csv", SkipReason.OVERSIZE, "12 MB"),
    Skipped("b.bin", SkipReason.BINARY),
)


def test_a_build_says_what_it_did() -> None:
    assert list(build_lines(report(), verbose=False)) == [
        "indexed 1,203 artifacts: 3 new or changed, 1,200 unchanged, 1 removed",
        "5,000 chunks: 100 embedded (40,000 characters, 50/s), 2 reused",
        "took 2.0 s",
    ]


def test_a_build_with_nothing_to_do_is_one_line() -> None:
    nothing = report(added=0, removed=0, embedded=0, characters=0, reused=0, seconds=0.1)
    assert list(build_lines(nothing, verbose=False)) == ["up to date: 1,200 artifacts, 5,000 chunks (0.1 s)"]


def test_a_build_counts_what_it_left_out_and_names_it_when_asked() -> None:
    assert list(build_lines(report(skipped=SKIPS, cut=1), verbose=False))[-2:] == [
        "longer than the model reads, so only their beginning was embedded: 1 passage",
        "left out 3: 2 binary, 1 larger than the size limit → outcrop index --verbose",
    ]
    assert list(build_lines(report(skipped=SKIPS), verbose=True))[-4:] == [
        "left out 3: 2 binary, 1 larger than the size limit",
        "  a.bin: binary",
        "  big\\x1b.csv: larger than the size limit (12 MB)",
        "  b.bin: binary",
    ]


def test_an_empty_folder_is_told_apart_from_a_finished_one() -> None:
    empty = report(added=0, unchanged=0, removed=0, embedded=0, chunks=0)
    assert "nothing here is indexed: there is no file to index" in list(build_lines(empty, verbose=False))


def test_a_dry_run_lists_everything_and_where_text_would_go() -> None:
    refs = (Ref("1f" * 20, Kind.DOC, "a.md", "v"), Ref("2f" * 20, Kind.TICKET, None, "v"))
    plan = Plan(refs, 1, 7, 2100, "nomic-768", "https://e.example/v1", SKIPS[:1])
    assert list(plan_lines(plan)) == [
        "doc          a.md",
        f"ticket       {'2f' * 20}",
        "",
        "2 artifacts to index, 1 of them new or changed",
        "7 passages of 2,100 characters to embed by nomic-768, sent to https://e.example/v1",
        "left out 1: 1 binary",
        "  a.bin: binary",
    ]
    assert "to embed by hash-768, on this machine" in list(plan_lines(Plan((), 0, 0, 0, "hash-768", None, ())))[1]


def status(**changes: object) -> Status:
    values: dict[str, object] = {
        "source": "git",
        "root": "/repo",
        "project": "app",
        "store": "/repo/.git/outcrop.sqlite",
        "exists": True,
        "bytes": 2_500_000,
        "revision": "r1",
        "current": "r1",
        "stale": False,
        "complete": 1.0,
        "writer": False,
        "space": "mini-384",
        "embedder": "mini-384",
        "address": None,
        "collections": (CollectionStatus("code-mini-384", "code", 10, 200, 200, 9000, 400_000, {"code": 200}),),
        "spaces": (SpaceStatus("mini-384", 200, 300_000), SpaceStatus("hash-768", 50, 150_000)),
        "skipped": (),
    }
    return Status(**(values | changes))  # type: ignore[arg-type]


def test_status_shows_place_freshness_and_collections() -> None:
    assert list(status_lines(status(), PLAIN, verbose=False)) == [
        "git  /repo · project app",
        "embedder  mini-384, on this machine",
        "index  /repo/.git/outcrop.sqlite · 2.5 MB · current",
        "",
        "collection     artifacts  chunks  embedded      size  kinds",
        "code-mini-384         10     200     100 %  400.0 kB  code 200",
        "also 50 vectors of hash-768, 150.0 kB → outcrop clear --space hash-768",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exists": False}, "none yet; it would be /repo/.git/outcrop.sqlite → outcrop index"),
        ({"stale": True, "current": "r2"}, "stale: the source has changed → outcrop index"),
        ({"revision": None, "stale": True, "complete": 0.426}, "42 % complete → outcrop index"),
        ({"space": "hash-768"}, "made by hash-768 → outcrop index"),
        ({"writer": True}, "another process is building it"),
        ({"address": "http://box:1/"}, "sends text to http://box:1/"),
        ({"skipped": SKIPS}, "left out 3: 2 binary, 1 larger than the size limit → outcrop status --verbose"),
    ],
)
def test_status_says_what_is_not_as_it_should_be(changes: dict[str, object], words: str) -> None:
    assert words in "\n".join(status_lines(status(**changes), PLAIN, verbose=False))


def test_settings_show_their_origin() -> None:
    settings = load_settings(None, {"exclude": ("a", "b")}, {"OUTCROP_DIM": "3", "OUTCROP_KINDS": "x=doc"})
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in settings_lines(settings, PLAIN)}
    assert lines["exclude"] == "a, b     --exclude"
    assert lines["dim"].split() == ["3", "OUTCROP_DIM"]
    assert lines["kinds"].split() == ["x=doc", "OUTCROP_KINDS"]
    assert lines["model"].split() == ["–", "default"]
    assert set(lines) == Settings.__dataclass_fields__.keys() - {"origins", "problem"}


def test_plain_progress_is_a_line_every_ten_seconds_with_rate_and_remaining_time() -> None:
    now, written = [0.0], list[str]()
    lines = PlainLines(lambda: now[0], written.append)
    for second, done in enumerate(range(0, 5000, 100)):
        now[0] = float(second)
        lines(Progress("embedding", done, 5000))
    assert written == [
        "embedding: 1,000 of 5,000 (20 %) · 100/s · 40 s left",
        "embedding: 2,000 of 5,000 (40 %) · 100/s · 30 s left",
        "embedding: 3,000 of 5,000 (60 %) · 100/s · 20 s left",
        "embedding: 4,000 of 5,000 (80 %) · 100/s · 10 s left",
    ]


def test_plain_progress_without_a_total_counts() -> None:
    now, written = [0.0], list[str]()
    lines = PlainLines(lambda: now[0], written.append)
    now[0] = 11.0
    lines(Progress("listing", 1234, 0))
    assert written == ["listing: 1,234"]

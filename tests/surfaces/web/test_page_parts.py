"""The modules behind the page: forges, published files, highlighting, treemap, rate limit, schemas."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repositories import commit, git, make_repository, write

from outcrop.app.catalog import Folder
from outcrop.app.documents import Block, Document
from outcrop.core.model import Kind
from outcrop.errors import UsageError
from outcrop.sources.git.published import PublishedRemote
from outcrop.surfaces.render import passage
from outcrop.surfaces.web.pages.excerpts import excerpt_of, parse_lines
from outcrop.surfaces.web.pages.forges import forge_of
from outcrop.surfaces.web.pages.highlight import dedent, highlight, marked_terms
from outcrop.surfaces.web.pages.treemap import GAP, HEIGHT, WIDTH, tiles
from outcrop.surfaces.web.rate_limit import MAX_CLIENTS, Bounds, RateLimiter

COMMIT = "ab" * 20


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("https://github.com/ada/kettle.git", "a/b.py", f"https://github.com/ada/kettle/blob/{COMMIT}/a/b.py#L3-L9"),
        ("git@github.com:ada/kettle.git", "x.py", f"https://github.com/ada/kettle/blob/{COMMIT}/x.py#L3-L9"),
        ("ssh://git@github.com:22/ada/kettle", "x.py", f"https://github.com/ada/kettle/blob/{COMMIT}/x.py#L3-L9"),
        (
            "https://ada:ghp_tok@github.com/ada/kettle",
            "x.py",
            f"https://github.com/ada/kettle/blob/{COMMIT}/x.py#L3-L9",
        ),
        ("https://github.com/ada/kettle", "R.md", f"https://github.com/ada/kettle/blob/{COMMIT}/R.md?plain=1#L3-L9"),
        (
            "https://github.com/ada/kettle",
            "a b#c?.py",
            f"https://github.com/ada/kettle/blob/{COMMIT}/a%20b%23c%3F.py#L3-L9",
        ),
        ("https://gitlab.com/g/sub/kettle.git", "x.py", f"https://gitlab.com/g/sub/kettle/-/blob/{COMMIT}/x.py#L3-9"),
        ("https://gitlab.gnome.org/g/kettle", "x.py", f"https://gitlab.gnome.org/g/kettle/-/blob/{COMMIT}/x.py#L3-9"),
        ("https://codeberg.org/ada/kettle", "x.py", f"https://codeberg.org/ada/kettle/src/commit/{COMMIT}/x.py#L3-L9"),
        ("git@git.sr.ht:~ada/kettle", "x.py", f"https://git.sr.ht/~ada/kettle/tree/{COMMIT}/item/x.py#L3-9"),
    ],
)
def test_known_forges_show_lines_of_a_commit(url: str, path: str, expected: str) -> None:
    forge = forge_of(url)
    assert forge is not None
    assert forge.blob(COMMIT, path, (3, 9)) == expected


@pytest.mark.parametrize(
    "url",
    ["", "/srv/git/kettle.git", "file:///srv/kettle", "https://example.org/a/b", "https://github.com/", "C:\\repos\\x",
     "https://github.com/../b", "javascript://github.com/a/b", "https://github.com.evil.example/a/b", "https://[/a/b"],
)  # fmt: skip
def test_other_remotes_have_no_page(url: str) -> None:
    assert forge_of(url) is None


def test_a_file_is_published_only_as_the_remote_has_it(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a.py": "one\n", "b.py": "two\n"})
    remote = PublishedRemote(folder)
    assert remote.published() is None
    git(folder, "remote", "add", "origin", "https://example.org/r")
    assert PublishedRemote(folder).published() is None
    first = git(folder, "rev-parse", "HEAD").decode().strip()
    git(folder, "update-ref", "refs/remotes/origin/main", first)
    found = remote.published()
    assert found is not None
    assert (found.url, found.commit) == ("https://example.org/r", first)
    write(folder, {"a.py": "changed\n", "c.py": "new\n"})
    commit(folder)
    # The new commit is not there; what did not change since the old one is.
    found = remote.published()
    assert found is not None
    assert found.commit == first
    blobs = found.blobs(["a.py", "b.py", "c.py", "no\nsuch", "../b.py"])
    assert set(blobs) == {"a.py", "b.py"}
    assert blobs["a.py"] != git(folder, "rev-parse", "HEAD:a.py").decode().strip()
    assert blobs["b.py"] == git(folder, "rev-parse", "HEAD:b.py").decode().strip()
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    found = remote.published()
    assert found is not None
    assert found.commit != first


def test_no_repository_publishes_nothing(tmp_path: Path) -> None:
    assert PublishedRemote(tmp_path).published() is None


# -- highlighting -----------------------------------------------------------------------------------------------------


def text_of(lines: list[str]) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", "\n".join(lines)))


PATHS = st.sampled_from(["a.py", "b.c", "c.md", "d.rst", "e.html", "f.sql", "g.json", "h.js", "i", "j.rb", None])


@given(st.text(max_size=200), PATHS, st.text(max_size=20))
def test_highlighted_lines_contain_the_text_and_nothing_else(text: str, path: str | None, query: str) -> None:
    lines = passage(text, 1, marked_terms(query, {}))
    dressed = [str(shown.html) for shown in highlight(lines, path, Kind.CODE)]
    assert text_of(dressed) == "\n".join(line.text for line in lines)
    for line in dressed:
        assert re.sub(r"</?mark>|<span class=\"t[a-z]\">|</span>", "", line).count("<") == 0


def test_a_mark_goes_around_colours() -> None:
    lines = passage("def parse_header(raw):", 1, frozenset({"parseheader", "raw"}))
    (shown,) = highlight(lines, "a.py", Kind.CODE)
    assert str(shown.html) == (
        '<span class="tk">def</span> <mark><span class="tf">parse_header</span></mark>(<mark>raw</mark>):'
    )


def test_endings_are_marked_as_the_keyword_index_finds_them() -> None:
    wanted = marked_terms("expired sessions of a bsu", {"bsu": "bus"})
    assert wanted == {"expired", "sessions", "bsu", "bus"}
    (line,) = passage("It expires by session of the bus, an expiry of bussing.", 1, wanted)
    assert [line.text[start:end] for start, end in line.marks] == ["expires", "session", "bus"]


def test_code_and_tables_in_prose_keep_their_columns() -> None:
    text = "Say:\n\n```\nls  -l\n```\nor\n\n    cd  /\n\n| a | b |\nthen"
    aligned = [shown.number for shown in highlight(passage(text, 1, frozenset()), "a.md", Kind.DOC) if shown.aligned]
    assert aligned == [3, 4, 5, 8, 10]


def test_shared_white_space_goes_and_marks_move_along() -> None:
    lines = dedent(passage("        if raw:\n            raw()", 5, frozenset({"raw"})))
    assert [line.text for line in lines] == ["if raw:", "    raw()"]
    assert [line.text[start:end] for line in lines for start, end in line.marks] == ["raw", "raw"]


# -- excerpts ---------------------------------------------------------------------------------------------------------


def document(*blocks: Block) -> Document:
    return Document("h", Kind.CODE, "a.py", ("a.py",), "", blocks, "indexed")


def test_excerpts_stay_inside_their_text() -> None:
    whole = document(Block("one\ntwo\nthree\nfour\n"))
    cut = excerpt_of(whole, (2, 3), None, 1)
    assert (cut.text, cut.first_line, cut.last_line, cut.highest) == ("one\ntwo\nthree\nfour", 1, 4, 4)
    assert excerpt_of(whole, (3, 99), None).text == "three\nfour"
    with pytest.raises(UsageError, match="no line 5"):
        excerpt_of(whole, (5, 5), None)
    with pytest.raises(UsageError, match="no cell 3"):
        excerpt_of(document(Block("x", 1, 0)), None, 2)


def test_stored_passages_are_found_by_their_lines() -> None:
    stored = document(Block("ten\neleven", 10), Block("thirty", 30))
    assert excerpt_of(stored, (11, 11), None).text == "eleven"
    assert excerpt_of(stored, (30, 30), None, 5).text == "thirty"


@pytest.mark.parametrize("text", ["0", "-1", "3-", "5-2", "x", "1 2", "１", "9" * 12])
def test_lines_are_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="lines cannot be"):
        parse_lines(text)


# -- treemap ----------------------------------------------------------------------------------------------------------


def folder(path: str, size: int, *children: Folder) -> Folder:
    return Folder(path.rpartition("/")[2], path, 1, 1, size, size, children)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=30))
def test_rectangles_fill_the_picture_in_proportion_and_do_not_overlap(sizes: list[int]) -> None:
    total = sum(sizes)
    found = tiles(folder("", total, *(folder(f"f{number}", size) for number, size in enumerate(sizes))))
    assert sum(tile.bytes for tile in found) >= total * (1 - 1e-6 * len(sizes))
    for at, tile in enumerate(found):
        assert tile.x >= 0
        assert tile.y >= 0
        # A drawn rectangle leaves out GAP on two sides, which is more than its rounding to 0.1.
        assert tile.x + tile.width <= WIDTH
        assert tile.y + tile.height <= HEIGHT
        if tile.width and tile.height:
            width, height = tile.width + GAP, tile.height + GAP
            # Edges are rounded to 0.1, so an area is off by that along each edge.
            assert width * height == pytest.approx(WIDTH * HEIGHT * tile.bytes / total, abs=0.2 * (width + height))
        for other in found[at + 1 :]:
            across = min(tile.x + tile.width, other.x + other.width) - max(tile.x, other.x)
            down = min(tile.y + tile.height, other.y + other.height) - max(tile.y, other.y)
            assert min(across, down) <= 0


def test_folders_with_one_folder_are_shown_as_one_and_slivers_summed_up() -> None:
    slivers = [folder(f"tiny{number}", 1) for number in range(5)]
    root = folder("", 10_005, folder("src", 6000, folder("src/kettle", 6000)), folder("docs", 4000), *slivers)
    found = tiles(root)
    assert [tile.label for tile in found if tile.level == 0][:2] == ["src/kettle", "docs"]
    assert any(tile.name == "5 small folders" for tile in found)
    assert all(tile.x >= 0 and tile.x + tile.width <= WIDTH and tile.y + tile.height <= HEIGHT for tile in found)


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_a_visitor_is_slowed_down_and_recovers() -> None:
    now = [0.0]
    limiter = RateLimiter(Bounds(rate=2, burst=3, queue=0), lambda: now[0])
    assert [limiter.acquire("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.acquire("a") == pytest.approx(0.5)
    assert limiter.acquire("b") == 0
    now[0] = 0.5
    assert limiter.acquire("a") == 0
    assert limiter.acquire("a") > 0
    now[0] = 1000
    assert [limiter.acquire("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.acquire("a") > 0


def test_requests_wait_for_their_turn_and_a_refused_one_takes_no_place() -> None:
    now = [0.0]
    limiter = RateLimiter(Bounds(rate=2, burst=3, queue=1), lambda: now[0])
    assert [limiter.acquire("a") for _ in range(7)] == [0, 0, 0, 0.5, 1, 1.5, 1.5]
    now[0] = 0.5
    assert limiter.acquire("a") == 1


def test_only_so_many_visitors_are_remembered() -> None:
    limiter = RateLimiter(Bounds(rate=0.001, burst=1), lambda: 0.0)
    assert limiter.acquire("first") == 0
    for number in range(MAX_CLIENTS):
        limiter.acquire(str(number))
    assert limiter.acquire("first") == 0

"""The page and its API, without a server: what is shown, to whom, and errors."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from repositories import git, make_repository, write
from web_client import GUIDE, KETTLE, WebClient, make_kettle, open_kettle

import outcrop
from outcrop.app.index import Index
from outcrop.core.model import Kind
from outcrop.projects import service
from outcrop.surfaces.web import router
from outcrop.surfaces.web.auth import Authenticator
from outcrop.surfaces.web.http import Reader, Request, Response, parse_query
from outcrop.surfaces.web.pages.links import FossilLinks, links_for
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.rate_limit import Bounds
from outcrop.surfaces.web.view_model import Site

SEARCH, VIEW, API = "/ext/search", "/ext/view", "/ext/api/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_kettle(tmp_path_factory.mktemp("page") / "kettle")


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[Index]:
    with open_kettle(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def ask(index: Index) -> WebClient:
    return WebClient(index)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.marks: list[str] = []
        self._marked = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._marked = self._marked or tag == "mark"
        if tag == "mark":
            self.marks.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "mark":
            self._marked = False

    def handle_data(self, data: str) -> None:
        self.parts.append(data)
        if self._marked:
            self.marks[-1] += data


def read_html(text: str) -> _Text:
    parser = _Text()
    parser.feed(text)
    return parser


def words_of(text: str) -> str:
    return " ".join("".join(read_html(text).parts).split())


def test_the_front_leads_to_the_search_page(ask: WebClient) -> None:
    for path in ("/", "/ext", "/ext/"):
        assert (ask(path).status, ask(path).headers["location"]) == (303, "/ext/search")


def test_the_page_without_a_question_says_what_there_is(ask: WebClient) -> None:
    page = ask(SEARCH)
    text = words_of(page.text)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "passages of kettle" in text
    assert 'name="q" value=""' in page.text
    assert "autofocus" in page.text
    assert re.search(r'<option value="" selected>this repository \(kettle\)', page.text)
    assert re.search(r"documents 4 passages|documents \d", text)


def test_an_answer_shows_place_lines_kind_score_words_and_links(ask: WebClient, folder: Path) -> None:
    page = ask(SEARCH, ("q", "boil the kettle"), ("kind", "code"))
    text = words_of(page.text)
    commit = git(folder, "rev-parse", "HEAD").decode().strip()
    assert page.status == 200
    assert "src/kettle.py" in text
    assert "Kettle.boil" in text or "Kettle" in text
    # The endings of English words are the keyword index's too.
    assert {"kettle", "boiling", "boils"} <= {mark.casefold() for mark in read_html(page.text).marks}
    assert re.search(rf"https://github\.com/ada/kettle/blob/{commit}/src/kettle\.py#L\d+-L\d+", page.text)
    assert "/ext/view?path=src%2Fkettle.py&amp;hash=" in page.text
    assert 'value="code" checked' in page.text
    assert "similarity of meaning, 0 to 1" in text
    assert "hybrid" in text
    assert "hash-768" in text


def test_indexed_text_is_never_markup(ask: WebClient) -> None:
    page = ask(SEARCH, ("q", "spills scalds"), ("mode", "keyword"))
    assert "<b>" not in page.text
    assert "&lt;b&gt;" in page.text
    assert "hot water <b>spills</b> & scalds" in "".join(read_html(page.text).parts)
    hostile = ask(SEARCH, ("q", '"><script>alert(1)</script>'), ("path", "'><i>"), ("kind", "<u>"))
    assert "<script>alert" not in hostile.text
    assert "<i>" not in hostile.text
    assert "<u>" not in hostile.text


def test_the_form_keeps_what_was_chosen(ask: WebClient) -> None:
    page = ask(SEARCH, ("q", "water"), ("mode", "keyword"), ("path", "docs/**"), ("corpus", "docs"), ("project", "*"))
    assert 'value="keyword" checked' in page.text
    assert 'name="path" value="docs/**"' in page.text
    assert '<option value="docs" selected>' in page.text
    assert '<option value="*" selected>' in page.text
    assert "src/kettle.py" not in page.text


def test_counts_of_kinds_follow_the_corpus(ask: WebClient) -> None:
    box = 'name="kind" value="code"'
    assert box in ask(SEARCH).text
    assert box not in ask(SEARCH, ("corpus", "docs")).text


def test_more_results_are_a_link_that_keeps_the_question(ask: WebClient) -> None:
    page = ask(SEARCH, ("q", "water"), ("k", 2), ("mode", "keyword"))
    assert page.text.count("data-oc-hit>") == 2
    assert "q=water&amp;mode=keyword&amp;k=12#hit-3" in page.text


@pytest.mark.parametrize(
    ("params", "status", "says"),
    [
        ([("mode", "psychic")], 400, "there is no mode 'psychic'"),
        ([("kind", "recipe")], 400, "there is no kind 'recipe'"),
        ([("kind", "wiki")], 400, "There is: code, doc, instruction"),
        ([("project", "teapot")], 400, "kettle (this one)"),
        ([("corpus", "songs")], 400, "There is: code, docs"),
        ([("k", "many")], 200, "hybrid"),
        ([("k", "-3")], 200, "hybrid"),
    ],
)
def test_what_does_not_exist_is_said_with_the_form_in_place(
    ask: WebClient, params: list[tuple[str, str]], status: int, says: str
) -> None:
    page = ask(SEARCH, ("q", "water"), *params)
    assert page.status == status
    assert says in words_of(page.text)
    assert 'value="water"' in page.text


def test_paths_hold_spaces_leave_out_and_are_led_to_from_the_catalog(tmp_path: Path) -> None:
    write(tmp_path, {"my [old] notes/tea.md": "# Tea\n\nBrew the tea.\n", "tea.md": "# Tea\n\nSip tea.\n"})
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        index.build()
        ask = WebClient(index)
        (address,) = re.findall(r'<a href="/ext/search\?([^"]+)">my \[old\] notes/', ask("/ext/catalog").text)
        pairs = parse_query(html.unescape(address))

        def files(*pairs: tuple[str, str]) -> list[str]:
            page = ask(SEARCH, ("q", "tea"), *pairs)
            return re.findall(r'<span class="oc-folder">([^<]*)</span>', page.text)

        assert files(*pairs) == ["my [old] notes/"]
        assert files(("path", "!my\\ *")) == [""]
        assert sorted(files(("path", "./"))) == ["", "my [old] notes/"]
        wrong = ask(SEARCH, ("q", "tea"), ("path", "a\\"))
        assert wrong.status == 400
        assert "is not a pattern" in words_of(wrong.text)
        assert 'name="path" value="a\\"' in wrong.text


def test_nothing_found_says_what_to_try(ask: WebClient) -> None:
    page = words_of(ask(SEARCH, ("q", "zyzzyva"), ("mode", "keyword"), ("kind", "code")).text)
    assert "Nothing found" in page
    assert "Search without them" in page
    assert "search by meaning" in page


def test_without_an_index_the_files_answer_and_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nSteep it for three minutes.\n")
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        ask = WebClient(index)
        assert "run outcrop index" in words_of(ask(SEARCH).text)
        page = ask(SEARCH, ("q", "steep minutes"))
        assert "keyword only" in words_of(page.text)
        assert "there is no index yet" in words_of(page.text).lower()
        href = re.search(r'href="(/ext/view\?[^"#]+)', page.text)
        assert href is not None
        assert "Steep it for three minutes." in words_of(ask(href[1].replace("&amp;", "&")).text)
        assert ask(VIEW, ("path", "../secret")).status == 404
        assert "Nothing is indexed" in words_of(ask("/ext/catalog").text)


def test_a_damaged_index_is_said_to_be_one_and_the_files_answer(tmp_path: Path) -> None:
    folder = make_kettle(tmp_path / "kettle")
    (folder / ".git/outcrop/index.sqlite").write_bytes(b"SQLite format 3\0" + b"rubbish" * 2000)
    with open_kettle(folder) as index:
        ask = WebClient(index)
        assert "damaged" in words_of(ask(SEARCH).text)
        page = words_of(ask(SEARCH, ("q", "vinegar")).text)
        assert "damaged" in page
        assert "guide.md" in page
        assert ask("/ext/catalog").status == 500
        assert "outcrop rebuild" in words_of(ask("/ext/catalog").text)
        assert ask(API + "catalog").headers["content-type"] == "application/problem+json"


def test_an_index_that_is_removed_meanwhile_is_missed(tmp_path: Path) -> None:
    folder = make_kettle(tmp_path / "kettle")
    with open_kettle(folder) as index, open_kettle(folder) as other:
        ask = WebClient(index)
        assert "keyword only" not in words_of(ask(SEARCH, ("q", "vinegar")).text)
        other.clear()
        assert "there is no index yet" in words_of(ask(SEARCH, ("q", "vinegar")).text).lower()
        assert "Nothing is indexed here yet" in words_of(ask(SEARCH).text)
        other.build()
        assert "passages of kettle" in words_of(ask(SEARCH).text)


def test_hostile_names_and_texts_show_as_what_they_are(tmp_path: Path) -> None:
    names = ["<img src=x onerror=alert(1)>.py", "\"quote's & amp;.md", "new\nline.py", "\u202egnp.py", "a#b?c=d&e.py"]
    for name in names:
        (tmp_path / name).write_text("# kettle </code><script>alert(1)</script> \u202e \x1b[31m \x00")
    (tmp_path / "fine.py").write_text("# kettle </code><script>alert(1)</script> \u202e \x1b[31m")
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        index.build()
        ask = WebClient(index)
        for page in (ask(SEARCH, ("q", "kettle"), ("k", 50)), ask("/ext/catalog"), ask(VIEW, ("path", "fine.py"))):
            assert page.status == 200
            assert "<img" not in page.text
            assert "<script>alert" not in page.text
            assert "\u202e" not in page.text
            assert "\x1b" not in page.text
        for href in re.findall(r'href="(/ext/view[^"#]*)', ask(SEARCH, ("q", "kettle"), ("k", 50)).text):
            assert ask(href.replace("&amp;", "&")).status == 200


def test_a_stale_index_is_reported(tmp_path: Path) -> None:
    folder = make_kettle(tmp_path / "kettle")
    write(folder, {"docs/guide.md": GUIDE + "\nMore.\n"})
    with open_kettle(folder) as index:
        ask = WebClient(index)
        assert "The index is behind" in words_of(ask(SEARCH, ("q", "vinegar")).text)
        assert "The index is behind" in words_of(ask("/ext/catalog").text)
        # The blob that was indexed is still there, so its lines are the ones that were found.
        assert "More." not in words_of(ask(VIEW, ("path", "docs/guide.md")).text)
        # What the remote has is the file as it was indexed, so the link stays right.
        assert "github.com" in ask(SEARCH, ("q", "vinegar")).text


def test_the_viewer_shows_lines_with_their_numbers(ask: WebClient) -> None:
    page = ask(VIEW, ("path", "src/kettle.py"), ("lines", "13-17"), ("q", "degrees"))
    assert page.text.count('class="oc-line oc-chosen') == 5
    assert 'id="L13"' in page.text
    assert f'id="L{len(KETTLE.splitlines())}"' in page.text
    assert f'id="L{len(KETTLE.splitlines()) + 1}"' not in page.text
    assert "degrees" in read_html(page.text).marks
    assert "Back to the results" in words_of(page.text)
    body = "".join(read_html(page.text).parts)
    assert "while self.degrees < 100:" in body


def test_the_viewer_shows_notebooks_by_cell(ask: WebClient) -> None:
    page = ask(VIEW, ("path", "lab/heat.ipynb"), ("cell", 2), ("lines", "2"))
    assert "Cell 2" in words_of(page.text)
    assert 'oc-chosen" id="C2-L2"' in page.text
    assert "nbformat" not in page.text


def test_a_very_long_file_is_shown_in_parts_that_lead_to_each_other(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("".join(f"line_{number} = {number}\n" for number in range(1, 8001)))
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        index.build()
        ask = WebClient(index)
        first = ask(VIEW, ("path", "long.py"))
        assert re.findall(r'id="L(\d+)"', first.text) == [str(number) for number in range(1, 3001)]
        below = re.search(r'href="([^"#]+)#L3001">5,000 lines below', first.text)
        assert below is not None
        second = ask(below[1].replace("&amp;", "&"))
        assert 'oc-chosen" id="L3001"' in second.text
        assert "2,000 lines above" in second.text
        last = ask(VIEW, ("path", "long.py"), ("lines", "7990-8000"))
        assert 'id="L8000"' in last.text
        assert "lines below" not in last.text


def test_lines_around_come_as_a_part(ask: WebClient) -> None:
    part = ask(VIEW, ("path", "src/kettle.py"), ("lines", "14-14"), ("around", 2), ("part", 1))
    assert part.status == 200
    assert "<html" not in part.text
    assert re.findall(r'aria-hidden="true">(\d+)<', part.text) == ["12", "13", "14", "15", "16"]
    assert 'data-grow="yes"' in part.text
    whole = ask(VIEW, ("path", "src/kettle.py"), ("lines", "14-14"), ("around", 400), ("part", 1))
    assert 'data-grow="no"' in whole.text


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        ([("path", "/etc/passwd")], 404),
        ([("path", "../kettle/src/kettle.py")], 404),
        ([("path", "logo.bin")], 404),
        ([("path", ".git/config")], 404),
        ([("hash", "0" * 40)], 404),
        ([], 404),
        ([("path", "src/kettle.py"), ("lines", "x")], 400),
        ([("path", "src/kettle.py"), ("lines", "9-2")], 400),
        ([("path", "src/kettle.py"), ("project", "other")], 404),
        ([("path", "src/kettle.py"), ("lines", "9999"), ("part", "1")], 400),
    ],
)
def test_only_what_is_indexed_can_be_viewed(ask: WebClient, pairs: list[tuple[str, str]], status: int) -> None:
    assert ask(VIEW, *pairs).status == status


def test_the_catalog_counts_and_names_what_was_left_out(ask: WebClient) -> None:
    page = ask("/ext/catalog")
    text = words_of(page.text)
    assert page.status == 200
    assert "instructions" in text
    assert "logo.bin" in text
    assert '<svg class="oc-map"' in page.text
    assert "hash-768" in text


def test_media_hits_say_when_and_lead_to_the_asset(tmp_path: Path) -> None:
    folder = make_kettle(tmp_path / "kettle")
    manifest = {"sha3": "ab" * 32, "mime": "video/mp4", "bytes": 10}
    cues = "WEBVTT\n\n00:01:05.000 --> 00:01:31.000\nNow the samovar whistles.\n"
    for name, uri in (("good", "https://example.org/samovar.mp4"), ("bad", "javascript:alert(1)//samovar")):
        text = json.dumps(manifest | {"uri": uri, "transcript": f"media/{name}.vtt"})
        write(folder, {f"media/{name}.json": text, f"media/{name}.vtt": cues})
    with open_kettle(folder) as index:
        index.build()
        page = WebClient(index)(SEARCH, ("q", "samovar whistles"), ("kind", "media")).text
        assert "1:05–1:31" in words_of(page)
        # A caption has another line in its file than in the passage; the link uses its time.
        assert re.findall(r'<span class="oc-no"[^>]*>(\d*)</span>', page) == [""]
        assert 'href="https://example.org/samovar.mp4' in page
        assert 'href="javascript' not in page
        seen = words_of(WebClient(index)(VIEW, ("path", "media/good.json")).text)
        assert "Now the samovar whistles." in seen


def test_another_project_is_chosen_and_shown(tmp_path: Path) -> None:
    teapot = make_repository(tmp_path / "teapot", {"pour.py": "def pour_tea():\n    return 'slowly'\n"})
    with open_kettle(teapot) as index:
        index.build()
    folder = make_kettle(tmp_path / "kettle")
    with open_kettle(folder) as index:
        service.import_project(index, teapot)
        ask = WebClient(index)
        assert '<option value="teapot">teapot</option>' in ask(SEARCH).text
        assert "pour.py" not in ask(SEARCH, ("q", "pour tea")).text
        page = ask(SEARCH, ("q", "pour tea"), ("project", "teapot"))
        assert "pour.py" in page.text
        assert '<option value="teapot" selected>' in page.text
        assert "github.com" not in page.text
        href = re.search(r'href="(/ext/view[^"#]*)', page.text)
        assert href is not None
        seen = ask(href[1].replace("&amp;", "&"))
        assert "pour_tea" in words_of(seen.text)
        assert "These are the passages in the index" in words_of(seen.text)
        assert "By project" in words_of(ask("/ext/catalog").text)


# -- the API ----------------------------------------------------------------------------------------------------------


def test_the_api_answers_as_every_surface_does(ask: WebClient, index: Index) -> None:
    answer = ask(API + "search", ("q", "clean with vinegar"), ("k", 3), ("kind", "doc"), ("path", "docs/*.md"))
    assert answer.headers["content-type"] == "application/json"
    expected = index.search("clean with vinegar", k=3, kind="doc", path="docs/*.md").to_dict()
    assert answer.json == json.loads(json.dumps(expected))
    assert answer.json["hits"][0]["paths"] == ["docs/copy of guide.md", "docs/guide.md"]


def test_status_passage_and_catalog(ask: WebClient, index: Index) -> None:
    assert ask(API + "status").json["project"] == "kettle"
    passage = ask(API + "passage", ("path", "docs/guide.md"), ("lines", "5-5"), ("around", 2)).json
    assert passage["text"].splitlines()[2] == "## Cleaning"
    assert (passage["lines"], passage["last_line"], passage["state"]) == ([3, 7], 11, "indexed")
    cell = ask(API + "passage", ("path", "lab/heat.ipynb"), ("cell", 1), ("lines", "1")).json
    assert (cell["text"], cell["cell"]) == ("slope = [1, 2, 3]", 1)
    assert ask(API + "catalog").json["total"]["chunks"] == sum(index.status().collections[i].chunks for i in (0, 1))


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("search", 400, "needs the argument 'q'"),
        ("search?q=", 400, "too small"),
        ("search?q=a&k=0", 400, "k is too small"),
        ("search?q=a&k=1000", 400, "k is too large"),
        ("search?q=a&k=ten", 400, "k cannot be 'ten'"),
        ("search?q=a&q=b", 400, "given twice"),
        ("search?q=a&colour=red", 400, "no argument 'colour'"),
        ("search?q=a&mode=psychic", 400, "mode cannot be"),
        ("search?q=a&min_score=2", 400, "too large"),
        ("search?q=a&min_score=nan", 400, "min_score cannot be"),
        ("search?q=a&explain=perhaps", 400, "explain cannot be"),
        ("search?q=a&kind=recipe", 400, "kind[0] cannot be"),
        ("search?q=%20", 400, "empty"),
        ("search?q=" + "x" * 2001, 400, "too large"),
        ("passage", 400, "a path or a hash"),
        ("passage?path=nowhere", 404, "nothing at"),
        ("passage?path=docs/guide.md&lines=99", 400, "no line 99"),
        ("nothing", 404, "nothing at this address"),
        ("search?" + "q&" * 1500, 400, "too many parts"),
    ],
)
def test_errors_are_problem_details(ask: WebClient, address: str, status: int, says: str) -> None:
    answer = ask(API + address)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == status
    assert says in answer.json["detail"]


def test_a_long_question_in_any_script_gets_through(ask: WebClient) -> None:
    assert ask(API + "search", ("q", "水" * 2000)).status == 200


def test_the_description_lists_what_is_checked(ask: WebClient) -> None:
    described = ask(API + "openapi.json").json
    assert described["openapi"] == "3.1.0"
    assert set(described["paths"]) == {API + name for name in ("search", "passage", "status", "catalog")}
    parameters = {each["name"]: each for each in described["paths"][API + "search"]["get"]["parameters"]}
    assert parameters["q"]["required"]
    assert parameters["k"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}
    assert parameters["kind"]["schema"]["items"] == {"type": "string", "enum": [str(each) for each in Kind]}
    schemas = described["components"]["schemas"]
    assert set(schemas["Hit"]["properties"]) >= {"score", "kind", "project", "path", "hash", "text"}


def test_only_reading_is_possible(ask: WebClient) -> None:
    for path in (SEARCH, API + "search", "/ext/static/outcrop.css"):
        refused = ask(path, method="POST")
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    head = ask(SEARCH, method="HEAD")
    assert (head.status, head.body) == (200, b"")


# -- access -----------------------------------------------------------------------------------------------------------


def test_every_answer_has_security_headers_and_its_own_nonce(ask: WebClient) -> None:
    first, second = ask(SEARCH), ask(SEARCH)
    nonces = [re.search(r"'nonce-([\w-]+)'", each.headers["content-security-policy"]) for each in (first, second)]
    assert nonces[0] is not None
    assert nonces[1] is not None
    assert nonces[0][1] != nonces[1][1]
    assert f'<script nonce="{nonces[0][1]}"' in first.text
    assert "default-src 'none'" in first.headers["content-security-policy"]
    assert "unsafe" not in first.headers["content-security-policy"]
    assert re.search(r"\sstyle=|\son\w+=|javascript:", first.text) is None
    for answer in (first, ask("/nowhere"), ask(API + "search")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8719", "192.168.1.5", "", "127.0.0.1.evil.example", "a b"]
)
def test_a_foreign_host_is_refused(ask: WebClient, host: str) -> None:
    assert ask(SEARCH, headers={"host": host}).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9999", "[::1]:8719", "LOCALHOST", "127.0.0.2"])
def test_this_machine_is_known_by_its_names(ask: WebClient, host: str) -> None:
    assert ask(SEARCH, headers={"host": host}).status == 200


def test_other_sites_pages_are_refused(ask: WebClient) -> None:
    assert ask(API + "status", headers={"origin": "https://evil.example"}).status == 403
    assert ask(API + "status", headers={"origin": "null"}).status == 403
    assert ask(API + "status", headers={"origin": "http://127.0.0.1:8719"}).status == 200
    assert ask(API + "status", headers={"sec-fetch-site": "same-origin"}).status == 200
    assert ask(API + "status", headers={"sec-fetch-site": "none"}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_link_to_a_page_and_no_more(ask: WebClient, site: str) -> None:
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert ask(SEARCH, headers=link).status == 200
    for other in (
        {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
        {"sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
        {"sec-fetch-dest": "iframe"},
        {"sec-purpose": "prefetch;prerender"},
    ):
        assert ask(SEARCH, headers=link | other).status == 403
    assert ask(SEARCH, headers={"sec-fetch-site": site}).status == 403
    assert ask(SEARCH, headers=link, method="POST").status == 403
    assert ask(API + "search", ("q", "water"), headers=link).status == 403
    assert ask("/mcp", headers=link).status == 403


def test_a_token_is_asked_for_and_remembered(index: Index) -> None:
    ask = WebClient(index, Authenticator(token="s3cret-and-long", loopback=False))
    assert ask(API + "status").status == 401
    assert ask("/mcp", method="POST").status == 401
    assert ask(SEARCH).status == 401
    assert "Token required" in words_of(ask(SEARCH).text)
    assert ask("/ext/static/outcrop.css").status == 200
    assert ask(API + "status", headers={"authorization": "Bearer s3cret-and-long"}).status == 200
    assert ask(API + "status", headers={"authorization": "Bearer wrong"}).status == 401
    assert ask(API + "status", headers={"cookie": "outcrop=s3cret-and-long"}).status == 401
    welcome = ask(SEARCH, ("q", "tea"), ("token", "s3cret-and-long"))
    assert (welcome.status, welcome.headers["location"]) == (303, "/ext/search?q=tea")
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.casefold()
    assert "s3cret" not in cookie
    assert ask(SEARCH, headers={"cookie": cookie.partition(";")[0]}).status == 200
    assert ask(SEARCH, ("token", "guess")).status == 401
    assert "not the token" in words_of(ask(SEARCH, ("token", "guess")).text)


def test_the_token_can_be_typed_in(index: Index) -> None:
    ask = WebClient(index, Authenticator(token="s3cret-and-long", loopback=False))
    form = {"content-type": "application/x-www-form-urlencoded"}
    wrong = ask("/ext/sign-in", method="POST", headers=form, body=b"token=guess")
    assert wrong.status == 401
    right = ask("/ext/sign-in", method="POST", headers=form, body=b"token=s3cret-and-long")
    assert (right.status, right.headers["location"]) == (303, "/ext/search")
    foreign = {"origin": "https://evil.example"}
    assert ask("/ext/sign-in", method="POST", headers=form | foreign, body=b"token=x").status == 403
    assert WebClient(index)("/ext/sign-in").status == 404


def test_a_wide_open_server_takes_any_number_but_no_unknown_name(index: Index) -> None:
    ask = WebClient(index, Authenticator(["shed.local"], token=None, loopback=False))
    assert ask(SEARCH, headers={"host": "192.168.1.5:8719"}).status == 200
    assert ask(SEARCH, headers={"host": "shed.local"}).status == 200
    assert ask(SEARCH, headers={"host": "evil.example"}).status == 421


def test_size_and_rate_are_bounded(index: Index) -> None:
    ask = WebClient(index, bounds=Bounds(rate=0.001, burst=3, body=100))
    assert ask(SEARCH + "?q=" + "x" * 40_000).status == 414
    assert ask(SEARCH, method="POST", headers={"content-length": "101"}).status == 413
    assert ask("/ext/static/outcrop.css", method="GET").status == 200
    refused = ask(SEARCH)
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0
    assert ask(SEARCH, client="10.0.0.9").status == 200


def test_too_many_at_once_are_turned_away(index: Index) -> None:
    ask = WebClient(index, bounds=Bounds(rate=1e6, burst=10**6, waiting=0))
    assert ask(API + "status").status == 503
    ask = WebClient(index, bounds=Bounds(rate=1e6, burst=10**6, queue=0))
    assert ask(API + "status").status == 503


@pytest.fixture(scope="module")
def near_duplicates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Nearly one text in seven places, of three kinds."""
    root = tmp_path_factory.mktemp("copies")
    text = "the pool drains every idle socket after its deadline passes and then closes the listening port for good"
    lab = {"cells": [{"cell_type": "markdown", "metadata": {}, "source": f"# Lab\n\n{text}"}], "metadata": {}}
    write(root, {f"docs/copy {number}.md": f"# Pools\n\n{text}{'.' * number}\n" for number in range(4)})
    write(root, {"AGENTS.md": f"# Pools\n\n{text}!\n", "docs/<b>.md": f"# Pools\n\n{text}?\n"})
    write(root, {"lab/a.ipynb": json.dumps(lab | {"nbformat": 4, "nbformat_minor": 4})})
    opened = outcrop.open(root, settings={"embedder": "hash"})
    opened.build()
    with opened:
        yield opened


def test_copies_are_named_counted_and_led_to(near_duplicates: Index) -> None:
    ask = WebClient(near_duplicates)
    page = ask(SEARCH, ("q", "pool drains idle sockets"))
    answer = json.loads(ask(f"{API}search", ("q", "pool drains idle sockets")).text)
    (copies,) = [hit["copies"] for hit in answer["hits"] if hit["copies"]]
    places = [f"{each['path']}:{each['lines'][0]}" if each["cell"] is None else "lab/a.ipynb cell 1" for each in copies]
    assert len(places) == 5
    assert f"nearly the same at {', '.join(places[:3])} and 2 more" in words_of(page.text)
    links = re.findall(r'<a href="([^"]+)">([^<]+:\d+|[^<]+ cell 1)</a>', page.text)
    assert [html.unescape(label) for _, label in links] == places[:3]
    for address, _ in links:
        path, _, query = address.replace("&amp;", "&").partition("#")[0].partition("?")
        shown = ask(path, *parse_query(query))
        assert shown.status == 200
        assert "drains every idle" in words_of(shown.text)


def test_a_mistyped_word_is_said_and_its_correction_marked(ask: WebClient) -> None:
    page = ask(SEARCH, ("q", "vinegr"))
    assert "vinegr is not in the index; the search used vinegar" in words_of(page.text)
    assert "vinegar" in {mark.casefold() for mark in read_html(page.text).marks}


def test_the_way_back_from_the_viewer_keeps_the_filters(ask: WebClient) -> None:
    pairs = [("q", "vinegr"), ("kind", "doc"), ("mode", "keyword"), ("k", "20"), ("path", "docs/** & more")]
    page = ask(SEARCH, *pairs)
    (address,) = {html.unescape(each) for each in re.findall(r'<a href="([^"]+)" data-oc-open>', page.text)}
    # The line that the browser goes to is coloured like those that were found, so it has to be one of them.
    found = re.search(r"lines=(\d+)-\d+.*#L(\d+)$", address)
    assert found is not None
    assert found[1] == found[2]
    path, _, query = address.partition("#")[0].partition("?")
    shown = ask(path, *parse_query(query))
    assert "vinegar" in {mark.casefold() for mark in read_html(shown.text).marks}
    (back,) = re.findall(r'class="oc-back" href="([^"]+)"', shown.text)
    path, _, query = html.unescape(back).partition("?")
    assert (path, sorted(parse_query(query))) == (SEARCH, sorted([("q", "vinegar"), *pairs[1:]]))


# -- readers who may not see everything -------------------------------------------------------------------------------


def as_reader(site: Site, path: str, query: str, *kinds: Kind, skin: bool = False) -> Response:
    links = links_for(site.index, Addresses("/ext"))
    request = Request(path, parse_query(query), Reader(frozenset(kinds)), nonce="n0nce", skin=skin)
    return router.respond(site, links, request)


@pytest.mark.parametrize("path", ["search", "catalog", "api/status", "api/catalog", "api/search", "api/openapi.json"])
@pytest.mark.parametrize("query", ["q=boil+degrees&k=50", "q=kettle&kind=code", "q=kettle&corpus=code", "q=%00", ""])
def test_a_reader_of_documents_never_meets_code(index: Index, folder: Path, path: str, query: str) -> None:
    body = as_reader(Site(index), path, query, Kind.DOC).body.decode()
    for secret in ("Kettle.boil", "kettle.py", "AGENTS.md", "Boil water", "slope", "logo.bin", str(folder)):
        assert secret not in body


def test_hidden_kinds_and_corpora_do_not_exist(index: Index) -> None:
    site = Site(index)
    for query in ("q=kettle&kind=code", "q=kettle&corpus=code"):
        answer = as_reader(site, "api/search", query, Kind.DOC)
        assert answer.status == 400
        assert json.loads(answer.body)["fix"] in ("There is: doc", "There is: docs")
    assert as_reader(site, "api/passage", "path=src/kettle.py", Kind.DOC).status == 404
    assert json.loads(as_reader(site, "api/search", "q=kettle").body)["hits"] == []
    hits = json.loads(as_reader(site, "api/search", "q=kettle&k=50", Kind.DOC).body)["hits"]
    assert {hit["kind"] for hit in hits} == {"doc"}


def test_copies_that_a_reader_may_not_see_are_not_named(near_duplicates: Index) -> None:
    site = Site(near_duplicates)
    for path in ("search", "api/search"):
        query = "q=pool+drains+idle+sockets&k=50"
        assert "AGENTS.md" in as_reader(site, path, query, *Kind).body.decode()
        shown = as_reader(site, path, query, Kind.DOC).body.decode()
        assert "copy 1.md" in shown
        assert "AGENTS.md" not in shown


def test_words_that_a_reader_may_not_see_correct_nothing(index: Index) -> None:
    """A correction, or its lack, would tell whether a guessed word is in a hidden artifact."""
    site = Site(index)

    def corrected(typed: str, *kinds: Kind) -> dict[str, str]:
        return json.loads(as_reader(site, "api/search", f"q={typed}", *kinds).body)["corrected"]

    assert corrected("degres", *Kind) == {"degres": "degrees"}
    assert corrected("degres", Kind.DOC) == {}


def test_remote_readers_see_no_paths_of_this_machine(index: Index, folder: Path) -> None:
    site = Site(index)
    everything = tuple(Kind)
    for path in ("api/status", "api/catalog", "catalog", "search"):
        assert str(folder) not in as_reader(site, path, "q=kettle", *everything).body.decode()


def test_inside_another_page_there_is_no_frame(index: Index) -> None:
    site = Site(index)
    page = as_reader(site, "search", "q=vinegar", Kind.DOC, skin=True).body.decode()
    assert page.startswith('<div class="fossil-doc" data-title="vinegar')
    assert "<html" not in page
    assert '<script nonce="n0nce">' in page
    assert "</script>" in page
    assert page.count("<style") == 1
    missing = as_reader(site, "view", "path=none", Kind.DOC, skin=True)
    assert missing.status == 404
    assert missing.body.decode().startswith('<div class="fossil-doc"')


def test_fossils_own_pages_are_linked_by_their_verified_forms(index: Index) -> None:
    from outcrop.surfaces.web.pages.links import LinkTarget

    links = FossilLinks("https://example.org/repo/")
    targets = [
        LinkTarget(Kind.CODE, "", "src/a.c", "ab" * 20, (3, 9)),
        LinkTarget(Kind.WIKI, "", "My Page", "cd" * 20, (1, 4)),
        LinkTarget(Kind.TECHNOTE, "", "ef" * 20, "01" * 20, (1, 4)),
        LinkTarget(Kind.TICKET, "", None, "23" * 20, (1, 1)),
        LinkTarget(Kind.FORUM, "", None, "45" * 32, (1, 1)),
        LinkTarget(Kind.CODE, "other", "src/a.c", "ab" * 20, (3, 9)),
    ]
    found = [[link.href.removeprefix("https://example.org/repo") for link in each] for each in links.to(targets)]
    assert found == [
        [f"/artifact/{'ab' * 20}?ln=3-9"],
        ["/wiki?name=My+Page"],
        [f"/technote/{'ef' * 20}"],
        [f"/tktview/{'23' * 20}"],
        [f"/forumpost/{'45' * 32}"],
        [],
    ]

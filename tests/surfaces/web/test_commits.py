"""Commits on the page, in the API and for readers who may not see everything."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from repositories import commit, git, write
from web_client import WebClient, make_kettle, open_kettle

from outcrop.app.index import Index
from outcrop.core.model import Kind
from outcrop.surfaces.web import router
from outcrop.surfaces.web.http import Reader, Request, parse_query
from outcrop.surfaces.web.pages.forges import forge_of
from outcrop.surfaces.web.pages.links import FossilLinks, LinkTarget, links_for
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.view_model import Site

pytestmark = pytest.mark.usefixtures("with_history")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """One commit that the remote has, and one that it has not."""
    folder = make_kettle(tmp_path / "kettle")
    write(folder, {"docs/guide.md": "# Using the kettle\n\nCitric acid removes <b>limescale</b>.\n"})
    commit(folder, "Say that citric acid removes limescale\n\nVinegar <b>smells</b>.")
    with open_kettle(folder) as opened:
        opened.build()
        yield opened


def hashes(index: Index) -> list[str]:
    return git(index.source.root, "rev-list", "HEAD").decode().split()


def test_the_page_shows_a_commit_and_leads_to_its_text(index: Index) -> None:
    ask = WebClient(index)
    page = ask("/ext/search", ("q", "vinegar smells"), ("kind", "commit"), ("k", "1")).text
    assert "Say that citric acid removes limescale · 2024-01-01" in page
    assert f"Commit {hashes(index)[0][:10]}" in page
    assert "<b>smells" not in page
    (address,) = {found for found in re.findall(r'href="([^"#]+hash=[^"#]+)', page) if "/view" in found}
    path, _, query = html.unescape(address).partition("?")
    shown = ask(path, *parse_query(query)).text
    assert "docs/guide.md" in shown
    assert "Ada, 2024-01-01" in shown
    assert "ada@example.org" not in shown


def test_the_forge_is_linked_where_it_has_the_commit(index: Index) -> None:
    newest, oldest = hashes(index)
    links = links_for(index, Addresses("/ext"))
    pairs = [(each, project) for each in (newest, oldest) for project in ("", "other")]
    targets = [LinkTarget(Kind.COMMIT, project, None, each, (1, 3)) for each, project in pairs]
    outside = [[link.href for link in found if link.outside] for found in links.to(targets)]
    assert outside == [[], [], [f"https://github.com/ada/kettle/commit/{oldest}"], []]
    git(index.source.root, "update-ref", "refs/remotes/origin/main", "HEAD")
    ((*_, link),) = links.to(targets[:1])
    assert (link.href, link.label) == (f"https://github.com/ada/kettle/commit/{newest}", "GitHub")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("git@github.com:ada/kettle.git", "https://github.com/ada/kettle/commit/abc"),
        ("https://gitlab.com/g/sub/kettle", "https://gitlab.com/g/sub/kettle/-/commit/abc"),
        ("https://codeberg.org/ada/kettle", "https://codeberg.org/ada/kettle/commit/abc"),
        ("git@git.sr.ht:~ada/kettle", "https://git.sr.ht/~ada/kettle/commit/abc"),
    ],
)
def test_forges_show_commits(url: str, expected: str) -> None:
    forge = forge_of(url)
    assert forge is not None
    assert forge.commit("abc") == expected


def test_fossil_shows_check_ins() -> None:
    ((link,),) = FossilLinks("https://example.org/repo").to([LinkTarget(Kind.COMMIT, "", None, "ab" * 32, (1, 3))])
    assert (link.href, link.label) == (f"https://example.org/repo/info/{'ab' * 32}", "Check-in")


def kinds(index: Index, query: str, *visible: Kind) -> set[str]:
    request = Request("api/search", parse_query(query), Reader(frozenset(visible)), nonce="n0nce")
    answer = router.respond(Site(index), links_for(index, Addresses("/ext")), request)
    return {hit["kind"] for hit in json.loads(answer.body).get("hits", [])}


def test_a_reader_of_every_kind_meets_them_where_the_owner_does(index: Index) -> None:
    assert kinds(index, "q=limescale&k=50", *Kind) == {"code", "doc", "instruction"}
    assert "commit" in kinds(index, "q=when+was+citric+acid+added&k=50", *Kind)
    assert kinds(index, "q=limescale&kind=commit", *Kind) == {"commit"}


def test_a_reader_who_may_not_see_them_meets_none(index: Index) -> None:
    for query in ("q=limescale&kind=commit", "q=when+was+citric+acid+added&k=50", f"q={hashes(index)[0]}"):
        assert "commit" not in kinds(index, query, Kind.DOC)
    request = Request("api/passage", parse_query(f"hash={hashes(index)[0]}"), Reader(frozenset({Kind.DOC})), nonce="n")
    assert router.respond(Site(index), links_for(index, Addresses("/ext")), request).status == 404


def test_the_api_counts_and_names_them(index: Index) -> None:
    ask = WebClient(index)
    status = ask("/ext/api/status").json
    assert {each["corpus"]: each["kinds"].get("commit") for each in status["collections"]} == {"code": None, "docs": 2}
    (kind,) = [each for each in ask("/ext/api/catalog").json["kinds"] if each["name"] == "commit"]
    assert (kind["artifacts"], kind["chunks"]) == (2, 2)
    page = ask("/ext/search", ("q", "limescale")).text
    assert "commits" in page

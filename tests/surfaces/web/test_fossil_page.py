"""The search page under a real ``fossil server --extroot``: who sees what, where links lead, and that nothing leaks."""

from __future__ import annotations

import html
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode, urljoin

import httpx2 as httpx
import pytest
from fossil_program import SampleRepository, query, serving

import outcrop
from outcrop.core.model import Kind
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.web import cgi

FILES = {"code", "doc", "instruction"}

SECRETS = {
    "code": ["step_1", "src/app.py", "renamed"],
    "doc": ["All animals", "docs/with space.md", "Fußgänger"],
    "instruction": ["Feed them", "AGENTS.md"],
    "wiki": ["At seven", "Feeding times", "Asleep"],
    "technote": ["opened the gates"],
    "ticket": ["Wood was ordered", "Fence"],
    "forum": ["With a fork", "How to feed"],
}
"""Words and names that stand in one kind of material only."""

QUESTIONS = {
    "code": "step_1",
    "doc": "all animals",
    "instruction": "feed them",
    "wiki": "bears asleep",
    "technote": "we opened the gates",
    "ticket": "wood was ordered",
    "forum": "with a fork",
}


@dataclass
class Site:
    """A running server, and one browser a user."""

    address: str
    repository: Path
    zoo: SampleRepository
    users: dict[str, httpx.Client] = field(default_factory=dict)

    def get(self, at: str, user: str = "nobody", **params: str) -> httpx.Response:
        """Through the server, as this user."""
        return self.users[user].get(at, params=params)

    def say(self, at: str, user: str, **params: str) -> cgi.Response:
        """What the script says, without the server and another interpreter in between."""
        asked = variables(
            self.repository,
            user,
            PATH_INFO=at.removeprefix("/ext/search"),
            QUERY_STRING=urlencode(params),
        )
        call = cgi.read_request(asked)
        assert call is not None
        return cgi.answer(call)

    def ask(self, at: str, user: str, **params: str) -> tuple[int, str]:
        """Status and text of the same, without what it repeats of its own address."""
        response = self.say(at, user, **params)
        text = html.unescape(cgi.encode(response).decode())
        for value in params.values():
            text = text.replace(value, "").replace(quote_plus(value), "")
        return response.status, text


def log_in(address: str, user: str, password: str) -> httpx.Client:
    """As a person does: by the form, and for the anonymous user with what its picture shows."""
    client = httpx.Client(base_url=address, timeout=60, follow_redirects=False)
    fields = {"u": user, "p": password, "in": "Login"}
    client.cookies.set("fossil-test", "1")
    if user == "anonymous":
        page = client.get("/login").text
        shown = re.search(r"data-af=['\"](\w+)['\"]", page)
        seed = re.search(r"name=['\"]cs['\"] value=['\"](\d+)", page)
        assert shown, page
        assert seed, page
        fields |= {"p": shown[1], "cs": seed[1]}
    done = client.post("/login", data=fields, headers={"Referer": f"{address}login"})
    assert any(name.startswith("fossil-") for name in client.cookies if name != "fossil-test"), done.text
    return client


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home folder for everything that would go to the user's own."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in [*os.environ]:
            if name.startswith(("XDG_", "OUTCROP_")):
                patch.delenv(name)
        patch.setenv("OUTCROP_EMBEDDER", "hash")
        yield home


@pytest.fixture(scope="module")
def site(sample: SampleRepository, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A private repository: the anonymous user may read the wiki, others have what their role says."""
    folder = tmp_path_factory.mktemp("site")
    repository = sample.copy(folder)
    fossil = sample.fossil
    for user, capabilities in {
        "nobody": "", "anonymous": "hj", "reader": "or", "developer": "ei", "rita": "u", "dora": "v2rj", "olaf": "t",
    }.items():  # fmt: skip
        if user in ("rita", "dora", "olaf"):
            fossil.run("user", "new", user, "", f"{user}-password", "-R", repository)
        fossil.run("user", "capabilities", user, capabilities or "-", "-R", repository)
    query(repository, "UPDATE user SET cap = '' WHERE login = 'nobody'")
    query(repository, "REPLACE INTO config(name, value, mtime) VALUES ('auto-captcha', '1', 0)")
    fossil.run("user", "password", "alice", "alice-password", "-R", repository)
    with outcrop.open(repository) as index:
        index.build()
    assert main(["fossil", "install-ext", str(folder / "ext")]) == 0
    with serving(fossil, repository, "", "--extroot", folder / "ext") as address:
        site = Site(address, repository, sample)
        site.users["nobody"] = httpx.Client(base_url=address, timeout=60)
        for user in ("rita", "dora", "olaf", "alice", "anonymous"):
            site.users[user] = log_in(address, user, f"{user}-password")
        yield site
        for client in site.users.values():
            client.close()


SEES = {
    "nobody": set(),
    "olaf": {"wiki", "technote"},
    "anonymous": {"wiki", "technote"},
    "rita": {*FILES, "ticket", "wiki", "technote"},
    "dora": {*FILES, "ticket", "wiki", "technote", "forum"},
    "alice": {*FILES, "ticket", "wiki", "technote", "forum"},
}
"""``anonymous`` lends its ``j`` to everybody who is logged in."""


def everything(site: Site, user: str) -> Iterator[tuple[int, str]]:
    """Whatever can be asked for, and above all what is not for this user."""
    for question in (*QUESTIONS.values(), "zoo"):
        yield site.ask("/ext/search", user, q=question, k="50")
        yield site.ask("/ext/search/api/search", user, q=question, mode="keyword", k="50", explain="true")
    for path in ("", "/catalog", "/api/catalog", "/api/status", "/api/openapi.json", "/view", "/api/passage", "/no"):
        yield site.ask(f"/ext/search{path}", user)
    for kind in Kind:
        yield site.ask("/ext/search", user, q="zoo", kind=kind)
        yield site.ask("/ext/search/api/search", user, q="zoo", kind=kind)
    for name, value in (("corpus", "code"), ("corpus", "no"), ("project", "no"), ("kind", "no"), ("mode", "no")):
        yield site.ask("/ext/search", user, q="zoo", **{name: value})
        yield site.ask("/ext/search/api/search", user, q="zoo", **{name: value})
    for path, key, kind in query(site.repository, "SELECT DISTINCT path, hash, kind FROM fx_vec_chunk"):
        if kind not in SEES[user]:
            yield site.ask("/ext/search/view", user, hash=key)
            yield site.ask("/ext/search/view", user, path=path or "", part="1")
            yield site.ask("/ext/search/api/passage", user, hash=key, path=path or "")


@pytest.mark.parametrize("user", SEES)
def test_each_reader_sees_the_kinds_that_their_capabilities_open(site: Site, user: str) -> None:
    hidden = SECRETS.keys() - SEES[user]
    words = {word for kind in hidden for word in SECRETS[kind]}
    hashes = {
        row[0]
        for kind in hidden
        for row in query(site.repository, "SELECT hash FROM fx_vec_chunk WHERE kind = ?", kind)
    }
    if not SEES[user] & FILES:
        hashes.add(site.zoo.tip)
    for status, text in everything(site, user):
        assert status in (200, 302, 400, 403, 404, 422), text
        assert not [word for word in words if word in text], text
        assert not [key for key in hashes if key in text or key[:10] in text], text
        assert not re.search(r"Traceback|/tmp/|/root|site-packages|\.fossil\b", text), text


@pytest.mark.parametrize("user", SEES)
def test_the_server_says_who_is_there(site: Site, user: str) -> None:
    answer = site.get("/ext/search/api/search", user, q="lions at seven with a fork", k="50")
    if not SEES[user]:
        assert answer.status_code == 403
        return
    assert answer.json()["reason"] is None
    found = {hit["kind"] for hit in answer.json()["hits"]}
    assert found <= SEES[user]
    assert ("forum" in found) == ("forum" in SEES[user])
    assert "wiki" in found


@pytest.mark.parametrize("user", [user for user in SEES if SEES[user]])
def test_hits_counts_and_catalog_agree_with_what_is_seen(site: Site, user: str) -> None:
    found = set()
    for question in QUESTIONS.values():
        answer = body_of(site.say("/ext/search/api/search", user, q=question, k="50"))
        assert (answer["mode"], answer["reason"]) == ("hybrid", None)
        found |= {hit["kind"] for hit in answer["hits"]}
    assert found == SEES[user]
    catalog = body_of(site.say("/ext/search/api/catalog", user))
    # Check-ins are no hits unless they are asked for; who sees files sees them.
    seen = SEES[user] | ({"commit"} if "code" in SEES[user] else set())
    assert {it["name"] for it in catalog["kinds"]} == seen
    count = dict(query(site.repository, "SELECT kind, count(*) FROM fx_vec_chunk GROUP BY kind"))
    assert catalog["total"]["chunks"] == sum(count[kind] for kind in seen)
    _, page = site.ask("/ext/search", user)
    assert set(re.findall(r'name="kind" value="(\w+)"', page)) == seen


def body_of(response: cgi.Response) -> Any:
    assert response.status == 200, response
    return json.loads(response.body)


def test_a_hidden_kind_and_one_that_is_not_there_look_alike(site: Site) -> None:
    # (The API refuses "gadget" before it looks at any index, with the kinds that there are anywhere.)
    for at, kinds in (("/ext/search", ("forum", "media", "gadget")), ("/ext/search/api/search", ("forum", "media"))):
        said = {kind: site.ask(at, "rita", q="zoo", kind=kind) for kind in kinds}
        assert {status for status, _ in said.values()} == {400}
        assert len({text.split("oc-notice")[-1].split("</p>")[0] for _, text in said.values()}) == 1
        assert "There is: doc, wiki, technote, ticket, code, instruction" in said["forum"][1]


def test_who_may_see_nothing_is_sent_to_the_login(site: Site) -> None:
    answer = site.users["nobody"].get("/ext/search", params={"q": "lions & more"})
    assert answer.status_code == 302
    assert answer.headers["location"].endswith("/login?g=/ext/search%3Fq%3Dlions%2B%2526%2Bmore")
    back = site.users["nobody"].get(answer.headers["location"])
    assert 'value="/ext/search?q=lions+%26+more"' in back.text.replace("'", '"')
    refused = site.get("/ext/search/api/search", q="lions")
    assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")


def test_every_link_leads_to_what_it_names(site: Site) -> None:
    expected = {
        "code": "step_1", "doc": "All animals", "instruction": "Feed them", "wiki": "Asleep",
        "technote": "opened the gates", "ticket": "Wood was ordered", "forum": "With a fork",
    }  # fmt: skip
    for kind, question in QUESTIONS.items():
        page = site.say("/ext/search", "alice", q=question, kind=kind).body.decode()
        first = re.search(r'<a href="([^"]+)" data-oc-open>', page)
        assert first, page
        target = urljoin(site.address, html.unescape(first[1]))
        shown = site.users["alice"].get(target)
        assert shown.status_code == 200, target
        assert expected[kind] in html.unescape(shown.text), target
        if kind == "code":
            assert "?ln=" in target
            assert "selectedText" in shown.text or "selected" in shown.text
        # The built-in viewer, for more around the passage.
        more = re.search(r'data-oc-more="([^"]+)"', page)
        assert more, page
        at, _, asked = html.unescape(more[1]).partition("?")
        around = site.say(at, "alice", **dict(parse_qsl(asked)))
        assert around.status == 200
        assert expected[kind] in re.sub(r"<[^>]+>", "", html.unescape(around.body.decode()))


def test_the_catalog_is_in_the_skin_and_hides_what_readers_may_not_know(site: Site) -> None:
    assert "logo.png" in site.get("/ext/search/catalog", "alice").text
    page = site.get("/ext/search/catalog", "rita")
    assert '<body class="ext' in page.text
    assert "<svg" in page.text


def test_requests_have_no_say_in_what_is_read(site: Site, home: Path, tmp_path: Path) -> None:
    def hits(**more: str) -> list[str]:
        page = site.get("/ext/search", "dora", q="lions at seven", k="2", **more)
        assert page.status_code == 200
        return re.findall(r'<a href="([^"]+)" data-oc-open>', page.text)

    odd = {
        "FOSSIL_REPOSITORY": "/etc/passwd", "repository": "/etc/passwd", "directory": "/", "store": "/etc/passwd",
        "embedder": "endpoint", "endpoint_url": "http://192.0.2.1/", "FOSSIL_USER": "alice", "R": "x",
    }  # fmt: skip
    assert len(hits()) == 2
    assert hits(**odd) == hits()
    headers = {"Fossil-User": "alice", "X-Remote-User": "alice", "Remote-User": "alice", "Proxy": "http://192.0.2.1"}
    answer = site.users["nobody"].get("/ext/search/api/search", params={"q": "lions"}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_reading(site: Site, method: str) -> None:
    for path in ("/ext/search", "/ext/search/api/search"):
        answer = site.users["dora"].request(method, path, params={"q": "zoo"}, content=b"x" * 100_000)
        # Fossil itself refuses the methods that it does not know.
        assert answer.status_code in (405, 501) or answer.is_error, (method, answer.status_code)
        assert "step_" not in answer.text


def test_limits(site: Site) -> None:
    for at in ("/ext/search", "/ext/search/api/search"):
        assert site.say(at, "dora", q="x" * 40_000).status == 400
    # Fossil itself cuts long addresses.
    assert site.get("/ext/search", "dora", q="x" * 40_000).status_code in (200, 400)
    assert site.say("/ext/search/api/search", "dora", q="x" * 20_000).status == 400
    assert site.get("/ext/search/api/search", "dora", q="zoo", k="100000000").status_code in (200, 400)
    for path in (
        "/ext/search/../../etc/passwd",
        "/ext/search/static/../cgi.py",
        "/ext/search/%2e%2e/x",
        "/ext/.search.1",
    ):
        assert site.get(path, "dora").status_code == 404
    raw = site.users["dora"].get(
        "/ext/search?q=%ff%00%0d%0aSet-Cookie:x=1&q=%3C/div%3E%3Cscript%3Ealert(1)%3C/script%3E"
    )
    assert raw.status_code == 200
    assert "<script>alert" not in raw.text
    assert "x" not in raw.cookies


def test_a_busy_machine_is_spared(site: Site) -> None:
    query(site.repository, "REPLACE INTO config(name, value, mtime) VALUES ('max-loadavg', '0.0000001', 0)")
    try:
        busy = site.get("/ext/search/api/search", "dora", q="zoo")
    finally:
        query(site.repository, "DELETE FROM config WHERE name = 'max-loadavg'")
    assert busy.status_code == 503
    assert site.get("/ext/search/api/search", "dora", q="zoo").status_code == 200


def test_commits_and_searches_do_not_disturb_each_other(site: Site, tmp_path: Path) -> None:
    fossil = site.zoo.fossil
    checkout = tmp_path / "co"
    checkout.mkdir()
    fossil.run("open", "--nosync", site.repository, cwd=checkout)
    ended = threading.Event()
    statuses: list[int] = []

    def search() -> None:
        with httpx.Client(base_url=site.address, timeout=60, cookies=site.users["dora"].cookies) as client:
            while not ended.is_set():
                statuses.append(client.get("/ext/search/api/search", params={"q": "lions"}).status_code)

    reader = threading.Thread(target=search)
    reader.start()
    try:
        for number in range(8):
            (checkout / "count.md").write_text("# Count\n\n" + "one more\n" * number)
            fossil.commit(checkout, f"commit {number}")
    finally:
        ended.set()
        reader.join()
    assert statuses
    assert set(statuses) == {200}
    # The index is behind now, and says so to readers who may see check-ins.
    assert site.get("/ext/search/api/search", "dora", q="lions").json()["stale"]["current"]
    stale = site.get("/ext/search/api/search", "anonymous", q="lions").json()["stale"]
    assert stale == {"indexed": None, "current": "", "corpora": [], "update": "outcrop index"}


# -- without a server -------------------------------------------------------------------------------------------------


def variables(repository: Path, user: str = "nobody", **more: str) -> dict[str, str]:
    """What Fossil passes on. (Its capabilities are those of a user who may do everything.)"""
    usual = {
        "GATEWAY_INTERFACE": "CGI/1.0", "FOSSIL_REPOSITORY": str(repository), "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "/ext/search", "PATH_INFO": "", "QUERY_STRING": "", "FOSSIL_URI": "", "FOSSIL_NONCE": "abc",
        "FOSSIL_CAPABILITIES": "s",
    }  # fmt: skip
    logged_in = {} if user == "nobody" else {"FOSSIL_USER": user, "REMOTE_USER": user}
    return usual | logged_in | more


def test_the_capabilities_that_fossil_names_only_take_away(site: Site) -> None:
    def capabilities(user: str, **more: str) -> frozenset[str]:
        call = cgi.read_request(variables(site.repository, user, **more))
        assert call is not None
        return cgi.visitor_of(call).capabilities

    for nobody in ("nobody", "no such user", "'; --", "reader\0"):
        assert capabilities(nobody) == frozenset()
    assert capabilities("dora") >= set("ijor2")
    assert capabilities("dora", FOSSIL_CAPABILITIES="jo") == set("jo")
    assert capabilities("dora", FOSSIL_CAPABILITIES="") == frozenset()
    assert capabilities("dora", REMOTE_USER="rita") == frozenset()
    assert capabilities("dora", REMOTE_USER="") == frozenset()


def test_not_run_by_fossil(site: Site) -> None:
    assert cgi.read_request({}) is None
    assert cgi.read_request({"FOSSIL_REPOSITORY": "x"}) is None
    done = subprocess.run([sys.executable, "-m", "outcrop.surfaces.web.cgi"], env={}, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("what", ["missing", "no repository", "settings", "locked", "bug", "slow"])
def test_failures_name_no_place_on_this_machine(
    sample: SampleRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    repository = sample.copy(tmp_path)
    query(repository, "UPDATE user SET cap = 'ojr2' WHERE login = 'nobody'")
    lock = sqlite3.connect(repository, isolation_level=None)
    monkeypatch.setattr("outcrop.vcs.fossil.BUSY_SECONDS", 0.2)
    if what == "missing":
        repository = tmp_path / "gone.fossil"
    elif what == "no repository":
        repository = tmp_path / "text.fossil"
        repository.write_text("no database")
    elif what == "settings":
        (tmp_path / "outcrop.toml").write_text("no_such_thing = [")
    elif what == "locked":
        lock.execute("BEGIN EXCLUSIVE")
    elif what == "bug":
        monkeypatch.setattr(cgi, "open_index", lambda *_, **__: 1 // 0)
    else:

        def too_long(*_: object, **__: object) -> None:
            raise cgi.RequestTimeout

        monkeypatch.setattr(cgi, "open_index", too_long)
    for path in ("", "/api/search", "/catalog"):
        call = cgi.read_request(variables(repository, QUERY_STRING="q=lions", PATH_INFO=path))
        assert call is not None
        response = cgi.answer(call)
        out = cgi.encode(response).decode()
        assert response.status >= 500, out
        assert str(tmp_path) not in out
        assert "Traceback" not in out
        assert "ZeroDivision" not in out
        assert out.startswith(f"Status: {response.status} ")
    lock.close()


def test_the_time_of_a_request_is_limited(site: Site, home: Path, tmp_path: Path) -> None:
    program = (
        "import time\nfrom outcrop.surfaces.web import cgi\n"
        "cgi.REQUEST_TIMEOUT = 1\ncgi.visitor_of = lambda call: time.sleep(60)\ncgi.main([])\n"
    )
    environment = variables(site.repository, PYTHONPATH=str(Path(outcrop.__file__).parents[1]))
    # Without the limit it sleeps for longer than the timeout here.
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=False, timeout=50
    )
    assert done.stdout.startswith(b"Status: 504 Gateway Timeout\r\n")


def test_installing_again_and_taking_it_away(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    folder = tmp_path / "with space's" / "ext"
    hashed = ["--embedder", "hash"]
    assert main(["fossil", "install-ext", str(folder), *hashed]) == 0
    script = folder / "search"
    assert [each.name for each in folder.iterdir()] == ["search"]
    assert script.stat().st_mode & 0o777 == 0o755
    assert (
        main(["fossil", "install-ext", str(folder), *hashed, "--dim", "64", "--store", "my index", "--branch", "a b"])
        == 0
    )
    text = script.read_text()
    assert f"OUTCROP_STORE='{Path.cwd() / 'my index'}'" in text
    assert "OUTCROP_DIM=64" in text
    assert text.rstrip().endswith("'a b'")
    done = subprocess.run([script], env=variables(site.repository, "alice"), capture_output=True, check=False)
    assert done.stdout.startswith(b"Status: 200 OK\r\n")
    assert b"Nothing is indexed here yet" in done.stdout
    capsys.readouterr()
    assert main(["fossil", "install-ext", str(folder), *hashed, "-C", str(site.repository)]) == 0
    shown = capsys.readouterr().out
    assert "nobody sees: nothing\nanonymous sees: technote, wiki" in shown
    assert main(["fossil", "install-ext", str(folder), "--uninstall"]) == 0
    assert list(folder.iterdir()) == []
    assert main(["fossil", "install-ext", str(folder), "--uninstall"]) == 0
    script.write_text("#!/bin/sh\necho mine\n")
    for more in ([], ["--uninstall"]):
        assert main(["fossil", "install-ext", str(folder), *hashed, *more]) == 2
    assert script.read_text() == "#!/bin/sh\necho mine\n"
    script.unlink()
    # What would not run is not left there.
    monkeypatch.setenv("OUTCROP_EMBEDDER", "no such embedder")
    assert main(["fossil", "install-ext", str(folder)]) == 1
    assert list(folder.iterdir()) == []

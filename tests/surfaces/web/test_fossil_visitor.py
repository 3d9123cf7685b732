"""Who a visitor of ``/ext/search`` is taken for, in every way of starting Fossil: never more than its own pages show.

The programs and servers are real ones. What Fossil passes to a program under ``/ext`` is taken from one that prints it,
and answered in this process: as many visitors as there are here would take minutes otherwise.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest
from fossil_program import Fossil, SampleRepository, query

import outcrop
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.web import cgi

# Path and cookies to the status and text of an answer.
Get = Callable[[str, str], tuple[int, str]]

WORDS = {
    "code": ("step_1", "src/app.py"),
    "wiki": ("Asleep", "Feeding times"),
    "technote": ("opened the gates",),
    "ticket": ("Wood was ordered", "Fence"),
    "forum": ("With a fork", "How to feed"),
}
"""What stands in one kind of material only."""

# A group each, since nobody is told apart further.
KINDS = {**{kind: kind for kind in WORDS}, "doc": "code", "instruction": "code"}

FORGED_ENVIRONMENT = {
    "FOSSIL_USER": "alice", "USER": "alice", "LOGNAME": "alice", "REMOTE_USER": "alice", "FOSSIL_CAPABILITIES": "s",
    "FOSSIL_REPOSITORY": "/etc/passwd", "FOSSIL_URI": "/elsewhere", "HTTP_COOKIE": "fossil-0=0/0/alice",
}  # fmt: skip
ENVIRONMENTS = {"clean": {}, "FOSSIL_USER": {"FOSSIL_USER": "alice"}, "forged": FORGED_ENVIRONMENT}

FORGED_HEADERS = {
    "Fossil-User": "alice", "Remote-User": "alice", "X-Remote-User": "alice", "Fossil-Capabilities": "s",
    "X-Forwarded-User": "alice", "Proxy": "http://192.0.2.1",
}  # fmt: skip
FORGED_QUERY = "FOSSIL_USER=alice&REMOTE_USER=alice&FOSSIL_CAPABILITIES=s&user=alice"

ROLES = {"nobody": "", "anonymous": "hj", "reader": "or", "developer": "ei", "rita": "u", "dora": "v2", "low": "h"}

# Capabilities of nobody, of anonymous, and of the user low.
MATRIX = [
    ("", "", "h"), ("", "hj", "o"), ("", "jrs", "h"), ("", "o2", "rw"), ("o", "2", "j"), ("2", "o", "h"),
    ("rw", "k", "3"), ("u", "v", "h"), ("jo", "", "a"), ("ojr2", "ojr2", "h"), ("6", "", "jrs"),
]  # fmt: skip


@dataclass
class Zoo:
    sample: SampleRepository
    repository: Path
    extroot: Path
    post: str
    cookies: Mapping[str, str]

    @property
    def fossil(self) -> Fossil:
        return self.sample.fossil

    def set_capabilities(self, **capabilities: str) -> None:
        for user, letters in capabilities.items():
            query(self.repository, "UPDATE user SET cap = ? WHERE login = ?", letters, user)

    def pages(self) -> Iterator[tuple[str, str, str]]:
        """Of each kind one of Fossil's own pages, and what stands there."""
        yield "code", "/doc/tip/src/app.py", "step_1"
        yield "wiki", "/wiki?name=Plain", "Asleep"
        yield "technote", f"/technote/{self.sample.technote}", "opened the gates"
        yield "ticket", f"/tktview/{self.sample.ticket}", "Wood was ordered"
        yield "forum", f"/forumpost/{self.post}", "With a fork"


@pytest.fixture(scope="module")
def zoo(sample: SampleRepository, tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    folder = tmp_path_factory.mktemp("visitors")
    repository, fossil = sample.copy(folder), sample.fossil
    for name in ("rita", "dora", "low"):
        fossil.run("user", "new", name, "", f"{name}-password", "-R", repository)
    fossil.run("user", "password", "alice", "alice-password", "-R", repository)
    for setting in ("auto-captcha", "backoffice-disable"):
        query(repository, "REPLACE INTO config(name, value, mtime) VALUES (?, '1', 0)", setting)
    extroot = folder / "ext"
    extroot.mkdir()
    (extroot / "print").write_text(
        "#!/bin/sh\nprintf 'Content-Type: application/octet-stream\\r\\n\\r\\n'\nexec /usr/bin/env -0\n"
    )
    (extroot / "print").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUTCROP_EMBEDDER", "hash")
        with outcrop.open(repository) as index:
            index.build()
    found = query(repository, "SELECT hash FROM fx_vec_chunk WHERE kind = 'forum' AND text LIKE '%With a fork%'")
    zoo = Zoo(sample, repository, extroot, found[0][0], {})
    zoo.set_capabilities(**ROLES)
    users = ("rita", "dora", "low", "alice")
    cookies = {user: fossil.log_in(repository, user, f"{user}-password") for user in users}
    page = fossil.request(repository, "/login", "none=1")
    shown, seed = (
        re.search(pattern, page) for pattern in (r"data-af=['\"](\w+)", r"name=['\"]cs['\"] value=['\"](\d+)")
    )
    assert shown, page
    assert seed, page
    fields = {"u": "anonymous", "p": shown[1], "cs": seed[1], "in": "Login"}
    done = re.search(r"Set-Cookie: ([^;]+);", fossil.request(repository, "/login", "fossil-test=1", fields))
    assert done
    code = cookies["alice"].partition("=")[0]
    zoo.cookies = {
        "": "",
        "forged": f"{code}={'A' * 50}/{code.removeprefix('fossil-')}/alice; fossil-1=x/y/anonymous",
        "anonymous": done[1],
        **cookies,
    }
    return zoo


@pytest.fixture(autouse=True)
def usual(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    zoo.set_capabilities(**ROLES)


# -- ways of starting Fossil ------------------------------------------------------------------------------------------


def parse(raw: bytes) -> tuple[int, str]:
    head, _, body = raw.partition(b"\r\n\r\n")
    status = re.search(rb"^(?:HTTP/1\.\d|Status:) (\d+)", head)
    assert status, raw
    return int(status[1]), body.decode("utf-8", "replace")


def http_request(path: str, cookies: str) -> bytes:
    fields = {"Host": "localhost", **FORGED_HEADERS, **({"Cookie": cookies} if cookies else {})}
    lines = [f"GET {path} HTTP/1.0", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode()


def cgi_variables(path: str, cookies: str) -> dict[str, str]:
    """What a web server passes on, headers of the request as HTTP_ variables."""
    at, _, asked = path.partition("?")
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in FORGED_HEADERS.items()}
    return {
        "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_PROTOCOL": "HTTP/1.0", "REQUEST_METHOD": "GET", "SCRIPT_NAME": "",
        "REQUEST_URI": path, "PATH_INFO": at, "QUERY_STRING": asked, "REMOTE_ADDR": "10.0.0.1", "CONTENT_LENGTH": "0",
        "HTTP_HOST": "localhost", **headers, **({"HTTP_COOKIE": cookies} if cookies else {}),
    }  # fmt: skip


def scgi_request(path: str, cookies: str) -> bytes:
    fields = {"CONTENT_LENGTH": "0", "SCGI": "1", **cgi_variables(path, cookies)}
    head = b"".join(f"{name}\0{value}\0".encode() for name, value in fields.items())
    return b"%d:%s," % (len(head), head)


@contextmanager
def starting(way: str, zoo: Zoo, environment: Mapping[str, str]) -> Iterator[Get]:
    """Fossil, started so."""
    command, *options = way.split()
    environment = zoo.fossil.environment | environment
    if command == "http":
        arguments = ["fossil", "http", zoo.repository, "--nojail", "--nodelay", "--extroot", zoo.extroot]

        def get_from_inetd(path: str, cookies: str) -> tuple[int, str]:
            asked = http_request(path, cookies)
            return parse(run([*arguments, "--ipaddr", "10.0.0.1"], environment, asked))

        yield get_from_inetd
    elif command == "cgi":
        script = zoo.extroot.parent / "cgi"
        script.write_text(f"#!{shutil.which('fossil')}\nrepository: {zoo.repository}\nextroot: {zoo.extroot}\n")
        script.chmod(0o755)
        remote = {"REMOTE_USER": options[0]} if options else {}
        yield lambda path, cookies: parse(run([script], environment | cgi_variables(path, cookies) | remote, b""))
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options += ["--localhost"] if command == "server" else ["--nobrowser"]
        server = subprocess.Popen(
            ["fossil", command, "--nojail", "-P", str(port), "--extroot", zoo.extroot, *options, zoo.repository],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        to_request = scgi_request if "--scgi" in options else http_request
        try:
            yield lambda path, cookies: parse(exchange(port, to_request(path, cookies)))
        finally:
            server.terminate()
            server.wait()


def run(arguments: list[Any], environment: Mapping[str, str], stdin: bytes) -> bytes:
    return subprocess.run(arguments, env=environment, input=stdin, capture_output=True, timeout=60, check=False).stdout


def exchange(port: int, sent: bytes) -> bytes:
    for _ in range(500):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(sent)
                return b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError("the server did not start")


# -- what is seen -----------------------------------------------------------------------------------------------------


def passed_on(get: Get, cookies: str) -> dict[str, str]:
    """What Fossil passes to a program for a visitor, whose address names somebody else."""
    status, printed = get(f"/ext/print?{FORGED_QUERY}", cookies)
    assert status == 200, printed
    return dict(line.split("=", 1) for line in printed.split("\0") if line)


def say(passed: Mapping[str, str], address: str, /, **params: str) -> tuple[int, str]:
    """Status and text of what the page answers to that, without what it repeats of its own address."""
    asked = {**passed, "SCRIPT_NAME": "/ext/search", "PATH_INFO": address, "QUERY_STRING": urlencode(params)}
    call = cgi.read_request(asked)
    assert call is not None
    response = cgi.answer(call)
    text = html.unescape(response.body.decode())
    for value in params.values():
        text = text.replace(value, "").replace(quote_plus(value), "")
    return response.status, text


def seen_here(passed: Mapping[str, str]) -> set[str]:
    status, text = say(passed, "/api/catalog")
    return {KINDS[each["name"]] for each in json.loads(text)["kinds"]} if status == 200 else set()


def seen_in_fossil(zoo: Zoo, get: Get, cookies: str) -> set[str]:
    return {kind for kind, path, words in zoo.pages() if words in html.unescape(get(path, cookies)[1])}


def leaks(passed: Mapping[str, str], hidden: set[str]) -> list[str]:
    """What the page says with words of hidden kinds."""
    said = []
    for question in ("step_1", "bears asleep", "opened the gates", "wood was ordered", "a fork", "wodd ordred"):
        said += [say(passed, address, q=question, k="50") for address in ("", "/api/search")]
    said += [say(passed, address) for address in ("", "/catalog", "/api/catalog", "/api/status", "/view", "/nothing")]
    for kind in hidden:
        said += [say(passed, address, q="zoo", kind=kind) for address in ("", "/api/search")]
    for path in ("src/app.py", "Plain", "Feeding times"):
        said += [say(passed, address, path=path) for address in ("/view", "/api/passage")]
    words = [word for kind in hidden for word in WORDS[kind]]
    return [text for _, text in said if any(word in text for word in words)]


WAYS = ["server", "server --localauth", "ui", "http", "cgi", "cgi low", "cgi dora", "server --scgi"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("way", WAYS)
def test_however_fossil_is_started_a_visitor_sees_what_its_own_pages_show(zoo: Zoo, way: str, environment: str) -> None:
    with starting(way, zoo, ENVIRONMENTS[environment]) as get:
        for visitor, cookies in zoo.cookies.items():
            passed = passed_on(get, cookies)
            here, there = seen_here(passed), seen_in_fossil(zoo, get, cookies)
            assert here == there, (visitor, passed)
            if visitor in ("", "forged") and "ui" not in way and "localauth" not in way:
                assert here == set()
                assert not leaks(passed, set(WORDS))


@pytest.mark.parametrize("remote_user", ["", "nobody", "anonymous", "low", "rita", "dora", "alice", "stranger"])
@pytest.mark.parametrize("trusted", ["0", "1"])
def test_the_user_of_a_web_server_counts_where_fossil_lets_it(zoo: Zoo, remote_user: str, trusted: str) -> None:
    query(zoo.repository, "REPLACE INTO config(name, value, mtime) VALUES ('remote_user_ok', ?, 0)", trusted)
    try:
        for environment in ({}, FORGED_ENVIRONMENT):
            with starting(f"cgi {remote_user}", zoo, environment) as get:
                for visitor in ("", "forged"):
                    cookies = zoo.cookies[visitor]
                    here, there = seen_here(passed_on(get, cookies)), seen_in_fossil(zoo, get, cookies)
                    assert here <= there
                    # Fossil lends these two what anonymous may do, which is no proof of their login.
                    assert here == there or remote_user in ("anonymous", "low")
    finally:
        query(zoo.repository, "DELETE FROM config WHERE name = 'remote_user_ok'")


@pytest.mark.parametrize(("nobody", "anonymous", "low"), MATRIX)
def test_each_visitor_sees_what_fossil_shows_them(zoo: Zoo, nobody: str, anonymous: str, low: str) -> None:
    zoo.set_capabilities(nobody=nobody, anonymous=anonymous, low=low)
    with starting("http", zoo, FORGED_ENVIRONMENT) as get:
        for visitor in ("", "forged", "anonymous", "low"):
            passed = passed_on(get, zoo.cookies[visitor])
            here, there = seen_here(passed), seen_in_fossil(zoo, get, zoo.cookies[visitor])
            assert here == there, (visitor, passed)


@pytest.mark.parametrize(("nobody", "anonymous"), [("o", "2"), ("2", "jrs"), ("rw", "o")])
def test_nothing_that_the_page_says_is_of_other_kinds(zoo: Zoo, nobody: str, anonymous: str) -> None:
    zoo.set_capabilities(nobody=nobody, anonymous=anonymous)
    with starting("http", zoo, FORGED_ENVIRONMENT) as get:
        passed = passed_on(get, zoo.cookies["forged"])
    here = seen_here(passed)
    assert here
    assert not leaks(passed, set(WORDS) - here)


def test_what_an_scgi_server_adds_is_not_mixed_with_a_login(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fossil lets variables of the SCGI server come before its own, but for REMOTE_USER."""
    added = {"FOSSIL_USER": "alice", "FOSSIL_CAPABILITIES": "s"}
    plain = cgi_variables
    monkeypatch.setitem(globals(), "cgi_variables", lambda path, cookies: plain(path, cookies) | added)
    with starting("server --scgi", zoo, {}) as get:
        for visitor in ("", "forged", "rita", "anonymous"):
            passed = passed_on(get, zoo.cookies[visitor])
            assert passed["FOSSIL_USER"] == "alice"
            assert seen_here(passed) == set()


def test_hidden_tickets_change_nothing_for_a_reader_of_files(zoo: Zoo, tmp_path: Path) -> None:
    repository = Path(shutil.copy(zoo.repository, tmp_path / "more.fossil"))
    more = replace(zoo, repository=repository)
    more.set_capabilities(nobody="o")
    with starting("http", more, {}) as get:
        passed = passed_on(get, "")

    def said() -> list[tuple[int, str]]:
        asked = [
            {"q": question, "mode": mode, "k": "50", "explain": "true"}
            for question in ("all animals of the zoo", "step_1", "return feed", "with space")
            for mode in ("keyword", "hybrid")
        ]
        found = [say(passed, "/api/search", **each) for each in asked]
        return found + [say(passed, address) for address in ("/api/catalog", "/api/status")]

    before = said()
    assert all(status == 200 for status, _ in before)
    for number in range(15):
        text = "All animals of the zoo return to feed, step_1 with space. " * (number + 1)
        zoo.fossil.run("ticket", "add", "title", f"animals {number}", "comment", text, "-R", repository)
    with outcrop.open(repository) as index:
        # The index is behind: this much is told.
        behind = said()
        index.build()
    assert [re.sub(r'"stale":\s*\{[^}]*\}', '"stale": null', text) for _, text in behind[:8]] == [
        text for _, text in before[:8]
    ]
    assert said() == before


def test_the_installed_page_sends_who_is_not_logged_in_to_the_login(zoo: Zoo, tmp_path: Path) -> None:
    assert main(["fossil", "install-ext", str(tmp_path)]) == 0
    script, source = tmp_path / "search", Path(outcrop.__file__).parents[1]
    script.write_text(script.read_text().replace("exec ", f"export PYTHONPATH='{source}'\nexec "))
    with starting("server", replace(zoo, extroot=tmp_path), FORGED_ENVIRONMENT) as get:
        assert get("/ext/search?q=animals", "")[0] == 302
        assert get("/ext/search/api/search?q=animals", "")[0] == 403
        status, text = get("/ext/search/api/search?q=animals", zoo.cookies["rita"])
        assert status == 200
        assert "All animals" in text


def test_nothing_withdrawn_is_shown_to_anybody(zoo: Zoo, tmp_path: Path) -> None:
    """Private, pending, shunned, or deleted; before the build or after it."""
    repository = Path(shutil.copy(zoo.repository, tmp_path / "later.fossil"))
    later = replace(zoo, repository=repository)
    chunks = query(repository, "SELECT hash, path, kind FROM fx_vec_chunk")
    of = {path: key for key, path, _ in chunks}
    (ticket,) = {key for key, _, kind in chunks if kind == "ticket"}
    query(repository, "INSERT INTO shun(uuid, mtime) VALUES (?, 0)", of["README.md"])
    query(repository, "INSERT INTO private SELECT rid FROM blob WHERE uuid = ?", of["Plain"])
    change = "SELECT rid FROM tagxref JOIN tag USING(tagid) WHERE tagname = ? ORDER BY mtime LIMIT 1"
    query(repository, f"INSERT INTO private {change}", f"tkt-{ticket}")
    with starting("http", later, {}) as get:
        passed = passed_on(get, zoo.cookies["alice"])
    said = []
    for question in ("animals", "bears asleep", "wood ordered", "private", "pending", "farewell", "soon"):
        said += [say(passed, address, q=question, k="50") for address in ("", "/api/search")]
    for key in (of["README.md"], of["Plain"], ticket):
        said += [say(passed, address, hash=key) for address in ("/view", "/api/passage")]
    said += [say(passed, address) for address in ("/catalog", "/api/catalog")]
    words = ("All animals", "Asleep", "Wood was", "private words", "pending post", "pending ticket", "soon gone")
    assert not [text for _, text in said if any(word in text for word in words)]
    assert {status for status, _ in said} == {200, 404}

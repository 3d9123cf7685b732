"""Nothing leaves the machine unannounced: who decides, on what, and that there is no way around it."""

from __future__ import annotations

import socket
import threading

import pytest
from servers import Sent, as_ollama, listening, openai_shape, other_machine

import outcrop
from outcrop.config.settings import Settings, load_settings
from outcrop.core.model import Mode
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http.address import canonical, resolve
from outcrop.embedders.http.consent import Consent, Disclosure, announce
from outcrop.embedders.http.embedder import HttpEmbedder
from outcrop.embedders.http.endpoint import Dialect
from outcrop.embedders.http.from_settings import make
from outcrop.errors import BadConfig, EgressRefused, EmbedderTimeout, EmbedderUnavailable

QUIET = {"OUTCROP_CONFIG": "/dev/null"}


def unit(request) -> Sent:
    return openai_shape([[1.0, 0.0]] * len(request.texts))


def endpoint(url: str, consent: Consent | None = None, environ: dict[str, str] | None = None, **settings):
    values = Settings(embedder="endpoint", model="m", dim=2, endpoint_url=url, **settings)
    return make(values, consent, environ or {})


class Person:
    """A user at a terminal, who remembers each disclosure."""

    def __init__(self, *answers: bool) -> None:
        self.shown: list[Disclosure] = []
        self._answers = list(answers)

    def __call__(self, disclosure: Disclosure) -> bool:
        self.shown.append(disclosure)
        return self._answers.pop(0)


@pytest.fixture
def remote():
    """A server on an address of this machine that is not loopback."""
    host = other_machine()
    if host is None:
        pytest.skip("this machine has no address but loopback")
    with listening(unit, host) as server:
        yield server


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:1",
        "http://LOCALHOST.:1",
        "http://127.0.0.1",
        "http://127.1:11434",
        "http://127.255.255.254",
        "http://2130706433/",
        "http://0.0.0.0:11434",
        "https://[::1]:1",
        "http://[::]:1",
        "http://[::ffff:127.0.0.1]:1",
        "http://[0:0:0:0:0:0:0:1]",
    ],
)
def test_spellings_of_this_machine(address: str) -> None:
    route = resolve(address, proxy="http://proxy:1")
    assert route.loopback
    assert set(route.ips) <= {"127.0.0.1", "127.255.255.254", "::1"}
    assert route.proxy is None, "what stays here goes through no proxy"


@pytest.mark.parametrize(
    "address",
    ["http://10.0.0.1", "http://128.0.0.1", "http://[fe80::1]", "http://[::ffff:10.0.0.1]", "http://[64:ff9b::7f00:1]"],
)
def test_other_machines(address: str) -> None:
    assert not resolve(address).loopback


def test_a_name_is_judged_by_what_it_resolves_to(monkeypatch) -> None:
    hosts = {"localhost": ["10.1.2.3"], "gpu.example": ["127.0.0.1"], "both.example": ["127.0.0.1", "10.1.2.3"]}

    def look_up(host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port)) for number in hosts[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert not resolve("http://localhost").loopback, "the name proves nothing"
    assert resolve("http://gpu.example").loopback
    mixed = resolve("http://both.example")
    assert not mixed.loopback, "one foreign address is enough to be asked"
    assert mixed.ips == ("127.0.0.1", "10.1.2.3")


def test_a_name_that_changes_its_answer_gets_no_text(monkeypatch) -> None:
    """DNS rebinding: judged as loopback, then pointed elsewhere. The connection goes to what was judged."""
    asked: list[str] = []
    with listening(unit) as here, listening(unit, "::1") as elsewhere:
        real = socket.getaddrinfo

        def look_up(host, port, *rest, **named):
            if host != "rebinding.example":
                return real(host, port, *rest, **named)
            asked.append(host)
            number = "127.0.0.1" if len(asked) == 1 else "::1"
            return real(number, port, *rest, **named)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        embedder = endpoint(f"http://rebinding.example:{here.port}")
        for _ in range(3):
            embedder.embed_queries(["x"])
        assert len(asked) == 1
        assert len(here.requests) == 3
        assert here.requests[0].headers["host"] == f"rebinding.example:{here.port}"
        assert not elsewhere.requests


def test_a_name_that_moved_to_another_machine_is_judged_again(monkeypatch) -> None:
    numbers = ["127.0.0.1", "10.1.2.3"]

    def look_up(host, port, *_, **__):
        number = numbers[0] if host == "moving.example" else host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with listening(lambda r: unit(r) if len(server.requests) == 1 else Sent(b"", 401)) as server:
        embedder = endpoint(f"http://moving.example:{server.port}")
        embedder.embed_queries(["x"])
        numbers.pop(0)
        with pytest.raises(EmbedderUnavailable, match="401"):
            embedder.embed_queries(["x"])
        with pytest.raises(EgressRefused, match=r"moving\.example"):
            embedder.embed_queries(["x"])
        assert len(server.requests) == 2


def test_a_look_up_that_hangs_is_not_waited_for(monkeypatch) -> None:
    ending = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        ending.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(EmbedderTimeout, match=r"looking up the host slow\.example"):
        resolve("http://slow.example", timeout=0.1)
    ending.set()


def test_a_host_that_does_not_exist() -> None:
    with pytest.raises(EmbedderUnavailable, match=r"no host nowhere\.invalid"):
        resolve("http://nowhere.invalid")
    with pytest.raises(EmbedderUnavailable, match="no host"):
        resolve(f"http://{'a' * 70}.example")


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("HTTP://Example.COM:80/", "http://example.com"),
        ("https://example.com.:443/v1/", "https://example.com/v1"),
        ("http://bücher.example", "http://xn--bcher-kva.example"),
        ("http://[::1]:11434", "http://[0:0:0:0:0:0:0:1]:11434/#x"),
    ],
)
def test_one_address_has_one_spelling(one: str, same: str) -> None:
    assert canonical(one) == canonical(same)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.com", "https://example.com"),
        ("http://example.com", "http://example.com:8080"),
        ("http://example.com/mine", "http://example.com/yours"),
        ("http://example.com/v1?team=a", "http://example.com/v1?team=b"),
        ("http://example.com", "http://www.example.com"),
    ],
)
def test_what_makes_another_address(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "bad", ["", "example.com", "ftp://x", "http://", "http://a:b@x", "http://x:99999", "http://a b"]
)
def test_what_is_no_address(bad: str) -> None:
    with pytest.raises(BadConfig) as caught:
        canonical(bad)
    assert "a:b" not in str(caught.value)


def test_where_no_user_can_be_asked_nothing_is_sent_and_the_way_out_is_named(remote) -> None:
    embedder = endpoint(remote.url)
    for embed in (embedder.embed_queries, embedder.embed_passages):
        with pytest.raises(EgressRefused, match="there is no consent") as caught:
            embed(["secret plans"])
        assert f"--allow-remote {remote.url}" in caught.value.fix
        assert "OUTCROP_ALLOW_REMOTE" in caught.value.fix
    assert remote.connections == 0


def test_nothing_to_embed_asks_nobody(remote) -> None:
    person = Person()
    assert endpoint(remote.url, Consent(person)).embed_passages([]).shape == (0, 2)
    assert not person.shown
    assert remote.connections == 0


def test_a_person_sees_what_would_go_where_before_it_goes(remote) -> None:
    person = Person(True)

    def look(disclosure: Disclosure) -> bool:
        assert remote.connections == 0, "asked before the first packet"
        return person(disclosure)

    embedder = endpoint(remote.url, Consent(look), {"TEAM_TOKEN": "t0ken"}, secret_ref="TEAM_TOKEN")
    embedder.announce(2143, 1234567)
    embedder.embed_passages(["a", "bc"])
    assert person.shown == [
        Disclosure(remote.url, "m", "passages", 2143, 1234567, encrypted=False, token="TEAM_TOKEN", proxy=None)
    ]
    lines = "\n".join(person.shown[0].lines())
    for part in ("2,143 passages (1,234,567 characters)", remote.url, "not encrypted", "the one named TEAM_TOKEN"):
        assert part in lines
    assert "t0ken" not in lines
    embedder.embed_passages(["more"])
    embedder.embed_queries(["a question"])
    assert len(person.shown) == 1, "once a session"
    assert len(remote.requests) == 3


def test_a_refusal_holds_for_the_session(remote) -> None:
    person = Person(False)
    embedder = endpoint(remote.url, Consent(person))
    for _ in range(3):
        with pytest.raises(EgressRefused, match="you said no"):
            embedder.embed_passages(["a"])
    assert len(person.shown) == 1
    assert remote.connections == 0


def test_letting_a_question_out_does_not_let_the_repository_out(remote) -> None:
    person = Person(True, False)
    consent = Consent(person)
    embedder = endpoint(remote.url, consent)
    embedder.embed_queries(["who?"])
    with pytest.raises(EgressRefused):
        embedder.embed_passages(["the text"])
    embedder.embed_queries(["again?"])
    assert [(each.what, each.texts, each.characters) for each in person.shown] == [
        ("questions", 1, 4),
        ("passages", 1, 8),
    ]
    assert "Later questions" in "\n".join(person.shown[0].lines())


def test_consent_is_for_one_address_and_for_one_session(remote) -> None:
    person = Person(True, True, True)
    session = Consent(person)
    endpoint(remote.url, session).embed_queries(["x"])
    endpoint(remote.url, session).embed_queries(["x"])
    assert len(person.shown) == 1, "another index of the same session"
    endpoint(f"{remote.url}/other", session).embed_queries(["x"])
    assert len(person.shown) == 2, "another address"
    endpoint(remote.url, Consent(person)).embed_queries(["x"])
    assert len(person.shown) == 3, "another session"


def test_many_threads_ask_once(remote) -> None:
    person = Person(True)
    embedder = endpoint(remote.url, Consent(person))
    threads = [threading.Thread(target=embedder.embed_queries, args=(["x"],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(person.shown) == 1
    assert len(remote.requests) == 8


def test_an_address_allowed_beforehand_is_announced_all_the_same(remote, caplog) -> None:
    embedder = endpoint(remote.url, allow_remote=(f"{remote.url.upper().replace('HTTP', 'http')}/",))
    embedder.announce(300, 9000)
    embedder.embed_passages(["x"])
    embedder.embed_passages(["y"])
    assert caplog.text.count(f"sending 300 passages (9000 characters) to {remote.url}") == 1


@pytest.mark.parametrize("near", ["{url}0", "{url}/v1", "https://{host}", "{host}", "http://{name}", "*", ""])
def test_only_that_very_address_is_allowed(near: str, remote) -> None:
    host = remote.url.removeprefix("http://")
    allowed = near.format(url=remote.url, host=host, name=host.partition(":")[0])
    with pytest.raises(EgressRefused):
        endpoint(remote.url, allow_remote=(allowed,)).embed_queries(["x"])
    assert remote.connections == 0


def test_the_variable_of_ollama_pointing_elsewhere_is_remote() -> None:
    host = other_machine()
    if host is None:
        pytest.skip("this machine has no address but loopback")
    with listening(as_ollama(HashEmbedder(768), "nomic-embed-text"), host) as server:
        environ = QUIET | {"OLLAMA_HOST": server.url.removeprefix("http://")}
        settings = load_settings(None, {"embedder": "ollama"}, environ)
        with pytest.raises(EgressRefused, match=server.url):
            make(settings, environ=environ).embed_queries(["x"])
        assert server.connections == 0
        allowed = load_settings(None, {"embedder": "ollama", "allow_remote": (server.url,)}, environ)
        assert make(allowed, environ=environ).embed_queries(["x"]).shape == (1, 768)


def test_what_goes_through_a_proxy_is_remote_although_the_proxy_is_here() -> None:
    with listening(unit) as proxy:
        environ = {"HTTP_PROXY": f"http://me:word@127.0.0.1:{proxy.port}"}
        with pytest.raises(EgressRefused):
            endpoint("http://embed.example", environ=environ).embed_queries(["x"])
        assert proxy.connections == 0
        person = Person(True)
        endpoint("http://embed.example", Consent(person), environ).embed_queries(["x"])
        assert person.shown[0].proxy == f"http://127.0.0.1:{proxy.port}"
        assert "word" not in "\n".join(person.shown[0].lines())


def test_a_repository_can_neither_consent_nor_name_a_token(tmp_path) -> None:
    for line in ('allow_remote = ["http://x"]', 'secret_ref = "T"', '[headers]\napi-key = "{secret}"'):
        (tmp_path / "outcrop.toml").write_text(line + "\n")
        with pytest.raises(BadConfig, match="which a repository's own file may not set"):
            load_settings(tmp_path, {}, QUIET)


def test_a_search_without_consent_answers_by_words_and_says_why(remote, tmp_path) -> None:
    (tmp_path / "a.md").write_text("# Sockets\n\nA silent socket is shut down.\n")
    (tmp_path / "outcrop.toml").write_text(
        f'embedder = "endpoint"\nmodel = "m"\ndim = 2\nendpoint_url = "{remote.url}"\n'
    )
    with outcrop.open(tmp_path, settings=load_settings(tmp_path, {}, QUIET)) as index:
        with pytest.raises(EgressRefused):
            index.build()
        assert remote.connections == 0
        answer = index.search("silent socket")
        assert answer.mode is Mode.KEYWORD
        assert "there is no consent" in str(answer.reason)
        assert answer.hits[0].path == "a.md"
    person = Person(True)
    with outcrop.open(tmp_path, settings=load_settings(tmp_path, {}, QUIET), consent=Consent(person)) as index:
        report = index.build()
        assert index.search("silent socket").mode is Mode.HYBRID
    assert [(each.texts, each.characters) for each in person.shown] == [(report.embedded, report.characters)]


def test_the_disclosure_of_a_build_counts_all_of_it(remote, tmp_path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.md").write_text(f"# Note {number}\n\nSome text.\n")
    settings = Settings(embedder="endpoint", model="m", dim=2, endpoint_url=remote.url)
    person = Person(True)
    with outcrop.open(tmp_path, settings=settings, consent=Consent(person)) as index:
        plan = index.plan()
        index.build()
    assert person.shown[0].texts == plan.texts == 300
    assert person.shown[0].characters == plan.characters


def test_going_around_the_wrapper_gets_nowhere() -> None:
    with listening(unit) as server:
        bare = HttpEmbedder(Dialect("m"), server.url, Settings(dim=2))
        with pytest.raises(EgressRefused, match="no consent"):
            bare.embed_queries(["x"])
        bare.authorize(resolve(f"http://127.0.0.1:{server.port + 1}"))
        with pytest.raises(EgressRefused, match="no consent"):
            bare.embed_queries(["x"])
        assert server.connections == 0


def test_embedders_without_an_address_take_no_announcement(caplog) -> None:
    local = HashEmbedder(8)
    before = dict(vars(local))
    announce(local, 5, 5)
    assert vars(local) == before
    assert local.embed_passages(["x"]).tobytes() == HashEmbedder(8).embed_passages(["x"]).tobytes()
    person = Person()
    with listening(unit) as server:
        here = endpoint(server.url, Consent(person))
        announce(here, 5, 5)
        here.embed_passages(["x"])
    assert not person.shown, "what stays on this machine is not disclosed"
    assert not caplog.records

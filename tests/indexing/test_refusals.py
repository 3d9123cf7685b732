"""A text that an embedder refuses: only its passage is left to keywords, and everything else is done as ever."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from repositories import write
from servers import Answer, Listening, Request, Sent, as_endpoint, as_ollama, free_port, listening

import outcrop
from outcrop.core.model import Mode
from outcrop.core.protocols import Matrix
from outcrop.core.reports import WordsOnly
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.http import retry
from outcrop.errors import BadEmbedding, EmbedderError, EmbedderUnavailable, InputRefused

MODEL = HashEmbedder(64)
POISON = "zebra"

NAN = Sent({"error": "failed to encode response: json: unsupported value: NaN"}, 500)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "PAUSES", (0.01, 0.02, 0.03))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {f"notes/{at:02}.md": f"# Note {at}\n\nwords of note {at}\n" for at in range(40)}
    write(tmp_path, files | {"animals.md": f"# Animals\n\nthe {POISON} crosses the road\n"})
    return tmp_path


def opened(root: Path, server: Listening, dialect: str, **more: object) -> outcrop.Index:
    settings = {"embedder": dialect, "model": "m", "dim": 64, "endpoint_url": server.url}
    return outcrop.open(root, settings=settings | more)


def refusing(
    refusal: Sent | Callable[[Request], Sent], model: Callable[[Request], Sent]
) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Sent:
        if not any(POISON in text for text in request.texts):
            return model(request)
        return refusal(request) if callable(refusal) else refusal

    return answer


def holes(hole: object, shape: str) -> Callable[[Request], Sent]:
    """Status 200, and in the place of the poisoned vector something that is none."""

    def answer(request: Request) -> Sent:
        rows = MODEL.embed_passages(request.texts).astype(float).tolist()
        rows = [hole if POISON in text else row for text, row in zip(request.texts, rows, strict=True)]
        if shape == "ollama":
            return Sent({"embeddings": rows})
        return Sent({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})

    return answer


def hang_up(handler: object) -> None:
    """End the connection without a word, as a server does that dies of a text."""


REFUSALS: list[tuple[str, str, object]] = [
    ("ollama", "NaN", NAN),
    ("ollama", "zeros", holes([0.0] * 64, "ollama")),
    ("ollama", "null", holes(None, "ollama")),
    ("endpoint", "400", Sent({"error": {"message": "invalid input"}}, 400)),
    ("endpoint", "422", Sent({"error": "tokenizer error"}, 422)),
    ("endpoint", "500", Sent({"error": {"message": "boom"}}, 500)),
    ("endpoint", "NaN", holes([float("nan")] * 64, "endpoint")),
    ("endpoint", "no vector at all", lambda request: as_endpoint(MODEL)(Request("", "", {}, fewer(request)))),
    ("endpoint", "hangs up", lambda _: hang_up),
]


def fewer(request: Request) -> bytes:
    return json.dumps({"input": [text for text in request.texts if POISON not in text]}).encode()


@pytest.mark.parametrize(
    ("dialect", "refusal"), [each[::2] for each in REFUSALS], ids=[f"{each[0]}, {each[1]}" for each in REFUSALS]
)
def test_only_the_refused_passage_is_left_to_words(root: Path, dialect: str, refusal) -> None:
    model = as_ollama(MODEL, "m") if dialect == "ollama" else as_endpoint(MODEL)
    with listening(refusing(refusal, model)) as server, opened(root, server, dialect) as index:
        report = index.build()
        assert (report.chunks, report.embedded, report.complete) == (41, 40, True)
        (left,) = report.words_only
        assert (left.path, left.lines) == ("animals.md", (1, 3))
        assert server.url in left.reason
        status = index.status()
        assert (status.complete, status.stale, status.words_only) == (1.0, False, (left,))
        # A question with the word is refused as well, and goes by words.
        assert index.search(POISON).hits[0].path == "animals.md"
        answer = index.search("crosses the road")
        assert (answer.mode, answer.reason, answer.hits[0].path) == (Mode.HYBRID, None, "animals.md")


def test_the_next_build_tries_it_once_and_a_healed_server_embeds_it(root: Path) -> None:
    model = as_ollama(MODEL, "m")
    with listening(refusing(NAN, model)) as server:
        with opened(root, server, "ollama") as index:
            index.build()
        sent = len(server.requests)
        with opened(root, server, "ollama") as index:
            assert index.build().words_only[0].path == "animals.md"
        assert [len(request.texts) for request in server.requests[sent:]] == [1]
        write(root, {"new.md": "# New\n\none more file\n"})
        sent = len(server.requests)
        with opened(root, server, "ollama") as index:
            assert index.build().embedded == 1
        assert [len(request.texts) for request in server.requests[sent:]] == [1, 1]
        server.answer = model
        with opened(root, server, "ollama") as index:
            report = index.build()
            assert (report.embedded, report.words_only, index.status().words_only) == (1, (), ())
            assert index.build().embedded == 0
        assert sum(POISON in text for text in server.requests[-1].texts) == 1


def test_what_is_refused_is_forgotten_with_its_text(root: Path) -> None:
    with listening(refusing(NAN, as_ollama(MODEL, "m"))) as server, opened(root, server, "ollama") as index:
        index.build()
        write(root, {"animals.md": "# Animals\n\nthe horse crosses the road\n"})
        assert index.build().words_only == ()
        sent = len(server.requests)
        index.build()
        assert len(server.requests) == sent
        with index.store.file.reading() as database:
            assert database.execute("SELECT count(*) FROM fx_vec_refused").fetchone() == (0,)


def test_a_known_refusal_does_not_stop_a_build_while_the_server_is_away(root: Path) -> None:
    with listening(refusing(NAN, as_ollama(MODEL, "m"))) as server:
        with opened(root, server, "ollama") as index:
            index.build()
        url = f"http://127.0.0.1:{free_port()}"
        with opened(root, server, "ollama", endpoint_url=url) as index:
            report = index.build()
    assert (report.complete, [each.path for each in report.words_only]) == (True, ["animals.md"])


def test_many_refused_texts_are_all_found(tmp_path: Path) -> None:
    write(tmp_path, {f"{at:03}.md": f"# {at}\n\n{POISON if at % 7 == 0 else 'horse'} {at}\n" for at in range(100)})
    with listening(refusing(NAN, as_ollama(MODEL, "m"))) as server, opened(tmp_path, server, "ollama") as index:
        report = index.build()
        assert [each.path for each in report.words_only] == [f"{at:03}.md" for at in range(0, 100, 7)]
        assert (report.embedded, report.complete) == (85, True)


@pytest.mark.parametrize(
    "refusal", [NAN, Sent({"error": "boom"}, 500), Sent({"error": "no"}, 400), Sent({"embeddings": []}), Sent(b"<p>")]
)
@pytest.mark.parametrize("files", [1, 40])
def test_a_server_that_refuses_everything_is_an_error_at_once(tmp_path: Path, refusal: Sent, files: int) -> None:
    write(tmp_path, {f"{at}.md": f"# {at}\n\nwords of {at}\n" for at in range(files)})
    with listening(lambda _: refusal) as server, opened(tmp_path, server, "ollama") as index:
        with pytest.raises((InputRefused, BadEmbedding)):
            index.build()
        assert len(server.requests) <= 5, "the retries of one request, and one text that every model embeds"
        assert index.status().words_only == ()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_an_overloaded_server_has_not_refused_a_text(root: Path, status: int) -> None:
    overloaded = Sent({"error": "server busy"}, status)
    with listening(refusing(overloaded, as_ollama(MODEL, "m"))) as server, opened(root, server, "ollama") as index:
        with pytest.raises(EmbedderUnavailable, match=str(status)):
            index.build()
        assert index.status().words_only == ()
        server.answer = as_ollama(MODEL, "m")
        assert index.build().complete


def test_a_server_that_ends_in_the_middle_has_not_refused_a_text(root: Path) -> None:
    model = as_ollama(MODEL, "m")
    with listening(refusing(NAN, model)) as server, opened(root, server, "ollama") as index:

        def answer(request: Request) -> Answer:
            # After the first control text it fails on everything, that text too.
            return model(request) if len(server.requests) < 4 and POISON not in request.body.decode() else NAN

        server.answer = answer
        with pytest.raises(EmbedderError):
            index.build()
        assert index.status().words_only == ()
        server.answer = model
        report = index.build()
        assert (report.complete, report.words_only) == (True, ())


class Faulty(HashEmbedder):
    """A model of this process that makes no vector of some texts."""

    def __init__(self, faulty: Callable[[str], bool]) -> None:
        super().__init__(64)
        self.faulty = faulty
        self.asked: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.asked += texts
        if any(map(self.faulty, texts)):
            raise BadEmbedding("Vector 0 holds NaN or infinity")
        return super().embed_passages(texts)


def test_a_model_of_this_process_is_not_asked_again(root: Path) -> None:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        index.embedder = model = Faulty(lambda text: POISON in text)
        report = index.build()
        assert report.words_only == (WordsOnly("animals.md", (1, 3), "Vector 0 holds NaN or infinity"),)
        model.asked.clear()
        assert index.build().complete
        assert model.asked == []
        assert index.search(POISON).hits[0].path == "animals.md"


def test_a_model_that_makes_no_vector_of_anything_is_an_error(root: Path) -> None:
    with outcrop.open(root, settings={"embedder": "hash"}) as index:
        index.embedder = Faulty(lambda _: True)
        with pytest.raises(BadEmbedding):
            index.build()


def test_records_that_are_refused_are_named(tmp_path: Path) -> None:
    records = [outcrop.Record("a", "a horse"), outcrop.Record("b", f"a {POISON}", path="b.txt")]
    with outcrop.open(tmp_path, settings={"embedder": "hash"}) as index:
        index.embedder = Faulty(lambda text: POISON in text)
        report = index.upsert(records)
        assert (report.embedded, [each.path for each in report.words_only]) == (1, ["b.txt"])


def test_the_command_names_the_file_and_why(root: Path) -> None:
    with listening(refusing(NAN, as_ollama(MODEL, "m"))) as server:
        flags = ["--embedder", "ollama", "--model", "m", "--dim", "64", "--endpoint-url", server.url, "-C", str(root)]

        def run(*arguments: str) -> str:
            command = [sys.executable, "-m", "outcrop", *arguments, *flags]
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

        said = run("index")
        assert "found by words only, since the embedder refuses them: 1 passage\n  animals.md:1-3: " in said
        assert "unsupported value: NaN" in said
        assert json.loads(run("index", "--json"))["words_only"][0]["path"] == "animals.md"
        assert "found by words only, since the embedder refuses them: 1 passage" in run("status")
        assert [each["path"] for each in json.loads(run("status", "--json"))["words_only"]] == ["animals.md"]

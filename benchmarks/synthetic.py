"""Repositories with an index of any size, made in seconds: real words, made-up vectors.

The files hold stretches of the standard library's source, so that words are as frequent as they are in code. Each
stretch is one chunk, written through the store like any other. Its vector is random, near one of a few hundred
centres, and stands in the default embedder's space, so that the shipped command searches it with the real model.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

import outcrop
from outcrop.core.model import Chunk, Part, Space
from outcrop.core.protocols import Matrix
from outcrop.core.rows import Digested, Entry, Member, View
from outcrop.core.vectors import normalise
from outcrop.stores.sqlite.store import SqliteStore
from outcrop.text import terms

WORKSHOP = user_cache_path("outcrop") / "benchmarks"

CHUNKS_PER_FILE = 20
CHUNK_CHARACTERS = 470
"""Mean length of the chunks that Outcrop cuts out of the standard library."""

CENTRES = 300
SPREAD = 0.7
"""Length of the noise that is added to a centre of length 1: neighbours are then about as near as real ones."""

BATCH = 10_000


def unit_vectors(count: int, dim: int, seed: int = 0) -> Matrix:
    """Clustered random unit vectors, float32 ``[count, dim]``."""
    generator = np.random.default_rng(seed)
    centres = normalise(generator.standard_normal((CENTRES, dim)))
    vectors = np.empty((count, dim), np.float32)
    for start in range(0, count, BATCH):
        stop = min(start + BATCH, count)
        noise = normalise(generator.standard_normal((stop - start, dim), np.float32)) * np.float32(SPREAD)
        vectors[start:stop] = normalise(centres[generator.integers(0, CENTRES, stop - start)] + noise)
    return vectors


class MadeUp:
    """An embedder whose vectors stand in another one's space and mean nothing, at no cost."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.address = None
        self.max_tokens = sys.maxsize
        self._given = 0

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Vectors that were never given before."""
        self._given += 1
        return unit_vectors(len(texts), self.space.dim, seed=self._given)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Likewise."""
        return self.embed_passages(texts)


def stretches(seed: int = 0) -> Iterator[str]:
    """Pieces of real source text, without end."""
    folder = Path(sysconfig.get_path("stdlib"))
    lines = [
        line
        for path in sorted(folder.glob("*.py")) + sorted(folder.glob("[a-z]*/*.py"))
        if "site-packages" not in path.parts
        for line in path.read_text("utf-8", "replace").splitlines(keepends=True)
    ]
    chooser = random.Random(seed)
    while True:
        at = chooser.randrange(len(lines) - 100)
        length = chooser.uniform(0.3, 1.7) * CHUNK_CHARACTERS
        piece = ""
        while len(piece) < length:
            piece += lines[at]
            at += 1
        yield piece


def git(root: Path, *arguments: str) -> None:
    """Run git quietly, as nobody in particular."""
    identity = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost", "-c", "gc.auto=0")
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, stdout=subprocess.DEVNULL)


def repository(name: str, files: dict[str, str]) -> Path:
    """A git repository with one commit that holds these texts, made anew."""
    root = WORKSHOP / name
    shutil.rmtree(root, ignore_errors=True)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "all of it")
    return root


def indexed_repository(chunks: int) -> Path:
    """A git repository whose index has this many chunks; the one made before where there is one."""
    # An index of another version might be searched, but not by what the words of a question are made into now.
    schema = resources.files("outcrop.stores.sqlite").joinpath("schema.sql").read_bytes()
    name = f"indexed-{chunks}-{hashlib.sha256(b'%d %s' % (terms.VERSION, schema)).hexdigest()[:8]}"
    root = WORKSHOP / name
    if root.exists():
        with outcrop.open(root) as index:
            if _is_whole(index, chunks):
                return root
    source = stretches()
    pieces = {
        f"package{number % 50:02}/module{number:05}.py": [next(source) for _ in range(CHUNKS_PER_FILE)]
        for number in range(chunks // CHUNKS_PER_FILE)
    }
    root = repository(name, {path: "".join(texts) for path, texts in pieces.items()})
    with outcrop.open(root) as index:
        listing = index.source.artifacts({})
        space = index.embedder.space
        store = SqliteStore(index.source.store_path(), index.source.worktree)
        with store.writing():
            store.set_space(space)
            digests: list[bytes] = []
            for start in range(0, len(listing.refs), 500):
                entries = [
                    Entry(ref, "benchmark", _cut(pieces[ref.path or ""])) for ref in listing.refs[start : start + 500]
                ]
                store.write(entries)
                digests += [item.digest for entry in entries for item in entry.chunks]
            members = [Member("code", "code", ref.hash, Part.WHOLE, ref.path, ref.kind) for ref in listing.refs]
            store.replace(View(("code", "docs"), members, listing.seen, listing.skipped, index.source.worktrees()))
            vectors = unit_vectors(len(digests), space.dim)
            for start in range(0, len(digests), BATCH):
                store.add_vectors(space, digests[start : start + BATCH], vectors[start : start + BATCH])
            store.finish(listing.revision)
        store.close()
        if not _is_whole(index, chunks):
            raise SystemExit(f"the index at {root} did not become whole")
    return root


def _is_whole(index: outcrop.Index, chunks: int) -> bool:
    status = index.status()
    return not status.stale and sum(line.embedded for line in status.collections) == chunks


def _cut(texts: list[str]) -> list[Digested]:
    items = []
    at, line = 0, 1
    for seq, text in enumerate(texts):
        lines = text.count("\n")
        chunk = Chunk(seq, text, at, at + len(text), line, line + lines - 1, None, Part.WHOLE, None)
        # The number keeps the digests of equal texts apart, as different paths and names do in a real index.
        items.append(Digested(chunk, hashlib.sha256(f"{seq}\0{text}".encode()).digest()))
        at, line = at + len(text), line + lines
    return items

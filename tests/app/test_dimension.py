"""A space is a model and a dimension: two dimensions of one model never mix, and neither removes the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from repositories import make_repository, write
from servers import Request, Sent, as_endpoint, listening

import outcrop
from outcrop.embedders.hash import HashEmbedder
from outcrop.errors import SpaceMismatch

FILES: dict[str, str | bytes] = {
    "zoo.md": "# Zoo\n\nThe lions eat at seven.\n",
    "kettle.md": "# Kettle\n\nBoils water.\n",
}


class Server:
    """An endpoint whose model ``foo`` answers with as many numbers as it is set to."""

    def __init__(self) -> None:
        self.dim = 768
        self.texts = 0

    def __call__(self, request: Request) -> Sent:
        self.texts += len(request.texts)
        return as_endpoint(HashEmbedder(self.dim))(request)


@pytest.fixture
def server() -> Iterator[tuple[Server, str]]:
    answer = Server()
    with listening(answer) as listener:
        yield answer, listener.url


@contextmanager
def opened(place: Path, server: tuple[Server, str], dim: int) -> Iterator[outcrop.Index]:
    server[0].dim = dim
    settings = {"embedder": "endpoint", "model": "foo", "dim": dim, "endpoint_url": server[1]}
    with outcrop.open(place, settings=settings) as index:
        yield index


def stored(place: Path, server: tuple[Server, str]) -> dict[str, int]:
    with opened(place, server, server[0].dim) as index:
        return {each.space: each.vectors for each in index.status().spaces}


def test_another_dimension_is_another_space_and_the_old_vectors_stay(
    tmp_path: Path, server: tuple[Server, str]
) -> None:
    write(tmp_path, FILES)
    with opened(tmp_path, server, 768) as index:
        assert index.build().embedded == 2
    with opened(tmp_path, server, 512) as index:
        answer = index.search("lions at seven")
        assert answer.mode.value == "keyword"
        assert "the index holds vectors of foo-768, but the embedder is foo-512" in str(answer.reason)
        assert index.plan().texts == 2
        report = index.build()
        assert (report.embedded, report.complete) == (2, True)
        answer = index.search("lions at seven")
        assert (answer.mode.value, answer.reason, answer.space) == ("hybrid", None, "foo-512")
        assert answer.hits[0].path == "zoo.md"
        assert index.status().complete == 1.0
    assert stored(tmp_path, server) == {"foo-512": 2, "foo-768": 2}
    texts = server[0].texts
    with opened(tmp_path, server, 768) as index:
        assert index.build().embedded == 0
        assert index.search("lions at seven").space == "foo-768"
        assert index.check().damage == ()
        assert index.clear(space="foo-512") >= 0
        assert index.search("lions at seven", mode="semantic").reason is None
    assert stored(tmp_path, server) == {"foo-768": 2}
    assert server[0].texts == texts + 2  # the two questions


def test_vectors_of_another_dimension_are_refused_when_they_travel(tmp_path: Path, server: tuple[Server, str]) -> None:
    place = make_repository(tmp_path / "place", FILES)
    with opened(place, server, 768) as index:
        index.build()
        index.export(tmp_path / "blobs")
        index.export()
    with opened(place, server, 512) as index:
        index.build()
        for folder in (tmp_path / "blobs", None):
            with pytest.raises(SpaceMismatch, match="vectors of foo-768, but the embedder is foo-512"):
                index.import_blobs(folder)
        index.export(tmp_path / "blobs")
    texts = server[0].texts
    other = make_repository(tmp_path / "other", FILES)
    with opened(other, server, 512) as index:
        assert index.import_blobs(tmp_path / "blobs").imported == 2
        assert index.build().embedded == 0
        assert index.search("lions at seven", mode="keyword").hits[0].path == "zoo.md"
    assert stored(other, server) == {"foo-512": 2}
    assert server[0].texts == texts


def test_an_index_that_held_one_dimension_a_model_is_brought_up(tmp_path: Path, server: tuple[Server, str]) -> None:
    write(tmp_path, FILES)
    with opened(tmp_path, server, 768) as index:
        index.build()
        path = index.store.path
    with closing(sqlite3.connect(path)) as database:
        # As schema 2 was: no checksums, and one vector of a model for each passage.
        database.executescript(
            "ALTER TABLE fx_vec_chunk DROP COLUMN checksum; ALTER TABLE fx_vec_embedding RENAME TO newer;"
            "CREATE TABLE fx_vec_embedding(chunk_id INTEGER NOT NULL REFERENCES fx_vec_chunk(id), model TEXT NOT NULL,"
            " dim INTEGER NOT NULL, v BLOB NOT NULL, PRIMARY KEY(chunk_id, model)); DROP TABLE fx_vec_refused;"
            "DROP TABLE fx_vec_commit_terms;"
            "INSERT INTO fx_vec_embedding SELECT chunk_id, model, dim, v FROM newer; DROP TABLE newer;"
            "UPDATE fx_vec_meta SET value = '2' WHERE key = 'schema'"
        )
    with opened(tmp_path, server, 768) as index:
        assert index.check().damage == ()
        assert index.build().embedded == 0
        assert index.search("lions at seven", mode="semantic").hits[0].path == "zoo.md"
    with opened(tmp_path, server, 512) as index:
        assert index.build().embedded == 2
    assert stored(tmp_path, server) == {"foo-512": 2, "foo-768": 2}

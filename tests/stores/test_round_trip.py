"""From a text to a vector, into SQLite and back: nothing is lost, and near stays near."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from servers import as_endpoint, listening

import outcrop
from outcrop.chunking import artifact, passage
from outcrop.config.settings import Settings
from outcrop.embedders.hash import HashEmbedder
from outcrop.embedders.local.embedder import LocalEmbedder

NOTES = {
    "time.md": "# Time limits\n\nA socket that has been silent for thirty seconds is shut down.\n",
    "cake.md": "# Cake\n\nBeat the egg whites with the sugar until they are stiff.\n",
    "vote.md": "# Elections\n\nThe parliament is elected for a term of four years.\n",
}


@pytest.mark.parametrize("name", ["local", "hash", "endpoint"])
def test_round_trip(name: str, tmp_path) -> None:
    for path, text in NOTES.items():
        (tmp_path / path).write_text(text)
    embedder = {"local": LocalEmbedder(), "hash": HashEmbedder(), "endpoint": HashEmbedder(100)}[name]
    with listening(as_endpoint(embedder)) as server:
        settings = Settings(embedder=name)
        if name == "endpoint":
            settings = Settings(embedder=name, model=embedder.space.model, dim=100, endpoint_url=server.url)
        with outcrop.open(tmp_path, settings=settings) as index:
            index.build()
            with sqlite3.connect(index.status().store) as database:
                rows = database.execute(
                    "SELECT c.text, e.v, e.dim, e.model"
                    " FROM fx_vec_embedding e JOIN fx_vec_chunk c ON c.id = e.chunk_id"
                ).fetchall()
            database.close()
            raw = artifact.chunk(NOTES["time.md"], "time.md", outcrop.Kind.DOC)[0]
            found = index.search(passage(raw), mode="semantic").hits
            related = index.search("when is an idle connection closed?", mode="semantic").hits
    assert len(rows) == len(NOTES)
    for text, blob, dim, model in rows:
        (path,) = (path for path, whole in NOTES.items() if text in whole)
        (chunk,) = artifact.chunk(NOTES[path], path, outcrop.Kind.DOC)
        stored = np.frombuffer(blob, "<f4")
        assert (len(stored), model) == (dim, embedder.space.model)
        np.testing.assert_allclose(stored, embedder.embed_passages([passage(chunk)])[0], atol=1e-6)
        assert abs(np.linalg.norm(stored.astype(np.float64)) - 1) < 1e-6
    assert found[0].path == "time.md"
    assert found[0].score == pytest.approx(1.0, abs=1e-6)
    if name == "local":
        assert related[0].path == "time.md"
        assert related[0].score > related[1].score + 0.1

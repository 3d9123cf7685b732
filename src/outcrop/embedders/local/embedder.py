"""The default embedder: all-MiniLM-L6-v2, computed on this machine, on all its cores, without any network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outcrop.core.model import Space
from outcrop.core.parallel import map_threaded, usable_cpus
from outcrop.core.protocols import Vector, override
from outcrop.embedders.base import InProcessEmbedder
from outcrop.embedders.known_models import EmbeddingPlan, ModelProfile
from outcrop.embedders.local.session import Session
from outcrop.text.tokenizer import encode

MODEL = "all-MiniLM-L6-v2"
DIM = 384

# The model was trained on texts of at most 128 word pieces, and the graph has no more positions.
MAX_TOKENS = 128

# Made by ``scripts/convert_model.py``.
MODEL_PATH = Path(__file__).parents[2] / "data" / f"{MODEL}.onnx"


class LocalEmbedder(InProcessEmbedder):
    """Implements the ``Embedder`` port; ``threads`` is how many texts it computes at once."""

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(EmbeddingPlan(Space(MODEL, DIM), ModelProfile(dim=DIM, max_tokens=MAX_TOKENS), None))
        self._threads = threads or usable_cpus()

    @override
    def _open(self) -> Session:
        return Session(MODEL_PATH, "Install Outcrop and onnxruntime again.")

    @override
    def _encode(self, model: Session, texts: Sequence[str], prefix: str) -> list[Vector]:
        return map_threaded(lambda text: model.run(encode(text, MAX_TOKENS)), texts, self._threads)

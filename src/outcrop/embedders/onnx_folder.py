"""A model from a folder on this machine, in the ONNX form that exporters write. No network, ever."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from outcrop.core.protocols import Matrix
from outcrop.core.vectors import normalise
from outcrop.embedders import model_folder
from outcrop.embedders.base import PlannedEmbedder
from outcrop.embedders.known_models import ModelOptions, ModelProfile, plan_for
from outcrop.embedders.local.parallel import processors, spread
from outcrop.embedders.local.session import open_session
from outcrop.embedders.truncate import presentable
from outcrop.errors import BadConfig, DimensionMismatch, EmbedderError, EmbedderUnavailable
from outcrop.text.tokenizer import VOCAB_SHA256, encode

INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
# Names that exporters give to what is wanted, the best first; the first one of all where none is there.
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


class FolderEmbedder(PlannedEmbedder):
    """Implements the ``Embedder`` port. The model is loaded when the first text arrives.

    Args:
        model: Path of the folder.
        wishes: What the user wants otherwise.
        threads: Texts to compute at once; None for one per processor.
    """

    def __init__(self, model: str, wishes: ModelOptions, threads: int | None = None) -> None:
        self._layout = model_folder.read(model)
        found = self._layout
        if found.graph is None:
            raise BadConfig(
                f"{found.folder} holds no ONNX graph",
                "Export one (optimum-cli export onnx), or use the embedder sentence-transformers for this folder.",
            )
        if found.modules:
            raise BadConfig(
                f"{found.folder} needs more than its ONNX graph ({', '.join(found.modules)})",
                "Use the embedder sentence-transformers for this folder.",
            )
        standard = ModelProfile(found.query, found.passage, found.dim, found.max_tokens)
        super().__init__(plan_for(found.id, standard, wishes))
        self._threads = threads or processors()
        self._loading = Lock()
        self._loaded: tuple[Any, Callable[[str], Sequence[int]]] | None = None

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        dim = self.space.dim
        pooled = np.empty((len(texts), dim), np.float32)
        if not texts:
            return pooled
        session, tokenize = self._load()

        def work(number: int) -> None:
            ids = tokenize(prefix + presentable(texts[number]))
            vector = self._run(session, ids)
            if vector.shape != (dim,):
                raise DimensionMismatch(
                    f"{self._layout.folder} makes vectors of {vector.size} dimensions, but {dim} are expected",
                    f"Set dim = {vector.size} and index again.",
                )
            pooled[number] = vector

        spread(len(texts), work, self._threads)
        return normalise(pooled)

    def _run(self, session: Any, ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
        row = np.array([ids], np.int64)
        values = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        wanted = [entry.name for entry in session.get_inputs()]
        names = [entry.name for entry in session.get_outputs()]
        output = next((name for name in OUTPUTS if name in names), names[0])
        try:
            made = session.run([output], {name: values[name] for name in wanted})[0][0]
        except Exception as error:  # onnxruntime's errors have no common base
            raise EmbedderError(f"{self._layout.folder} failed on a text of {len(ids)} tokens: {error}") from error
        if made.ndim == 1:
            return np.asarray(made, np.float32)
        match self._layout.pooling:
            case "cls":
                pooled = made[0]
            case "max":
                pooled = made.max(axis=0)
            case "lasttoken":
                pooled = made[-1]
            case _:
                pooled = made.mean(axis=0)
        return np.asarray(pooled, np.float32)

    def _load(self) -> tuple[Any, Callable[[str], Sequence[int]]]:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._open_graph(), self._open_tokenizer()
            return self._loaded

    def _open_graph(self) -> Any:
        try:
            assert self._layout.graph is not None
            session = open_session(self._layout.graph)
        except Exception as error:
            raise EmbedderUnavailable(f"{self._layout.graph} cannot be loaded: {error}", "Export it again.") from error
        strange = {entry.name for entry in session.get_inputs()} - INPUTS
        if strange:
            raise EmbedderUnavailable(
                f"{self._layout.graph} wants more than a text ({', '.join(sorted(strange))})",
                "Export it for the task feature-extraction.",
            )
        return session

    def _open_tokenizer(self) -> Callable[[str], Sequence[int]]:
        folder, limit = self._layout.folder, self._plan.recipe.max_tokens
        words = folder / "vocab.txt"
        whole = folder / "tokenizer.json"
        if not whole.is_file() and self._layout.lower and _is_ours(words):
            return lambda text: encode(text, limit)
        try:
            # Here, because it is an extra.
            import tokenizers
        except ImportError as error:
            raise EmbedderUnavailable(
                "a model from a folder needs the package tokenizers", "Run: pip install 'outcrop[folder]'"
            ) from error
        try:
            tokenizer: Any  # both kinds do the same, and share no base
            if whole.is_file():
                tokenizer = tokenizers.Tokenizer.from_file(str(whole))
            elif words.is_file():
                from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

                tokenizer = BertWordPieceTokenizer(str(words), lowercase=self._layout.lower)
            else:
                raise EmbedderUnavailable(
                    f"{folder} holds neither tokenizer.json nor vocab.txt", "Get the model again."
                )
            tokenizer.no_padding()
            tokenizer.enable_truncation(limit)
        except EmbedderUnavailable:
            raise
        except Exception as error:  # tokenizers raises bare ones
            raise EmbedderUnavailable(
                f"the tokenizer in {folder} cannot be loaded: {error}", "Get it again."
            ) from error
        return lambda text: list(tokenizer.encode(text).ids)


def _is_ours(path: Path) -> bool:
    """Whether a vocabulary is the one that our own tokenizer knows."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == VOCAB_SHA256

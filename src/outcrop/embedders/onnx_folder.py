"""A model from a folder on this machine, in the ONNX form that exporters write. No network, ever."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from outcrop.config.settings import Settings
from outcrop.core.parallel import map_threaded, usable_cpus
from outcrop.core.protocols import Vector, override
from outcrop.embedders import model_folder
from outcrop.embedders.base import InProcessEmbedder
from outcrop.embedders.known_models import plan_from_profile
from outcrop.embedders.local.session import Session
from outcrop.embedders.truncate import sanitize
from outcrop.errors import BadConfig, EmbedderUnavailable
from outcrop.text.tokenizer import VOCAB_SHA256, encode

INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
# Names that exporters give to the output to use, the best first; without any of them it is the graph's first one.
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")

Tokenize = Callable[[str], Sequence[int]]


class FolderEmbedder(InProcessEmbedder):
    """Implements the ``Embedder`` port."""

    def __init__(self, model: str, options: Settings) -> None:
        self._folder = model_folder.read_model_folder(model)
        if self._folder.graph is None:
            raise BadConfig(
                f"{self._folder.path} holds no ONNX graph",
                "Export one (optimum-cli export onnx), or use the embedder sentence-transformers for this folder.",
            )
        if self._folder.modules:
            raise BadConfig(
                f"{self._folder.path} needs more than its ONNX graph ({', '.join(self._folder.modules)})",
                "Use the embedder sentence-transformers for this folder.",
            )
        self._graph = self._folder.graph
        super().__init__(plan_from_profile(self._folder.id, self._folder.profile, options))

    @override
    def _open(self) -> Callable[[str], Vector]:
        session = Session(self._graph, "Export it again.")
        unknown = set(session.inputs) - INPUTS
        if unknown:
            raise EmbedderUnavailable(
                f"{self._graph} needs more inputs than a text ({', '.join(sorted(unknown))})",
                "Export it for the task feature-extraction.",
            )
        output = next((name for name in OUTPUTS if name in session.outputs), None)
        tokenize = self._open_tokenizer()
        return lambda text: self._pool(session.run(tokenize(text), output))

    @override
    def _encode(self, model: Callable[[str], Vector], texts: Sequence[str], prefix: str) -> list[Vector]:
        return map_threaded(lambda text: model(prefix + sanitize(text)), texts, usable_cpus())

    def _pool(self, states: Vector) -> Vector:
        if states.ndim == 1:
            return states
        match self._folder.pooling:
            case "cls":
                pooled = states[0]
            case "max":
                pooled = states.max(axis=0)
            case "lasttoken":
                pooled = states[-1]
            case _:
                pooled = states.mean(axis=0)
        return np.asarray(pooled)

    def _open_tokenizer(self) -> Tokenize:
        folder, limit = self._folder.path, self.max_tokens
        vocabulary = folder / "vocab.txt"
        whole = folder / "tokenizer.json"
        if (
            not whole.is_file()
            and self._folder.lower
            and vocabulary.is_file()
            and hashlib.sha256(vocabulary.read_bytes()).hexdigest() == VOCAB_SHA256
        ):
            return lambda text: encode(text, limit)
        try:
            # Here, because it is an extra.
            import tokenizers
        except ImportError as error:
            raise EmbedderUnavailable(
                "a model from a folder needs the package tokenizers", "Run: pip install 'outcrop[folder]'"
            ) from error
        if not whole.is_file() and not vocabulary.is_file():
            raise EmbedderUnavailable(f"{folder} holds neither tokenizer.json nor vocab.txt", "Get the model again.")
        try:
            tokenizer: Any  # both kinds do the same, and share no base
            if whole.is_file():
                tokenizer = tokenizers.Tokenizer.from_file(str(whole))
            else:
                from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

                tokenizer = BertWordPieceTokenizer(str(vocabulary), lowercase=self._folder.lower)
            tokenizer.no_padding()
            tokenizer.enable_truncation(limit)
        except Exception as error:  # tokenizers raises bare ones
            raise EmbedderUnavailable(
                f"the tokenizer in {folder} cannot be loaded: {error}", "Get it again."
            ) from error
        return lambda text: list(tokenizer.encode(text).ids)

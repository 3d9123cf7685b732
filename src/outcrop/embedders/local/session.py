"""One loaded graph of the default model: word pieces in, the mean of their vectors out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from outcrop.core.protocols import Vector
from outcrop.errors import EmbedderError

DIM = 384

# Longest text, in word pieces. The model was trained on no longer ones, and the fast graph knows no more positions.
MAX_TOKENS = 128


class Session:
    """A graph in memory. Several threads may run it at once; each run stays in its thread.

    Two forms are known by their inputs: the shipped graph, and the one that ``graph.py`` makes.

    Args:
        path: An ONNX file.
    """

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)
        self._fused = [entry.name for entry in self._session.get_inputs()] == ["ids"]

    def mean(self, ids: list[int]) -> Vector:
        """Run one text.

        Args:
            ids: From 2 to 128 word pieces.

        Returns:
            float32 ``[384]``, the mean over all of them, not normalised.
        """
        row = np.array([ids], np.int64)
        inputs: dict[str, Any] = {"ids": row}
        if not self._fused:
            inputs = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        try:
            result = self._session.run(None, inputs)[0][0]
        except Exception as error:  # onnxruntime's errors have no common base
            raise EmbedderError(f"The local model failed on a text of {len(ids)} word pieces: {error}") from error
        vector: Vector = result if self._fused else result.mean(axis=0)
        return vector


def open_session(graph: Path) -> Any:
    """Load a graph on one thread.

    Args:
        graph: An ONNX file.
    """
    # Released builds of onnxruntime queue usage events, with an identifier of the machine, in the user's cache folder
    # and send them to their maker. Only this variable keeps them from it, and only before the library is loaded: the
    # library's own switch comes after the first events.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    # Here, because it takes as long as everything else at start-up and most commands never embed.
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    # Threads over whole texts use the processor better than threads inside one text, by half.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only: standard error belongs to our own messages
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])

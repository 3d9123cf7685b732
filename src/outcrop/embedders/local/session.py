"""One loaded graph of the default model: word pieces in, the mean of their vectors out."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from outcrop.core.protocols import Vector
from outcrop.errors import EmbedderError


class Session:
    """A graph in memory. Several threads may run it at once; each run stays in its thread.

    Args:
        path: An ONNX file that ``scripts/convert_model.py`` made.
    """

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)

    def mean(self, ids: list[int]) -> Vector:
        """Run one text.

        Args:
            ids: From 2 to 128 word pieces.

        Returns:
            float32 ``[384]``, the mean over all of them, not normalised.
        """
        try:
            vector: Vector = self._session.run(None, {"ids": np.array([ids], np.int64)})[0][0]
        except Exception as error:  # onnxruntime's errors have no common base
            raise EmbedderError(f"The local model failed on a text of {len(ids)} word pieces: {error}") from error
        return vector


def open_session(graph: Path) -> Any:
    """Load a graph on one thread."""
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
    if not _has_vnni():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def _has_vnni() -> bool:
    """Whether the processor is known to add products of eight-bit integers without overflow.

    Other x86 processors add them in sixteen bits, unless onnxruntime is asked for precision. Where it is not needed, it
    halves the speed; processors that are not x86 ignore it.
    """
    try:
        return re.search(r"\bavx(512)?_vnni\b", Path("/proc/cpuinfo").read_text("ascii", "replace")) is not None
    except OSError:  # not Linux, so nothing is known
        return False

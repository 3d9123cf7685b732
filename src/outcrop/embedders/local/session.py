"""An ONNX graph in memory: a text's tokens in, the graph's output out."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outcrop.core.protocols import Vector
from outcrop.errors import EmbedderError, EmbedderUnavailable


class Session:
    """A loaded graph. Several threads may run it at once; each run stays in its thread.

    ``fix`` tells the user what to do when it cannot be loaded.
    """

    def __init__(self, graph: Path, fix: str) -> None:
        self._graph = graph
        try:
            self._session = _open(graph)
        except Exception as error:  # onnxruntime's errors have no common base
            raise EmbedderUnavailable(f"{graph} cannot be loaded: {error}", fix) from error
        self.inputs = [entry.name for entry in self._session.get_inputs()]
        self.outputs = [entry.name for entry in self._session.get_outputs()]

    def run(self, ids: Sequence[int], output: str | None = None) -> Vector:
        """One text's output of that name; without a name, the graph's first."""
        row = np.array([ids], np.int64)
        values = {"attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        try:
            made = self._session.run([output or self.outputs[0]], {name: values.get(name, row) for name in self.inputs})
        except Exception as error:
            raise EmbedderError(f"{self._graph} failed on a text of {len(ids)} tokens: {error}") from error
        return np.asarray(made[0][0], np.float32)


def _open(graph: Path) -> Any:
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

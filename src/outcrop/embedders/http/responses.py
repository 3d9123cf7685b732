"""From the bytes that a server sent to unit vectors, or to an error that names what is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from outcrop.core.protocols import Matrix
from outcrop.core.vectors import normalise
from outcrop.errors import BadEmbedding, DimensionMismatch

# In JSON: a float has at most 25 characters, and an indented list adds its own.
BYTES_PER_NUMBER = 64

SPARE_BYTES = 1 << 20

# Characters of a server's message that ours repeats.
EXCERPT = 200

_FIX = "Check the address and the model; outcrop embedder test makes one call and shows what comes back."


def most_bytes(texts: int, dim: int) -> int:
    return SPARE_BYTES + texts * max(dim, 1024) * BYTES_PER_NUMBER


def parse(body: bytes, address: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        seen = "a web page" if body.lstrip()[:1] == b"<" else "nothing" if not body.strip() else "something else"
        raise BadEmbedding(f"{address} should answer in JSON and sent {seen}", _FIX) from error


def vectors(answer: object, texts: int, dim: int, address: str) -> Matrix:
    """The vectors in an answer, in the order of the texts: float32 ``[texts, dim]``, L2-normalised.

    It has one of two shapes: ``{"embeddings": [[…]]}`` or ``{"data": [{"embedding": […], "index": 0}]}``.
    """
    rows = _rows(answer, address)
    if len(rows) != texts:
        raise BadEmbedding(f"{address} sent {len(rows)} vectors for {texts} texts", _FIX)
    lengths = {_length(row, f"vector {number} of {texts}", address) for number, row in enumerate(rows)}
    if len(lengths) > 1:
        raise BadEmbedding(
            f"{address} sent vectors of different lengths ({', '.join(map(str, sorted(lengths)))})", _FIX
        )
    if lengths != {dim}:
        (length,) = lengths
        raise DimensionMismatch(
            f"{address} sends vectors of {length} dimensions, but {dim} are expected",
            f"Set dim = {length} if this is the model you want, and index again.",
        )
    try:
        with np.errstate(over="ignore"):
            return normalise(np.array(rows, np.float64))
    except OverflowError as error:
        raise BadEmbedding(f"{address} sent a number that is too large", _FIX) from error
    except BadEmbedding as error:
        raise BadEmbedding(f"{address}: {error.what[0].lower()}{error.what[1:]}", _FIX) from error


def message(body: bytes) -> str:
    """A server's own error message on one line; empty where it sends nothing readable."""
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        found = "" if body.lstrip()[:1] == b"<" else body.decode("utf-8", "replace")
    for name in ("error", "message", "detail", "message"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return re.sub(r"\s+", " ", found if isinstance(found, str) else json.dumps(found)).strip()


def shorten(line: str) -> str:
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"


def _length(row: object, name: str, address: str) -> int:
    if not isinstance(row, list) or not row:
        raise BadEmbedding(f"{address} sent {_noun(row)} where {name} should be", _FIX)
    if not {*map(type, row)} <= {int, float}:
        wrong = next(each for each in row if type(each) not in (int, float))
        raise BadEmbedding(f"{address} sent {_noun(wrong)} in {name}", _FIX)
    return len(row)


def _rows(answer: object, address: str) -> Sequence[object]:
    if isinstance(answer, dict):
        if isinstance(rows := answer.get("embeddings"), list):
            return rows
        if isinstance(data := answer.get("data"), list) and all(isinstance(item, dict) for item in data):
            return [item.get("embedding") for item in _in_order(data, address)]
    raise BadEmbedding(f"{address} sent JSON that holds neither embeddings nor data", _FIX)


def _in_order(data: list[dict[str, object]], address: str) -> list[dict[str, object]]:
    """By ``index``, where the items have one: nothing says that they come in the order of the texts."""
    if all(item.get("index") is None for item in data):
        return data
    by_index = {index: item for item in data if type(index := item.get("index")) is int}
    if sorted(by_index) != list(range(len(data))):
        raise BadEmbedding(f"{address} sent vectors whose index does not count from 0 to {len(data) - 1}", _FIX)
    return [by_index[index] for index in range(len(data))]


def _noun(value: object) -> str:
    if value == []:
        return "an empty list"
    names = {bool: "true or false", str: "a string", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "a single number")

"""From the bytes that a server sent to unit vectors, or to the name of what is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from outcrop.core.protocols import Matrix
from outcrop.core.vectors import normalise
from outcrop.errors import BadEmbedding, DimensionMismatch

# Of JSON: a float has at most 25 characters, and an indented list adds its own.
BYTES_A_NUMBER = 64

SPARE_BYTES = 1 << 20

# Characters of a server's own words that a message repeats.
EXCERPT = 200

_FIX = "Check the address and the model; outcrop embedder test makes one call and shows what comes back."


def most_bytes(texts: int, dim: int) -> int:
    """How large an honest answer can be."""
    return SPARE_BYTES + texts * max(dim, 1024) * BYTES_A_NUMBER


def parse(body: bytes, address: str) -> object:
    """The JSON in an answer."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        seen = "a web page" if body.lstrip()[:1] == b"<" else "nothing" if not body.strip() else "something else"
        raise BadEmbedding(f"{address} should answer in JSON and sent {seen}", _FIX) from error


def vectors(answer: object, texts: int, dim: int, address: str) -> Matrix:
    """The vectors in an answer, in the order of the texts.

    Two shapes are understood: ``{"embeddings": [[…]]}`` and ``{"data": [{"embedding": […], "index": 0}]}``.

    Args:
        answer: Parsed JSON.
        texts: How many were sent.
        dim: How long the vectors have to be.
        address: For the messages.

    Returns:
        float32 ``[texts, dim]``, L2-normalised.
    """
    rows = _rows(answer, address)
    if len(rows) != texts:
        raise BadEmbedding(f"{address} sent {len(rows)} vectors for {texts} texts", _FIX)
    lengths = {_length(row, f"vector {number} of {texts}", address) for number, row in enumerate(rows)}
    if len(lengths) > 1:
        told = ", ".join(map(str, sorted(lengths)))
        raise BadEmbedding(f"{address} sent vectors of different lengths ({told})", _FIX)
    if lengths != {dim}:
        told = str(*lengths)
        raise DimensionMismatch(
            f"{address} sends vectors of {told} dimensions, but {dim} are expected",
            f"Set dim = {told} if this is the model you want, and index again.",
        )
    try:
        with np.errstate(over="ignore"):
            return normalise(np.array(rows, np.float64))
    except OverflowError as error:
        raise BadEmbedding(f"{address} sent a number that is too large", _FIX) from error
    except BadEmbedding as error:
        raise BadEmbedding(f"{address}: {error.what[0].lower()}{error.what[1:]}", _FIX) from error


def message(body: bytes) -> str:
    """What a server says about an error, on one line; empty where it says nothing readable."""
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        said = "" if body.lstrip()[:1] == b"<" else body.decode("utf-8", "replace")
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and said.get(name):
            said = said[name]
    if isinstance(said, dict) and said.get("message"):
        said = said["message"]
    return re.sub(r"\s+", " ", said if isinstance(said, str) else json.dumps(said)).strip()


def shorten(line: str) -> str:
    """As much of a server's words as a message repeats."""
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"


def _length(row: object, name: str, address: str) -> int:
    """Of one vector, which has to be a list of numbers."""
    if not isinstance(row, list) or not row:
        raise BadEmbedding(f"{address} sent {_noun(row)} where {name} should be", _FIX)
    strange = {*map(type, row)} - {int, float}
    if strange:
        odd = next(each for each in row if type(each) in strange)
        raise BadEmbedding(f"{address} sent {_noun(odd)} in {name}", _FIX)
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
    places = [item.get("index") for item in data]
    if all(place is None for place in places):
        return data
    by_place = {place: item for place, item in zip(places, data, strict=True) if type(place) is int}
    if sorted(by_place) != list(range(len(data))):
        raise BadEmbedding(f"{address} sent vectors whose index does not count from 0 to {len(data) - 1}", _FIX)
    return [by_place[place] for place in range(len(data))]


def _noun(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a string"
        case []:
            return "an empty list"
        case list():
            return "a list"
        case dict():
            return "an object"
    return "a single number"

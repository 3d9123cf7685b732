"""Vectors as unit rows and as bytes: float32, little-endian, whatever the machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from outcrop.core.protocols import Matrix, Vector
from outcrop.errors import BadEmbedding, FormatError

# How a component is stored. Four bytes.
ON_DISK = np.dtype("<f4")


def normalise(matrix: npt.ArrayLike) -> Matrix:
    """Scale every row of finite real numbers ``[n, dim]`` to length 1 within 1e-6: float32, a new array.

    ``BadEmbedding`` for anything else, and for a row of zeros.
    """
    try:
        given = np.asarray(matrix)
    except ValueError as error:
        raise BadEmbedding("The vectors differ in length") from error
    if given.ndim != 2 or given.dtype.kind not in "fiu":
        raise BadEmbedding(f"Not rows of real numbers: an array of {given.dtype}, shape {given.shape}")
    # In float64, because the square of a float32 may be too large or too small for a float32.
    norms = np.sqrt(np.einsum("ij,ij->i", given, given, dtype=np.float64, casting="unsafe"))
    bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
    if bad.size:
        row = int(bad[0])
        fault = "only zeros" if norms[row] == 0 else "NaN or infinity"
        raise BadEmbedding(f"Vector {row} of {len(given)} holds {fault}")
    unit = np.empty(given.shape, np.float32)
    np.divide(given, norms[:, None], out=unit, casting="unsafe")
    return unit


def to_bytes(vector: Vector) -> bytes:
    """One vector (float32 ``[dim]``) as it is stored, in ``4 * dim`` bytes."""
    if vector.ndim != 1:
        raise FormatError(f"One vector was to be stored, not an array of shape {vector.shape}")
    return vector.astype(ON_DISK, copy=False).tobytes()


def from_bytes(data: bytes, dim: int) -> Vector:
    """One stored vector: float32 ``[dim]`` in the machine's byte order, writable, exactly the stored values."""
    vector: Vector = stack([data], dim)[0]
    return vector


def stack(blobs: Sequence[bytes], dim: int) -> Matrix:
    """Stored vectors of ``dim`` components as one matrix: float32 ``[n, dim]``, C-contiguous, writable, copied once."""
    width = dim * ON_DISK.itemsize
    if set(map(len, blobs)) - {width}:
        row = next(row for row, blob in enumerate(blobs) if len(blob) != width)
        raise FormatError(f"Stored vector {row} has {len(blobs[row])} bytes, not the {width} of {dim} components")
    flat = np.frombuffer(bytearray().join(blobs), ON_DISK)
    return flat.astype(np.float32, copy=False).reshape(len(blobs), dim)

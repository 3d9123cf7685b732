"""An embedder's status, without using it, and its self-test, one real call."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from outcrop.core.protocols import Embedder
from outcrop.embedders.http.consent import Egress
from outcrop.errors import EmbedderUnavailable

PARAPHRASES = (
    "The connection is closed when nothing has arrived for half a minute.",
    "After thirty seconds of silence the socket gets shut down.",
)
UNRELATED = (
    "Add the sugar to the egg whites and beat them until stiff.",
    "The parliament was elected for a term of four years.",
)


@dataclass(frozen=True, slots=True)
class EmbedderStatus:
    """What is set; nothing is sent to find it out.

    ``leaves`` says whether text goes to another machine, and is None where the name cannot be looked up; ``allowed``
    whether it may go there without asking, which is true where it does not leave. ``token`` is the token's name.
    """

    space: str
    model: str
    dim: int
    max_tokens: int
    address: str | None
    leaves: bool | None
    allowed: bool
    token: str | None
    proxy: bool


@dataclass(frozen=True, slots=True)
class EmbedderTest:
    """The result of one call with four texts; ``seconds`` includes loading the model.

    Attributes:
        norm: Of the vector that is farthest from length 1, as it is stored.
        near: Cosine between two sentences that say the same in other words.
        far: The highest cosine between either of them and an unrelated sentence.
    """

    space: str
    address: str | None
    seconds: float
    dim: int
    norm: float
    near: float
    far: float
    understands: bool


def status(embedder: Embedder) -> EmbedderStatus:
    """Describe an embedder. Sends no text; the name in its address may be looked up."""
    leaves: bool | None = False
    allowed, token, proxy = True, None, False
    if isinstance(embedder, Egress):
        token = embedder.token
        try:
            route = embedder.locate()
            leaves, proxy = not route.loopback, route.proxy is not None
        except EmbedderUnavailable:
            leaves = None
        allowed = leaves is False or embedder.is_allowed()
    return EmbedderStatus(
        space=embedder.space.id,
        model=embedder.space.model,
        dim=embedder.space.dim,
        max_tokens=embedder.max_tokens,
        address=embedder.address,
        leaves=leaves,
        allowed=allowed,
        token=token,
        proxy=proxy,
    )


def test(embedder: Embedder) -> EmbedderTest:
    started = time.perf_counter()
    vectors = embedder.embed_passages([*PARAPHRASES, *UNRELATED])
    seconds = time.perf_counter() - started
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    cosines = (vectors @ vectors.T).astype(float)
    near, far = float(cosines[0, 1]), float(cosines[:2, 2:].max())
    return EmbedderTest(
        space=embedder.space.id,
        address=embedder.address,
        seconds=seconds,
        dim=vectors.shape[1],
        norm=float(norms[np.abs(norms - 1).argmax()]),
        near=near,
        far=far,
        understands=near > far,
    )

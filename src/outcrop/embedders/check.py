"""What is known of an embedder without using it, and what one real call shows."""

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
STRANGERS = (
    "Add the sugar to the egg whites and beat them until stiff.",
    "The parliament was elected for a term of four years.",
)


@dataclass(frozen=True, slots=True)
class EmbedderStatus:
    """What is set. Nothing was sent to find it out.

    Attributes:
        space: Id of its space.
        model: Model id in it.
        dim: Length of its vectors.
        max_tokens: Word pieces that it reads of a text.
        address: Where text goes; None when it stays in the process.
        leaves: Whether that is another machine; None when the name cannot be looked up.
        allowed: Whether text may go there without asking; true where it does not leave.
        token: Name of the token that goes along; None for none.
        proxy: Whether it would pass through a proxy.
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
    """What one call with four texts showed.

    Attributes:
        space: Id of the space.
        address: Where the texts went; None when they stayed in the process.
        seconds: From the call to the vectors, loading a model included.
        dim: Length of the vectors that came back.
        norm: Of the vector that is farthest from length 1, as it is stored.
        near: Cosine between two sentences that say the same in other words.
        far: The highest cosine between either of them and an unrelated sentence.
        understands: Whether ``near`` is above ``far``: words alone do not achieve that.
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
    """Describe an embedder. No request is made; the name in its address may be looked up."""
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
    """Embed four sentences in one call and look at the vectors."""
    started = time.perf_counter()
    vectors = embedder.embed_passages([*PARAPHRASES, *STRANGERS])
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

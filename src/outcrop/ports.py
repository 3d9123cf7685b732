"""The seams: what an adapter must offer. Use cases know these and nothing behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from outcrop.model import Artifact, Listing, Ref, Seen, Skipped, Space

Matrix = npt.NDArray[np.float32]
"""float32 ``[n, dim]``, rows L2-normalised."""

Vector = npt.NDArray[np.float32]
"""float32 ``[dim]``, L2-normalised."""


class Source(Protocol):
    """Where artifacts come from: a folder, a git repository, a Fossil repository."""

    @property
    def type(self) -> str:
        """``folder``, ``git`` or ``fossil``."""

    @property
    def root(self) -> Path:
        """The folder that paths are relative to."""

    @property
    def project(self) -> str:
        """Slug of the repository."""

    @property
    def worktree(self) -> str:
        """Which view of a shared store this is; empty where there is only one."""

    def worktrees(self) -> frozenset[str]:
        """Every view of the store that still exists, this one included."""

    def store_path(self) -> Path:
        """The database file that the index lives in; it need not exist yet."""

    def revision(self, seen: Mapping[str, Seen]) -> str:
        """Where the source is now, cheaply: equal to ``Listing.revision`` when nothing changed since.

        Args:
            seen: The file states of the last listing.
        """

    def artifacts(self, seen: Mapping[str, Seen]) -> Listing:
        """List everything, reading only files whose state is not in ``seen``.

        Raises:
            SourceError: The source as a whole cannot be read.
        """

    def read(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        """Read artifacts in bulk, one result per ref, in order. A bad one comes back as ``Skipped``, never raised.

        Where the content changed since the listing, the artifact carries a ref with its true hash.
        """


class Embedder(Protocol):
    """Turns texts into vectors. The only way in which anything in the product is embedded."""

    @property
    def space(self) -> Space:
        """Model id and dimension, known without loading the model."""

    @property
    def address(self) -> str | None:
        """Where the text goes; None when it stays in this process."""

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads of one text; the rest is cut."""

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts to be found.

        Returns:
            float32 ``[len(texts), dim]``, L2-normalised.

        Raises:
            EmbedderError: Nothing is returned when one text fails.
        """

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Embed questions. Same shape and errors as :meth:`embed_passages`."""

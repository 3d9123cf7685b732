"""Which of some texts an embedder cannot embed, so that one of them does not stop a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from outcrop.core.protocols import Embedder, Matrix
from outcrop.embedders.http.consent import without_retries
from outcrop.errors import BadEmbedding, EmbedderError, InputRefused

# A text that every model embeds: an embedder that fails on it fails on everything.
CONTROL = "The quick brown fox jumps over the lazy dog."

# Of an embedder that may work for other texts.
REFUSALS = (BadEmbedding, InputRefused)


@dataclass(slots=True)
class Embedding:
    """What became of some texts: vectors of those that were embedded, in order, and by position why others were not."""

    vectors: list[Matrix] = field(default_factory=list)
    embedded: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)


def embed(embedder: Embedder, texts: Sequence[str]) -> Embedding:
    """Embed the texts that the embedder takes, found by halves; its error where it takes none, whatever they are."""
    result = Embedding()
    _embed(result, embedder, embedder, 0, texts)
    return result


def embed_again(embedder: Embedder, texts: Sequence[str]) -> Embedding:
    """Try refused texts once more, each by one request, until one fails for another reason."""
    result = Embedding()
    # A model in this process computes the same as before.
    once = without_retries(embedder)
    for at, text in enumerate(texts if embedder.address is not None else ()):
        try:
            result.vectors.append(once.embed_passages([text]))
        except REFUSALS as error:
            result.refused[at] = error.what
        except EmbedderError:
            break
        else:
            result.embedded.append(at)
    return result


def _embed(result: Embedding, asked: Embedder, embedder: Embedder, start: int, texts: Sequence[str]) -> None:
    try:
        result.vectors.append(asked.embed_passages(texts))
    except REFUSALS as error:
        once = without_retries(embedder)
        if asked is embedder:
            # After each that was tried in earnest: a server may end, or be overloaded, at any time.
            _raise_if_useless(once, error)
        if len(texts) == 1:
            result.refused[start] = error.what
            return
    else:
        result.embedded += range(start, start + len(texts))
        return
    middle = len(texts) // 2
    for offset, half in ((start, texts[:middle]), (start + middle, texts[middle:])):
        # A failure of several only means further halves; a single one is tried as often as any request.
        _embed(result, embedder if len(half) == 1 else once, embedder, offset, half)


def _raise_if_useless(once: Embedder, error: EmbedderError) -> None:
    """Raise the error of an embedder that embeds nothing at all."""
    try:
        once.embed_passages([CONTROL])
    except EmbedderError:
        raise error from None

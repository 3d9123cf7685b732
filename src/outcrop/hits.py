"""From a stored passage to a hit of an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outcrop import manifest
from outcrop.model import Copy, Hit, Mode
from outcrop.preview import preview
from outcrop.records import Passage


def make_hit(
    passage: Passage,
    score: float,
    mode: Mode,
    words: Sequence[str],
    copies: tuple[Copy, ...] = (),
    explanation: tuple[str, ...] = (),
) -> Hit:
    """Describe a passage as an answer does.

    Args:
        passage: What was found.
        score: Dot product, or relative keyword score; clamped to 0 to 1.
        mode: By which half it was found.
        words: Search terms of the question, for the preview.
        copies: Where nearly the same stands.
        explanation: What its place in the list is made of.
    """
    chunk, media = passage.chunk, passage.media
    return Hit(
        score=float(np.clip(score, 0.0, 1.0)),
        kind=passage.kind,
        project=passage.project,
        path=passage.paths[0] if passage.paths else None,
        hash=passage.hash,
        text=chunk.text,
        lines=(chunk.first_line, chunk.last_line),
        name=chunk.name,
        paths=passage.paths,
        corpus=passage.corpora,
        mode=mode,
        preview=preview(chunk.text, words),
        cell=chunk.cell,
        cell_id=chunk.cell_id,
        record=passage.record,
        copies=copies,
        explanation=explanation,
        start=chunk.seconds[0] if chunk.seconds else None,
        end=chunk.seconds[1] if chunk.seconds else None,
        uri=manifest.with_time(media.uri, chunk.seconds) if media else None,
        transcript=media.transcript if media else None,
    )

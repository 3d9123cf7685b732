"""From a stored passage to a hit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outcrop.core.model import Copy, Hit, Kind, Mode
from outcrop.core.rows import Passage
from outcrop.text import commits, manifest, terms

# Characters of a preview at most.
PREVIEW_LENGTH = 160


def make_hit(
    passage: Passage,
    score: float,
    mode: Mode,
    words: Sequence[str],
    copies: tuple[Copy, ...] = (),
    explanation: tuple[str, ...] = (),
) -> Hit:
    """A passage as a hit; the score is clamped to 0 to 1, and the words choose the preview."""
    chunk, media = passage.chunk, passage.media
    return Hit(
        score=float(np.clip(score, 0.0, 1.0)),
        kind=passage.kind,
        project=passage.project,
        path=passage.paths[0] if passage.paths else None,
        hash=passage.hash,
        text=chunk.text,
        lines=(chunk.first_line, chunk.last_line),
        name=commits.heading(chunk.text) if passage.kind is Kind.COMMIT else chunk.name,
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


def preview(text: str, words: Sequence[str]) -> str:
    """The line that holds most of the distinct search terms (the first of equals), with white space folded, capped."""
    wanted = set(map(terms.stem, words))
    best, most = "", -1
    for line in text.split("\n"):
        folded = " ".join(line.split())
        if not any(char.isalnum() for char in folded):
            continue
        matches = len(wanted.intersection(map(terms.stem, terms.words(folded))))
        if matches > most:
            best, most = folded, matches
    return best if len(best) <= PREVIEW_LENGTH else best[: PREVIEW_LENGTH - 1].rstrip() + "…"

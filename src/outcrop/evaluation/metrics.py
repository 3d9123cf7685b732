"""How good rankings are, by the measures that the field uses; computed by ``ir-measures``, which comes as an extra.

NDCG@10 (Järvelin and Kekäläinen, 2002) with the grade as gain, as in trec_eval; recall@10: the share of relevant
documents among the first ten; MRR@10: one divided by the place of the first relevant one, 0 where that is past ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outcrop.errors import UsageError

# Documents of a ranking that count.
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Scores:
    """What one ranking is worth at :data:`DEPTH` documents, each from 0 to 1."""

    ndcg: float
    recall: float
    mrr: float


def require() -> None:
    try:
        # Imported here, as below: it is an extra, and nothing else needs it.
        import ir_measures  # noqa: F401
    except ImportError:
        raise UsageError(
            "measuring needs the package ir-measures, which is not installed", "Run: pip install 'outcrop[eval]'"
        ) from None


def score(rankings: Sequence[Sequence[str]], grades: Sequence[Mapping[str, int]]) -> list[Scores]:
    """Score one ranking a question (names, best first, none twice) by the grades of documents, one of them above 0."""
    require()
    import ir_measures
    from ir_measures import RR, Qrel, R, ScoredDoc, nDCG

    measures = (nDCG @ DEPTH, R @ DEPTH, RR @ DEPTH)
    judged = [Qrel(str(at), name, grade) for at, each in enumerate(grades) for name, grade in each.items()]
    ranked = [
        ScoredDoc(str(at), name, float(-place))
        for at, ranking in enumerate(rankings)
        for place, name in enumerate(ranking[:DEPTH])
    ]
    found: dict[tuple[str, object], float] = {
        (each.query_id, each.measure): each.value for each in ir_measures.iter_calc(measures, judged, ranked)
    }
    return [Scores(*(found[str(at), measure] for measure in measures)) for at in range(len(rankings))]

"""What is measured and what is noise: bootstrap intervals of means, and of differences between two systems.

Percentile bootstrap (Efron, 1979), paired: both systems answered the same questions, so questions are drawn and each
brings both its scores along (Sakai, 2006, for retrieval). The seed is fixed: the same scores give the same interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
LEVEL = 0.95
SEED = 20_11_30

# With fewer, an interval is narrower than what it should say.
FEWEST_QUESTIONS = 10

# Bounds the memory of many questions.
_RESAMPLES_AT_ONCE = 1_000

Values = npt.NDArray[np.float64]


class Verdict(StrEnum):
    """What a difference amounts to."""

    BETTER = "better"
    WORSE = "worse"
    CHANCE = "may be chance"
    SAME = "the same"
    TOO_FEW = "too few questions"


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and where it would lie with other questions of the same sort, 95 times of 100."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one system is than another, question by question."""

    interval: Interval  # Mean difference; above 0 the first one is better
    verdict: Verdict


def interval(values: Sequence[float], groups: Sequence[Hashable] | None = None) -> Interval:
    """The mean of some scores and its bootstrap interval.

    Where each question has a group (a repository), groups are drawn first, and questions within each, so that the
    interval says what to expect of other groups.
    """
    array = np.asarray(values, np.float64)
    if not array.size:
        raise ValueError("no values")
    if groups is not None:
        low, high = np.quantile(_means_of_groups(array, groups), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    elif array.size == 1:
        low = high = array[0]
    else:
        # Imported here: it takes half a second, and a search needs none of it.
        from scipy.stats import bootstrap

        low, high = bootstrap(
            (array,),
            np.mean,
            n_resamples=RESAMPLES,
            batch=_RESAMPLES_AT_ONCE,
            confidence_level=LEVEL,
            method="percentile",
            rng=np.random.default_rng(SEED),
        ).confidence_interval
    return Interval(float(array.mean()), float(low), float(high), array.size)


def difference(one: Sequence[float], other: Sequence[float], groups: Sequence[Hashable] | None = None) -> Difference:
    """By how much one system is better than another on the same questions, in the same order."""
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values and {len(other)} are no pairs")
    gaps = np.subtract(np.asarray(one, np.float64), np.asarray(other, np.float64))
    found = interval(gaps.tolist(), groups)
    return Difference(found, _verdict(gaps, found))


def _verdict(gaps: Values, found: Interval) -> Verdict:
    if not gaps.any():
        return Verdict.SAME
    if gaps.size < FEWEST_QUESTIONS:
        return Verdict.TOO_FEW
    if found.low > 0:
        return Verdict.BETTER
    return Verdict.WORSE if found.high < 0 else Verdict.CHANCE


def _means_of_groups(values: Values, groups: Sequence[Hashable]) -> Values:
    members: dict[Hashable, list[int]] = {}
    for at, group in enumerate(groups):
        members.setdefault(group, []).append(at)
    own = [values[places] for places in members.values()]
    draw = np.random.default_rng(SEED)
    means = np.empty(RESAMPLES)
    for at in range(RESAMPLES):
        chosen = [own[number] for number in draw.integers(len(own), size=len(own))]
        drawn = [group[draw.integers(group.size, size=group.size)] for group in chosen]
        means[at] = np.concatenate(drawn).mean()
    return means

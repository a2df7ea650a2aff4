"""Where series of runs change: rank tests, and chance over all series told by permuting the runs.

A series is cut where the ranks before and after differ most (Pettitt, "A non-parametric approach to the change-point
problem", Applied Statistics 28, 1979, each cut beside its own variance), and each part again as long as that is no
chance. One run changes all of its series together, so runs are permuted whole, and of all series the smallest
probability counts, step by step (Westfall and Young, "Resampling-based multiple testing", Wiley 1993; Ge, Dudoit and
Speed, Test 12, 2003, box 4): that any change is found where there is none has the level's probability at most, whatever
the noise looks like, as long as runs are exchangeable. A machine that drifts, or whose days resemble the day before, is
not: `tests/benchmarks/bench_history.py` says how often that is taken for a change.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

# Of nine runs, one order in 35 is as unlike as can be: no change is rare enough. Of ten it may be.
MIN_RUNS = 10
# Fewer runs on a side of a cut are outliers.
_MIN_SIDE = 2
_DRAWS = 4999
# Beyond this many numbers of permuted series, fewer are drawn.
_MAX_NUMBERS = 60_000_000
_MIN_DRAWS = 999
_SEED = 20261123

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePoint(Generic[K]):
    """A series is another one from run `at` on, until run `until`; it was so from run `since` on.

    All three are places among all runs, `until` being the first that is not meant. `p` is corrected for all series.
    """

    series: K
    since: int
    at: int
    until: int
    p: float


@dataclass(frozen=True, slots=True)
class _Part(Generic[K]):
    series: K
    # Places of the runs that have a value, and the ranks of these less their mean.
    places: tuple[int, ...]
    ranks: NDArray[np.float32]


def change_points(
    series: Mapping[K, Sequence[float]], *, level: float = 0.05, draws: int = _DRAWS
) -> list[ChangePoint[K]]:
    """Return the changes of all series, by series and place; `level` holds for all of them together.

    Each series has a value for each run, in the order of the runs, or nan. What has fewer than `MIN_RUNS`
    values, or one value throughout, has none. Parts of a series in which a change was found are a test of their
    own, at the same level. Equal series give equal answers.
    """
    rng = np.random.default_rng(_SEED)
    runs = max((len(values) for values in series.values()), default=0)
    parts = [
        part
        for key, values in series.items()
        if (part := _part(key, [(i, v) for i, v in enumerate(values) if math.isfinite(v)]))
    ]
    values_of = {key: list(values) for key, values in series.items()}
    found: list[ChangePoint[K]] = []
    while parts:
        p = _corrected(parts, runs, draws, rng)
        following = []
        for part, probability in zip(parts, p, strict=True):
            if probability > level:
                continue
            places, values = part.places, values_of[part.series]
            at = _cut([(i, values[i]) for i in places], places[len(places) // 2])
            k = places.index(at)
            found.append(ChangePoint(series=part.series, since=places[0], at=at, until=places[-1] + 1, p=probability))
            following += [
                inner
                for side in (places[:k], places[k:])
                if (inner := _part(part.series, [(i, values[i]) for i in side]))
            ]
        parts = following
    return _bounded(found, values_of)


def _part(key: K, values: Sequence[tuple[int, float]]) -> _Part[K] | None:
    """Return a part of a series that can be tested, or None."""
    if len(values) < MIN_RUNS or len({value for _, value in values}) == 1:
        return None
    return _Part(key, tuple(i for i, _ in values), _ranks([value for _, value in values]))


def _ranks(values: Sequence[float]) -> NDArray[np.float32]:
    """Return ranks less their mean; equal values share the mean of their places."""
    numbers = np.array(values)
    ordered = np.sort(numbers)
    ranks = (np.searchsorted(ordered, numbers, "left") + np.searchsorted(ordered, numbers, "right")) / 2
    return np.asarray(ranks - ranks.mean(), np.float32)


def _best_cuts(ranks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how unlike the sides of each row's best cut are.

    `ranks`: rows of centred ranks, shape (rows, values).
    """
    amount = ranks.shape[1]
    before = np.arange(_MIN_SIDE, amount - _MIN_SIDE + 1)
    scale = np.sqrt(before * (amount - before) / amount).astype(np.float32)
    sums = np.cumsum(ranks, axis=1, dtype=np.float32)[:, before - 1]
    return np.asarray((np.abs(sums) / scale).max(axis=1), np.float32)


def _corrected(parts: Sequence[_Part[K]], runs: int, draws: int, rng: np.random.Generator) -> list[float]:
    """Return each part's probability, corrected for all: step-down minimum over permuted runs."""
    draws = max(_MIN_DRAWS, min(draws, _MAX_NUMBERS // (runs * len(parts)))) + 1
    keys = rng.random((draws, runs), dtype=np.float32)
    # What was seen is one of the orders, and counts as such.
    keys[0] = np.arange(runs)
    orders: dict[tuple[int, ...], NDArray[np.intp]] = {}
    # Of each part and order: how many orders are as unlikely or more.
    at_least = np.empty((len(parts), draws), np.int32)
    for number, part in enumerate(parts):
        if part.places not in orders:
            orders[part.places] = keys[:, part.places].argsort(axis=1)
        # Sums of equal numbers in another order differ in the last digit.
        scores = _best_cuts(part.ranks[orders[part.places]]).round(3)
        at_least[number] = draws - np.searchsorted(np.sort(scores), scores, "left")
    order = np.argsort(at_least[:, 0], kind="stable")
    least = np.full(draws, draws, np.int32)
    adjusted = np.ones(len(parts))
    for number in order[::-1]:
        least = np.minimum(least, at_least[number])
        adjusted[number] = (least <= at_least[number, 0]).sum() / draws
    adjusted[order] = np.maximum.accumulate(adjusted[order])
    return [float(value) for value in adjusted]


def _bounded(found: Sequence[ChangePoint[K]], values_of: Mapping[K, Sequence[float]]) -> list[ChangePoint[K]]:
    """Return the changes in order, each with the runs to the change before and after it.

    A cut that was made before those beside it is made again between them: three levels are not two.
    """
    bounded = []
    for key, values in values_of.items():
        of_series = sorted((point for point in found if point.series == key), key=lambda point: point.at)
        if not of_series:
            continue
        first, last = min(point.since for point in of_series), max(point.until for point in of_series)
        cuts = [point.at for point in of_series]
        for _ in range(2):
            ends = [first, *cuts, last]
            cuts = [
                _cut([(i, values[i]) for i in range(low, high) if math.isfinite(values[i])], cut)
                for low, cut, high in zip(ends, cuts, ends[2:], strict=False)
            ]
        ends = [first, *cuts, last]
        bounded += [
            ChangePoint(series=key, since=since, at=at, until=until, p=point.p)
            for point, since, at, until in zip(of_series, ends, cuts, ends[2:], strict=False)
        ]
    return bounded


def _cut(values: Sequence[tuple[int, float]], cut: int) -> int:
    """Return where two levels fit best: the cut with the least sum of distances to its sides' medians.

    Ranks tell that there is a change; a side's own spread of ranks draws their best cut to the middle.
    """
    if len(values) < 2 * _MIN_SIDE:
        return cut
    numbers = np.array([value for _, value in values])
    costs = [
        sum(float(np.abs(side - np.median(side)).sum()) for side in (numbers[:k], numbers[k:]))
        for k in range(_MIN_SIDE, len(numbers) - _MIN_SIDE + 1)
    ]
    return values[_MIN_SIDE + int(np.argmin(costs))][0]

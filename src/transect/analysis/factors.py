"""What a factor does to a score: paired over seeds, with Student's interval, in incomplete designs too.

A seed fixes the base model and the order of the rows, so that two runs of one seed that differ in
one factor differ by that factor alone. A block is all that two such runs share but the seed: the
levels of every other factor. Each seed gives one number, the mean over its blocks of the difference
between the two levels, and the seeds are the sample. Blocks in which some seed lacks a level are
left out for all of them: a runtime without an optimiser takes no part in that optimiser's effect.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import t as student

__all__ = ["Effect", "Run", "effect", "effects", "interaction", "spread_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run: the level of each factor, its seed, and the score that it reached."""

    levels: Mapping[str, str]
    seed: int
    score: float

    def block(self, *without: str) -> tuple[tuple[str, str], ...]:
        """Return the levels of all other factors."""
        return tuple(sorted(item for item in self.levels.items() if item[0] not in without))


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """Mean over seeds of a difference, in the score's unit, with Student's interval.

    `low` and `high` are None with fewer than two seeds, and both the mean where all seeds agree.
    `blocks` is the number of combinations of other factors that are averaged over.
    """

    factor: str
    before: str
    after: str
    mean: float
    low: float | None
    high: float | None
    seeds: int
    blocks: int
    confidence: float

    @property
    def shown(self) -> bool:
        """Whether the interval exists and does not hold 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def effect(
    runs: Iterable[Run], factor: str, before: str, after: str,
    *, given: Mapping[str, str] | None = None, confidence: float = 0.95,
) -> Effect | None:  # fmt: skip
    """Return what `after` in place of `before` does; `given` holds other factors at one level each.

    None when no block has both levels for every seed. Raises ValueError for two runs that
    differ in nothing, and for an unknown factor.
    """
    differences = _differences(_chosen(runs, given or {}), factor, before, after)
    return _summary(differences, factor, before, after, confidence)


def effects(
    runs: Iterable[Run], baseline: Mapping[str, str], *, confidence: float = 0.95
) -> list[Effect]:
    """Return the effect of each factor's other levels against its level in `baseline`, in their order."""
    runs = list(runs)
    found = []
    for factor, base in baseline.items():
        others = dict.fromkeys(run.levels[factor] for run in runs if run.levels[factor] != base)
        for level in others:
            one = effect(runs, factor, base, level, confidence=confidence)
            found += [one] if one is not None else []
    return found


def interaction(
    runs: Iterable[Run], factor: str, levels: tuple[str, str], other: str, others: tuple[str, str],
    *, confidence: float = 0.95,
) -> Effect | None:  # fmt: skip
    """Return by how much more `factor` does at the second level of `other` than at the first.

    0: the two add up. The effect's `factor` is named FACTOR:OTHER. None as in `effect`.
    """
    runs = list(runs)
    sides = [
        _differences(_chosen(runs, {other: level}), factor, *levels, without=(other,))
        for level in others
    ]
    blocks = sides[0].keys() & sides[1].keys()
    both = {
        block: {seed: sides[1][block][seed] - value for seed, value in sides[0][block].items()
                if seed in sides[1][block]}
        for block in blocks
    }  # fmt: skip
    return _summary(both, f"{factor}:{other}", *levels, confidence)


def spread_of(runs: Iterable[Run]) -> float | None:
    """Return the deviation of the scores between seeds, levels apart (pooled); None without two.

    What an effect is set against: how much luck alone moves a score.
    """
    cells: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for run in runs:
        cells.setdefault(run.block(), []).append(run.score)
    several = [scores for scores in cells.values() if len(scores) > 1]
    if not several:
        return None
    squares = sum(statistics.variance(scores) * (len(scores) - 1) for scores in several)
    return math.sqrt(squares / sum(len(scores) - 1 for scores in several))


Differences = dict[tuple[tuple[str, str], ...], dict[int, float]]


def _chosen(runs: Iterable[Run], given: Mapping[str, str]) -> list[Run]:
    return [run for run in runs if all(run.levels[name] == level for name, level in given.items())]


def _differences(
    runs: Sequence[Run], factor: str, before: str, after: str, *, without: tuple[str, ...] = ()
) -> Differences:
    """Return the difference between two levels by block and seed, where a seed has both."""
    scores: dict[tuple[tuple[str, str], ...], dict[tuple[int, str], float]] = {}
    for run in runs:
        if factor not in run.levels:
            raise ValueError(f"a run has no factor '{factor}', it has {', '.join(run.levels)}")
        cell = scores.setdefault(run.block(factor, *without), {})
        key = (run.seed, run.levels[factor])
        if key in cell:
            raise ValueError(f"two runs of seed {run.seed} at {dict(run.levels)}")
        cell[key] = run.score
    return {
        block: {
            seed: cell[seed, after] - score
            for (seed, level), score in cell.items()
            if level == before and (seed, after) in cell
        }
        for block, cell in scores.items()
    }


def _summary(
    differences: Differences, factor: str, before: str, after: str, confidence: float
) -> Effect | None:
    seeds = sorted({seed for of_block in differences.values() for seed in of_block})
    whole = [of_block for of_block in differences.values() if seeds and len(of_block) == len(seeds)]
    if not whole:
        return None
    sample = [statistics.fmean(of_block[seed] for of_block in whole) for seed in seeds]
    mean, low, high = statistics.fmean(sample), None, None
    if len(sample) > 1:
        error = statistics.stdev(sample) / math.sqrt(len(sample))
        half = float(student.ppf(0.5 + confidence / 2, len(sample) - 1)) * error
        low, high = mean - half, mean + half
    return Effect(
        factor=factor, before=before, after=after, mean=mean, low=low, high=high, seeds=len(seeds),
        blocks=len(whole), confidence=confidence,
    )  # fmt: skip

"""Studies with a known truth: what share of firm verdicts is wrong, and how many there are.

The noise is made up in several shapes, or drawn from the residuals of real repeats. Each study has
eight cells that are compared as the report does it: the noise of all, then each with the first, with
Holm's correction over the study.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from transect.analysis.comparisons import Comparison, Sureness, compare, compare_paired
from transect.analysis.statistics import noise_floor, paired_noise_floor
from transect.analysis.verdicts import LEVEL, corrected
from transect.domain.until import MARGIN, looks_of

__all__ = ["SHAPES", "TRUTH", "Noise", "Tally", "adaptive_study", "of_residuals", "study"]

# Logarithms of eight cells' true times: equal, within the margin, at its very edge, and apart.
TRUTH = (0.0, 0.0, 0.0, 0.02, math.log1p(MARGIN), -math.log1p(MARGIN), 0.10, 0.30)

# Draws noise for cells by repeats; the columns are moments, one after another.
Noise = Callable[[np.random.Generator, int, int], np.ndarray]


def _lognormal(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    return 0.02 * rng.standard_normal((cells, runs))


def _unlike(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """Cells from a third to three times as noisy as others."""
    scale = np.exp(0.8 * rng.standard_normal((cells, 1)))
    return 0.02 * scale * rng.standard_normal((cells, runs))


def _heavy(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    return 0.015 * rng.standard_t(2, (cells, runs))


def _skewed(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    return 0.03 * rng.exponential(1.0, (cells, runs))


def _outliers(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """One run in seven is disturbed and takes up to three times as long."""
    hit = rng.random((cells, runs)) < 0.15
    return _unlike(rng, cells, runs) + hit * rng.uniform(0.1, 1.1, (cells, runs))


def _two_states(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """Each run is in one of two states, 15 % apart, whatever its cell."""
    return 0.15 * (rng.random((cells, runs)) < 0.5) + 0.25 * _lognormal(rng, cells, runs)


def _drift(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """The machine slows down by 15 % while cells run in rounds, in random order within each."""
    moments = np.stack([rng.permutation(cells) + n * cells for n in range(runs)], axis=1)
    return 0.15 * moments / (cells * runs) + _lognormal(rng, cells, runs)


def _autocorrelated(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """An AR(1) path over all moments: neighbours in time share most of their noise."""
    path, value = np.empty(cells * runs), 0.0
    for moment in range(cells * runs):
        value = 0.8 * value + 0.02 * rng.standard_normal()
        path[moment] = value
    rounds = path.reshape(runs, cells)
    return np.stack([rounds[n][rng.permutation(cells)] for n in range(runs)], axis=1)


SHAPES: dict[str, Noise] = {
    "lognormal": _lognormal, "unlike cells": _unlike, "heavy tail": _heavy, "skewed": _skewed,
    "outliers": _outliers, "two states": _two_states, "drift": _drift, "autocorrelated": _autocorrelated,
}  # fmt: skip


def of_residuals(groups: Sequence[Sequence[float]]) -> Noise:
    """Draw the noise of repeats that were recorded, of all cells of a kind together.

    A run is off the middle of its cell by what happened at its moment; what a cell's three runs were
    off by is no distribution of its own. The middle one of three is 0 by construction and left out.
    """
    residuals: list[float] = []
    for values in groups:
        logs = sorted(math.log(value) for value in values if value > 0)
        middle = len(logs) // 2
        centre = logs[middle]
        if len(logs) > 1:
            residuals += [one - centre for n, one in enumerate(logs) if n != middle]
    if not residuals:
        raise ValueError("no cell has two repeats: nothing tells what the noise is")
    drawn = np.array(residuals)
    # A little smoothed: a few values drawn again and again are no noise of a clock.
    smooth = 0.1 * float(np.median(np.abs(drawn)))

    def draw(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
        shape = cells, runs
        return rng.choice(drawn, shape) + smooth * rng.standard_normal(shape)

    return draw


def _adjusted(comparisons: Sequence[Comparison]) -> list[tuple[Comparison, float]]:
    decisions = [one.decision for one in comparisons if one.decision]
    return list(zip(comparisons, corrected(decisions, [1.0] * len(decisions)), strict=True))


def _firm(one: Comparison, p: float) -> bool:
    return one.sureness is Sureness.FIRM and p <= LEVEL


@dataclass
class Tally:
    """What became of verdicts. `chances` counts comparisons of each kind of truth."""

    firm: dict[str, int] = field(default_factory=lambda: {"different": 0, "same": 0})
    wrong: dict[str, int] = field(default_factory=lambda: {"different": 0, "same": 0})
    found: dict[str, int] = field(default_factory=lambda: {"equal": 0, "10 %": 0, "35 %": 0})
    chances: dict[str, int] = field(default_factory=lambda: {"equal": 0, "10 %": 0, "35 %": 0})
    studies: int = 0
    studies_wrong: int = 0
    repeats: int = 0

    @property
    def wrong_share(self) -> float:
        """The share of firm verdicts that is wrong; 0 without any."""
        return sum(self.wrong.values()) / max(1, sum(self.firm.values()))

    def power(self, kind: str) -> float:
        """The share of comparisons of that truth that end firm and right."""
        return self.found[kind] / max(1, self.chances[kind])

    def count(self, comparisons: Sequence[Comparison]) -> None:
        """Add a study: the cells beside the first, in their order."""
        before = sum(self.wrong.values())
        for true, (one, p) in zip(TRUTH[1:], _adjusted(comparisons), strict=True):
            assert one.decision is not None
            kind = {0.0: "equal", 0.10: "10 %", 0.30: "35 %"}.get(true)
            if kind:
                self.chances[kind] += 1
            if not _firm(one, p):
                continue
            edge = math.log1p(MARGIN) - 1e-9
            # The ratio is the cell over the first.
            apart = true == 0 or (one.decision.ratio > 1) != (true > 0)
            wrong = abs(true) >= edge if one.equal else apart
            self.firm["same" if one.equal else "different"] += 1
            self.wrong["same" if one.equal else "different"] += wrong
            if kind and not wrong:
                self.found[kind] += one.equal == (kind == "equal")
        self.studies += 1
        self.studies_wrong += sum(self.wrong.values()) > before


def _compared(
    logs: np.ndarray, counts: Sequence[int], looks: int, *, paired: bool
) -> list[Comparison]:
    values = [np.exp(row[:count]).tolist() for row, count in zip(logs, counts, strict=True)]
    if paired:
        own = [dict(enumerate(row)) for row in values]
        shared = paired_noise_floor(own, looks=looks)
        told = [compare_paired(one, own[0], floor=shared) for one in own[1:]]
    else:
        floor = noise_floor(values, looks=looks)
        told = [compare(one, values[0], floor=floor) for one in values[1:]]
    return [one for one in told if one is not None]


def study(tally: Tally, rng: np.random.Generator, noise: Noise, runs: int, *, paired: bool) -> None:
    """Simulate one study of `runs` repeats of each cell, and count its verdicts."""
    logs = np.array(TRUTH)[:, None] + noise(rng, len(TRUTH), runs)
    tally.repeats += runs * len(TRUTH)
    tally.count(_compared(logs, [runs] * len(TRUTH), 1, paired=paired))


def adaptive_study(
    tally: Tally, rng: np.random.Generator, noise: Noise, floor: int, cap: int, *, paired: bool
) -> None:
    """The same, where each cell goes on until its comparison is firm or `cap` is reached."""
    logs = np.array(TRUTH)[:, None] + noise(rng, len(TRUTH), cap)
    looks = looks_of(floor, cap)
    counts = [floor] * len(TRUTH)
    told: list[Comparison] = []
    for look, following in zip(looks, [*looks[1:], None], strict=True):
        told = _compared(logs, counts, len(looks), paired=paired)
        undecided = [i for i, (one, p) in enumerate(_adjusted(told), 1) if not _firm(one, p)]
        if not undecided or following is None:
            break
        assert look == counts[0]
        for i in (0, *undecided):
            counts[i] = following
    tally.repeats += sum(counts)
    tally.count(told)

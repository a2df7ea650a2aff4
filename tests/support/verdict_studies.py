"""Studies with a known truth: what share of confirmed verdicts is wrong, and how many there are.

The noise is made up in several shapes, or drawn from the residuals of real repeats. Each study has
eight cells that are compared as the report does it, with the noise of all and one correction over what is
compared: the best with each other one (`race`), the first with each other one, or both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from factories import infer_cell, make_record
from transect.analysis.groups import Group
from transect.analysis.side_by_side import under
from transect.domain.until import MARGIN, looks_of
from transect.stats.comparisons import Comparison, Confidence, compare, compare_paired
from transect.stats.noise import middle
from transect.stats.samples import noise_floor, paired_noise_floor
from transect.stats.verdicts import LEVEL, corrected

# Logarithms of eight cells' true times: equal, within the margin, at its very edge, and apart.
TRUTH = (0.0, 0.0, 0.0, 0.02, math.log1p(MARGIN), 0.10, 0.30, 0.90)
# What is compared.
RACE, BASE, BOTH = "race", "base", "both"
# What of that power is told for.
_KINDS = {0.0: "equal", 0.10: "10 %", 0.30: "35 %", 0.90: "2.5 x"}

# Draws noise for cells by repeats; the columns are moments, one after another.
Noise = Callable[[np.random.Generator, int, int], np.ndarray]


def _lognormal(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    return 0.02 * rng.standard_normal((cells, runs))


def _unlike(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """Cells from a third to three times as noisy as others."""
    return np.exp(0.8 * rng.standard_normal((cells, 1))) * _lognormal(rng, cells, runs)


def _two_states(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """Each run is in one of two states, 15 % apart, whatever its cell."""
    return 0.15 * (rng.random((cells, runs)) < 0.5) + 0.25 * _lognormal(rng, cells, runs)


def _outliers(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """One run in seven is disturbed and takes up to three times as long."""
    hit = rng.random((cells, runs)) < 0.15
    return _unlike(rng, cells, runs) + hit * rng.uniform(0.1, 1.1, (cells, runs))


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
    "lognormal": _lognormal,
    "unlike cells": _unlike,
    "heavy tail": lambda rng, cells, runs: 0.015 * rng.standard_t(2, (cells, runs)),
    "skewed": lambda rng, cells, runs: 0.03 * rng.exponential(1.0, (cells, runs)),
    "outliers": _outliers,
    "two states": _two_states,
    # More than half as long again: others compute on what two cores share.
    "far states": lambda rng, cells, runs: 3 * _two_states(rng, cells, runs),
    "drift": _drift,
    "autocorrelated": _autocorrelated,
}


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
            residuals += [log - centre for n, log in enumerate(logs) if n != middle]
    if not residuals:
        raise ValueError("no cell has two repeats: nothing tells what the noise is")
    drawn = np.array(residuals)
    # A little smoothed: a few values drawn again and again are no noise of a clock.
    smooth = 0.1 * float(np.median(np.abs(drawn)))

    def draw(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
        shape = cells, runs
        return rng.choice(drawn, shape) + smooth * rng.standard_normal(shape)

    return draw


@dataclass(frozen=True)
class _Verdict:
    """A comparison, with the true logarithm of its ratio and its corrected probability."""

    comparison: Comparison
    truth: float
    p: float
    cells: tuple[int, int]

    @property
    def confirmed(self) -> bool:
        return self.comparison.confidence is Confidence.CONFIRMED and self.p <= LEVEL

    @property
    def wrong(self) -> bool:
        """Whether a confirmed verdict is: the same at the margin or beyond, or apart the wrong way."""
        decision = self.comparison.decision
        assert decision is not None
        if self.comparison.equal:
            return abs(self.truth) >= math.log1p(MARGIN) - 1e-9
        return self.truth == 0 or (decision.ratio > 1) != (self.truth > 0)


@dataclass
class Tally:
    """What became of verdicts. `chances` counts comparisons of each kind of truth."""

    confirmed: dict[str, int] = field(default_factory=lambda: {"different": 0, "same": 0})
    wrong: dict[str, int] = field(default_factory=lambda: {"different": 0, "same": 0})
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS.values(), 0))
    chances: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS.values(), 0))
    studies: int = 0
    studies_wrong: int = 0
    repeats: int = 0

    @property
    def wrong_share(self) -> float:
        """The share of confirmed verdicts that is wrong; 0 without any."""
        return sum(self.wrong.values()) / max(1, sum(self.confirmed.values()))

    def power(self, kind: str) -> float:
        """The share of comparisons of that truth that end confirmed and right."""
        return self.found[kind] / max(1, self.chances[kind])

    def count(self, verdicts: Sequence[_Verdict]) -> None:
        """Add a study."""
        before = sum(self.wrong.values())
        for verdict in verdicts:
            kind = _KINDS.get(abs(verdict.truth))
            if kind:
                self.chances[kind] += 1
            if not verdict.confirmed:
                continue
            self.confirmed["same" if verdict.comparison.equal else "different"] += 1
            self.wrong["same" if verdict.comparison.equal else "different"] += verdict.wrong
            if kind and not verdict.wrong:
                self.found[kind] += verdict.comparison.equal == (kind == "equal")
        self.studies += 1
        self.studies_wrong += sum(self.wrong.values()) > before


def _compared(
    logs: np.ndarray,
    counts: Sequence[int],
    looks: int,
    *,
    paired: bool,
    design: str,
    groups: Sequence[Group] | None = None,
    disturbed: np.ndarray | None = None,
) -> list[_Verdict]:
    """Compare the best of all cells with each other one, or the first one.

    `groups`: when they ran, and on what; the noise is that of runs that are not known to be `disturbed`.
    """
    values = [np.exp(row[:count]).tolist() for row, count in zip(logs, counts, strict=True)]
    runs = [dict(enumerate(row)) for row in values]
    quiet = runs
    if disturbed is not None:
        quiet = [{n: v for n, v in row.items() if not loud[n]} for row, loud in zip(runs, disturbed, strict=True)]
    lists = [list(row.values()) for row in quiet]
    floor = paired_noise_floor(quiet, looks=looks) if paired else noise_floor(lists, looks=looks)
    pairs = []
    if design != BASE:
        best = min(range(len(values)), key=lambda i: middle(values[i]))
        pairs = [(best, i, len(values)) for i in range(len(values)) if i != best]
    if design != RACE:
        pairs += [(0, i, 2) for i in range(1, len(values))]
    results, cells = [], []
    for a, b, n_candidates in pairs:
        result = compare_paired(runs[a], runs[b], floor=floor) if paired else compare(values[a], values[b], floor=floor)
        assert result is not None and result.decision is not None
        result = replace(result, n_candidates=n_candidates)
        results.append(under(result, groups[a], groups[b]) if groups else result)
        cells.append((a, b))
    decisions = [result.decision for result in results if result.decision is not None]
    adjusted = corrected(decisions, [result.n_comparisons for result in results])
    return [
        _Verdict(comparison=result, truth=TRUTH[a] - TRUTH[b], p=p, cells=(a, b))
        for result, p, (a, b) in zip(results, adjusted, cells, strict=True)
    ]


def fixed_study(
    tally: Tally, rng: np.random.Generator, noise: Noise, runs: int, *, paired: bool, design: str = BOTH
) -> None:
    """Simulate one study of `runs` repeats of each cell, and count its verdicts."""
    logs = np.array(TRUTH)[:, None] + noise(rng, len(TRUTH), runs)
    tally.repeats += runs * len(TRUTH)
    tally.count(_compared(logs, [runs] * len(TRUTH), 1, paired=paired, design=design))


# How much slower the machine is a week later, as a logarithm.
_SLOWER = math.log(1.5)
_RECORD = make_record(infer_cell("c"))
_DAYS = tuple(
    _RECORD.model_copy(update={"started": day.isoformat(), "ended": day.isoformat()})
    for day in (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=days) for days in (0, 7))
)


def moved_study(tally: Tally, rng: np.random.Generator, noise: Noise, runs: int, *, paired: bool) -> None:
    """The same of repeats parted over two days of a week, of each cell as it came, and a machine slower on the later."""
    cells = len(TRUTH)
    later = rng.random((cells, runs)) < rng.choice([0.0, 0.2, 0.8, 1.0], (cells, 1))
    logs = np.array(TRUTH)[:, None] + noise(rng, cells, runs) + _SLOWER * later
    groups = []
    for row in later:
        records = tuple(_DAYS[int(day)] for day in row)
        groups.append(Group(cell=_RECORD.cell, records=records, ok=records))
    tally.repeats += runs * cells
    tally.count(_compared(logs, [runs] * cells, 1, paired=paired, design=BOTH, groups=groups))


def watched_study(tally: Tally, rng: np.random.Generator, noise: Noise, runs: int, *, paired: bool) -> None:
    """The same where one run in seven is disturbed, takes up to three times as long, and the guard sees most of these."""
    cells = len(TRUTH)
    hit = rng.random((cells, runs)) < 0.15
    seen = hit & (rng.random((cells, runs)) < 0.9)
    logs = np.array(TRUTH)[:, None] + noise(rng, cells, runs)
    logs += hit * rng.uniform(0.1, 1.1, (cells, runs))
    groups = []
    for row in seen:
        records = tuple(_DAYS[0].model_copy(update={"details": {"disturbed": bool(loud)}}) for loud in row)
        groups.append(Group(cell=_RECORD.cell, records=records, ok=records))
    tally.repeats += runs * cells
    tally.count(_compared(logs, [runs] * cells, 1, paired=paired, design=BOTH, groups=groups, disturbed=seen))


def adaptive_study(tally: Tally, rng: np.random.Generator, noise: Noise, floor: int, cap: int, *, paired: bool) -> None:
    """The same, where each cell goes on until its comparison with the best is confirmed or `cap` is reached."""
    logs = np.array(TRUTH)[:, None] + noise(rng, len(TRUTH), cap)
    looks = looks_of(floor, cap)
    counts = [floor] * len(TRUTH)
    verdicts: list[_Verdict] = []
    for look, following in zip(looks, [*looks[1:], None], strict=True):
        verdicts = _compared(logs, counts, len(looks), paired=paired, design=BOTH)
        race = verdicts[: len(TRUTH) - 1]
        going_on = {i for verdict in race if not verdict.confirmed for i in verdict.cells if counts[i] == look}
        if not going_on or following is None:
            break
        for i in going_on:
            counts[i] = following
    tally.repeats += sum(counts)
    tally.count(verdicts)

"""Studies with a known truth: how many of their planned comparisons end decided, and what share of these is wrong.

A study's pairs are those that it plans. Its launches take turns, or are neighbours in time; the noise is made up in the
shapes that recorded launches have (log scale): block by block within a launch, between launches of one cell, in two states,
beside a process that comes and goes. Contrasts are evaluated by what the report uses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from transect.analysis.contrasts import Contrast, Contrasts, ends_early
from transect.analysis.groups import Floors, Group
from transect.domain.cell import Cell
from transect.domain.pairs import Pair
from transect.domain.record import Cause, Status
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import LEVEL, Answer

TURNS = 10
# The second part of a cell's contenders is so much slower, as a logarithm.
TRUTHS = {"A/A": 0.0, "5 %": math.log(1.05), "10 %": math.log(1.10), "20 %": math.log(1.20), "2 x": math.log(2.0)}


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What contrasts need of a record."""

    point: Cell
    repeat: int
    details: dict[str, Any]
    numbers: dict[str, float]
    status: Status = Status.OK
    cause: Cause | None = None
    started: str = "2026-11-26T12:00:00+00:00"
    ended: str = "2026-11-26T12:00:05+00:00"
    provenance: dict[str, Any] = field(default_factory=dict)
    metrics: tuple[Any, ...] = ()

    @property
    def cell_id(self) -> str:
        """The id of its cell."""
        return self.point.changed(repeat=self.repeat).id

    def value(self, name: str, label: str | None = None) -> float | None:
        """Return a metric's value."""
        return self.numbers.get(name)


@dataclass(frozen=True, kw_only=True)
class Launches:
    """What the launches of one repeat show: logarithms by contender and turn, and which turns were seen to be quiet."""

    logs: np.ndarray
    quiet: np.ndarray


def launches(
    rng: np.random.Generator,
    contenders: int,
    *,
    within: tuple[float, float] = (0.04, 0.06),
    between: tuple[float, float] = (0.01, 0.05),
    drift: float = 0.1,
    states: float = 0.0,
    busy: float = 0.0,
    slower: tuple[float, float] = (0.1, 0.7),
    seen: float = 0.9,
) -> Launches:
    """Draw launches: noise `within` one, block by block, and `between` those of a cell, each a range of deviations.

    `drift` is what the machine does to neighbours in time alike, `states` how far apart two states are of which each launch
    is in one; another process is `busy` for this share of the turns, slows each by `slower`, and is `seen` in most.
    """
    shape = contenders, TURNS
    logs = rng.uniform(*within, (contenders, 1)) * rng.standard_normal(shape)
    logs += rng.uniform(*between, (contenders, 1)) * rng.standard_normal((contenders, 1))
    logs += drift * rng.standard_normal((1, TURNS)) + states * (rng.random((contenders, 1)) < 0.5)
    hit = rng.random(shape) < busy
    logs += hit * rng.uniform(*slower, shape)
    return Launches(logs=logs, quiet=~(hit & (rng.random(shape) < seen)))


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Noise of launches, with the settings of `launches`; `turns`: whether they take turns, or follow one another."""

    turns: bool = True
    how: dict[str, Any] = field(default_factory=dict)

    def draw(self, rng: np.random.Generator, contenders: int) -> Launches:
        """Draw one repeat of so many contenders."""
        return launches(rng, contenders, **self.how)


SHAPES = {
    "quiet": Shape(),
    "launches unlike": Shape(how={"between": (0.04, 0.06)}),
    "two states": Shape(how={"between": (0.005, 0.02), "states": 0.15}),
    "another now and then": Shape(how={"busy": 0.15}),
    # In all turns, which say so; a turn's value is a median, of which the other takes a part.
    "one busy process": Shape(
        how={"within": (0.03, 0.08), "between": (0.02, 0.05), "drift": 0.2, "busy": 1.0, "slower": (0.0, 0.15)}
    ),
    # As recorded of whole runs.
    "no turns": Shape(turns=False, how={"between": (0.08, 0.15)}),
}


@dataclass(frozen=True, kw_only=True)
class Design:
    """What a study plans: its asked pairs and the repeats of each point, which go on to `most` while intervals are wide."""

    pairs: Sequence[Pair]
    points: dict[tuple[str, str], Cell]
    repeats: dict[tuple[str, str], int]
    margin: float = 0.10
    most: int = 6

    @cached_property
    def order(self) -> list[tuple[str, str]]:
        """Its points, in one order."""
        return sorted({point for pair in self.pairs for point in pair.points})


@dataclass
class Tally:
    """What became of asked comparisons. `decided`: sure or likely; `sure` after correction; `wrong` of those decided.

    `barred` are those that cannot be compared: of ranks or threads, where another process used the cores all the time.
    """

    asked: int = 0
    barred: int = 0
    sure: int = 0
    decided: int = 0
    wrong: int = 0
    wrong_sure: int = 0
    studies: int = 0
    studies_wrong: int = 0
    repeats: float = 0.0

    @property
    def wrong_share(self) -> float:
        """The share of decided comparisons that is wrong."""
        return self.wrong / max(1, self.decided)

    def add(self, other: Tally) -> None:
        """Add the studies of another one."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def count(self, contrasts: Sequence[Contrast], truth: dict[int, float], repeats: float) -> None:
        """Add a study; `truth` by group."""
        surely_wrong = 0
        for made in contrasts:
            self.asked += 1
            self.barred += bool(made.barred)
            if made.answer is Answer.OPEN:
                continue
            wrong = is_wrong(made, truth[id(made.group)] - truth[id(made.base)])
            sure = made.confidence is Confidence.CONFIRMED
            self.decided += 1
            self.sure += sure
            self.wrong += wrong
            surely_wrong += wrong and sure
        self.wrong_sure += surely_wrong
        self.studies_wrong += surely_wrong > 0
        self.studies += 1
        self.repeats += repeats


def is_wrong(made: Contrast, truth: float) -> bool:
    """Whether an answer is: the same at the margin or beyond, or apart the wrong way. `truth`: of the cost's logarithm."""
    if made.answer is Answer.SAME:
        return abs(truth) >= math.log1p(made.comparison.margin) - 1e-9
    return truth == 0 or (made.cost.value > 1) != (truth > 0)


def study(tally: Tally, rng: np.random.Generator, design: Design, shape: Shape, truth: float) -> None:
    """Simulate one study, half of whose points are slower by `truth`, and count how its asked pairs end."""
    order = design.order
    slower = dict(zip(order, rng.permutation([truth * (i % 2) for i in range(len(order))]), strict=True))
    most = max(design.most, *(design.repeats[point] for point in order))
    drawn = [shape.draw(rng, len(order)) for _ in range(most)]
    amount = 0
    while True:
        # All go on alike: extra repeats go to both sides.
        amount = min(most, amount + 1) if amount else min(3, most)
        counts = {point: max(design.repeats[point], amount) for point in order}
        groups = _groups(design, slower, drawn, counts, turns=shape.turns)
        made = Contrasts(design.pairs, groups.values(), Floors(groups.values(), design.margin))
        every = [single for single in made if single.asked]
        enough = math.log1p(design.margin) / 2
        early = ends_early(every)
        if amount == most or all(id(s) in early or s.at(LEVEL).half_width <= enough for s in every):
            break
        amount = max(amount, min(counts.values()))
    tally.count(
        every, {id(group): slower[point] for point, group in groups.items()}, sum(counts.values()) / len(counts)
    )


def _groups(
    design: Design,
    slower: dict[tuple[str, str], float],
    drawn: Sequence[Launches],
    counts: dict[tuple[str, str], int],
    *,
    turns: bool,
) -> dict[tuple[str, str], Group[Any]]:
    groups = {}
    for place, point in enumerate(design.order):
        cell = design.points[point]
        runs = []
        for repeat, heat in enumerate(drawn[: counts[point]]):
            seconds = np.exp(heat.logs[place] + slower[point])
            still = heat.quiet[place]
            # Rates are of one sample a step, whatever the batch, so that what is slower by a step is so by its rate.
            details: dict[str, Any] = {"disturbed": bool(still.sum() < max(4, TURNS / 2)), "global_batch": 1}
            if turns:
                told = {"train": "step_time", "bench": "pose_time"}.get(cell.stage, "latency")
                lists = {"seconds": seconds.tolist(), "quiet": still.tolist(), "metric": told}
                details["turns"] = {"heat": str(repeat), "end_to_end_seconds": seconds.tolist(), **lists}
            mean = float(seconds[still].mean() if still.any() else seconds.mean())
            names = ("step_time", "time_to_quality", "latency", "end_to_end_time", "pose_time")
            numbers = dict.fromkeys(names, mean) | {"samples_per_second": 1 / mean, "steps_to_quality": 100.0}
            runs.append(Run(cell, repeat, details, numbers))
        groups[point] = Group(cell=cell, records=tuple(runs), ok=tuple(runs))
    return groups
